/**
 * Live events: one server-sent event stream for the whole page.
 *
 * A lost stream is reopened after the last event received. Listeners then get a `reconnected`
 * event, because events without a number are not replayed. A hidden page closes its stream:
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
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 5000;
const CLOSE_WHEN_HIDDEN_MS = 30_000;

export const connection = signal<"connecting" | "live" | "lost">("connecting");

const listeners = new Set<Listener>();
let source: EventSource | null = null;
let lastEventId: string | null = null;
let retryDelayMs = FIRST_RETRY_MS;
let retryTimer: number | undefined;
let hiddenTimer: number | undefined;

/** Subscribe to all events; the returned function unsubscribes. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function start(): void {
  open();
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) hiddenTimer = window.setTimeout(close, CLOSE_WHEN_HIDDEN_MS);
    else if (!source) open();
  });
  window.addEventListener("online", () => !source && open());
}

/** Reconnect now instead of after the retry delay. */
export function retry(): void {
  retryDelayMs = FIRST_RETRY_MS;
  open();
}

function open(): void {
  close();
  const stream = new EventSource(
    `/api/v1/events${lastEventId ? `?after=${encodeURIComponent(lastEventId)}` : ""}`,
  );
  source = stream;
  stream.onopen = () => {
    retryDelayMs = FIRST_RETRY_MS;
    const before = connection.value;
    connection.value = "live";
    if (before === "lost") notify({ kind: "reconnected", project: null, number: null });
  };
  stream.onerror = () => {
    // EventSource stops retrying after a reply that is not an event stream, so retry here.
    if (source !== stream) return;
    close();
    connection.value = "lost";
    retryTimer = window.setTimeout(open, retryDelayMs);
    retryDelayMs = Math.min(retryDelayMs * 2, MAX_RETRY_MS);
  };
  for (const kind of KINDS) {
    stream.addEventListener(kind, (event) => {
      const message = event as MessageEvent<string>;
      if (message.lastEventId) lastEventId = message.lastEventId;
      notify(JSON.parse(message.data) as LiveEvent);
    });
  }
}

function close(): void {
  clearTimeout(retryTimer);
  source?.close();
  source = null;
}

function notify(event: LiveEvent): void {
  for (const listener of [...listeners]) listener(event);
}
