/** The colours come in a part of their own: code is readable before they are there. */

import { signal } from "@preact/signals";
import type { HighlightedText } from "./syntax";

type Highlight = (lines: readonly string[], name: string) => HighlightedText;

const highlight = signal<Highlight | null>(null);
let requested = false;

/** How to colour code, as soon as that is known. */
export function highlighter(): Highlight | null {
  if (!requested) {
    requested = true;
    import("./syntax").then(
      (syntax) => (highlight.value = syntax.highlightText),
      // The server was gone just then; whoever draws next asks again.
      () => (requested = false),
    );
  }
  return highlight.value;
}
