/** Server data in a view: loaded, kept during a reload, refreshed by live events. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api";
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

const RELOAD_DELAY_MS = 120;

/**
 * Load data for `inputs`, and reload it after events for which `shouldReload` is true.
 *
 * New inputs drop the old data at once. A reload keeps it until the new data arrives, so that the
 * view does not flicker.
 */
export function useResource<T>(
  load: () => Promise<T>,
  inputs: unknown[],
  shouldReload?: (event: LiveEvent) => boolean,
): Resource<T> {
  const [state, setState] = useState<State<T>>({ loading: true, key: "" });
  const key = JSON.stringify(inputs);
  const latestRequest = useRef(0);
  const loader = useRef(load);
  loader.current = load;
  const shouldReloadRef = useRef(shouldReload);
  shouldReloadRef.current = shouldReload;

  const reload = useCallback(async () => {
    const request = ++latestRequest.current;
    try {
      const data = await loader.current();
      if (request === latestRequest.current) setState({ data, loading: false, key });
    } catch (problem) {
      if (request !== latestRequest.current) return;
      const isUnreachable = problem instanceof ApiError && problem.code === "unreachable";
      setState((old) =>
        // `Connection` reports a lost server for all views; each view keeps its data.
        isUnreachable && old.key === key && old.data !== undefined
          ? old
          : failed(old, problem as Error, key),
      );
    }
  }, [key]);

  useEffect(() => {
    void reload();
    let timer: number | undefined;
    const stop = listen((event) => {
      const again = event.kind === "reconnected" || shouldReloadRef.current?.(event);
      if (!again || timer !== undefined) return;
      timer = window.setTimeout(() => {
        timer = undefined;
        void reload();
      }, RELOAD_DELAY_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
      latestRequest.current++;
    };
  }, [reload]);

  const set = useCallback((change: (data: T) => T) => {
    setState((old) => (old.data === undefined ? old : { ...old, data: change(old.data) }));
  }, []);

  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : undefined,
    problem: isCurrent ? state.problem : undefined,
    loading: !isCurrent || state.loading,
    reload,
    set,
  };
}

function failed<T>(old: State<T>, problem: Error, key: string): State<T> {
  const kept = old.key === key && old.data !== undefined ? { data: old.data } : {};
  return { ...kept, problem, loading: false, key };
}
