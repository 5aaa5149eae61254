/** Files as they are on the disk now, for the lines around changes. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api } from "../../api";
import { listen } from "../../live";

const LARGEST = 64_000_000;
const TOGETHER = 20;
const FIRST = 5;
const PATIENCE = 300;

export interface Contents {
  lines: (path: string) => readonly string[] | null;
  want: (path: string) => void;
  /** Changes when files may have changed, and are to be wanted again. */
  version: number;
}

export function useContents(project: string): Contents {
  const known = useRef(new Map<string, readonly string[]>());
  const asked = useRef(new Set<string>());
  const [, redraw] = useState(0);
  const [version, setVersion] = useState(0);
  const timer = useRef<number | undefined>(undefined);

  useEffect(() => {
    known.current.clear();
    asked.current.clear();
    return listen((event) => {
      // What is known stays until the new content is there: nothing shall flicker.
      if (event.project === project || event.kind === "reconnected") {
        asked.current.clear();
        setVersion((each) => each + 1);
      }
    });
  }, [project]);

  const want = useCallback(
    (path: string) => {
      if (asked.current.has(path)) return;
      asked.current.add(path);
      api.file(project, path).then(
        (text) => {
          if (text.length > LARGEST) return;
          const before = known.current.get(path);
          const lines = text.split("\n");
          if (lines.at(-1) === "") lines.pop();
          if (
            before &&
            before.length === lines.length &&
            before.every((line, at) => line === lines[at])
          )
            return;
          known.current.set(path, lines);
          // Several that come at once are drawn at once.
          timer.current ??= window.setTimeout(() => {
            timer.current = undefined;
            redraw((each) => each + 1);
          }, TOGETHER);
        },
        () => known.current.delete(path),
      );
    },
    [project],
  );

  const lines = useCallback((path: string) => known.current.get(path) ?? null, []);
  return { lines, want, version };
}

/**
 * Whether the first of these files are there, or have been waited for long enough: what is seen
 * first should not move when the lines around it come.
 */
export function useFirst(contents: Contents, paths: string[] | null): boolean {
  const [waited, setWaited] = useState(false);
  const first = useRef<string[] | null>(null);
  first.current ??= paths?.slice(0, FIRST) ?? null;
  useEffect(() => {
    if (!first.current) return undefined;
    first.current.forEach(contents.want);
    const timer = window.setTimeout(() => setWaited(true), PATIENCE);
    return () => clearTimeout(timer);
  }, [first.current]);
  return waited || Boolean(first.current?.every(contents.lines));
}
