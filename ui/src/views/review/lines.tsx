/** Render the rows of the review. */

import { useEffect, useMemo } from "preact/hooks";
import type { PendingHunk } from "../../api";
import { highlighter } from "../../diff/highlighter";
import { DiffLine, type OpenGap } from "../../diff/lines";
import type { Line, Pair } from "../../diff/model";
import { tokensOf, type TokensOf } from "../../diff/tokens";
import { count } from "../../format";
import { Icon } from "../../parts/icons";
import { Counts, Path, StatusLetter } from "../../parts/small";
import type { FilePart } from "./groups";
import type { ReviewRow } from "./rows";

const LOAD_AFTER_MS = 50;

export interface ReviewActions {
  keep: (hunks: PendingHunk[]) => void;
  undo: (hunks: PendingHunk[]) => void;
  choose: (hunk: PendingHunk) => void;
  fold: (key: string) => void;
  open: OpenGap;
  request: (path: string) => void;
  /** Rises when files must be requested again. */
  version: number;
  /** The number of each hunk in the list, by id. */
  numbers: Map<string, number>;
  linesOf: (part: FilePart) => readonly string[] | null;
}

export function RowView(props: {
  row: ReviewRow;
  current: PendingHunk | null;
  act: ReviewActions;
}) {
  const { row, current, act } = props;
  switch (row.kind) {
    case "group":
      return (
        <div class="review-group" style={{ height: `${row.height}px` }}>
          <h2>{row.group.title}</h2>
          <span class="faint">{row.group.note}</span>
        </div>
      );
    case "file":
      return <FileHead part={row.part} folded={row.folded} act={act} />;
    case "note":
      return (
        <div class="diff-note" style={{ height: `${row.height}px` }}>
          {row.text}
        </div>
      );
    case "hunk":
      return (
        <HunkHead
          hunk={row.hunk}
          number={act.numbers.get(row.hunk.hunk) ?? 0}
          total={act.numbers.size}
          active={row.hunk.hunk === current?.hunk}
          act={act}
        />
      );
    default:
      return <Lines row={row} act={act} active={isChange(row) && row.hunk === current?.hunk} />;
  }
}

function isChange(row: ReviewRow): row is (Line | Pair) & { part: FilePart } {
  if (row.kind === "line") return row.sign !== " ";
  return row.kind === "pair" && (row.left?.sign !== " " || row.right?.sign !== " ");
}

export function FileHead({
  part,
  folded,
  act,
}: {
  part: FilePart;
  folded: boolean;
  act: ReviewActions;
}) {
  const { path, status } = part.file;
  useEffect(() => {
    if (status !== "modified") return undefined;
    // Do not load files that only scroll past.
    const timer = window.setTimeout(() => act.request(path), LOAD_AFTER_MS);
    return () => clearTimeout(timer);
  }, [path, status, act.version]);
  return (
    <div class="file-head">
      <button
        type="button"
        class="bare fold"
        aria-expanded={!folded}
        aria-label={`${folded ? "Unfold" : "Fold"} ${path}`}
        onClick={() => act.fold(part.key)}
      >
        <Icon name={folded ? "right" : "down"} />
      </button>
      <StatusLetter of={status} />
      <Path path={path} />
      <Counts additions={part.additions} deletions={part.deletions} />
      <span class="bar-space" />
      <button
        type="button"
        class="small"
        title="Undo the whole file (d)"
        onClick={() => act.undo(part.hunks)}
      >
        Undo file
      </button>
      <button
        type="button"
        class="small"
        title="Keep the whole file (a)"
        onClick={() => act.keep(part.hunks)}
      >
        Keep file
      </button>
    </div>
  );
}

function HunkHead(props: {
  hunk: PendingHunk;
  number: number;
  total: number;
  active: boolean;
  act: ReviewActions;
}) {
  const { hunk, act } = props;
  const turns = hunk.turns.filter((each) => each > 0);
  return (
    <div
      class={props.active ? "hunk-head is-active" : "hunk-head"}
      aria-current={props.active ? "true" : undefined}
      data-hunk={hunk.hunk}
      onClick={() => act.choose(hunk)}
    >
      <span class="hunk-place">
        Change {props.number} <span class="faint">of {props.total}</span>
      </span>
      <span class="hunk-facts faint">
        {hunk.kind === "lines" && `line ${hunk.new_start}`}
        {turns.length > 0 &&
          ` · ${turns.length === 1 ? `turn ${turns[0]}` : count(turns.length, "turn")}`}
      </span>
      {hunk.mixed && (
        <span
          class="tag"
          title="Lines in this change were edited later by someone else. Those edits stay."
        >
          edited since
        </span>
      )}
      <span class="bar-space" />
      <button
        type="button"
        class="small"
        onClick={(event) => (event.stopPropagation(), act.undo([hunk]))}
      >
        <Icon name="undo" size={13} /> Undo {props.active && <kbd>n</kbd>}
      </button>
      <button
        type="button"
        class="small strong"
        onClick={(event) => (event.stopPropagation(), act.keep([hunk]))}
      >
        <Icon name="check" size={13} /> Keep {props.active && <kbd>y</kbd>}
      </button>
    </div>
  );
}

function Lines(props: {
  row: Exclude<ReviewRow, { kind: "group" | "file" | "note" | "hunk" }>;
  act: ReviewActions;
  active: boolean;
}) {
  const { row, act } = props;
  const make = highlighter();
  const lines = act.linesOf(row.part);
  const tokens = useMemo(() => cachedTokens(row.part, lines, make), [row.part, lines, make]);
  return <DiffLine row={row} tokens={tokens} active={props.active} open={act.open} />;
}

const cache = new WeakMap<
  FilePart,
  { lines: readonly string[] | null; make: ReturnType<typeof highlighter>; of: TokensOf }
>();

function cachedTokens(
  part: FilePart,
  lines: readonly string[] | null,
  make: ReturnType<typeof highlighter>,
): TokensOf {
  const known = cache.get(part);
  if (known && known.lines === lines && known.make === make) return known.of;
  const hunks = part.hunks.map((hunk) => ({ ...hunk, id: hunk.hunk }));
  const of = tokensOf(part.file.path, hunks, lines, make);
  cache.set(part, { lines, make, of });
  return of;
}
