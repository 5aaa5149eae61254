/** The rows of the review: groups, files, changes, and their lines. */

import { contextRows, hunkRows, type DiffRow, type Opened, type Shape } from "../../diff/model";
import type { Row } from "../../parts/virtual";
import type { PendingHunk } from "../../api";
import type { Group, Part } from "./groups";

export interface GroupRow extends Row {
  kind: "group";
  group: Group;
}

export interface FileRow extends Row {
  kind: "file";
  part: Part;
  folded: boolean;
}

export interface HunkRow extends Row {
  kind: "hunk";
  part: Part;
  hunk: PendingHunk;
}

export interface NoteRow extends Row {
  kind: "note";
  text: string;
}

export type ReviewRow = GroupRow | FileRow | HunkRow | NoteRow | (DiffRow & { part: Part });

export const FILE_HEIGHT = 40;
const GROUP_HEIGHT = 44;
const HUNK_HEIGHT = 34;
const NOTE_HEIGHT = 36;

export interface Drawn {
  rows: ReviewRow[];
  /** The row of each hunk, by its id. */
  places: Map<string, string>;
  /** Which change of all it is, by its id. */
  numbers: Map<string, number>;
}

interface Known {
  of: string;
  lines: readonly string[] | null;
  rows: ReviewRow[];
}

/** The rows of a part that has not changed are not made again: in one column, and in two. */
const caches = { unified: new WeakMap<Part, Known>(), split: new WeakMap<Part, Known>() };

export function draw(
  groups: Group[],
  shape: Shape,
  linesOf: (part: Part) => readonly string[] | null,
  folded: Set<string>,
  opened: Opened,
): Drawn {
  const rows: ReviewRow[] = [];
  const places = new Map<string, string>();
  const numbers = new Map<string, number>();
  const cache = shape.split ? caches.split : caches.unified;
  const shaped = `${shape.columns} ${[...opened].join()}`;
  for (const group of groups) {
    if (group.title)
      rows.push({ kind: "group", key: `group ${group.key}`, height: GROUP_HEIGHT, group });
    for (const part of group.parts) {
      const closed = folded.has(part.key);
      rows.push({
        kind: "file",
        key: `file ${part.key}`,
        height: FILE_HEIGHT,
        part,
        folded: closed,
      });
      for (const hunk of part.hunks) {
        numbers.set(hunk.hunk, numbers.size + 1);
        places.set(hunk.hunk, closed ? `file ${part.key}` : `hunk ${hunk.hunk}`);
      }
      if (closed) continue;
      const lines = linesOf(part);
      let known = cache.get(part);
      if (!known || known.of !== shaped || known.lines !== lines) {
        known = { of: shaped, lines, rows: rowsOf(part, shape, lines, opened) };
        cache.set(part, known);
      }
      for (const row of known.rows) rows.push(row);
    }
  }
  return { rows, places, numbers };
}

function rowsOf(
  part: Part,
  shape: Shape,
  lines: readonly string[] | null,
  opened: Opened,
): ReviewRow[] {
  const rows: ReviewRow[] = [];
  const hunks = part.hunks.map((hunk) => ({ ...hunk, id: hunk.hunk }));
  // Of a file that came or went there is nothing around the change.
  const alone = part.file.status !== "modified" || hunks.some((hunk) => hunk.kind === "whole");
  hunks.forEach((hunk, at) => {
    const before = at > 0 ? hunks[at - 1]! : null;
    if (!alone)
      for (const row of contextRows(part.key, shape, { before, after: hunk }, lines, opened))
        rows.push(Object.assign(row, { part }));
    const key = `hunk ${hunk.hunk}`;
    rows.push({ kind: "hunk", key, height: HUNK_HEIGHT, part, hunk: part.hunks[at]! });
    const note = noteOf(part, hunk.kind);
    if (note)
      rows.push({ kind: "note", key: `note ${hunk.hunk}`, height: NOTE_HEIGHT, text: note });
    for (const row of hunkRows(part.key, hunk, shape)) rows.push(Object.assign(row, { part }));
  });
  const last = hunks.at(-1);
  if (last && !alone)
    for (const row of contextRows(part.key, shape, { before: last, after: null }, lines, opened))
      rows.push(Object.assign(row, { part }));
  return rows;
}

function noteOf(part: Part, kind: string): string {
  const { file } = part;
  if (file.is_binary) return "A binary file; it is kept or undone as a whole.";
  if (file.is_too_large) return "Too large to show line by line; it is kept or undone as a whole.";
  if (file.old_mode !== file.new_mode && file.old_mode && file.new_mode)
    return `Permissions change from ${file.old_mode} to ${file.new_mode}.`;
  return kind === "whole" ? "Kept or undone as a whole." : "";
}
