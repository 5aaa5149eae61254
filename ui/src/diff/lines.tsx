/** One row of a difference, drawn. */

import { Icon } from "../parts/icons";
import { count } from "../words";
import { Tokens } from "./code";
import type { DiffRow, Line } from "./model";
import type { Token } from "./syntax";

export type TokensOf = (line: Line) => Token[] | undefined;

const SIGNS = { " ": "same", "+": "added", "-": "removed" };

export function DiffLine(given: {
  row: DiffRow;
  tokens: TokensOf;
  active?: boolean;
  open?: (gap: string) => void;
}) {
  const { row, tokens } = given;
  const style = { height: `${row.height}px` };
  const active = given.active ? " is-active" : "";
  if (row.kind === "gap")
    return (
      <div class="diff-gap" style={style}>
        <button type="button" onClick={() => given.open?.(row.open)}>
          <Icon name="more" size={14} /> {count(row.to - row.from, "unchanged line")}
        </button>
      </div>
    );
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

function Half(given: { line: Line | null; side: "old" | "now"; tokens: TokensOf }) {
  const { line, side } = given;
  if (!line) return <div class="diff-half diff-none" />;
  return (
    <div class={`diff-half diff-${SIGNS[line.sign]}`}>
      <span class="diff-number">{line[side] ?? ""}</span>
      <Text line={line} tokens={given.tokens} />
    </div>
  );
}

function Text({ line, tokens }: { line: Line; tokens: TokensOf }) {
  return (
    <>
      <span class="diff-sign" aria-hidden="true">
        {line.sign === "-" ? "−" : line.sign}
      </span>
      <span class="diff-text">
        {line.sign !== " " && <span class="unseen">{SIGNS[line.sign]}: </span>}
        <Tokens text={line.text} mark={line.mark} {...tokensProp(tokens(line))} />
        {line.cut > 0 && <span class="faint"> … {count(line.cut, "more character")}</span>}
      </span>
    </>
  );
}

function tokensProp(tokens: Token[] | undefined): { tokens?: Token[] } {
  return tokens ? { tokens } : {};
}
