/**
 * Views in bundles of their own: loaded when first shown, or earlier when the browser is idle.
 *
 * The idle preload makes a view available even if the server stops before the user opens it.
 */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { listen } from "../live";
import { ErrorBox, Skeleton } from "../parts/small";

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
  return function LazyView() {
    useEffect(() => {
      if (loaded.value) return undefined;
      void fetch().then(() => {
        if (!loaded.value)
          problem.value = new Error(
            "This view could not be loaded. The page reloads when the server is back.",
          );
      });
      // Browsers may cache the failed import, so reload the whole page.
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
