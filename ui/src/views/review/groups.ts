/** Group pending changes by session, by turn, or only by file. */

import type { PendingFile, PendingHunk, Session } from "../../api";
import { count } from "../../format";

export type Grouping = "session" | "turn" | "file";

/** The hunks of one file within a group. */
export interface FilePart {
  key: string;
  file: PendingFile;
  hunks: PendingHunk[];
  additions: number;
  deletions: number;
}

export interface Group {
  key: string;
  title: string;
  note: string;
  session: string | null;
  turn: number | null;
  parts: FilePart[];
}

/**
 * Group pending changes, without those in `decided`.
 *
 * A part equal to one in `before` is the same object, so that caches keyed by it stay valid.
 */
export function groupPending(
  files: PendingFile[],
  by: Grouping,
  sessions: Map<string, Session>,
  decided: Set<string>,
  before: Map<string, FilePart>,
): Group[] {
  const groups = new Map<string, Group>();
  for (const file of files) {
    for (const hunk of file.hunks) {
      if (decided.has(hunk.hunk)) continue;
      const turn = by === "turn" ? Math.max(0, ...hunk.turns) : null;
      const key = by === "file" ? "" : `${file.session} ${turn ?? ""}`;
      let group = groups.get(key);
      if (!group) groups.set(key, (group = newGroup(key, file.session, turn, by, sessions)));
      const name = `${key} ${file.session} ${file.path}`;
      let part = group.parts.at(-1);
      if (part?.key !== name) {
        part = { key: name, file, hunks: [], additions: 0, deletions: 0 };
        group.parts.push(part);
      }
      part.hunks.push(hunk);
      part.additions += hunk.additions;
      part.deletions += hunk.deletions;
    }
  }
  const sorted = [...groups.values()];
  for (const group of sorted) group.parts = group.parts.map((part) => reusePart(part, before));
  if (by === "turn") sorted.sort((a, b) => (b.turn ?? 0) - (a.turn ?? 0));
  return sorted;
}

function reusePart(part: FilePart, before: Map<string, FilePart>): FilePart {
  const old = before.get(part.key);
  if (old && isSame(old, part)) return old;
  before.set(part.key, part);
  return part;
}

/** Compare two parts; equal hunk ids mean equal lines, but positions may differ. */
function isSame(one: FilePart, other: FilePart): boolean {
  return (
    one.file.status === other.file.status &&
    one.file.new_mode === other.file.new_mode &&
    one.hunks.length === other.hunks.length &&
    one.hunks.every((hunk, at) => {
      const now = other.hunks[at]!;
      return (
        hunk.hunk === now.hunk &&
        hunk.old_start === now.old_start &&
        hunk.new_start === now.new_start &&
        hunk.mixed === now.mixed &&
        hunk.turns.length === now.turns.length
      );
    })
  );
}

export function hunksOf(groups: Group[]): PendingHunk[] {
  return groups.flatMap((group) => group.parts.flatMap((part) => part.hunks));
}

function newGroup(
  key: string,
  session: string,
  turn: number | null,
  by: Grouping,
  sessions: Map<string, Session>,
): Group {
  const known = sessions.get(session);
  const title = known?.title || "Untitled session";
  const numbered = turn === null ? title : turn ? `Turn ${turn}` : "Between turns";
  return {
    key,
    title: by === "file" ? "" : numbered,
    note: by === "turn" ? title : (known?.agent ?? ""),
    session: by === "file" ? null : session,
    turn,
    parts: [],
  };
}

export function summary(groups: Group[]): string {
  const files = new Set(groups.flatMap((group) => group.parts.map((part) => part.file.path)));
  return count(files.size, "file");
}
