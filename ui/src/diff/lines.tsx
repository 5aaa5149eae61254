/** Render one row of a diff. */

import { count } from "../format";
import { Icon } from "../parts/icons";
import { Tokens } from "./code";
import { GAP_STEP_LINES, type DiffRow, type Gap, type Line } from "./model";
import type { TokensOf } from "./tokens";

export type OpenGap = (gap: string, how: "all" | "below" | "above") => void;

const SIGNS = { " ": "same", "+": "added", "-": "removed" };

export function DiffLine(props: {
  row: DiffRow;
  tokens: TokensOf;
  active?: boolean;
  open?: OpenGap;
}) {
  const { row, tokens } = props;
  const style = { height: `${row.height}px` };
  const active = props.active ? " is-active" : "";
  if (row.kind === "gap") return <GapRow row={row} open={props.open} />;
  if (row.kind === "line")
    return (
      <div class={`diff-line diff-${SIGNS[row.sign]}${active}`} style={style}>
        <span class="diff-number">{row.old ?? ""}</span>
        <span class="diff-number">{row.now ?? ""}</span>
        <Text line={row} tokens={tokens} />
      </div>
    );
  return (
    <div class={`diff-pair${active}`} style={style}>
      <Half line={row.left} side="old" tokens={tokens} />
      <Half line={row.right} side="now" tokens={tokens} />
    </div>
  );
}

function GapRow({ row, open }: { row: Gap; open: OpenGap | undefined }) {
  const { hidden, between } = row;
  const steps = hidden !== null && hidden > GAP_STEP_LINES * 2;
  return (
    <div class="diff-gap" style={{ height: `${row.height}px` }}>
      <button type="button" onClick={() => open?.(row.id, "all")}>
        <Icon name="more" size={14} />{" "}
        {hidden === null ? "Show the lines below" : count(hidden, "unchanged line")}
      </button>
      {steps && between[0] && (
        <button
          type="button"
          class="diff-step"
          title={`Show ${GAP_STEP_LINES} more lines below the change above`}
          onClick={() => open?.(row.id, "below")}
        >
          <Icon name="down" size={12} /> {GAP_STEP_LINES}
          <span class="unseen"> more lines below the change above</span>
        </button>
      )}
      {steps && between[1] && (
        <button
          type="button"
          class="diff-step"
          title={`Show ${GAP_STEP_LINES} more lines above the change below`}
          onClick={() => open?.(row.id, "above")}
        >
          <Icon name="up" size={12} /> {GAP_STEP_LINES}
          <span class="unseen"> more lines above the change below</span>
        </button>
      )}
    </div>
  );
}

function Half(props: { line: Line | null; side: "old" | "now"; tokens: TokensOf }) {
  const { line, side } = props;
  if (!line) return <div class="diff-half diff-none" />;
  return (
    <div class={`diff-half diff-${SIGNS[line.sign]}`}>
      <span class="diff-number">{line[side] ?? ""}</span>
      <Text line={line} tokens={props.tokens} />
    </div>
  );
}

const ENDS = { none: "no newline at end", return: "␍" };

function Text({ line, tokens }: { line: Line; tokens: TokensOf }) {
  const lineTokens = tokens(line);
  return (
    <>
      <span class="diff-sign" aria-hidden="true">
        {line.sign === "-" ? "−" : line.sign}
      </span>
      <span class="diff-text">
        {line.sign !== " " && <span class="unseen">{SIGNS[line.sign]}: </span>}
        <Tokens
          text={line.text}
          marks={line.marks}
          {...(line.sign === "+" ? { blank: line.text.trimEnd().length } : {})}
          {...(lineTokens ? { tokens: lineTokens } : {})}
        />
        {line.cut > 0 && <span class="faint"> … {count(line.cut, "more character")}</span>}
        {line.end && (
          <span class="diff-end" title={line.end === "return" ? "carriage return" : undefined}>
            {ENDS[line.end]}
          </span>
        )}
      </span>
    </>
  );
}
