/** Addresses: where the page is, and going elsewhere. */

import { computed, signal } from "@preact/signals";

export interface Place {
  view: string;
  project: string | null;
  query: URLSearchParams;
}

const location_ = signal(here());

/** `/review`, or `/p/PROJECT/review`; what else there is to say is in the query. */
export const place = computed<Place>(() => {
  const { pathname, search } = new URL(location_.value, window.location.origin);
  const parts = pathname.split("/").filter(Boolean);
  const inProject = parts[0] === "p" && parts.length > 1;
  return {
    view: (inProject ? parts[2] : parts[0]) ?? "home",
    project: inProject ? decodeURIComponent(parts[1]!) : null,
    query: new URLSearchParams(search),
  };
});

type Query = Record<string, string | number | null | undefined>;

export function to(view: string, project?: string | null, query: Query = {}): string {
  const path = project ? `/p/${encodeURIComponent(project)}/${view}` : `/${view}`;
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== "") asked.set(name, String(value));
  const rest = asked.toString();
  return (path === "/home" ? "/" : path) + (rest ? `?${rest}` : "");
}

export function go(address: string, { replace = false } = {}): void {
  if (address === here()) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  location_.value = here();
}

/** Changes parts of the query, in place: filters are no steps to go back to. */
export function setQuery(change: Query): void {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined || value === null || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  const rest = query.toString();
  go(window.location.pathname + (rest ? `?${rest}` : ""), { replace: true });
}

export function start(): void {
  window.addEventListener("popstate", () => (location_.value = here()));
  document.addEventListener("click", (event) => {
    const plain = !event.defaultPrevented && event.button === 0;
    if (!plain || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest?.("a");
    if (!link || link.target || link.origin !== window.location.origin) return;
    if (link.pathname.startsWith("/api/") || link.hasAttribute("download")) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

function here(): string {
  return window.location.pathname + window.location.search;
}
