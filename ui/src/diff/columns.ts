/** Measure how many columns of code fit into an element; again after a resize. */

import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

const MIN_COLUMNS = 24;

/** Return the columns of each half of an element, without `taken` pixels. */
export function useColumns(
  element: RefObject<HTMLElement | null>,
  taken: number,
  halves: number,
): number {
  const [columns, setColumns] = useState(100);
  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const character = measure(box);
    const fit = () => {
      const width = box.clientWidth / halves - taken;
      setColumns(Math.max(MIN_COLUMNS, Math.floor(width / character)));
    };
    fit();
    const observer = new ResizeObserver(fit);
    observer.observe(box);
    return () => observer.disconnect();
  }, [taken, halves]);
  return columns;
}

function measure(box: HTMLElement): number {
  const probe = document.createElement("span");
  probe.className = "diff-text probe";
  probe.textContent = "0".repeat(100);
  box.append(probe);
  const width = probe.getBoundingClientRect().width / 100;
  probe.remove();
  return width || 8;
}
