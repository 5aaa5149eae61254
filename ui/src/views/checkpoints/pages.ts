import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, type Checkpoint } from "../../api";
import { listen } from "../../live";
import { showError } from "../../state";

/** Load the list of checkpoints page by page; new ones appear at the top. */
export function useCheckpoints(project: string, wanted: string | null) {
  const [state, setState] = useState<{ all: Checkpoint[]; cursor: string | null } | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const working = useRef(false);
  const reload = useCallback(async () => {
    try {
      const page = await api.checkpoints(project, { limit: 60 });
      setProblem(null);
      setState((old) => {
        const known = new Set(page.checkpoints.map((each) => each.checkpoint));
        const last = page.checkpoints.at(-1)?.created_at ?? "";
        const rest =
          old?.all.filter((each) => !known.has(each.checkpoint) && each.created_at < last) ?? [];
        return {
          all: [...page.checkpoints, ...rest],
          cursor: rest.length ? old!.cursor : page.next_before,
        };
      });
    } catch (problem) {
      setProblem(problem as Error);
    }
  }, [project]);
  const next = useCallback(async () => {
    if (working.current || !state?.cursor) return;
    working.current = true;
    try {
      const page = await api.checkpoints(project, { limit: 60, before: state.cursor });
      setState(
        (old) => old && { all: [...old.all, ...page.checkpoints], cursor: page.next_before },
      );
    } catch (problem) {
      showError(problem);
    } finally {
      working.current = false;
    }
  }, [project, state?.cursor]);
  useEffect(() => {
    void reload();
    return listen((event) => {
      if (
        event.kind === "reconnected" ||
        (event.project === project && event.kind.startsWith("operation"))
      )
        void reload();
    });
  }, [reload]);
  // The checkpoint in the URL may be on a later page.
  useEffect(() => {
    if (
      state?.cursor &&
      wanted &&
      wanted !== "now" &&
      !state.all.some((each) => each.checkpoint === wanted)
    )
      void next();
  }, [state, wanted, next]);
  return { all: state?.all ?? null, more: Boolean(state?.cursor), problem, next, reload };
}
