/**
 * A view in a part of its own: loaded when it is first shown, or when there is nothing else to do.
 * So it is there even if the server is not, by the time that somebody goes to it.
 */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { listen } from "../live";
import { Skeleton, ErrorBox } from "../parts/small";

type View = () => JSX.Element | null;

const PRELOAD_AFTER_MS = 1500;

export function lazyView(load: () => Promise<{ default: View }>): View {
  const loaded = signal<View | null>(null);
  const problem = signal<Error | null>(null);
  const fetch = () =>
    load().then(
      (module) => (loaded.value = module.default),
      () => undefined,
    );
  window.setTimeout(() => requestIdleCallback(() => void fetch()), PRELOAD_AFTER_MS);
  return function Lazily() {
    useEffect(() => {
      if (loaded.value) return undefined;
      void fetch().then(() => {
        if (!loaded.value)
          problem.value = new Error(
            "A part of the page could not be loaded. It comes when the server is back.",
          );
      });
      // Browsers may remember that a part could not be had; the whole page is asked for anew.
      return listen((event) => {
        if (event.kind === "reconnected" && problem.value) location.reload();
      });
    }, []);
    const View = loaded.value;
    if (View) return <View />;
    if (problem.value) return <ErrorBox problem={problem.value} />;
    return <Skeleton />;
  };
}
