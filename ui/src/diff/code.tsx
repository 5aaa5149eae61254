/** Highlighted code: a block in a message, and single lines of a diff. */

import { useMemo } from "preact/hooks";
import { markInvisible } from "../parts/invisible";
import { highlighter } from "./highlighter";
import type { Token } from "./syntax";
import type { Span } from "./word-diff";

export function Code({ text, language }: { text: string; language: string }) {
  const make = highlighter();
  const lines = useMemo(() => text.split("\n"), [text]);
  const colours = useMemo(() => make?.(lines, language || "plain"), [make, lines, language]);
  return (
    <pre class="code" tabIndex={0} role="region" aria-label="Code">
      {lines.map((line, each) => (
        <div key={each} class="code-line">
          <Tokens tokens={colours?.line(each)} text={line} />
        </div>
      ))}
    </pre>
  );
}

/** A highlighted line; `marks` are its changed spans, blanks from `blank` on are made visible. */
export function Tokens(props: {
  tokens?: Token[];
  text: string;
  marks?: readonly Span[];
  blank?: number;
}) {
  const tokens = props.tokens ?? [{ text: props.text, kind: "" }];
  if (!props.text) return <>{"\n"}</>;
  const { marks = [], blank = props.text.length } = props;
  if (!marks.length && blank === props.text.length) return <>{tokens.map(shown)}</>;
  return <>{cut(tokens, props.text, marks, blank).map(shown)}</>;
}

interface Piece extends Token {
  changed?: boolean;
  blank?: boolean;
}

function shown(token: Piece, key: number) {
  if (!token.kind && !token.changed && !token.blank) return markInvisible(token.text, true);
  const names = [token.kind && `t-${token.kind}`, token.changed && "changed"].filter(Boolean);
  return (
    <span key={key} class={names.join(" ")}>
      {token.blank ? token.text.split(/(\t)/).map(blanks) : markInvisible(token.text, true)}
    </span>
  );
}

/** Draw visible blanks by CSS, so that they are copied as blanks. */
function blanks(text: string, key: number) {
  if (!text) return null;
  return (
    <span key={key} class={text === "\t" ? "tab" : "spaces"}>
      {markInvisible(text, true)}
    </span>
  );
}

/** Cut tokens at the edges of changed spans and visible blanks. */
function cut(tokens: Token[], text: string, marks: readonly Span[], blank: number): Piece[] {
  const cuts = [...new Set([...marks.flat(), blank])].sort((one, other) => one - other);
  const pieces: Piece[] = [];
  let at = 0;
  for (const token of tokens) {
    const end = at + token.text.length;
    for (const until of [...cuts.filter((each) => each > at && each < end), end]) {
      const mark = marks.find(([from, to]) => from <= at && until <= to);
      const part = text.slice(at, until);
      pieces.push({
        text: part,
        kind: token.kind,
        changed: mark !== undefined,
        blank: !part.trim() && (at >= blank || (mark ? !text.slice(...mark).trim() : false)),
      });
      at = until;
    }
  }
  return pieces;
}
