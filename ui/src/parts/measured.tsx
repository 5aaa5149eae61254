/**
 * A virtual list with rows of unknown height, such as a conversation: renders visible rows only.
 *
 * A row has its estimated height until it is measured. Positions are corrected before the browser
 * paints, and the row that the user is reading stays where it is. A list scrolled to its end
 * follows new rows.
 */

import type { ComponentChildren, Ref } from "preact";
import { useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { indexAt, topsOf } from "./heights";

export interface EstimatedRow {
  key: string;
  estimate: number;
}

export interface MeasuredHandle {
  /** Scroll a row to the middle or top; return false if there is no such row. */
  show: (key: string, where: "middle" | "top") => boolean;
  toEnd: () => void;
  /** Key of the row at the top of the view. */
  first: () => string | null;
}

interface Props<R extends EstimatedRow> {
  rows: R[];
  /** Render a row as an `<li>` with its key as `data-key`. */
  render: (row: R) => ComponentChildren;
  label: string;
  class: string;
  gap: number;
  handle?: Ref<MeasuredHandle>;
  /** Called when the user scrolls near the start or end. */
  onNearStart?: () => void;
  onNearEnd?: () => void;
  before?: ComponentChildren;
  after?: ComponentChildren;
}

/** What stays in place: a row, `at` pixels below the upper edge, or the end of the list. */
type Anchor = { key: string; at: number | "middle" } | "end";

const OVERSCAN_PX = 800;
const NEAR_EDGE_PX = 1500;
const FOLLOW_END_PX = 40;
const MARGIN_PX = 20;

export function MeasuredList<R extends EstimatedRow>(props: Props<R>) {
  const { rows, gap } = props;
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const heights = useRef(new Map<string, number>()).current;
  const anchor = useRef<Anchor>("end");
  const applied = useRef<{ tops: Float64Array | null; top: number }>({ tops: null, top: -1 });
  const remeasureAll = useRef(true);
  const [view, setView] = useState({ top: 0, height: 800, width: 0 });
  const [version, setVersion] = useState(0);
  const tops = useMemo(
    () => topsOf(rows, (row) => heights.get(row.key) ?? row.estimate + gap),
    [rows, version],
  );
  const total = tops[rows.length] ?? 0;
  const indexByKey = useMemo(() => new Map(rows.map((row, index) => [row.key, index])), [rows]);
  const above = useRef<HTMLDivElement>(null);
  const start = indexAt(tops, view.top - OVERSCAN_PX);
  const end = Math.min(rows.length, indexAt(tops, view.top + view.height + OVERSCAN_PX) + 1);

  function updateView(): void {
    const { scrollTop, clientHeight, clientWidth } = box.current!;
    const top = scrollTop - offsetAbove();
    setView((old) =>
      old.top === top && old.height === clientHeight && old.width === clientWidth
        ? old
        : { top, height: clientHeight, width: clientWidth },
    );
  }

  /** Height of the content above the rows. */
  function offsetAbove(): number {
    return above.current?.offsetHeight ?? 0;
  }

  /** Measure new rows, or all after a resize; return true if any height changed. */
  function measureRows(): boolean {
    let changed = false;
    for (const element of list.current?.children ?? []) {
      const key = (element as HTMLElement).dataset.key!;
      const before = heights.get(key);
      if (before !== undefined && !remeasureAll.current) continue;
      const height = element.getBoundingClientRect().height + gap;
      if (before !== undefined && Math.abs(before - height) < 0.5) continue;
      heights.set(key, height);
      changed = true;
    }
    remeasureAll.current = false;
    return changed;
  }

  function applyAnchor(): void {
    const element = box.current!;
    const kept = anchor.current;
    let top: number | null = element.scrollHeight - element.clientHeight;
    if (kept !== "end") {
      const index = indexByKey.get(kept.key);
      if (index === undefined) {
        top = null;
      } else {
        const space = element.clientHeight - (tops[index + 1]! - tops[index]!);
        const below = kept.at === "middle" ? Math.max(MARGIN_PX, space / 2) : kept.at;
        top = tops[index]! + offsetAbove() - below;
      }
    }
    if (top !== null && Math.abs(element.scrollTop - top) > 0.5) element.scrollTop = top;
    applied.current = { tops, top: element.scrollTop };
    updateView();
  }

  useLayoutEffect(() => {
    if (measureRows()) setVersion((each) => each + 1);
    else if (applied.current.tops !== tops) applyAnchor();
  });

  useLayoutEffect(() => {
    let width = box.current!.clientWidth;
    const observer = new ResizeObserver(() => {
      if (box.current!.clientWidth !== width) {
        // Lines wrap differently now, so all measured heights are stale.
        width = box.current!.clientWidth;
        heights.clear();
      }
      remeasureAll.current = true;
      applied.current.tops = null;
      setVersion((each) => each + 1);
    });
    observer.observe(box.current!);
    observer.observe(list.current!);
    return () => observer.disconnect();
  }, []);

  /** Return the first visible row that was measured: new rows must not push it away. */
  function anchorAt(top: number, height: number): number {
    const first = indexAt(tops, top);
    for (let index = first; index < rows.length && tops[index]! < top + height; index++)
      if (heights.has(rows[index]!.key)) return index;
    return first;
  }

  function onScroll(): void {
    const element = box.current!;
    const { scrollTop, scrollHeight, clientHeight } = element;
    // Only a scroll by the user moves the anchor, not one by `applyAnchor`.
    if (Math.abs(scrollTop - applied.current.top) > 1) {
      applied.current.top = -1;
      const index = anchorAt(scrollTop - offsetAbove(), clientHeight);
      const row = rows[index];
      if (scrollTop + clientHeight > scrollHeight - FOLLOW_END_PX) anchor.current = "end";
      else if (row) anchor.current = { key: row.key, at: tops[index]! + offsetAbove() - scrollTop };
    }
    updateView();
    if (scrollTop < NEAR_EDGE_PX) props.onNearStart?.();
    if (scrollTop + clientHeight > scrollHeight - NEAR_EDGE_PX) props.onNearEnd?.();
  }

  useImperativeHandle(props.handle ?? null, () => ({
    show: (key, where) => {
      if (!indexByKey.has(key)) return false;
      anchor.current = { key, at: where === "top" ? MARGIN_PX : "middle" };
      applyAnchor();
      return true;
    },
    toEnd: () => {
      anchor.current = "end";
      applyAnchor();
    },
    first: () =>
      rows[indexAt(tops, box.current!.scrollTop - offsetAbove() + MARGIN_PX + 4)]?.key ?? null,
  }));

  return (
    <div
      ref={box}
      class={`measured ${props.class}`}
      onScroll={onScroll}
      tabIndex={0}
      role="group"
      aria-label={props.label}
    >
      <div ref={above}>{props.before}</div>
      <div class="measured-all" style={{ height: `${total}px` }}>
        <ol
          ref={list}
          class="measured-seen"
          style={{ rowGap: `${gap}px`, transform: `translateY(${tops[start] ?? 0}px)` }}
        >
          {rows.slice(start, end).map(props.render)}
        </ol>
      </div>
      {props.after}
    </div>
  );
}
