/**
 * Highlight code line by line, on demand.
 *
 * The only state between lines is the long string or comment that a line starts in.
 */

import { CONSTANTS, languageOf, type Language } from "./languages";

export interface Token {
  text: string;
  kind: string;
}

/** What is open at a line's end: `/` (comment) or `"` (string) and its closing mark; or "". */
export type State = string;

const MAX_LINE_CHARS = 2000;
const NUMBER = /(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)[a-zA-Z%]*/y;
const WORD = /[A-Za-z_$\u00a1-\uffff][\w$\u00a1-\uffff]*/y;
const CALL = /\s*\(/y;
const constants = new Set(CONSTANTS.split(" "));

/** A text whose lines are highlighted on demand. */
export class HighlightedText {
  private readonly states: State[] = [""];
  private readonly tokensByLine = new Map<number, Token[]>();

  constructor(
    private readonly lines: readonly string[],
    private readonly reader: Tokenizer | null,
  ) {}

  /** Return the tokens of a line, counted from 0. */
  line(at: number): Token[] {
    const known = this.tokensByLine.get(at);
    if (known) return known;
    const tokens = this.read(this.lines[at] ?? "", this.state(at))[0];
    this.tokensByLine.set(at, tokens);
    return tokens;
  }

  /** Return the state at the start of a line. */
  state(at: number): State {
    for (let each = this.states.length; each <= at; each++)
      this.states.push(this.read(this.lines[each - 1] ?? "", this.states[each - 1]!)[1]);
    return this.states[at]!;
  }

  /** Return tokens of other lines, as if they started at line `at`, such as deleted lines. */
  replacementTokens(lines: readonly string[], at: number): Token[][] {
    let state = this.reader ? this.state(Math.min(at, this.lines.length)) : "";
    return lines.map((line) => {
      const [tokens, next] = this.read(line, state);
      state = next;
      return tokens;
    });
  }

  private read(line: string, state: State): [Token[], State] {
    if (!this.reader || line.length > MAX_LINE_CHARS) return [[{ text: line, kind: "" }], state];
    return this.reader.read(line, state);
  }
}

export function highlightText(lines: readonly string[], name: string): HighlightedText {
  const language = languageOf(name);
  return new HighlightedText(lines, language ? tokenizerFor(language) : null);
}

const tokenizers = new Map<Language, Tokenizer>();

function tokenizerFor(language: Language): Tokenizer {
  let tokenizer = tokenizers.get(language);
  if (!tokenizer) tokenizers.set(language, (tokenizer = new Tokenizer(language)));
  return tokenizer;
}

class Tokenizer {
  private readonly words: Set<string>;

  constructor(private readonly language: Language) {
    this.words = new Set((language.words ?? "").split(" ").filter(Boolean));
  }

  read(line: string, state: State): [Token[], State] {
    const out = new TokenList();
    let at = 0;
    if (state) {
      const end = line.indexOf(closing(state), 0);
      if (end < 0) return [[{ text: line, kind: kindOf(state) }], state];
      at = end + closing(state).length;
      out.add(line.slice(0, at), kindOf(state));
    }
    let inTag = this.language.kind !== "markup";
    while (at < line.length) {
      const open = this.opening(line, at);
      if (open) {
        const [kind, start, end] = open;
        const from = at + start.length;
        const until = end === "" ? line.length : endAfter(line, from, end);
        if (until < 0) {
          out.add(line.slice(at), kind);
          return [out.tokens, (kind === "comment" ? "/" : '"') + end];
        }
        out.add(line.slice(at, until), kind);
        at = until;
        continue;
      }
      const [text, kind] = this.next(line, at, inTag);
      if (kind === "name" && this.language.kind === "markup") inTag = text.startsWith("<");
      out.add(text, kind);
      at += text.length;
    }
    return [out.tokens, ""];
  }

  /** Return text and kind of the next token that is no comment and no long string. */
  private next(line: string, at: number, inTag: boolean): [text: string, kind: string] {
    const name = match(this.language.names, line, at);
    if (name) return [name, "name"];
    const quoted = inTag && this.string(line, at);
    if (quoted) return [quoted, "string"];
    const number = !this.language.kind && match(NUMBER, line, at);
    if (number) return [number, "number"];
    const word = !this.language.kind && match(WORD, line, at);
    if (word) return [word, this.kind(word, line, at + word.length)];
    return [line[at]!, ""];
  }

  private kind(word: string, line: string, after: number): string {
    if (this.words.has(word)) return "word";
    if (constants.has(word)) return "constant";
    if (this.words.size && match(CALL, line, after)) return "call";
    if (this.words.size && /^[A-Z][a-z]/.test(word)) return "type";
    return "";
  }

  private opening(line: string, at: number): [string, string, string] | null {
    for (const [start, end] of this.language.block ?? [])
      if (line.startsWith(start, at)) return ["comment", start, end];
    for (const [start, end] of this.language.long ?? [])
      if (line.startsWith(start, at)) return ["string", start, end];
    for (const start of this.language.line ?? [])
      if (line.startsWith(start, at) && (start.length > 1 || !/\S/.test(line[at - 1] ?? " ")))
        return ["comment", start, ""];
    return null;
  }

  private string(line: string, at: number): string | null {
    const quote = line[at]!;
    if (!this.language.strings?.includes(quote)) return null;
    const end = endAfter(line, at + 1, quote);
    return line.slice(at, end < 0 ? line.length : end);
  }
}

class TokenList {
  readonly tokens: Token[] = [];

  add(text: string, kind: string): void {
    const last = this.tokens.at(-1);
    if (last && last.kind === kind) last.text += text;
    else this.tokens.push({ text, kind });
  }
}

function match(pattern: RegExp | undefined, line: string, at: number): string | null {
  if (!pattern) return null;
  pattern.lastIndex = at;
  return pattern.exec(line)?.[0] || null;
}

/** Return the index after the closing mark, or -1; a backslash escapes the next character. */
function endAfter(line: string, from: number, mark: string): number {
  for (let at = from; at < line.length; at++) {
    if (line[at] === "\\") at++;
    else if (line.startsWith(mark, at)) return at + mark.length;
  }
  return -1;
}

function closing(state: State): string {
  return state.slice(1);
}

function kindOf(state: State): string {
  return state[0] === "/" ? "comment" : "string";
}
