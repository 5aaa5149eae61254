/** Build the rows of the review: groups, files, hunks and their lines. */

import type { PendingHunk } from "../../api";
import { contextRows, hunkRows, type DiffRow, type OpenedGaps, type Shape } from "../../diff/model";
import type { Row } from "../../parts/virtual";
import type { FilePart, Group } from "./groups";

export interface GroupRow extends Row {
  kind: "group";
  group: Group;
}

export interface FileRow extends Row {
  kind: "file";
  part: FilePart;
  folded: boolean;
}

export interface HunkRow extends Row {
  kind: "hunk";
  part: FilePart;
  hunk: PendingHunk;
}

export interface NoteRow extends Row {
  kind: "note";
  text: string;
}

export type ReviewRow = GroupRow | FileRow | HunkRow | NoteRow | (DiffRow & { part: FilePart });

export const FILE_PX = 40;
const GROUP_PX = 44;
const HUNK_PX = 34;
const NOTE_PX = 36;

export interface ReviewRows {
  rows: ReviewRow[];
  /** The key of each hunk's row, by hunk id. */
  rowKeys: Map<string, string>;
  /** The number of each hunk in the list, by hunk id. */
  numbers: Map<string, number>;
}

interface CachedRows {
  of: string;
  lines: readonly string[] | null;
  rows: ReviewRow[];
}

/** Rows of unchanged parts are reused; one cache per layout. */
const caches = {
  unified: new WeakMap<FilePart, CachedRows>(),
  split: new WeakMap<FilePart, CachedRows>(),
};

export function buildRows(
  groups: Group[],
  shape: Shape,
  linesOf: (part: FilePart) => readonly string[] | null,
  folded: Set<string>,
  opened: OpenedGaps,
): ReviewRows {
  const rows: ReviewRow[] = [];
  const rowKeys = new Map<string, string>();
  const numbers = new Map<string, number>();
  const cache = shape.split ? caches.split : caches.unified;
  const shaped = `${shape.columns} ${[...opened].join()}`;
  for (const group of groups) {
    if (group.title)
      rows.push({ kind: "group", key: `group ${group.key}`, height: GROUP_PX, group });
    for (const part of group.parts) {
      const closed = folded.has(part.key);
      rows.push({
        kind: "file",
        key: `file ${part.key}`,
        height: FILE_PX,
        part,
        folded: closed,
      });
      for (const hunk of part.hunks) {
        numbers.set(hunk.hunk, numbers.size + 1);
        rowKeys.set(hunk.hunk, closed ? `file ${part.key}` : `hunk ${hunk.hunk}`);
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
  return { rows, rowKeys, numbers };
}

function rowsOf(
  part: FilePart,
  shape: Shape,
  lines: readonly string[] | null,
  opened: OpenedGaps,
): ReviewRow[] {
  const rows: ReviewRow[] = [];
  const hunks = part.hunks.map((hunk) => ({ ...hunk, id: hunk.hunk }));
  // An added or deleted file has no context lines.
  const alone = part.file.status !== "modified" || hunks.some((hunk) => hunk.kind === "whole");
  hunks.forEach((hunk, at) => {
    const before = at > 0 ? hunks[at - 1]! : null;
    if (!alone)
      for (const row of contextRows(part.key, shape, { before, after: hunk }, lines, opened))
        rows.push(Object.assign(row, { part }));
    const key = `hunk ${hunk.hunk}`;
    rows.push({ kind: "hunk", key, height: HUNK_PX, part, hunk: part.hunks[at]! });
    const note = noteOf(part, hunk.kind);
    if (note) rows.push({ kind: "note", key: `note ${hunk.hunk}`, height: NOTE_PX, text: note });
    for (const row of hunkRows(part.key, hunk, shape)) rows.push(Object.assign(row, { part }));
  });
  const last = hunks.at(-1);
  if (last && !alone)
    for (const row of contextRows(part.key, shape, { before: last, after: null }, lines, opened))
      rows.push(Object.assign(row, { part }));
  return rows;
}

function noteOf(part: FilePart, kind: string): string {
  const { file } = part;
  if (file.is_binary) return "Binary file; it is kept or undone as a whole.";
  if (file.is_too_large) return "Too large to show line by line; it is kept or undone as a whole.";
  if (file.old_mode !== file.new_mode && file.old_mode && file.new_mode)
    return `Permissions change from ${file.old_mode} to ${file.new_mode}.`;
  return kind === "whole" ? "Kept or undone as a whole." : "";
}
