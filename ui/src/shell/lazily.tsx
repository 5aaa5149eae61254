/** A view that is loaded when it is first shown. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Skeleton, Trouble } from "../parts/small";

type View = () => JSX.Element | null;

export function lazily(load: () => Promise<{ default: View }>): View {
  const found = signal<View | null>(null);
  const problem = signal<Error | null>(null);
  const fetch = () => {
    problem.value = null;
    load().then(
      (module) => (found.value = module.default),
      () => (problem.value = new Error("A part of the page could not be loaded.")),
    );
  };
  return function Lazily() {
    useEffect(() => {
      if (!found.value) fetch();
    }, []);
    const View = found.value;
    if (View) return <View />;
    if (problem.value) return <Trouble problem={problem.value} retry={() => location.reload()} />;
    return <Skeleton />;
  };
}
