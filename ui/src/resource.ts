/** Data of the server in a view: loaded, kept while it is loaded again, refreshed by events. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./api";
import { listen, type LiveEvent } from "./live";

export interface Resource<T> {
  data: T | undefined;
  problem: Error | undefined;
  loading: boolean;
  reload: () => Promise<void>;
  set: (change: (data: T) => T) => void;
}

interface State<T> {
  data?: T;
  problem?: Error;
  loading: boolean;
  key: string;
}

const QUIET = 120;

/**
 * What `load` gives for these `inputs`. When inputs change, what was there before goes; when an
 * event that `concerns` it comes, it stays until the new data is there, so that nothing flickers.
 */
export function useResource<T>(
  load: () => Promise<T>,
  inputs: unknown[],
  concerns?: (event: LiveEvent) => boolean,
): Resource<T> {
  const [state, setState] = useState<State<T>>({ loading: true, key: "" });
  const key = JSON.stringify(inputs);
  const round = useRef(0);
  const loader = useRef(load);
  loader.current = load;
  const judge = useRef(concerns);
  judge.current = concerns;

  const reload = useCallback(async () => {
    const mine = ++round.current;
    try {
      const data = await loader.current();
      if (mine === round.current) setState({ data, loading: false, key });
    } catch (problem) {
      if (mine !== round.current) return;
      const gone = problem instanceof Problem && problem.code === "unreachable";
      setState((old) =>
        // That the server is gone is said once, above all views; they keep what they have.
        gone && old.key === key && old.data !== undefined
          ? old
          : failed(old, problem as Error, key),
      );
    }
  }, [key]);

  useEffect(() => {
    void reload();
    let timer: number | undefined;
    const stop = listen((event) => {
      const again = event.kind === "reconnected" || judge.current?.(event);
      if (!again || timer !== undefined) return;
      timer = window.setTimeout(() => {
        timer = undefined;
        void reload();
      }, QUIET);
    });
    return () => {
      stop();
      clearTimeout(timer);
      round.current++;
    };
  }, [reload]);

  const set = useCallback((change: (data: T) => T) => {
    setState((old) => (old.data === undefined ? old : { ...old, data: change(old.data) }));
  }, []);

  const fits = state.key === key;
  return {
    data: fits ? state.data : undefined,
    problem: fits ? state.problem : undefined,
    loading: !fits || state.loading,
    reload,
    set,
  };
}

function failed<T>(old: State<T>, problem: Error, key: string): State<T> {
  const kept = old.key === key && old.data !== undefined ? { data: old.data } : {};
  return { ...kept, problem, loading: false, key };
}
