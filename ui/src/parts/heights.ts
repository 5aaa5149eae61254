/** Rows below each other, by their heights: where each begins, and which one is at a place. */

/** Where each row begins, and at the end of it all where the last one ends. */
export function topsOf<R>(rows: readonly R[], height: (row: R) => number): Float64Array {
  const tops = new Float64Array(rows.length + 1);
  for (let each = 0; each < rows.length; each++)
    tops[each + 1] = tops[each]! + height(rows[each]!);
  return tops;
}

/** The row that covers a height. */
export function indexAt(tops: Float64Array, top: number): number {
  let low = 0;
  let high = Math.max(0, tops.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle]! <= top) low = middle;
    else high = middle - 1;
  }
  return low;
}
