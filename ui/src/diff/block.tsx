/** A small diff inside a conversation. */

import { useMemo, useRef, useState } from "preact/hooks";
import { count } from "../format";
import { useColumns } from "./columns";
import { highlighter } from "./highlighter";
import { DiffLine } from "./lines";
import { hunkRows, unchangedRow, type Line } from "./model";
import { parsePatch } from "./patch";

const PREVIEW_LINES = 14;
const MAX_LINES = 600;

export function DiffBlock({ patch, path }: { patch: string; path: string }) {
  const [all, setAll] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const columns = useColumns(box, 116, 1);
  const hunks = useMemo(() => parsePatch(patch, path), [patch, path]);
  const make = highlighter();
  const rows = useMemo(() => {
    const shape = { columns, split: false };
    return hunks.flatMap((hunk) => {
      const [old, now] = [hunk.old_start, hunk.new_start];
      const before = hunk.before.map((text, at) => {
        const above = hunk.before.length - at;
        return unchangedRow(path, shape, text, now - above, old - above);
      });
      const after = hunk.after.map((text, at) =>
        unchangedRow(
          path,
          shape,
          text,
          now + hunk.new_lines.length + at,
          old + hunk.old_lines.length + at,
        ),
      );
      return [...before, ...hunkRows(path, hunk, shape), ...after] as Line[];
    });
  }, [hunks, columns]);
  const colours = useMemo(
    () =>
      make?.(
        rows.map((row) => row.text),
        path,
      ),
    [make, rows, path],
  );
  const index = useMemo(() => new Map(rows.map((row, at) => [row, at])), [rows]);
  const shown = all ? rows.slice(0, MAX_LINES) : rows.slice(0, PREVIEW_LINES);
  return (
    <div class="diff-block" ref={box}>
      {shown.map((row) => (
        <DiffLine key={row.key} row={row} tokens={(line) => colours?.line(index.get(line) ?? 0)} />
      ))}
      {shown.length < rows.length && !all && (
        <button type="button" class="diff-more" onClick={() => setAll(true)}>
          Show {count(rows.length - shown.length, "more line")}
        </button>
      )}
    </div>
  );
}
