/**
 * Parse inline Markdown (emphasis, code, links) into a tree, in linear time and bounded depth.
 *
 * 1. Read the text once, from left to right.
 * 2. Push a mark that may open on a stack of at most `MAX_DEPTH`; the oldest falls off and is text.
 * 3. A mark that closes an open one wraps everything since into one node, so no node moves twice.
 * 4. Look up the end of a code span or URL in an index that only moves forward.
 */

export type Inline = string | Span;

export interface Span {
  tag: "strong" | "em" | "s" | "code" | "a";
  children: Inline[];
  /** The URL of a link. */
  to?: string;
}

interface Open {
  mark: string;
  /** Index of the mark's own text in `out`. */
  at: number;
}

export const MAX_DEPTH = 16;

const TAGS: Record<string, "strong" | "em" | "s"> = {
  "**": "strong",
  __: "strong",
  "*": "em",
  _: "em",
  "~~": "s",
};
const NEXT = /[\\`*_~[\]]|https?:\/\//g;
const ESCAPABLE = /[\\`*_{}[\]()#+.!|~-]/;
const ADDRESS = /https?:\/\/[^\s<>()[\]]+/y;
const TRAILING = ".,;:!?'\"";
const WORD = /[\p{L}\p{N}_]/u;

export function parseInline(text: string): Inline[] {
  return new Parser(text).parse();
}

class Parser {
  private readonly out: Inline[] = [];
  private readonly open: Open[] = [];
  private at = 0;
  private readonly nextTickRun: (length: number, from: number) => number;
  private readonly linkEnd: (from: number) => number;
  private readonly nextNonBlank: (from: number) => number;
  private readonly nextQuote: (from: number) => number;

  constructor(private readonly text: string) {
    this.nextTickRun = tickRuns(text);
    this.linkEnd = nextMatch(text, /[)\s]/g);
    this.nextNonBlank = nextMatch(text, /\S/g);
    this.nextQuote = nextMatch(text, /"/g);
  }

  parse(): Inline[] {
    while (this.at < this.text.length) {
      NEXT.lastIndex = this.at;
      const next = NEXT.exec(this.text)?.index ?? this.text.length;
      if (next > this.at) this.add(next - this.at);
      if (next < this.text.length) this.read(this.text[next]!);
    }
    return merged(this.out);
  }

  private read(first: string): void {
    if (first === "\\") this.backslash();
    else if (first === "`") this.code();
    else if (first === "h") this.address();
    else if (first === "[") this.opens("[", 1);
    else if (first === "]") this.closesLink();
    else this.emphasis(first);
  }

  /** Emit the next `length` characters as text. */
  private add(length: number): void {
    this.out.push(this.text.slice(this.at, this.at + length));
    this.at += length;
  }

  private backslash(): void {
    const next = this.text[this.at + 1];
    if (next === undefined || !ESCAPABLE.test(next)) return this.add(1);
    this.at++;
    this.add(1);
  }

  private code(): void {
    const length = runLength(this.text, this.at);
    const end = this.nextTickRun(length, this.at + length);
    if (end < 0) return this.add(length);
    const inside = this.text.slice(this.at + length, end);
    const padded = inside.length > 2 && inside.startsWith(" ") && inside.endsWith(" ");
    this.out.push({ tag: "code", children: [padded ? inside.slice(1, -1) : inside] });
    this.at = end + length;
  }

  private address(): void {
    ADDRESS.lastIndex = this.at;
    const url = ADDRESS.exec(this.text)?.[0] ?? "";
    let end = url.length;
    while (end > 0 && TRAILING.includes(url[end - 1]!)) end--;
    if (end <= "https://".length) return this.add(Math.max(1, url.length));
    const to = url.slice(0, end);
    this.out.push({ tag: "a", to, children: [to] });
    this.at += end;
  }

  private opens(mark: string, length: number): void {
    if (this.open.length === MAX_DEPTH) this.open.shift();
    this.open.push({ mark, at: this.out.length });
    this.add(length);
  }

  /** Close a link at `](url)` or `](url "title")`. */
  private closesLink(): void {
    const place = this.open.findLastIndex((each) => each.mark === "[");
    const target = place < 0 ? null : this.target(this.at + 1);
    if (!target || this.out.length === this.open[place]!.at + 1) return this.add(1);
    const [to, end] = target;
    this.wrap(place, (children) => ({ tag: "a", to, children }));
    this.at = end;
  }

  private target(from: number): [to: string, end: number] | null {
    if (this.text[from] !== "(") return null;
    let end = this.linkEnd(from + 1);
    if (end <= from + 1) return null;
    const to = this.text.slice(from + 1, end);
    if (this.text[end] === ")") return [to, end + 1];
    end = this.nextNonBlank(end);
    if (this.text[end] !== '"') return null;
    const close = this.nextQuote(end + 1);
    return close >= 0 && this.text[close + 1] === ")" ? [to, close + 2] : null;
  }

  private emphasis(first: string): void {
    const length = runLength(this.text, this.at);
    if (length > 3 || (first === "~" && length !== 2)) return this.add(length);
    const before = this.text[this.at - 1] ?? " ";
    const after = this.text[this.at + length] ?? " ";
    const within = first === "_" || length === 1;
    const canOpen = after.trim() !== "" && !(within && WORD.test(before));
    const canClose = before.trim() !== "" && !(within && WORD.test(after));
    const [long, short] = [first.repeat(2), first];
    const marks =
      length < 3 ? [first.repeat(length)] : this.inner(first) ? [short, long] : [long, short];
    for (const mark of marks) {
      const place = canClose ? this.open.findLastIndex((each) => each.mark === mark) : -1;
      if (place >= 0 && this.out.length > this.open[place]!.at + 1) {
        this.wrap(place, (children) => ({ tag: TAGS[mark]!, children }));
        this.at += mark.length;
      } else if (canOpen) this.opens(mark, mark.length);
      else this.add(mark.length);
    }
  }

  /** True if the short mark was opened last, so that it closes first. */
  private inner(first: string): boolean {
    return this.open.findLast((each) => each.mark[0] === first)?.mark.length === 1;
  }

  private wrap(place: number, make: (children: Inline[]) => Span): void {
    const { at } = this.open[place]!;
    this.open.length = place;
    const children = merged(this.out.splice(at + 1));
    this.out[at] = make(children);
  }
}

function runLength(text: string, from: number): number {
  let end = from + 1;
  while (text[end] === text[from]) end++;
  return end - from;
}

/** Find the next run of `length` backticks, or -1; callers ask with rising `from`. */
function tickRuns(text: string): (length: number, from: number) => number {
  const runs = new Map<number, number[]>();
  for (const run of text.matchAll(/`+/g)) {
    const same = runs.get(run[0].length);
    if (same) same.push(run.index);
    else runs.set(run[0].length, [run.index]);
  }
  const heads = new Map<number, number>();
  return (length, from) => {
    const same = runs.get(length) ?? [];
    let head = heads.get(length) ?? 0;
    while (head < same.length && same[head]! < from) head++;
    heads.set(length, head);
    return same[head] ?? -1;
  };
}

/** Find the next match at or after `from`, or -1; callers ask with rising `from`. */
function nextMatch(text: string, pattern: RegExp): (from: number) => number {
  let next = -1;
  let ended = false;
  return (from) => {
    if (!ended && next < from) {
      pattern.lastIndex = from;
      next = pattern.exec(text)?.index ?? -1;
      ended = next < 0;
    }
    return ended ? -1 : next;
  };
}

function merged(parts: Inline[]): Inline[] {
  const joined: Inline[] = [];
  let texts: string[] = [];
  const flush = () => {
    if (texts.length) joined.push(texts.join(""));
    texts = [];
  };
  for (const part of parts) {
    if (typeof part === "string") texts.push(part);
    else {
      flush();
      joined.push(part);
    }
  }
  flush();
  return joined;
}
