/** Restrict a mouse selection in a side-by-side diff to the side where it started. */
export function start(): void {
  document.addEventListener("mousedown", (event) => {
    const half = (event.target as Element).closest?.(".diff-half");
    const sides = document.documentElement.dataset;
    if (!half) delete sides.picking;
    else sides.picking = half.matches(":first-child") ? "old" : "now";
  });
}
