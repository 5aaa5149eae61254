/** Parse unified diffs. */

import type { Hunk } from "./model";

export interface PatchHunk extends Hunk {
  /** Context lines of the patch before and after the hunk. */
  before: string[];
  after: string[];
}

const HEAD = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Return the contiguous changes in a patch of one file, with their context lines. */
export function parsePatch(patch: string, name: string): PatchHunk[] {
  const hunks: PatchHunk[] = [];
  const lines = patch.split("\n");
  let current: PatchHunk | null = null;
  let [old, now] = [0, 0];
  let unchanged: string[] = [];
  let inside = false;
  let last: string[] = [];
  const close = () => {
    if (current) current.after = unchanged;
    current = null;
  };
  for (const line of lines) {
    const head = HEAD.exec(line);
    if (head) {
      close();
      unchanged = [];
      // For a side without lines, the header gives the line before it.
      old = Number(head[1]) + (head[2] === "0" ? 1 : 0);
      now = Number(head[3]) + (head[4] === "0" ? 1 : 0);
      inside = true;
    } else if (!inside) {
      continue;
    } else if (line.startsWith("\\")) {
      // "\ No newline at end of file" belongs to the line before it.
      if (last.length) last.push(last.pop()!.slice(0, -1));
    } else if (line.startsWith("diff --git")) {
      inside = false;
    } else if (line.startsWith("-") || line.startsWith("+")) {
      if (!current || unchanged.length) {
        const before: string[] = current ? [] : unchanged;
        close();
        const made: PatchHunk = {
          id: `${name} ${hunks.length}`,
          old_start: old,
          new_start: now,
          old_lines: [],
          new_lines: [],
          before,
          after: [],
        };
        hunks.push(made);
        current = made;
        unchanged = [];
      }
      const target: PatchHunk = current;
      if (line[0] === "-") {
        last = target.old_lines as string[];
        old++;
      } else {
        last = target.new_lines as string[];
        now++;
      }
      last.push(`${line.slice(1)}\n`);
    } else if (line.startsWith(" ")) {
      unchanged.push(line.slice(1));
      last = [];
      old++;
      now++;
    }
  }
  close();
  return hunks;
}
