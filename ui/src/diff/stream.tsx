/** The diffs of many files in one virtual list. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FileChange } from "../api";
import { Icon } from "../parts/icons";
import { Counts, Path, StatusLetter } from "../parts/small";
import { VirtualList, type Row } from "../parts/virtual";
import { showError } from "../state";
import { useColumns } from "./columns";
import { highlighter } from "./highlighter";
import { DiffLine, type OpenGap } from "./lines";
import { contextRows, hunkRows, openGap, type DiffRow, type OpenedGaps, type Shape } from "./model";
import { parsePatch, type PatchHunk } from "./patch";
import { tokensOf, type TokensOf } from "./tokens";

interface FileRow extends Row {
  kind: "file";
  change: FileChange;
  folded: boolean;
}

interface NoteRow extends Row {
  kind: "note";
  text: string;
}

type StreamRow = FileRow | NoteRow | (DiffRow & { change: FileChange });

type Lines = ReadonlyMap<string, readonly string[]>;

export function DiffStream(props: {
  files: FileChange[];
  split: boolean;
  /** Read the newer version of a file, for its context lines. */
  read: (path: string) => Promise<string>;
}) {
  const { files, split } = props;
  const box = useRef<HTMLDivElement>(null);
  const columns = useColumns(box, split ? 80 : 124, split ? 2 : 1);
  const [folded, setFolded] = useState<Set<string>>(new Set());
  const [opened, setOpened] = useState<OpenedGaps>(new Map());
  const [lines, setLines] = useState<Lines>(new Map());
  // Keep loaded lines and opened gaps only for files whose patch is unchanged.
  const patches = useRef(new Map<string, string | null | undefined>());
  useEffect(() => {
    const before = patches.current;
    patches.current = new Map(files.map((each) => [each.path, each.patch]));
    const isSame = (path: string) =>
      before.has(path) && before.get(path) === patches.current.get(path);
    setLines((old) => new Map([...old].filter(([path]) => isSame(path))));
    setOpened((old) => new Map([...old].filter(([gap]) => isSame(gap.split("\n", 1)[0]!))));
  }, [files]);
  const hunks = useMemo(
    () => new Map(files.map((each) => [each.path, parsePatch(each.patch ?? "", each.path)])),
    [files],
  );
  const rows = useMemo(() => {
    const shape = { columns, split };
    return files.flatMap((change) =>
      rowsOf(change, hunks.get(change.path)!, shape, folded.has(change.path), lines, opened),
    );
  }, [files, columns, split, folded, lines, opened]);
  const make = highlighter();
  const tokens = useMemo(() => {
    const known = new Map<string, TokensOf>();
    return ({ path }: FileChange) => {
      if (!known.has(path))
        known.set(path, tokensOf(path, hunks.get(path)!, lines.get(path) ?? null, make));
      return known.get(path)!;
    };
  }, [make, hunks, lines]);

  async function open(path: string, ...[gap, how]: Parameters<OpenGap>): Promise<void> {
    try {
      if (!lines.has(path)) {
        const content = linesOf(await props.read(path));
        if (!hunks.get(path)!.every((hunk) => fits(hunk, content)))
          throw new Error(
            `${path} has changed since this comparison. Reload the page to see its lines.`,
          );
        setLines((old) => new Map(old).set(path, content));
      }
      setOpened((old) => openGap(old, gap, how));
    } catch (problem) {
      showError(problem);
    }
  }

  const fold = (path: string) =>
    setFolded((old) => {
      const next = new Set(old);
      if (!next.delete(path)) next.add(path);
      return next;
    });
  return (
    <div class="stream" ref={box}>
      <VirtualList<StreamRow>
        rows={rows}
        label="Differences"
        class="diff"
        render={(row) => {
          if (row.kind === "file") return <Head key={row.key} row={row} fold={fold} />;
          if (row.kind === "note")
            return (
              <div key={row.key} class="diff-note" style={{ height: `${row.height}px` }}>
                {row.text}
              </div>
            );
          const { change } = row;
          return (
            <DiffLine
              key={row.key}
              row={row}
              tokens={tokens(change)}
              open={(gap, how) => void open(change.path, gap, how)}
            />
          );
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
      <StatusLetter of={change.status} />
      <Path path={change.path} />
      {change.old_path && <span class="faint from">from {change.old_path}</span>}
      <Counts additions={change.additions} deletions={change.deletions} />
    </div>
  );
}

function rowsOf(
  change: FileChange,
  hunks: PatchHunk[],
  shape: Shape,
  folded: boolean,
  contents: Lines,
  opened: OpenedGaps,
): StreamRow[] {
  const { path } = change;
  const head: FileRow = { kind: "file", key: `file ${path}`, height: 40, change, folded };
  if (folded) return [head];
  if (!hunks.length)
    return [head, { kind: "note", key: `note ${path}`, height: 36, text: noteOf(change) }];
  const lines = contents.get(path) ?? null;
  const known = new Map(hunks.flatMap(around));
  const rows: StreamRow[] = [head];
  const add = (made: DiffRow[]) => {
    for (const row of made) rows.push(Object.assign(row, { change }));
  };
  let before: PatchHunk | null = null;
  for (const hunk of hunks) {
    add(contextRows(path, shape, { before, after: hunk }, lines, opened, known));
    add(hunkRows(path, hunk, shape));
    before = hunk;
  }
  add(contextRows(path, shape, { before, after: null }, lines, opened, known));
  return rows;
}

/** Return the context lines in the patch itself, with their line numbers. */
function around(hunk: PatchHunk): [number, string][] {
  const end = hunk.new_start + hunk.new_lines.length;
  return [
    ...hunk.before.map((text, at): [number, string] => [
      hunk.new_start - hunk.before.length + at,
      text,
    ]),
    ...hunk.after.map((text, at): [number, string] => [end + at, text]),
  ];
}

function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function fits(hunk: PatchHunk, lines: readonly string[]): boolean {
  return hunk.new_lines.every(
    (line, at) => lines[hunk.new_start - 1 + at] === line.replace(/\n$/, ""),
  );
}

function noteOf(change: FileChange): string {
  if (change.is_binary) return "Binary file; its content is not shown.";
  if (change.is_too_large) return "Too large to compare line by line. Open the file under “Files”.";
  if (change.old_path) return "Renamed; the content is unchanged.";
  if (change.old_mode !== change.new_mode && change.old_mode && change.new_mode)
    return `Permissions changed from ${change.old_mode} to ${change.new_mode}.`;
  return change.status === "deleted" ? "Deleted; the file was empty." : "Empty file.";
}
