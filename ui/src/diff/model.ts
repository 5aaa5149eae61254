/**
 * A difference as rows of known height: what the review, comparisons and messages draw.
 *
 * Hunks come from the server; the lines around them from the file as it is now. Those may not be
 * there yet: their place is kept, so that nothing moves when they come.
 */

import type { Row } from "../parts/virtual";

export interface Hunk {
  id: string;
  old_start: number;
  new_start: number;
  old_lines: readonly string[];
  new_lines: readonly string[];
}

/** One line of a file. There may be very many of these, so the key is made when it is asked for. */
export class Line implements Row {
  readonly kind = "line";

  constructor(
    readonly file: string,
    readonly hunk: string,
    readonly sign: " " | "+" | "-",
    readonly old: number | null,
    readonly now: number | null,
    /** Where its text is: in the hunk's old or new lines, or in the file. */
    readonly at: number,
    readonly text: string,
    readonly height: number,
    /** What is different within the line. */
    readonly mark: [number, number] | null = null,
    /** How many characters of it are not shown. */
    readonly cut = 0,
  ) {}

  get key(): string {
    return this.sign === " "
      ? `${this.file} ${this.now}`
      : `${this.file} ${this.hunk} ${this.sign} ${this.at}`;
  }
}

/** Two lines side by side, of which one may be missing. */
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
  from: number;
  to: number;
  open: string;
}

export type DiffRow = Line | Pair | Gap;

export interface Shape {
  columns: number;
  split: boolean;
}

export const LINE = 20;
export const GAP = 28;
const CONTEXT = 3;
/** A gap as small as this hides less than it costs. */
const FEW = 3;
const LONGEST = 2000;
const MOST_PAIRS = 400;

/** The rows of one hunk. */
export function hunkRows(file: string, hunk: Hunk, shape: Shape): (Line | Pair)[] {
  const marks = differences(hunk);
  const removed = hunk.old_lines.map((text, at) =>
    line(shape, file, hunk.id, "-", hunk.old_start + at, null, at, text, marks[at]?.[0] ?? null),
  );
  const added = hunk.new_lines.map((text, at) =>
    line(shape, file, hunk.id, "+", null, hunk.new_start + at, at, text, marks[at]?.[1] ?? null),
  );
  if (!shape.split) return [...removed, ...added];
  return Array.from({ length: Math.max(removed.length, added.length) }, (_, at) =>
    new Pair(file, hunk.id, removed[at] ?? null, added[at] ?? null),
  );
}

/** A line that is the same on both sides. */
export function sameRow(
  file: string,
  shape: Shape,
  text: string,
  number: number,
  old: number,
  hunk = "",
): Line | Pair {
  const made = line(shape, file, hunk, " ", old, number, number - 1, text, null);
  return shape.split ? new Pair(file, hunk, made, made) : made;
}

/** The lines around hunks that did not change, and gaps where there are more of them. */
export function contextRows(
  file: string,
  shape: Shape,
  around: { before: Hunk | null; after: Hunk | null },
  lines: readonly string[] | null,
  opened: (gap: string) => boolean,
): DiffRow[] {
  const { before, after } = around;
  const from = before ? before.new_start + before.new_lines.length : 1;
  const shift = after
    ? after.old_start - after.new_start
    : before!.old_start + before!.old_lines.length - from;
  const end = after ? after.new_start : lines ? lines.length + 1 : from + CONTEXT;
  const id = `${file}\n${before?.id ?? ""}`;
  const show = (start: number, stop: number) =>
    Array.from({ length: Math.max(0, stop - start) }, (_, each) => {
      const number = start + each;
      const text = lines?.[number - 1] ?? "";
      return sameRow(file, shape, text, number, number + shift, (before ?? after)!.id);
    });
  const head = before ? CONTEXT : 0;
  const tail = after ? CONTEXT : 0;
  if (end - from <= head + tail + FEW || opened(id)) return show(from, end);
  if (!after && !lines) return show(from, end);
  const gap: Gap = {
    kind: "gap",
    key: `gap ${id}`,
    height: GAP,
    file,
    from: from + head,
    to: end - tail,
    open: id,
  };
  return [...show(from, from + head), gap, ...show(end - tail, end)];
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
  mark: [number, number] | null,
): Line {
  const bare = text.endsWith("\n") ? text.slice(0, text.endsWith("\r\n") ? -2 : -1) : text;
  const shown = bare.length > LONGEST ? bare.slice(0, LONGEST) : bare;
  const rows = Math.max(1, Math.ceil(width(shown) / shape.columns));
  const cut = bare.length - shown.length;
  return new Line(file, hunk, sign, old, number, at, shown, rows * LINE, mark, cut);
}

const PLAIN = /^[ -~]*$/;

/** How many columns a text takes; wide characters take two. */
function width(text: string): number {
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

/** For each line of a hunk that replaces one other: where the two differ. */
function differences(hunk: Hunk): ([[number, number], [number, number]] | null)[] {
  const { old_lines: before, new_lines: after } = hunk;
  if (before.length !== after.length || before.length > MOST_PAIRS) return [];
  return before.map((old, at) => {
    const now = after[at]!;
    let start = 0;
    while (start < old.length && start < now.length && old[start] === now[start]) start++;
    let end = 0;
    const most = Math.min(old.length, now.length) - start;
    while (end < most && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
    const kept = start + end;
    if (kept < Math.max(old.length, now.length) * 0.3) return null;
    return [
      [start, old.length - end],
      [start, now.length - end],
    ];
  });
}
