/** Load files from the disk, for the context lines around changes. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api } from "../../api";
import { listen } from "../../live";

const MAX_FILE_CHARS = 64_000_000;
const REDRAW_DELAY_MS = 20;
const FIRST_FILES = 5;
const FIRST_FILES_TIMEOUT_MS = 300;

export interface Contents {
  lines: (path: string) => readonly string[] | null;
  request: (path: string) => void;
  /** Rises when files may have changed and must be requested again. */
  version: number;
}

export function useContents(project: string): Contents {
  const loaded = useRef(new Map<string, readonly string[]>());
  const requested = useRef(new Set<string>());
  const [, redraw] = useState(0);
  const [version, setVersion] = useState(0);
  const timer = useRef<number | undefined>(undefined);

  useEffect(() => {
    loaded.current.clear();
    requested.current.clear();
    return listen((event) => {
      // Keep the old lines until the new ones arrive, to avoid flicker.
      if (event.project === project || event.kind === "reconnected") {
        requested.current.clear();
        setVersion((each) => each + 1);
      }
    });
  }, [project]);

  const want = useCallback(
    (path: string) => {
      if (requested.current.has(path)) return;
      requested.current.add(path);
      api.file(project, path).then(
        (text) => {
          if (text.length > MAX_FILE_CHARS) return;
          const before = loaded.current.get(path);
          const lines = text.split("\n");
          if (lines.at(-1) === "") lines.pop();
          if (
            before &&
            before.length === lines.length &&
            before.every((line, at) => line === lines[at])
          )
            return;
          loaded.current.set(path, lines);
          // Redraw once for several files that arrive together.
          timer.current ??= window.setTimeout(() => {
            timer.current = undefined;
            redraw((each) => each + 1);
          }, REDRAW_DELAY_MS);
        },
        () => loaded.current.delete(path),
      );
    },
    [project],
  );

  const lines = useCallback((path: string) => loaded.current.get(path) ?? null, []);
  return { lines, request: want, version };
}

/**
 * Return true once the first files are loaded, or after a timeout.
 *
 * Waiting keeps the first screen from moving when its context lines arrive.
 */
export function useFirstFilesLoaded(contents: Contents, paths: string[] | null): boolean {
  const [waited, setWaited] = useState(false);
  const first = useRef<string[] | null>(null);
  first.current ??= paths?.slice(0, FIRST_FILES) ?? null;
  useEffect(() => {
    if (!first.current) return undefined;
    first.current.forEach(contents.request);
    const timer = window.setTimeout(() => setWaited(true), FIRST_FILES_TIMEOUT_MS);
    return () => clearTimeout(timer);
  }, [first.current]);
  return waited || Boolean(first.current?.every(contents.lines));
}
