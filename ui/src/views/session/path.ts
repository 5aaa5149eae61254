/**
 * The part of a session that is shown: the conversation where it stands, or another moment of it.
 *
 * Pages are added at either end. What arrives while one reads is joined to what is there.
 */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, Problem, type Entry } from "../../api";
import { listen } from "../../live";

export interface Shown {
  entries: Entry[];
  earlier: number | null;
  /** Whether the session goes on after what is shown. */
  later: boolean;
  /** Whether what is shown is a branch that the session has left. */
  elsewhere: boolean;
}

const PAGE = 120;
const AFTER = 40;

export interface Moment {
  entry: string | null;
  seq: number | null;
}

export function usePath(project: string, session: string, moment: Moment) {
  const [shown, setShown] = useState<Shown | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const round = useRef(0);
  const key = `${project} ${session} ${moment.entry ?? ""}`;

  const load = useCallback(
    async (fresh: boolean) => {
      const mine = ++round.current;
      try {
        const found = moment.entry
          ? await around(project, session, moment)
          : await newest(project, session);
        if (mine !== round.current) return;
        setProblem(null);
        setShown((old) => (fresh || !old ? found : joined(old, found)));
      } catch (why) {
        if (mine === round.current && !isGone(why)) setProblem(why as Error);
      }
    },
    [key],
  );

  useEffect(() => {
    setShown(null);
    void load(true);
    let timer: number | undefined;
    let fresh = false;
    const stop = listen((event) => {
      const mine = event.project === project && (!event.session || event.session === session);
      if (event.kind !== "reconnected" && (!mine || event.kind === "files" || event.kind === "job"))
        return;
      // An operation may have moved the session: then nothing of the old path is sure to be on it.
      fresh ||= event.kind.startsWith("operation") || event.kind === "reconnected";
      timer ??= window.setTimeout(() => {
        timer = undefined;
        void load(fresh);
        fresh = false;
      }, 120);
    });
    return () => {
      stop();
      clearTimeout(timer);
      round.current++;
    };
  }, [load]);

  const earlier = useCallback(async () => {
    const before = shown?.earlier;
    if (!before) return;
    const leaf = shown.elsewhere ? moment.entry : null;
    const page = await api.conversation(project, session, { before, limit: PAGE, leaf });
    setShown((old) =>
      old && old.earlier === before
        ? { ...old, entries: [...page.entries, ...old.entries], earlier: page.next_before }
        : old,
    );
  }, [shown, key]);

  return { shown, problem, earlier, reload: () => load(true) };
}

/** That the server is gone is said once, above all views. */
function isGone(why: unknown): boolean {
  return why instanceof Problem && why.code === "unreachable";
}

async function newest(project: string, session: string): Promise<Shown> {
  const page = await api.conversation(project, session, { limit: PAGE });
  return { entries: page.entries, earlier: page.next_before, later: false, elsewhere: false };
}

/** The neighbourhood of an entry: on the path of the session, else on the branch it is on. */
async function around(project: string, session: string, { entry, seq }: Moment): Promise<Shown> {
  const top = seq === null ? null : seq + AFTER;
  const page = await api.conversation(project, session, { before: top, limit: PAGE });
  if (page.entries.some((each) => each.entry === entry)) {
    const last = await api.conversation(project, session, { limit: 1 });
    const later = last.entries.at(-1)?.entry !== page.entries.at(-1)?.entry;
    return { entries: page.entries, earlier: page.next_before, later, elsewhere: false };
  }
  const branch = await api.conversation(project, session, { leaf: entry, limit: PAGE });
  return { entries: branch.entries, earlier: branch.next_before, later: false, elsewhere: true };
}

/** The old pages before a new one, where the new one goes on from them. */
function joined(old: Shown, found: Shown): Shown {
  const first = found.entries[0]?.seq ?? 0;
  const kept = old.entries.filter((each) => each.seq < first);
  const goesOn = kept.length > 0 && kept.at(-1)!.entry === found.entries[0]?.parent;
  if (!goesOn) return found;
  return { ...found, entries: [...kept, ...found.entries], earlier: old.earlier };
}
