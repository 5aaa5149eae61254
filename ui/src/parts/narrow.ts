/** True if the window is too narrow for two columns of code. */

import { signal } from "@preact/signals";

const query = window.matchMedia("(max-width: 520px)");

export const narrow = signal(query.matches);

query.addEventListener("change", () => (narrow.value = query.matches));
