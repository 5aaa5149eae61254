/** Side by side, what is selected with the mouse is of one side: the one where it began. */
export function start(): void {
  document.addEventListener("mousedown", (event) => {
    const half = (event.target as Element).closest?.(".diff-half");
    const sides = document.documentElement.dataset;
    if (!half) delete sides.picking;
    else sides.picking = half.matches(":first-child") ? "old" : "now";
  });
}
