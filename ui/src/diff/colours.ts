/** The colours come in a part of their own: code is readable before they are there. */

import { signal } from "@preact/signals";
import type { Colours } from "./syntax";

type Make = (lines: readonly string[], name: string) => Colours;

const make = signal<Make | null>(null);
let asked = false;

/** How to colour code, as soon as that is known. */
export function colouring(): Make | null {
  if (!asked) {
    asked = true;
    import("./syntax").then(
      (found) => (make.value = found.coloursOf),
      // The server was gone just then; whoever draws next asks again.
      () => (asked = false),
    );
  }
  return make.value;
}
