/**
 * Mark invisible characters in all text that the page renders.
 *
 * A Preact hook sees every element before it is rendered, so no view can forget to do this. A mark
 * shows the code point and keeps the character itself, so copied text stays the same.
 */

import { Fragment, options, type ComponentChild, type VNode } from "preact";
import { BLANK, HIDDEN, PICTOGRAPHS, type Ranges } from "../invisible-ranges";

interface Segment {
  text: string;
  /** Shown instead of hidden characters. */
  label?: string;
  title?: string;
}

const PLAIN = /^[\t\n -~]*$/;
const MAX_LISTED = 12;
const ATTRIBUTES = ["title", "aria-label", "placeholder"];
/** Elements that can hold only text: their text is escaped instead of marked. */
const TEXT_ONLY = new Set(["option", "text", "title"]);
const NEVER = new Set(["textarea", "script", "style"]);

const hidden = classOf(HIDDEN);
const blank = classOf(BLANK);
const one = `[${classOf(PICTOGRAPHS)}][\\u{fe0f}\\u{1f3fb}-\\u{1f3ff}]?`;
const emoji = `[#*0-9]\\u{fe0f}\\u{20e3}|${one}(?:\\u{200d}${one})*`;
/** A carriage return before a newline is not marked. */
const run = `(?:(?!\\r\\n)[${hidden}])+`;
const IN_CODE = new RegExp(`(${run})|([${blank}]+)`, "gu");
const IN_PROSE = new RegExp(`${emoji}|(${run})`, "gu");
const HIDDEN_RUN = new RegExp(run, "gu");

function classOf(ranges: Ranges): string {
  return ranges
    .map(([first, last]) => `\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`)
    .join("");
}

/** Return text with marks; code also marks unusual blanks, prose keeps its emoji. */
export function markInvisible(text: string, code: boolean): ComponentChild {
  if (PLAIN.test(text)) return text;
  const parts = segments(text, code);
  if (parts.length === 1 && !parts[0]!.title) return text;
  return parts.map((each, key) => {
    if (!each.title) return each.text;
    return (
      <span
        key={key}
        class={each.label ? "invisible" : "invisible-blank"}
        data-label={each.label}
        title={each.title}
      >
        {each.text}
      </span>
    );
  });
}

/** Return text for places without elements, such as tooltips: `[U+200B]`. */
export function escapeInvisible(text: string): string {
  if (PLAIN.test(text)) return text;
  return segments(text, false)
    .map((each) => (each.label ? `[${each.label}]` : each.text))
    .join("");
}

/** Return the columns that the marks of a code line add. */
export function markColumns(text: string): number {
  if (PLAIN.test(text)) return 0;
  let columns = 0;
  for (const [run] of text.matchAll(HIDDEN_RUN)) columns += labelOf(run).length + 1;
  return columns;
}

function segments(text: string, code: boolean): Segment[] {
  const parts: Segment[] = [];
  let at = 0;
  for (const match of text.matchAll(code ? IN_CODE : IN_PROSE)) {
    const [, run, blanks] = match;
    if (!run && !blanks) continue;
    if (match.index > at) parts.push({ text: text.slice(at, match.index) });
    if (run) parts.push({ text: run, label: labelOf(run), title: titleOf(run) });
    else parts.push({ text: blanks!, title: titleOf(blanks!) });
    at = match.index + match[0].length;
  }
  if (at < text.length) parts.push({ text: text.slice(at) });
  return parts;
}

function labelOf(run: string): string {
  const [first, ...rest] = run;
  return rest.length ? `${nameOf(first!)}…×${rest.length + 1}` : nameOf(first!);
}

function titleOf(run: string): string {
  const all = [...run];
  const listed = all.slice(0, MAX_LISTED).map((each) => `${nameOf(each)} ${kindOf(each)}`);
  return (
    listed.join(", ") + (all.length > MAX_LISTED ? `, and ${all.length - MAX_LISTED} more` : "")
  );
}

function nameOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
}

function kindOf(character: string): string {
  const code = character.codePointAt(0)!;
  for (const table of [HIDDEN, BLANK])
    for (const [first, last, what] of table) if (first <= code && code <= last) return what;
  return "";
}

export function start(): void {
  const before = options.vnode;
  options.vnode = (vnode) => {
    if (typeof vnode.type === "string") onElement(vnode as VNode<Props>, vnode.type);
    else if (vnode.type === Fragment)
      onChildren(vnode.props as Props, (text) => markInvisible(text, false));
    before?.(vnode);
  };
}

type Props = Record<string, unknown>;
type Mark = (text: string) => ComponentChild;

function onElement({ props }: VNode<Props>, type: string): void {
  const names = String(props.class ?? "");
  // Do not mark the marks: they hold the invisible characters.
  if (NEVER.has(type) || names.startsWith("invisible")) return;
  for (const name of ATTRIBUTES) {
    const value = props[name];
    if (needsMarks(value)) props[name] = escapeInvisible(value);
  }
  const code = type === "pre" || type === "code" || names.startsWith("path");
  onChildren(props, TEXT_ONLY.has(type) ? escapeInvisible : (text) => markInvisible(text, code));
}

function onChildren(props: Props, mark: Mark): void {
  if (anyNeedsMarks(props.children)) props.children = withMarks(props.children, mark);
}

function withMarks(children: unknown, mark: Mark): unknown {
  if (needsMarks(children)) return mark(children);
  return Array.isArray(children) ? children.map((each) => withMarks(each, mark)) : children;
}

function anyNeedsMarks(children: unknown): boolean {
  return Array.isArray(children) ? children.some(anyNeedsMarks) : needsMarks(children);
}

function needsMarks(value: unknown): value is string {
  return typeof value === "string" && !PLAIN.test(value);
}
