/** Positions of stacked rows, computed from their heights. */

/** Return the top of each row, followed by the bottom of the last one. */
export function topsOf<R>(rows: readonly R[], height: (row: R) => number): Float64Array {
  const tops = new Float64Array(rows.length + 1);
  for (let each = 0; each < rows.length; each++) tops[each + 1] = tops[each]! + height(rows[each]!);
  return tops;
}

/** Return the index of the row at a vertical position. */
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
