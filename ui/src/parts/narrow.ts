/** Whether the window is so narrow that two columns of code make no sense. */

import { signal } from "@preact/signals";

const query = window.matchMedia("(max-width: 520px)");

export const narrow = signal(query.matches);

query.addEventListener("change", () => (narrow.value = query.matches));
