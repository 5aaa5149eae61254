/** Load the syntax highlighter in the background; code is readable before it arrives. */

import { signal } from "@preact/signals";
import type { HighlightedText } from "./syntax";

type Highlight = (lines: readonly string[], name: string) => HighlightedText;

const highlight = signal<Highlight | null>(null);
let requested = false;

/** Return the highlighter, or null while it loads; the caller re-renders when it arrives. */
export function highlighter(): Highlight | null {
  if (!requested) {
    requested = true;
    import("./syntax").then(
      (syntax) => (highlight.value = syntax.highlightText),
      // The server could not be reached; the next render tries again.
      () => (requested = false),
    );
  }
  return highlight.value;
}
