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

export interface Line extends Row {
  kind: "line";
  sign: " " | "+" | "-";
  file: string;
  hunk: string;
  old: number | null;
  new: number | null;
  /** Where its text is: in the hunk's old or new lines, or in the file. */
  at: number;
  text: string;
  /** What is different within the line. */
  mark: [number, number] | null;
  cut: number;
}

export interface Pair extends Row {
  kind: "pair";
  file: string;
  hunk: string;
  left: Line | null;
  right: Line | null;
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
    pair(file, hunk.id, removed[at] ?? null, added[at] ?? null, at),
  );
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
      return context(
        shape,
        file,
        number,
        number + shift,
        lines?.[number - 1] ?? "",
        !before ? after!.id : before.id,
      );
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

function context(
  shape: Shape,
  file: string,
  number: number,
  old: number,
  text: string,
  hunk: string,
): Line | Pair {
  const made = line(shape, file, hunk, " ", old, number, number - 1, text, null);
  made.key = `${file} ${number}`;
  if (!shape.split) return made;
  return { kind: "pair", key: made.key, height: made.height, file, hunk, left: made, right: made };
}

function pair(file: string, hunk: string, left: Line | null, right: Line | null, at: number): Pair {
  const height = Math.max(left?.height ?? 0, right?.height ?? 0);
  return { kind: "pair", key: `${file} ${hunk} ${at}`, height, file, hunk, left, right };
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
  const bare = text.replace(/\r?\n$/, "");
  const shown = bare.length > LONGEST ? bare.slice(0, LONGEST) : bare;
  const rows = Math.max(1, Math.ceil(width(shown) / shape.columns));
  return {
    kind: "line",
    key: `${file} ${hunk} ${sign} ${at}`,
    height: rows * LINE,
    sign,
    file,
    hunk,
    old,
    new: number,
    at,
    text: shown,
    mark,
    cut: bare.length - shown.length,
  };
}

/** How many columns a text takes; wide characters take two. */
function width(text: string): number {
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
