/** Highlight the lines of a diff: each once, and only when it is rendered. */

import type { highlighter } from "./highlighter";
import type { Hunk, Line } from "./model";
import type { HighlightedText, Token } from "./syntax";

export type TokensOf = (line: Line) => Token[] | undefined;

/** Return a function from line to tokens; with the whole file, multi-line strings are exact. */
export function tokensOf(
  name: string,
  hunks: readonly Hunk[],
  lines: readonly string[] | null,
  make: ReturnType<typeof highlighter>,
): TokensOf {
  if (!make) return () => undefined;
  const whole = lines ? make(lines, name) : null;
  const byId = new Map(hunks.map((hunk) => [hunk.id, hunk]));
  const parts = new Map<string, Token[][] | HighlightedText>();
  return (line) => {
    if (line.cut) return undefined;
    if (line.sign === " ") return whole ? whole.line(line.at) : make([line.text], name).line(0);
    const hunk = byId.get(line.hunk);
    if (!hunk) return undefined;
    if (line.sign === "+" && whole) return whole.line(hunk.new_start - 1 + line.at);
    const key = `${line.sign} ${hunk.id}`;
    let hunkTokens = parts.get(key);
    if (!hunkTokens) {
      const bare = (line.sign === "-" ? hunk.old_lines : hunk.new_lines).map(withoutLineEnd);
      hunkTokens = whole ? whole.replacementTokens(bare, hunk.new_start - 1) : make(bare, name);
      parts.set(key, hunkTokens);
    }
    return Array.isArray(hunkTokens) ? hunkTokens[line.at] : hunkTokens.line(line.at);
  };
}

function withoutLineEnd(line: string): string {
  return line.replace(/\r?\n$/, "");
}
