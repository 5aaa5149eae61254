// Before anything is painted: the theme that was chosen, so that no other one flashes up.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; then the system's theme it is.
}
