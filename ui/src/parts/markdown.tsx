/**
 * Render Markdown as Preact elements. HTML stays text, and links lead only to http(s) URLs.
 *
 * The text is untrusted, so every step is linear in its length, and quotes and lists nest at most
 * `MAX_DEPTH` deep; deeper levels are text. No pattern can match the same text in two ways, so none
 * can backtrack.
 */

import type { ComponentChild, ComponentChildren } from "preact";
import { Code } from "../diff/code";
import { MAX_DEPTH, parseInline, type Inline } from "./inline";

export function Markdown({ text }: { text: string }) {
  return <div class="prose">{parseBlocks(text.replace(/\r\n?/g, "\n").split("\n"), 0)}</div>;
}

const FENCE = /^(\s*)(```+|~~~+)\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(?=\s)/;
const RULES = new Set(["-", "*", "_"]);
const TABLE_CELL = /^:?-+:?$/;

function parseBlocks(lines: string[], depth: number): ComponentChild[] {
  const elements: ComponentChild[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (!line.trim()) {
      at++;
    } else if (fence) {
      const until = findLine(lines, at + 1, (each) => each.trimStart().startsWith(fence[2]!));
      const body = lines
        .slice(at + 1, until)
        .map((each) => each.slice(indent(each, fence[1]!.length)));
      elements.push(<Code key={at} text={body.join("\n")} language={fence[3]!} />);
      at = until + 1;
    } else if (heading) {
      // The page's own headings are h1 and h2; those of a message start at h3.
      const Tag = `h${Math.min(6, heading[1]!.length + 2)}` as "h3";
      elements.push(<Tag key={at}>{inline(headingText(line.slice(heading[1]!.length)))}</Tag>);
      at++;
    } else if (isRule(line)) {
      elements.push(<hr key={at} />);
      at++;
    } else if (depth < MAX_DEPTH && ITEM.test(line)) {
      const until = endOfList(lines, at);
      elements.push(parseList(lines.slice(at, until), depth + 1, at));
      at = until;
    } else if (depth < MAX_DEPTH && line.startsWith(">")) {
      const until = findLine(lines, at, (each) => !each.startsWith(">"));
      const inside = lines.slice(at, until).map((each) => each.replace(/^>\s?/, ""));
      elements.push(<blockquote key={at}>{parseBlocks(inside, depth + 1)}</blockquote>);
      at = until;
    } else if (line.includes("|") && isTableRule(lines[at + 1] ?? "")) {
      const until = findLine(lines, at, (each) => !each.includes("|"));
      elements.push(<Table key={at} lines={lines.slice(at, until)} />);
      at = until;
    } else {
      const until = findLine(lines, at + 1, (each) => !each.trim() || startsBlock(each));
      elements.push(<p key={at}>{inline(lines.slice(at, until).join("\n"))}</p>);
      at = until;
    }
  }
  return elements;
}

function parseList(lines: string[], depth: number, key: number): ComponentChild {
  const [, lead, mark] = ITEM.exec(lines[0]!)!;
  const items: string[][] = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1]!.length <= lead!.length)
      items.push([line.slice(item[0].length).trimStart()]);
    else items.at(-1)!.push(line.slice(indent(line, lead!.length + mark!.length + 1)));
  }
  const inside = items.map((item, each) => {
    const only =
      item.length === 1 && !startsBlock(item[0]!) ? inline(item[0]!) : parseBlocks(item, depth);
    return <li key={each}>{only}</li>;
  });
  const start = parseInt(mark!, 10);
  return Number.isNaN(start) ? (
    <ul key={key}>{inside}</ul>
  ) : (
    <ol key={key} start={start}>
      {inside}
    </ol>
  );
}

/** Strip the closing `#` signs of a heading. */
function headingText(line: string): string {
  const text = line.trim();
  let end = text.length;
  while (text[end - 1] === "#") end--;
  return text.slice(0, end).trimEnd();
}

function isRule(line: string): boolean {
  const marks = line.replace(/\s/g, "");
  return marks.length > 2 && RULES.has(marks[0]!) && !marks.replaceAll(marks[0]!, "");
}

function isTableRule(line: string): boolean {
  return line.includes("-") && cells(line).every((cell) => TABLE_CELL.test(cell));
}

function Table({ lines }: { lines: string[] }) {
  const [head, , ...rows] = lines.map(cells);
  return (
    <div class="prose-table" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {head!.map((cell, each) => (
              <th key={each}>{inline(cell)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, number) => (
            <tr key={number}>
              {row.map((cell, each) => (
                <td key={each}>{inline(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inline(text: string): ComponentChildren {
  return parseInline(text).map((part, key) => renderInline(part, key, false));
}

function renderInline(part: Inline, key: number, inLink: boolean): ComponentChild {
  if (typeof part === "string") return part;
  const linked = inLink || part.tag === "a";
  const children = part.children.map((each, at) => renderInline(each, at, linked));
  const Tag = part.tag;
  if (Tag !== "a") return <Tag key={key}>{children}</Tag>;
  if (inLink || !/^https?:\/\//i.test(part.to!))
    return (
      <span key={key} title={part.to}>
        {children}
      </span>
    );
  return (
    <a key={key} href={part.to} title={part.to} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

function startsBlock(line: string): boolean {
  return FENCE.test(line) || HEADING.test(line) || ITEM.test(line) || line.startsWith(">");
}

function endOfList(lines: string[], from: number): number {
  const lead = ITEM.exec(lines[from]!)![1]!.length;
  const ordered = /\d/.test(ITEM.exec(lines[from]!)![2]!);
  return findLine(lines, from + 1, (line, each) => {
    if (!line.trim())
      return !/^\s+\S/.test(lines[each + 1] ?? "") && !ITEM.test(lines[each + 1] ?? "");
    const item = ITEM.exec(line);
    if (item) return item[1]!.length <= lead && /\d/.test(item[2]!) !== ordered;
    return indent(line, lead + 1) === 0 && !lines[each - 1]?.trim();
  });
}

function findLine(
  lines: string[],
  from: number,
  is: (line: string, at: number) => boolean,
): number {
  let at = from;
  while (at < lines.length && !is(lines[at]!, at)) at++;
  return Math.max(at, from);
}

function indent(line: string, limit: number): number {
  return Math.min(limit, line.length - line.trimStart().length);
}

function cells(line: string): string[] {
  return line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
}
