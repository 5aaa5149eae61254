/**
 * A list of any length that draws only what can be seen.
 *
 * Heights are known beforehand, so that the scroll bar tells the truth from the first moment. When
 * rows change, the row that the reader was at stays where it is on the screen.
 */

import type { ComponentChildren, Ref } from "preact";
import { useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { indexAt, topsOf } from "./heights";

export interface Row {
  key: string;
  height: number;
}

export interface VirtualHandle {
  /** Scrolls so that a row can be seen; `top` puts it there, so far below the edge. */
  show: (key: string, where?: { top?: number }) => void;
  element: () => HTMLElement | null;
}

interface Given<R extends Row> {
  rows: R[];
  render: (row: R, index: number) => ComponentChildren;
  label: string;
  class?: string;
  handle?: Ref<VirtualHandle>;
  seen?: (first: R, index: number) => void;
  ends?: () => void;
  over?: ComponentChildren;
  role?: "list" | "listbox";
  inset?: number;
}

/** Where the reader was, and among which rows. */
interface Anchor<R> {
  rows: R[];
  tops: Float64Array;
  index: number;
  top: number;
}

const EXTRA = 400;
const NEAR_END = 800;
const LOOKED_BELOW = 200;

export function Virtual<R extends Row>(given: Given<R>) {
  const { rows } = given;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const tops = useMemo(() => topsOf(rows, (row) => row.height), [rows]);
  const total = tops[rows.length] ?? 0;
  const anchor = useRef<Anchor<R> | null>(null);
  const keys = useMemo(() => {
    let made: Map<string, number> | null = null;
    return () => (made ??= new Map(rows.map((row, index) => [row.key, index])));
  }, [rows]);

  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = box.current!;
    const kept = anchor.current;
    if (!kept) return;
    // Mostly it is where it was; only else is it worth looking everywhere. If the row itself is
    // gone, the next one below it that is still there stays in its place.
    const last = Math.min(kept.rows.length, kept.index + LOOKED_BELOW);
    for (let each = kept.index; each < last; each++) {
      const { key } = kept.rows[each]!;
      const index = rows[each]?.key === key ? each : keys().get(key);
      if (index === undefined) continue;
      const wanted = tops[index]! + kept.top - kept.tops[each]!;
      if (Math.abs(element.scrollTop - wanted) > 1) element.scrollTop = wanted;
      return;
    }
  }, [tops]);

  useImperativeHandle(given.handle ?? null, () => ({
    element: () => box.current,
    show: (key, where) => {
      const element = box.current;
      const index = keys().get(key);
      if (!element || index === undefined) return;
      const inset = given.inset ?? 0;
      const [top, bottom] = [tops[index]!, tops[index + 1]!];
      if (where?.top !== undefined) element.scrollTop = top - where.top;
      else if (top < element.scrollTop + inset) element.scrollTop = top - inset;
      else if (bottom > element.scrollTop + element.clientHeight)
        element.scrollTop = bottom - element.clientHeight;
      remember(element.scrollTop);
      setView({ top: element.scrollTop, height: element.clientHeight });
    },
  }));

  const start = indexAt(tops, view.top - EXTRA);
  const end = Math.min(rows.length, indexAt(tops, view.top + view.height + EXTRA) + 1);

  function remember(top: number): void {
    const index = indexAt(tops, top + (given.inset ?? 0));
    const row = rows[index];
    anchor.current = row ? { rows, tops, index, top } : null;
    if (row) given.seen?.(row, index);
  }

  function scrolled(): void {
    const element = box.current!;
    setView({ top: element.scrollTop, height: element.clientHeight });
    remember(element.scrollTop);
    if (element.scrollTop + element.clientHeight > total - NEAR_END) given.ends?.();
  }

  return (
    <div
      ref={box}
      class={`virtual ${given.class ?? ""}`}
      onScroll={scrolled}
      tabIndex={0}
      role="group"
      aria-label={given.label}
    >
      {given.over}
      <div class="virtual-all" style={{ height: `${total}px` }}>
        <div
          class="virtual-seen"
          role={given.role}
          aria-label={given.role ? given.label : undefined}
          style={{ transform: `translateY(${tops[start] ?? 0}px)` }}
        >
          {rows.slice(start, end).map((row, each) => given.render(row, start + each))}
        </div>
      </div>
    </div>
  );
}
