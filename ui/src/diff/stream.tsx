/** Differences of many files, one below the other, with only what is seen drawn. */

import { useMemo, useRef, useState } from "preact/hooks";
import type { FileChange } from "../api";
import { Icon } from "../parts/icons";
import { Counts, Letter, Path } from "../parts/small";
import { Virtual, type Row } from "../parts/virtual";
import { useColumns } from "./columns";
import { colouring } from "./colours";
import { DiffLine } from "./lines";
import { hunkRows, sameRow, type Line, type Pair } from "./model";
import { parsePatch } from "./patch";
import type { Token } from "./syntax";

interface FileRow extends Row {
  kind: "file";
  change: FileChange;
  folded: boolean;
}

interface NoteRow extends Row {
  kind: "note";
  text: string;
}

interface GapRow extends Row {
  kind: "space";
}

type StreamRow = FileRow | NoteRow | GapRow | ((Line | Pair) & { change: FileChange });

export function DiffStream({ files, split }: { files: FileChange[]; split: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const columns = useColumns(box, split ? 76 : 116, split ? 2 : 1);
  const [folded, setFolded] = useState<Set<string>>(new Set());
  const rows = useMemo(
    () => files.flatMap((change) => rowsOf(change, columns, split, folded.has(change.path))),
    [files, columns, split, folded],
  );
  const make = colouring();
  const tokens = useMemo(() => {
    const known = new Map<string, Token[] | undefined>();
    return (change: FileChange) => (line: Line) => {
      if (!make || line.cut) return undefined;
      const key = `${change.path} ${line.key}`;
      if (!known.has(key)) known.set(key, make([line.text], change.path).line(0));
      return known.get(key);
    };
  }, [make, rows]);
  const fold = (path: string) =>
    setFolded((old) => {
      const next = new Set(old);
      if (!next.delete(path)) next.add(path);
      return next;
    });
  return (
    <div class="stream" ref={box}>
      <Virtual<StreamRow>
        rows={rows}
        label="Differences"
        class="diff"
        render={(row) => {
          if (row.kind === "file") return <Head key={row.key} row={row} fold={fold} />;
          if (row.kind === "space")
            return <div key={row.key} class="diff-gap" style={{ height: `${row.height}px` }} />;
          if (row.kind === "note")
            return (
              <div key={row.key} class="diff-note" style={{ height: `${row.height}px` }}>
                {row.text}
              </div>
            );
          return <DiffLine key={row.key} row={row} tokens={tokens(row.change)} />;
        }}
      />
    </div>
  );
}

function Head({ row, fold }: { row: FileRow; fold: (path: string) => void }) {
  const { change } = row;
  return (
    <div class="file-head">
      <button
        type="button"
        class="bare fold"
        aria-expanded={!row.folded}
        aria-label={`${row.folded ? "Unfold" : "Fold"} ${change.path}`}
        onClick={() => fold(change.path)}
      >
        <Icon name={row.folded ? "right" : "down"} />
      </button>
      <Letter of={change.status} />
      <Path path={change.path} />
      {change.old_path && <span class="faint from">from {change.old_path}</span>}
      <Counts additions={change.additions} deletions={change.deletions} />
    </div>
  );
}

function rowsOf(change: FileChange, columns: number, split: boolean, folded: boolean): StreamRow[] {
  const head: FileRow = { kind: "file", key: `file ${change.path}`, height: 40, change, folded };
  if (folded) return [head];
  const hunks = parsePatch(change.patch ?? "", change.path);
  if (!hunks.length)
    return [head, { kind: "note", key: `note ${change.path}`, height: 36, text: noteOf(change) }];
  const shape = { columns, split };
  const rows: StreamRow[] = [head];
  let end = 0;
  for (const hunk of hunks) {
    const first = hunk.new_start - hunk.before.length;
    if (end && first > end && hunk.before.length)
      rows.push({ kind: "space", key: `space ${change.path} ${first}`, height: 12 });
    const shift = hunk.old_start - hunk.new_start;
    const same = (text: string, number: number, old: number) =>
      Object.assign(sameRow(change.path, shape, text, number, old), { change });
    hunk.before.forEach((text, at) => rows.push(same(text, first + at, first + at + shift)));
    for (const row of hunkRows(change.path, hunk, shape))
      rows.push(Object.assign(row, { change }));
    const after = hunk.new_start + hunk.new_lines.length;
    const afterOld = hunk.old_start + hunk.old_lines.length;
    hunk.after.forEach((text, at) => rows.push(same(text, after + at, afterOld + at)));
    end = after + hunk.after.length;
  }
  return rows;
}

function noteOf(change: FileChange): string {
  if (change.is_binary) return "A binary file.";
  if (change.is_too_large) return "Too large to show line by line.";
  if (change.old_path) return "Moved without a change.";
  if (change.old_mode !== change.new_mode && change.old_mode && change.new_mode)
    return `Permissions changed from ${change.old_mode} to ${change.new_mode}.`;
  return change.status === "deleted" ? "Deleted; it was empty." : "Empty.";
}
