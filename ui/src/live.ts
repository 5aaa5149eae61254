/**
 * What happens, as it happens: one stream of events for the whole page.
 *
 * A lost stream is opened again, after the last event that was seen; whoever listens is then told
 * `reconnected`, for what has no number. A page that nobody looks at lets go of its stream:
 * browsers allow only a few connections to one server.
 */

import { signal } from "@preact/signals";

export interface LiveEvent {
  kind: string;
  project: string | null;
  number: number | null;
  session?: string;
  [more: string]: unknown;
}

type Listener = (event: LiveEvent) => void;

const KINDS = [
  "entry",
  "entry_changed",
  "session",
  "session_changed",
  "session_deleted",
  "operation",
  "operation_changed",
  "files",
  "job",
];
const FIRST_WAIT = 500;
const LONGEST_WAIT = 5000;
const HIDDEN_FOR = 30_000;

export const connection = signal<"connecting" | "live" | "lost">("connecting");

const listeners = new Set<Listener>();
let source: EventSource | null = null;
let last: string | null = null;
let wait = FIRST_WAIT;
let again: number | undefined;
let hiding: number | undefined;

/** Calls back for every event until the returned function is called. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function start(): void {
  open();
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = window.setTimeout(close, HIDDEN_FOR);
    else if (!source) open();
  });
  window.addEventListener("online", () => !source && open());
}

/** Tries at once instead of soon. */
export function retry(): void {
  wait = FIRST_WAIT;
  open();
}

function open(): void {
  close();
  const stream = new EventSource(
    `/api/v1/events${last ? `?after=${encodeURIComponent(last)}` : ""}`,
  );
  source = stream;
  stream.onopen = () => {
    wait = FIRST_WAIT;
    const before = connection.value;
    connection.value = "live";
    if (before === "lost") tell({ kind: "reconnected", project: null, number: null });
  };
  stream.onerror = () => {
    // The browser's own attempts give up at the first answer that is no stream; ours do not.
    if (source !== stream) return;
    close();
    connection.value = "lost";
    again = window.setTimeout(open, wait);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  };
  for (const kind of KINDS) {
    stream.addEventListener(kind, (event) => {
      const message = event as MessageEvent<string>;
      if (message.lastEventId) last = message.lastEventId;
      tell(JSON.parse(message.data) as LiveEvent);
    });
  }
}

function close(): void {
  clearTimeout(again);
  source?.close();
  source = null;
}

function tell(event: LiveEvent): void {
  for (const listener of [...listeners]) listener(event);
}
