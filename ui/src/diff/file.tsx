/** A whole file with line numbers, as a virtual list. */

import { useMemo, useRef } from "preact/hooks";
import { VirtualList } from "../parts/virtual";
import { Tokens } from "./code";
import { useColumns } from "./columns";
import { highlighter } from "./highlighter";
import { unchangedRow, type Line } from "./model";
import { tokensOf } from "./tokens";

const LINE_NUMBERS_PX = 80;

export function FileText({ text, path }: { text: string; path: string }) {
  const box = useRef<HTMLDivElement>(null);
  const columns = useColumns(box, LINE_NUMBERS_PX, 1);
  const lines = useMemo(() => {
    const split = text.split("\n");
    if (split.at(-1) === "") split.pop();
    return split;
  }, [text]);
  const rows = useMemo(() => {
    const shape = { columns, split: false };
    return lines.map((line, at) => unchangedRow(path, shape, line, at + 1, at + 1) as Line);
  }, [lines, columns, path]);
  const make = highlighter();
  const tokens = useMemo(() => tokensOf(path, [], lines, make), [path, lines, make]);
  return (
    <div class="file-text" ref={box}>
      <VirtualList
        rows={rows}
        label={path}
        class="diff"
        render={(row) => {
          const rowTokens = tokens(row);
          return (
            <div key={row.key} class="diff-line" style={{ height: `${row.height}px` }}>
              <span class="diff-number">{row.now}</span>
              <span class="diff-text">
                <Tokens text={row.text} {...(rowTokens ? { tokens: rowTokens } : {})} />
              </span>
            </div>
          );
        }}
      />
    </div>
  );
}
