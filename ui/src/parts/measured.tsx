/**
 * A list of any length whose rows have heights that nobody knows before they are drawn, such as a
 * conversation. Only what can be seen is drawn.
 *
 * A row has the height that was guessed until it is measured; then all is put right before it is
 * painted, and what the reader looks at stays where it is. At the end the list is followed: what
 * is added there is shown.
 */

import type { ComponentChildren, Ref } from "preact";
import { useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { indexAt, topsOf } from "./heights";

export interface Guessed {
  key: string;
  guess: number;
}

export interface MeasuredHandle {
  /** Puts a row into the middle, or at the top; gives whether there is such a row. */
  show: (key: string, where: "middle" | "top") => boolean;
  toEnd: () => void;
  /** The row that is at the top just now. */
  first: () => string | null;
}

interface Given<R extends Guessed> {
  rows: R[];
  /** Each row as an `<li>` with its key as `data-key`. */
  render: (row: R) => ComponentChildren;
  label: string;
  class: string;
  gap: number;
  handle?: Ref<MeasuredHandle>;
  /** Called when the beginning, or the end, is near. */
  starts?: () => void;
  ends?: () => void;
  before?: ComponentChildren;
  after?: ComponentChildren;
}

/** What stays in its place: a row, so far below the upper edge; or the end of everything. */
type Anchor = { key: string; at: number | "middle" } | "end";

const EXTRA = 800;
const NEAR = 1500;
const AT_END = 40;
const MARGIN = 20;

export function Measured<R extends Guessed>(given: Given<R>) {
  const { rows, gap } = given;
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const known = useRef(new Map<string, number>()).current;
  const anchor = useRef<Anchor>("end");
  const placed = useRef<{ tops: Float64Array | null; top: number }>({ tops: null, top: -1 });
  const all = useRef(true);
  const [view, setView] = useState({ top: 0, height: 800, width: 0 });
  const [version, setVersion] = useState(0);
  const tops = useMemo(
    () => topsOf(rows, (row) => known.get(row.key) ?? row.guess + gap),
    [rows, version],
  );
  const total = tops[rows.length] ?? 0;
  const places = useMemo(() => new Map(rows.map((row, index) => [row.key, index])), [rows]);
  const above = useRef<HTMLDivElement>(null);
  const start = indexAt(tops, view.top - EXTRA);
  const end = Math.min(rows.length, indexAt(tops, view.top + view.height + EXTRA) + 1);

  function look(): void {
    const { scrollTop, clientHeight, clientWidth } = box.current!;
    const top = scrollTop - lead();
    setView((old) =>
      old.top === top && old.height === clientHeight && old.width === clientWidth
        ? old
        : { top, height: clientHeight, width: clientWidth },
    );
  }

  /** What is above the rows, within the same box. */
  function lead(): number {
    return above.current?.offsetHeight ?? 0;
  }

  /** Measures what is new, or all where something may have grown; gives whether that changed. */
  function measured(): boolean {
    let changed = false;
    for (const element of list.current?.children ?? []) {
      const key = (element as HTMLElement).dataset.key!;
      const before = known.get(key);
      if (before !== undefined && !all.current) continue;
      const height = element.getBoundingClientRect().height + gap;
      if (before !== undefined && Math.abs(before - height) < 0.5) continue;
      known.set(key, height);
      changed = true;
    }
    all.current = false;
    return changed;
  }

  function place(): void {
    const element = box.current!;
    const kept = anchor.current;
    let top: number | null = element.scrollHeight - element.clientHeight;
    if (kept !== "end") {
      const index = places.get(kept.key);
      if (index === undefined) {
        top = null;
      } else {
        const space = element.clientHeight - (tops[index + 1]! - tops[index]!);
        const below = kept.at === "middle" ? Math.max(MARGIN, space / 2) : kept.at;
        top = tops[index]! + lead() - below;
      }
    }
    if (top !== null && Math.abs(element.scrollTop - top) > 0.5) element.scrollTop = top;
    placed.current = { tops, top: element.scrollTop };
    look();
  }

  useLayoutEffect(() => {
    if (measured()) setVersion((each) => each + 1);
    else if (placed.current.tops !== tops) place();
  });

  useLayoutEffect(() => {
    let width = box.current!.clientWidth;
    const observer = new ResizeObserver(() => {
      if (box.current!.clientWidth !== width) {
        // Lines break elsewhere now: nothing that was measured holds any more.
        width = box.current!.clientWidth;
        known.clear();
      }
      all.current = true;
      placed.current.tops = null;
      setVersion((each) => each + 1);
    });
    observer.observe(box.current!);
    observer.observe(list.current!);
    return () => observer.disconnect();
  }, []);

  /** The first row in sight that was seen before: what is new must not push it away. */
  function anchorAt(top: number, height: number): number {
    const first = indexAt(tops, top);
    for (let index = first; index < rows.length && tops[index]! < top + height; index++)
      if (known.has(rows[index]!.key)) return index;
    return first;
  }

  function scrolled(): void {
    const element = box.current!;
    const { scrollTop, scrollHeight, clientHeight } = element;
    // What we did ourselves is nobody's wish to be elsewhere.
    if (Math.abs(scrollTop - placed.current.top) > 1) {
      placed.current.top = -1;
      const index = anchorAt(scrollTop - lead(), clientHeight);
      const row = rows[index];
      if (scrollTop + clientHeight > scrollHeight - AT_END) anchor.current = "end";
      else if (row) anchor.current = { key: row.key, at: tops[index]! + lead() - scrollTop };
    }
    look();
    if (scrollTop < NEAR) given.starts?.();
    if (scrollTop + clientHeight > scrollHeight - NEAR) given.ends?.();
  }

  useImperativeHandle(given.handle ?? null, () => ({
    show: (key, where) => {
      if (!places.has(key)) return false;
      anchor.current = { key, at: where === "top" ? MARGIN : "middle" };
      place();
      return true;
    },
    toEnd: () => {
      anchor.current = "end";
      place();
    },
    first: () => rows[indexAt(tops, box.current!.scrollTop - lead() + MARGIN + 4)]?.key ?? null,
  }));

  return (
    <div
      ref={box}
      class={`measured ${given.class}`}
      onScroll={scrolled}
      tabIndex={0}
      role="group"
      aria-label={given.label}
    >
      <div ref={above}>{given.before}</div>
      <div class="measured-all" style={{ height: `${total}px` }}>
        <ol
          ref={list}
          class="measured-seen"
          style={{ rowGap: `${gap}px`, transform: `translateY(${tops[start] ?? 0}px)` }}
        >
          {rows.slice(start, end).map(given.render)}
        </ol>
      </div>
      {given.after}
    </div>
  );
}
