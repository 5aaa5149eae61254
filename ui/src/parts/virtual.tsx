/**
 * A list of any length that draws only what can be seen.
 *
 * Heights are known beforehand, so that the scroll bar tells the truth from the first moment. When
 * rows change, the row that the reader was at stays where it is on the screen.
 */

import type { ComponentChildren, Ref } from "preact";
import { useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

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

const EXTRA = 400;
const NEAR_END = 800;

export function Virtual<R extends Row>(given: Given<R>) {
  const { rows } = given;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const tops = useMemo(() => topsOf(rows), [rows]);
  const total = tops[rows.length] ?? 0;
  const anchor = useRef<{ key: string; index: number; offset: number } | null>(null);
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
    // Mostly it is where it was; only else is it worth looking everywhere.
    const index = rows[kept.index]?.key === kept.key ? kept.index : keys().get(kept.key);
    if (index === undefined) return;
    const wanted = tops[index]! + kept.offset;
    if (Math.abs(element.scrollTop - wanted) > 1) element.scrollTop = wanted;
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
    anchor.current = row ? { key: row.key, index, offset: top - tops[index]! } : null;
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

function topsOf(rows: Row[]): Float64Array {
  const tops = new Float64Array(rows.length + 1);
  for (let each = 0; each < rows.length; each++) tops[each + 1] = tops[each]! + rows[each]!.height;
  return tops;
}

/** The row that covers a height. */
function indexAt(tops: Float64Array, top: number): number {
  let low = 0;
  let high = Math.max(0, tops.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle]! <= top) low = middle;
    else high = middle - 1;
  }
  return low;
}
