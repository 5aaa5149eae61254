/** Routes: parse the page's URL, build URLs, navigate without reloading. */

import { computed, signal } from "@preact/signals";

export interface Route {
  view: string;
  project: string | null;
  query: URLSearchParams;
}

const currentUrl = signal(readUrl());

/** The current route: `/VIEW` or `/p/PROJECT/VIEW`, with everything else in the query. */
export const route = computed<Route>(() => {
  const { pathname, search } = new URL(currentUrl.value, window.location.origin);
  const parts = pathname.split("/").filter(Boolean);
  const inProject = parts[0] === "p" && parts.length > 1;
  return {
    view: (inProject ? parts[2] : parts[0]) ?? "home",
    project: inProject ? decodeURIComponent(parts[1]!) : null,
    query: new URLSearchParams(search),
  };
});

type Query = Record<string, string | number | null | undefined>;

export function urlFor(view: string, project?: string | null, query: Query = {}): string {
  const path = project ? `/p/${encodeURIComponent(project)}/${view}` : `/${view}`;
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== "") params.set(name, String(value));
  const rest = params.toString();
  return (path === "/home" ? "/" : path) + (rest ? `?${rest}` : "");
}

export function go(address: string, { replace = false } = {}): void {
  if (address === readUrl()) return;
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  currentUrl.value = readUrl();
}

/** Change query parameters without a history entry: “Back” does not step through filters. */
export function setQuery(change: Query): void {
  const query = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined || value === null || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  const rest = query.toString();
  go(window.location.pathname + (rest ? `?${rest}` : ""), { replace: true });
}

export function start(): void {
  window.addEventListener("popstate", () => (currentUrl.value = readUrl()));
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

function readUrl(): string {
  return window.location.pathname + window.location.search;
}
