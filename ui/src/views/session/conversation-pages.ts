/**
 * Load the conversation of a session page by page, from its end or around a target entry.
 *
 * Pages are added at either end as the user scrolls. Live entries are appended: an entry's parent
 * never changes, so loaded entries stay valid.
 */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, ApiError, type Entry } from "../../api";
import { listen, type LiveEvent } from "../../live";
import { showError } from "../../state";

export interface ConversationPages {
  entries: Entry[];
  /** Cursor of the page before; null at the start of the session. */
  earlier: number | null;
  /** True if there are entries after the loaded ones. */
  later: boolean;
  /** True if the loaded entries are on a branch that the session has left. */
  elsewhere: boolean;
}

const PAGE_SIZE = 120;
const ENTRIES_AFTER_TARGET = 40;
const MAX_ENTRIES_PER_REQUEST = 1000;
const RELOAD_DELAY_MS = 120;

export interface Target {
  entry: string | null;
  seq: number | null;
}

export function useConversation(project: string, session: string, target: Target) {
  const [pages, setPages] = useState<ConversationPages | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const latestRequest = useRef(0);
  const latest = useRef<ConversationPages | null>(null);
  const working = useRef({ earlier: false, later: false });
  const key = `${project} ${session} ${target.entry ?? ""}`;

  const update = (change: (old: ConversationPages | null) => ConversationPages | null) => {
    latest.current = change(latest.current);
    setPages(latest.current);
  };

  /** Apply an async change, unless another target or session was opened since. */
  const ifCurrent = useCallback(
    async (work: () => Promise<(old: ConversationPages | null) => ConversationPages | null>) => {
      const request = latestRequest.current;
      try {
        const change = await work();
        if (request !== latestRequest.current) return;
        setProblem(null);
        update(change);
      } catch (failure) {
        if (request !== latestRequest.current || isUnreachable(failure)) return;
        if (latest.current) showError(failure);
        else setProblem(failure as Error);
      }
    },
    [key],
  );

  const load = useCallback(
    () =>
      ifCurrent(async () => {
        const pages = target.entry
          ? await pageAround(project, session, target)
          : await newestPage(project, session);
        return (old) => (old && pages.entries.length ? append(old, pages) : pages);
      }),
    [ifCurrent],
  );

  useEffect(() => {
    update(() => null);
    void load();
    const changed = new Set<number>();
    let [leafMayHaveMoved, hasNewEntries] = [false, false];
    let timer: number | undefined;

    const follow = async () => {
      const seqs = [...changed];
      const [moved, more] = [leafMayHaveMoved, hasNewEntries];
      changed.clear();
      timer = undefined;
      [leafMayHaveMoved, hasNewEntries] = [false, false];
      if (seqs.length) await ifCurrent(() => reloadEntries(project, session, seqs));
      const old = latest.current;
      const last = old?.entries.at(-1);
      if (!old || !last || (moved && (await hasLeftPath(project, session, old, last))))
        return load();
      // If the end is not loaded, new entries are loaded when the user scrolls there.
      if ((more || moved) && !old.later && !old.elsewhere) await loadNewEntries(last);
    };
    const loadNewEntries = async (last: Entry) => {
      let hasLeft = false;
      await ifCurrent(async () => {
        const next = await entriesAfter(project, session, last, MAX_ENTRIES_PER_REQUEST);
        hasLeft = !next;
        return (old) => (old && next ? append(old, next) : old);
      });
      if (hasLeft) await load();
    };
    const stop = listen((event) => {
      if (!isRelevant(event, project, session)) return;
      if (event.kind === "entry_changed") changed.add(Number(event.seq));
      else if (event.kind === "entry") hasNewEntries = true;
      else leafMayHaveMoved = true;
      timer ??= window.setTimeout(
        () => void follow().catch((failure) => isUnreachable(failure) || showError(failure)),
        RELOAD_DELAY_MS,
      );
    });
    return () => {
      stop();
      clearTimeout(timer);
      latestRequest.current++;
    };
  }, [load]);

  const onceAtATime = async (end: "earlier" | "later", work: () => Promise<void>) => {
    if (working.current[end]) return;
    working.current[end] = true;
    await work().finally(() => (working.current[end] = false));
  };

  const earlier = () =>
    onceAtATime("earlier", () =>
      ifCurrent(async () => {
        const before = latest.current?.earlier;
        if (!before) return (old) => old;
        const leaf = latest.current!.elsewhere ? target.entry : null;
        const page = await api.conversation(project, session, { before, limit: PAGE_SIZE, leaf });
        return (old) =>
          old && old.earlier === before
            ? { ...old, entries: [...page.entries, ...old.entries], earlier: page.next_before }
            : old;
      }),
    );

  const later = () =>
    onceAtATime("later", () =>
      ifCurrent(async () => {
        const last = latest.current?.later ? latest.current.entries.at(-1) : undefined;
        const next = last && (await entriesAfter(project, session, last, PAGE_SIZE));
        return (old) => (old && next ? append(old, next) : old);
      }),
    );

  /** Replace the loaded copy of an entry. */
  const replace = (entry: Entry) => update((old) => old && replaced(old, [entry]));

  return { pages, problem, earlier, later, reload: load, replace };
}

/** `Connection` reports a lost server, so callers ignore this error. */
function isUnreachable(failure: unknown): boolean {
  return failure instanceof ApiError && failure.code === "unreachable";
}

function isRelevant(event: LiveEvent, project: string, session: string): boolean {
  if (event.kind === "reconnected") return true;
  const mine = event.project === project && (!event.session || event.session === session);
  return mine && event.kind !== "files" && event.kind !== "job";
}

async function newestPage(project: string, session: string): Promise<ConversationPages> {
  const page = await api.conversation(project, session, { limit: PAGE_SIZE });
  return { entries: page.entries, earlier: page.next_before, later: false, elsewhere: false };
}

/** Return true if the session left the loaded path, or returned to a left branch. */
async function hasLeftPath(
  project: string,
  session: string,
  shown: ConversationPages,
  last: Entry,
): Promise<boolean> {
  const page = await api.conversation(project, session, { before: last.seq + 1, limit: 1 });
  return (page.entries.at(-1)?.entry === last.entry) === shown.elsewhere;
}

/** Load the entries after `last`; null if the session's path no longer contains it. */
async function entriesAfter(
  project: string,
  session: string,
  last: Entry,
  limit: number,
): Promise<ConversationPages | null> {
  const query = { since: last.seq, limit, newest: false };
  const page = await api.conversation(project, session, query);
  const first = page.entries[0];
  if (first && first.parent !== last.entry) return null;
  return { entries: page.entries, earlier: null, later: page.has_more, elsewhere: false };
}

/** Reload entries that changed. */
async function reloadEntries(project: string, session: string, seqs: number[]) {
  const [least, most] = [Math.min(...seqs), Math.max(...seqs)];
  const page = await api.entries(project, session, {
    since: least - 1,
    limit: Math.min(MAX_ENTRIES_PER_REQUEST, most - least + 1),
    include_compacted: true,
  });
  return (old: ConversationPages | null) => old && replaced(old, page.entries);
}

function replaced(old: ConversationPages, entries: Entry[]): ConversationPages {
  const now = new Map(entries.map((entry) => [entry.entry, entry]));
  return { ...old, entries: old.entries.map((entry) => now.get(entry.entry) ?? entry) };
}

/** Load a page around an entry, on the session's path or else on the entry's branch. */
async function pageAround(
  project: string,
  session: string,
  target: Target,
): Promise<ConversationPages> {
  const { entry } = target;
  const itself = { leaf: entry, limit: 1 };
  const seq =
    target.seq ?? (await api.conversation(project, session, itself)).entries.at(-1)?.seq ?? 0;
  const query = { before: seq + ENTRIES_AFTER_TARGET, limit: PAGE_SIZE };
  const [page, last] = await Promise.all([
    api.conversation(project, session, query),
    api.conversation(project, session, { limit: 1 }),
  ]);
  if (page.entries.some((each) => each.entry === entry)) {
    const later = last.entries.at(-1)?.entry !== page.entries.at(-1)?.entry;
    return { entries: page.entries, earlier: page.next_before, later, elsewhere: false };
  }
  const branch = await api.conversation(project, session, { leaf: entry, limit: PAGE_SIZE });
  return { entries: branch.entries, earlier: branch.next_before, later: false, elsewhere: true };
}

/** Append `next` if it continues the loaded entries; otherwise replace them. */
function append(old: ConversationPages, next: ConversationPages): ConversationPages {
  const first = next.entries[0];
  if (!first) return { ...old, later: next.later };
  const before = old.entries.filter((each) => each.seq < first.seq);
  if (before.at(-1)?.entry !== first.parent) return next;
  return { ...next, entries: [...before, ...next.entries], earlier: old.earlier };
}
