/**
 * Markdown as agents write it. Everything becomes elements by our own hand: what looks like HTML
 * stays text, and links lead only to the web.
 */

import type { ComponentChild, ComponentChildren } from "preact";
import { Code } from "../diff/code";

export function Markdown({ text }: { text: string }) {
  return <div class="prose">{blocks(text.replace(/\r\n?/g, "\n").split("\n"))}</div>;
}

const FENCE = /^(\s*)(```+|~~~+)\s*([\w+#.-]*)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function blocks(lines: string[]): ComponentChild[] {
  const found: ComponentChild[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (!line.trim()) {
      at++;
    } else if (fence) {
      const end = lines.findIndex((each, i) => i > at && each.trim().startsWith(fence[2]!));
      const until = end < 0 ? lines.length : end;
      const body = lines
        .slice(at + 1, until)
        .map((each) => each.slice(indent(each, fence[1]!.length)));
      found.push(<Code key={at} text={body.join("\n")} language={fence[3]!} />);
      at = until + 1;
    } else if (heading) {
      // The page's own headings come first; those of a message begin below them.
      const Tag = `h${Math.min(6, heading[1]!.length + 2)}` as "h3";
      found.push(<Tag key={at}>{inline(heading[2]!)}</Tag>);
      at++;
    } else if (RULE.test(line)) {
      found.push(<hr key={at} />);
      at++;
    } else if (ITEM.test(line)) {
      const until = endOfList(lines, at);
      found.push(<List key={at} lines={lines.slice(at, until)} />);
      at = until;
    } else if (line.startsWith(">")) {
      const until = first(lines, at, (each) => !each.startsWith(">"));
      const inside = lines.slice(at, until).map((each) => each.replace(/^>\s?/, ""));
      found.push(<blockquote key={at}>{blocks(inside)}</blockquote>);
      at = until;
    } else if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "x")) {
      const until = first(lines, at, (each) => !each.includes("|"));
      found.push(<Table key={at} lines={lines.slice(at, until)} />);
      at = until;
    } else {
      const until = first(lines, at + 1, (each) => !each.trim() || starts(each));
      found.push(<p key={at}>{inline(lines.slice(at, until).join("\n"))}</p>);
      at = until;
    }
  }
  return found;
}

function List({ lines }: { lines: string[] }) {
  const [, lead, mark] = ITEM.exec(lines[0]!)!;
  const items: string[][] = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && item[1]!.length <= lead!.length) items.push([item[3]!]);
    else items.at(-1)!.push(line.slice(indent(line, lead!.length + mark!.length + 1)));
  }
  const inside = items.map((item, each) => {
    const parts = blocks(item);
    const only = item.length === 1 ? inline(item[0]!) : parts;
    return <li key={each}>{only}</li>;
  });
  const start = parseInt(mark!, 10);
  return Number.isNaN(start) ? <ul>{inside}</ul> : <ol start={start}>{inside}</ol>;
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

const INLINE =
  /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([\s\S]+?)\*\*|__([\s\S]+?)__|(?<![\w*])\*(?!\s)([\s\S]+?)(?<!\s)\*(?!\w)|(?<![\w_])_(?!\s)([\s\S]+?)(?<!\s)_(?!\w)|~~([\s\S]+?)~~|\[([^\]]+)\]\(([^)\s]+)(?:\s+"[^"]*")?\)|(https?:\/\/[^\s<>()]+[^\s<>().,;:!?'"])|\\([\\`*_{}[\]()#+.!|~-])/g;

function inline(text: string): ComponentChildren {
  const found: ComponentChild[] = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > at) found.push(text.slice(at, match.index));
    at = match.index + match[0].length;
    const key = match.index;
    const [, ticks, code, strong, strong2, weak, weak2, struck, label, link, bare, escaped] = match;
    if (ticks) found.push(<code key={key}>{code!.replace(/^ (.*) $/s, "$1")}</code>);
    else if (strong ?? strong2)
      found.push(<strong key={key}>{inline((strong ?? strong2)!)}</strong>);
    else if (weak ?? weak2) found.push(<em key={key}>{inline((weak ?? weak2)!)}</em>);
    else if (struck) found.push(<s key={key}>{inline(struck)}</s>);
    else if (label) found.push(<Anchor key={key} to={link!} text={label} />);
    else if (bare) found.push(<Anchor key={key} to={bare} text={bare} />);
    else found.push(escaped);
  }
  if (at < text.length) found.push(text.slice(at));
  return found;
}

function Anchor({ to, text }: { to: string; text: string }) {
  if (!/^https?:\/\//i.test(to)) return <span title={to}>{inline(text)}</span>;
  return (
    <a href={to} target="_blank" rel="noopener noreferrer">
      {text}
    </a>
  );
}

function starts(line: string): boolean {
  return FENCE.test(line) || HEADING.test(line) || ITEM.test(line) || line.startsWith(">");
}

function endOfList(lines: string[], from: number): number {
  const lead = ITEM.exec(lines[from]!)![1]!.length;
  const ordered = /\d/.test(ITEM.exec(lines[from]!)![2]!);
  return first(lines, from + 1, (line, each) => {
    if (!line.trim())
      return !/^\s+\S/.test(lines[each + 1] ?? "") && !ITEM.test(lines[each + 1] ?? "");
    const item = ITEM.exec(line);
    if (item) return item[1]!.length <= lead && /\d/.test(item[2]!) !== ordered;
    return indent(line, lead + 1) === 0 && !lines[each - 1]?.trim();
  });
}

function first(lines: string[], from: number, is: (line: string, at: number) => boolean): number {
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
