/** Check that a loaded file is the version that its hunks were computed from. */

import type { FilePart } from "./groups";

/** Return the file's lines if all hunks match them, else null. */
export function matchingLines(
  part: FilePart,
  lines: readonly string[] | null,
): readonly string[] | null {
  if (!lines || part.file.status !== "modified") return null;
  const known = matchCache.get(part);
  if (known?.lines === lines) return known.fits ? lines : null;
  const fits = part.hunks.every((hunk) =>
    hunk.new_lines.every((line, at) => lines[hunk.new_start - 1 + at] === line.replace(/\n$/, "")),
  );
  matchCache.set(part, { lines, fits });
  return fits ? lines : null;
}

const matchCache = new WeakMap<FilePart, { lines: readonly string[]; fits: boolean }>();

const ids = new WeakMap<readonly string[], number>();
let nextId = 1;

/** Return a key that changes when the lines of any file do. */
export function linesVersion(all: (readonly string[] | null)[]): string {
  let sum = 0;
  let known = 0;
  for (const lines of all) {
    if (!lines) continue;
    if (!ids.has(lines)) ids.set(lines, nextId++);
    sum += ids.get(lines)!;
    known++;
  }
  return `${known} ${sum}`;
}
