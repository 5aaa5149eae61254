/**
 * Find the changed words within replaced lines.
 *
 * Computed only for rendered lines.
 */

export type Span = readonly [from: number, to: number];

type Spans = readonly [old: readonly Span[], now: readonly Span[]];

const NONE: Spans = [[], []];
const WORD = /[\p{L}\p{N}_]+|\s+|[^]/gu;
/** Lines that share less than this fraction get no word marks. */
const MIN_LIKENESS = 0.3;
const MAX_LINE_CHARS = 2000;
const MAX_WORD_PAIRS = 40_000;
const MAX_LINE_PAIRS = 900;

export class WordDiff {
  private partners: Map<number, number> | null = null;
  private readonly known = new Map<number, Spans>();

  /** Pair each line with the one `beside` it, or else with the most similar one. */
  constructor(
    private readonly before: readonly string[],
    private readonly after: readonly string[],
    private readonly beside: boolean,
  ) {}

  of(sign: "+" | "-", at: number): readonly Span[] {
    this.partners ??= this.paired();
    if (sign === "-") return this.spans(at)[0];
    for (const [old, now] of this.partners) if (now === at) return this.spans(old)[1];
    return [];
  }

  private spans(old: number): Spans {
    const now = this.partners!.get(old);
    if (now === undefined) return NONE;
    let spans = this.known.get(old);
    if (!spans) this.known.set(old, (spans = compare(this.before[old]!, this.after[now]!)));
    return spans;
  }

  private paired(): Map<number, number> {
    const { before, after } = this;
    if (this.beside || before.length === after.length)
      return new Map(before.slice(0, after.length).map((_, at) => [at, at]));
    return before.length * after.length > MAX_LINE_PAIRS ? new Map() : aligned(before, after);
  }
}

/** Pair old and new lines in order, maximising the total likeness. */
function aligned(before: readonly string[], after: readonly string[]): Map<number, number> {
  const wide = after.length + 1;
  const best = new Float64Array((before.length + 1) * wide);
  const alike = before.map((old) => after.map((now) => likeness(old.trim(), now.trim())));
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      best[i * wide + j] = Math.max(
        best[(i + 1) * wide + j]!,
        best[i * wide + j + 1]!,
        best[(i + 1) * wide + j + 1]! + alike[i]![j]!,
      );
  const pairs = new Map<number, number>();
  for (let i = 0, j = 0; i < before.length && j < after.length;) {
    const here = best[i * wide + j]!;
    if (alike[i]![j]! > 0 && here === best[(i + 1) * wide + j + 1]! + alike[i]![j]!)
      pairs.set(i++, j++);
    else if (here === best[(i + 1) * wide + j]!) i++;
    else j++;
  }
  return pairs;
}

/** Return the fraction that is common prefix and suffix; 0 below `MIN_LIKENESS`. */
function likeness(one: string, other: string): number {
  const most = Math.max(one.length, other.length);
  if (!most) return 0;
  const least = Math.min(one.length, other.length);
  let start = 0;
  while (start < least && one[start] === other[start]) start++;
  let end = 0;
  while (end < least - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end++;
  const share = (start + end) / most;
  return share < MIN_LIKENESS ? 0 : share;
}

/** Return the changed spans of two lines. */
export function compare(old: string, now: string): Spans {
  const before = words(old);
  const after = words(now);
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const [left, right] = unshared(
    before.slice(start, before.length - end),
    after.slice(start, after.length - end),
  );
  const ours = spans(before, (at) => left.has(at - start));
  const theirs = spans(after, (at) => right.has(at - start));
  const kept = nonBlankLength(before.filter((_, at) => !left.has(at - start)).join(""));
  const whole = Math.max(nonBlankLength(before.join("")), nonBlankLength(after.join("")));
  return kept < whole * MIN_LIKENESS ? NONE : [ours, theirs];
}

/** Return the indexes of words outside the longest common subsequence. */
function unshared(before: string[], after: string[]): [Set<number>, Set<number>] {
  const [left, right] = [new Set(before.keys()), new Set(after.keys())];
  if (before.length * after.length > MAX_WORD_PAIRS) return [left, right];
  const wide = after.length + 1;
  const best = new Uint16Array((before.length + 1) * wide);
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      best[i * wide + j] =
        before[i] === after[j]
          ? best[(i + 1) * wide + j + 1]! + 1
          : Math.max(best[(i + 1) * wide + j]!, best[i * wide + j + 1]!);
  for (let i = 0, j = 0; i < before.length && j < after.length;) {
    if (before[i] === after[j]) {
      left.delete(i++);
      right.delete(j++);
    } else if (best[(i + 1) * wide + j]! >= best[i * wide + j + 1]!) i++;
    else j++;
  }
  return [left, right];
}

/** Turn changed words into character spans, joining spans that only blanks separate. */
function spans(all: string[], isChanged: (at: number) => boolean): Span[] {
  const spans: [number, number][] = [];
  let at = 0;
  let blank = false;
  all.forEach((word, index) => {
    const end = at + word.length;
    const last = spans.at(-1);
    if (isChanged(index)) {
      if (last && (last[1] === at || blank)) last[1] = end;
      else spans.push([at, end]);
      blank = true;
    } else if (word.trim()) {
      blank = false;
    }
    at = end;
  });
  return spans;
}

function words(line: string): string[] {
  return (
    line
      .slice(0, MAX_LINE_CHARS)
      .replace(/\r?\n$/, "")
      .match(WORD) ?? []
  );
}

function nonBlankLength(text: string): number {
  return text.replace(/\s+/g, "").length;
}
