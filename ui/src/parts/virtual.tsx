/**
 * A virtual list with rows of known height: renders visible rows only.
 *
 * The known heights make the scroll bar exact from the start. When rows change, the row at the top
 * of the screen stays where it is.
 */

import type { ComponentChildren, Ref } from "preact";
import { useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { indexAt, topsOf } from "./heights";

export interface Row {
  key: string;
  height: number;
}

export interface VirtualHandle {
  /** Scroll a row into view; `top` puts it that many pixels below the upper edge. */
  show: (key: string, where?: { top?: number }) => void;
  element: () => HTMLElement | null;
}

interface Props<R extends Row> {
  rows: R[];
  render: (row: R, index: number) => ComponentChildren;
  label: string;
  class?: string;
  handle?: Ref<VirtualHandle>;
  onFirstRow?: (first: R, index: number) => void;
  onNearEnd?: () => void;
  overlay?: ComponentChildren;
  role?: "list" | "listbox";
  topInset?: number;
}

/** The row at the top of the screen, and the rows at that time. */
interface Anchor<R> {
  rows: R[];
  tops: Float64Array;
  index: number;
  top: number;
}

const OVERSCAN_PX = 400;
const NEAR_END_PX = 800;
const MAX_ANCHOR_SEARCH_ROWS = 200;

export function VirtualList<R extends Row>(props: Props<R>) {
  const { rows } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const tops = useMemo(() => topsOf(rows, (row) => row.height), [rows]);
  const total = tops[rows.length] ?? 0;
  const anchor = useRef<Anchor<R> | null>(null);
  const indexByKey = useMemo(() => {
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
    // Usually the row has kept its index, so look there before building the key index. If the row
    // is gone, anchor to the next row below it that still exists.
    const last = Math.min(kept.rows.length, kept.index + MAX_ANCHOR_SEARCH_ROWS);
    for (let each = kept.index; each < last; each++) {
      const { key } = kept.rows[each]!;
      const index = rows[each]?.key === key ? each : indexByKey().get(key);
      if (index === undefined) continue;
      const wanted = tops[index]! + kept.top - kept.tops[each]!;
      if (Math.abs(element.scrollTop - wanted) > 1) element.scrollTop = wanted;
      return;
    }
  }, [tops]);

  useImperativeHandle(props.handle ?? null, () => ({
    element: () => box.current,
    show: (key, where) => {
      const element = box.current;
      const index = indexByKey().get(key);
      if (!element || index === undefined) return;
      const inset = props.topInset ?? 0;
      const [top, bottom] = [tops[index]!, tops[index + 1]!];
      if (where?.top !== undefined) element.scrollTop = top - where.top;
      else if (top < element.scrollTop + inset) element.scrollTop = top - inset;
      else if (bottom > element.scrollTop + element.clientHeight)
        element.scrollTop = bottom - element.clientHeight;
      setAnchor(element.scrollTop);
      setView({ top: element.scrollTop, height: element.clientHeight });
    },
  }));

  const start = indexAt(tops, view.top - OVERSCAN_PX);
  const end = Math.min(rows.length, indexAt(tops, view.top + view.height + OVERSCAN_PX) + 1);

  function setAnchor(top: number): void {
    const index = indexAt(tops, top + (props.topInset ?? 0));
    const row = rows[index];
    anchor.current = row ? { rows, tops, index, top } : null;
    if (row) props.onFirstRow?.(row, index);
  }

  function onScroll(): void {
    const element = box.current!;
    setView({ top: element.scrollTop, height: element.clientHeight });
    setAnchor(element.scrollTop);
    if (element.scrollTop + element.clientHeight > total - NEAR_END_PX) props.onNearEnd?.();
  }

  return (
    <div
      ref={box}
      class={`virtual ${props.class ?? ""}`}
      onScroll={onScroll}
      tabIndex={0}
      role="group"
      aria-label={props.label}
    >
      {props.overlay}
      <div class="virtual-all" style={{ height: `${total}px` }}>
        <div
          class="virtual-seen"
          role={props.role}
          aria-label={props.role ? props.label : undefined}
          style={{ transform: `translateY(${tops[start] ?? 0}px)` }}
        >
          {rows.slice(start, end).map((row, each) => props.render(row, start + each))}
        </div>
      </div>
    </div>
  );
}
