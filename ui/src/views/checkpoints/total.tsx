/** The totals of a comparison: files, added and deleted lines. */

import type { FileChange } from "../../api";
import { count } from "../../format";
import { Counts } from "../../parts/small";

export function Total({ files }: { files: FileChange[] }) {
  const sum = summed(files);
  return (
    <span class="bar-note">
      {count(sum.files, "file")} <Counts {...sum} />
    </span>
  );
}

export function summed(files: FileChange[]) {
  return {
    files: files.length,
    additions: files.reduce((sum, each) => sum + each.additions, 0),
    deletions: files.reduce((sum, each) => sum + each.deletions, 0),
  };
}
