/**
 * Turn a diff into rows of known height, for the review, comparisons and messages.
 *
 * Hunks come from the server, context lines from the current file. Until the file is loaded its
 * context rows are blank, so that nothing moves when the text arrives.
 */

import { markColumns } from "../parts/invisible";
import type { Row } from "../parts/virtual";
import { WordDiff, type Span } from "./word-diff";

export interface Hunk {
  id: string;
  old_start: number;
  new_start: number;
  old_lines: readonly string[];
  new_lines: readonly string[];
}

/** An unusual line end: no newline, or CRLF in a hunk that also has LF lines. */
export type End = "" | "none" | "return";

/** One line of a diff. The key is computed on demand, because there may be very many lines. */
export class Line implements Row {
  readonly kind = "line";

  constructor(
    readonly file: string,
    readonly hunk: string,
    readonly sign: " " | "+" | "-",
    readonly old: number | null,
    readonly now: number | null,
    /** Index of its text in the hunk's old or new lines, or in the file. */
    readonly at: number,
    readonly text: string,
    readonly height: number,
    /** Number of characters cut off at the end. */
    readonly cut: number,
    readonly end: End,
    private readonly differences: WordDiff | null,
  ) {}

  /** The changed spans of the line. */
  get marks(): readonly Span[] {
    if (this.sign === " " || !this.differences) return [];
    return this.differences.of(this.sign, this.at);
  }

  get key(): string {
    return this.sign === " "
      ? `${this.file} ${this.now}`
      : `${this.file} ${this.hunk} ${this.sign} ${this.at}`;
  }
}

/** Two lines side by side; one may be missing. */
export class Pair implements Row {
  readonly kind = "pair";
  readonly height: number;

  constructor(
    readonly file: string,
    readonly hunk: string,
    readonly left: Line | null,
    readonly right: Line | null,
  ) {
    this.height = Math.max(left?.height ?? 0, right?.height ?? 0);
  }

  get key(): string {
    if (this.left === this.right) return this.left!.key;
    return `${this.left?.key ?? ""} ${this.right?.key ?? ""}`;
  }
}

export interface Gap extends Row {
  kind: "gap";
  file: string;
  /** Number of hidden lines; null until the file is loaded. */
  hidden: number | null;
  /** True if there is a change above; true if there is one below. */
  between: [boolean, boolean];
  id: string;
}

/** Extra context lines by gap: below the change above it, and above the change below it. */
export type OpenedGaps = ReadonlyMap<string, readonly [below: number, above: number]>;

export function openGap(old: OpenedGaps, gap: string, how: "all" | "below" | "above"): OpenedGaps {
  const [below, above] = old.get(gap) ?? [0, 0];
  const next = new Map(old);
  if (how === "all") next.set(gap, [Infinity, 0]);
  else
    next.set(
      gap,
      how === "below" ? [below + GAP_STEP_LINES, above] : [below, above + GAP_STEP_LINES],
    );
  return next;
}

export type DiffRow = Line | Pair | Gap;

export interface Shape {
  columns: number;
  split: boolean;
}

export const LINE_PX = 20;
export const GAP_PX = 28;
/** Lines that one click shows of a large gap. */
export const GAP_STEP_LINES = 20;
const CONTEXT_LINES = 3;
/** Shorter gaps are shown in full. */
const MIN_GAP_LINES = 3;
const MAX_LINE_CHARS = 2000;
/** Columns of a wide mark of invisible characters, such as `U+E0061…×20`. */
const MARK_COLUMNS = 12;
/** Columns of the note about an unusual line end. */
const END_COLUMNS = { "": 0, none: 20, return: 2 };

/** Return the rows of one hunk. */
export function hunkRows(file: string, hunk: Hunk, shape: Shape): (Line | Pair)[] {
  const { old_lines: before, new_lines: after } = hunk;
  const differences =
    before.length && after.length ? new WordDiff(before, after, shape.split) : null;
  const returning = before.filter(endsWithCrlf).length + after.filter(endsWithCrlf).length;
  const mixed = returning > 0 && returning < before.length + after.length;
  const end = (text: string): End =>
    !text.endsWith("\n") ? "none" : mixed && endsWithCrlf(text) ? "return" : "";
  const removed = before.map((text, at) => {
    const number = hunk.old_start + at;
    return line(shape, file, hunk.id, "-", number, null, at, text, end(text), differences);
  });
  const added = after.map((text, at) => {
    const number = hunk.new_start + at;
    return line(shape, file, hunk.id, "+", null, number, at, text, end(text), differences);
  });
  if (!shape.split) return [...removed, ...added];
  return Array.from(
    { length: Math.max(removed.length, added.length) },
    (_, at) => new Pair(file, hunk.id, removed[at] ?? null, added[at] ?? null),
  );
}

function endsWithCrlf(text: string): boolean {
  return text.endsWith("\r\n");
}

/** Return the row of a context line. */
export function unchangedRow(
  file: string,
  shape: Shape,
  text: string,
  number: number,
  old: number,
  hunk = "",
): Line | Pair {
  const made = line(shape, file, hunk, " ", old, number, number - 1, text, "", null);
  return shape.split ? new Pair(file, hunk, made, made) : made;
}

/**
 * Return the context rows between two hunks, with a gap row for hidden lines.
 *
 * Until the file's `lines` are loaded, only the lines in `known` (by line number) have text.
 */
export function contextRows(
  file: string,
  shape: Shape,
  around: { before: Hunk | null; after: Hunk | null },
  lines: readonly string[] | null,
  opened: OpenedGaps,
  known?: ReadonlyMap<number, string>,
): DiffRow[] {
  const { before, after } = around;
  const from = before ? before.new_start + before.new_lines.length : 1;
  const shift = after
    ? after.old_start - after.new_start
    : before!.old_start + before!.old_lines.length - from;
  const id = `${file}\n${before?.id ?? ""}`;
  const show = (start: number, stop: number) =>
    Array.from({ length: Math.max(0, stop - start) }, (_, each) => {
      const number = start + each;
      const text = lines?.[number - 1] ?? known?.get(number) ?? "";
      return unchangedRow(file, shape, text, number, number + shift, (before ?? after)!.id);
    });
  const gap = (hidden: number | null): Gap => ({
    kind: "gap",
    key: `gap ${id}`,
    height: GAP_PX,
    file,
    hidden,
    between: [before !== null, after !== null],
    id,
  });
  if (!after && !lines) {
    let end = from;
    while (end < from + CONTEXT_LINES && (!known || known.has(end))) end++;
    return known && end === from + CONTEXT_LINES
      ? [...show(from, end), gap(null)]
      : show(from, end);
  }
  const end = after ? after.new_start : lines!.length + 1;
  const [below, above] = (lines && opened.get(id)) ?? [0, 0];
  const head = (before ? CONTEXT_LINES : 0) + below;
  const tail = (after ? CONTEXT_LINES : 0) + above;
  const few = lines || !known ? MIN_GAP_LINES : 0;
  if (end - from <= head + tail + few) return show(from, end);
  return [...show(from, from + head), gap(end - from - head - tail), ...show(end - tail, end)];
}

function line(
  shape: Shape,
  file: string,
  hunk: string,
  sign: Line["sign"],
  old: number | null,
  number: number | null,
  at: number,
  text: string,
  end: End,
  differences: WordDiff | null,
): Line {
  const bare = withoutLineEnd(text);
  const shown = bare.length > MAX_LINE_CHARS ? bare.slice(0, MAX_LINE_CHARS) : bare;
  const marks = markColumns(shown);
  // A mark does not wrap, so it may leave the rest of its row empty.
  const columns = shape.columns - (marks ? MARK_COLUMNS : 0);
  const rows = Math.max(1, Math.ceil((columnsOf(shown) + marks + END_COLUMNS[end]) / columns));
  const cut = bare.length - shown.length;
  return new Line(file, hunk, sign, old, number, at, shown, rows * LINE_PX, cut, end, differences);
}

/** Strip the line end; called for very many lines, so without a regular expression. */
function withoutLineEnd(text: string): string {
  let end = text.length;
  if (text.charCodeAt(end - 1) === 10) end--;
  if (text.charCodeAt(end - 1) === 13) end--;
  return end === text.length ? text : text.slice(0, end);
}

const PLAIN = /^[ -~]*$/;

/** Return the columns that a text takes; wide characters take two. */
function columnsOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let columns = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 9) columns += 4 - (columns % 4);
    else if (code < 0x1100) columns++;
    else columns += 2;
  }
  return columns;
}
