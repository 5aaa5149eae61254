/** Code in a message, or a file on its own. */

import { useMemo } from "preact/hooks";
import { colouring } from "./colours";
import type { Token } from "./syntax";

export function Code({ text, language }: { text: string; language: string }) {
  const make = colouring();
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

/** A line in colours; `from` and `to` mark what is different in it. */
export function Tokens(given: { tokens?: Token[]; text: string; mark?: [number, number] | null }) {
  const tokens = given.tokens ?? [{ text: given.text, kind: "" }];
  if (!given.text) return <>{"\n"}</>;
  if (!given.mark) return <>{tokens.map(shown)}</>;
  return <>{marked(tokens, given.mark).map(shown)}</>;
}

function shown(token: Token & { changed?: boolean }, key: number) {
  if (!token.kind && !token.changed) return token.text;
  const kind = token.kind ? `t-${token.kind}` : "";
  return (
    <span key={key} class={token.changed ? `${kind} changed` : kind}>
      {token.text}
    </span>
  );
}

/** Tokens, cut where a mark begins and ends. */
function marked(tokens: Token[], [from, to]: [number, number]): (Token & { changed?: boolean })[] {
  const found: (Token & { changed?: boolean })[] = [];
  let at = 0;
  for (const { text, kind } of tokens) {
    const cuts = [0, from - at, to - at, text.length].map((cut) =>
      Math.min(Math.max(cut, 0), text.length),
    );
    for (let each = 0; each < 3; each++) {
      const part = text.slice(cuts[each], cuts[each + 1]);
      if (part) found.push({ text: part, kind, changed: each === 1 });
    }
    at += text.length;
  }
  return found;
}
