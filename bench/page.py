"""The page: how much a browser loads, how soon it shows something, and how smooth it is.

    .venv/bin/python bench/page.py [--repeat 5] [--small] [--json FILE]

Sizes are of the built files, as they are and with gzip. Times are of a real browser and a real
server on loopback, with an empty cache: the first paint, when a view shows its data, and by how
much anything moved by itself meanwhile (the browser's layout shift, CLS).

Smoothness is measured with much to show: a review of 2,000 changed files and one of 100,000 lines,
and a conversation of 10,000 entries. For each gesture: how long the page was busy at a stretch, and
how long the slowest of 20 frames took. `--small` leaves that out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from mulligan.server.lifecycle.server_file import ask, running

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "src/mulligan/server/page_routes"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
READY = {
    "home": ("/", ".session-row"),
    "review": ("/p/{project}/review", ".hunk-head"),
    "session": ("/p/{project}/session?id={session}", ".entry"),
    "checkpoints": ("/p/{project}/checkpoints", ".diff-line"),
    "search": ("/search?q=due", ".hit"),
    "statistics": ("/statistics", ".plot rect"),
    "settings": ("/p/{project}/settings", ".setting"),
}
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
SETTLED_MS = 600
BAR_MS = 500
BAR_BUSY_MS = 100
BAR_SHIFT = 0.01
FILES, LINES, ENTRIES = 2_000, 100_000, 10_000
WATCH = """
window.seen = { busy: [], frames: [], shift: 0 };
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) seen.busy.push(each.duration);
}).observe({ type: "longtask", buffered: true });
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (!each.hadRecentInput) seen.shift += each.value;
}).observe({ type: "layout-shift", buffered: true });
let before = 0;
requestAnimationFrame(function frame(now) {
  if (before) seen.frames.push(now - before);
  before = now;
  requestAnimationFrame(frame);
});
"""
FORGET = "seen.busy = []; seen.frames = [];"


class Gesture(NamedTuple):
    """What a reader does, in a view of the large project, once `ready` is there."""

    view: str
    ready: str
    run: Callable[[Any], None]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench page", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="without the large project")
    parser.add_argument("--json", metavar="FILE")
    asked = parser.parse_args(arguments)
    found: dict[str, Any] = {"sizes": sizes(), "times": times(asked.repeat)}
    print_sizes(found["sizes"])
    print_times(found["times"])
    if not asked.small:
        found["smoothness"] = smoothness()
        print_smoothness(found["smoothness"])
    if asked.json:
        Path(asked.json).write_text(json.dumps(found, indent=2), "utf-8")
    return 0


def sizes() -> dict[str, dict[str, int]]:
    """Bytes of each built file; those that the front needs at once are marked by `first`."""
    front = (PAGE / "index.html").read_text("utf-8")
    first = set(re.findall(r'(?:src|href)="/([^"]+)"', front)) | {"index.html"}
    found = {}
    for path in sorted(PAGE.rglob("*")):
        if path.is_file():
            name, content = str(path.relative_to(PAGE)), path.read_bytes()
            found[name] = {
                "bytes": len(content),
                "gzip": len(gzip.compress(content, 9)),
                "first": int(name in first),
            }
    return found


def times(repeat: int) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of each view, for each of so many fresh browsers' tabs."""
    from mulligan.cli.demo.demo import prepare

    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = prepare(Path(os.path.realpath(folder)))
        with served(home) as (open_tab, names):
            for name, (path, ready) in READY.items():
                rows = [look(open_tab, path.format(**names), ready) for _ in range(repeat)]
                found[name] = {key: [row[key] for row in rows] for key in rows[0]}
    return found


def look(open_tab: Callable[[str], Any], path: str, ready: str) -> dict[str, float]:
    tab = open_tab(path)
    tab.wait_for_selector(ready)
    shown = float(tab.evaluate("performance.now()"))
    tab.wait_for_timeout(SETTLED_MS)
    paint, shift = tab.evaluate(FIRST_PAINT), tab.evaluate("seen.shift")
    tab.context.close()
    return {"first paint": float(paint), "data shown": shown, "shift": float(shift)}


def smoothness() -> dict[str, dict[str, float]]:
    """How busy the page is while somebody reads what is very long."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        base = Path(os.path.realpath(folder))
        home = make_large(base)
        with served(home) as (open_tab, names):
            for name, gesture in GESTURES.items():
                tab = open_tab(READY[gesture.view][0].format(**names))
                tab.wait_for_selector(gesture.ready)
                tab.wait_for_timeout(SETTLED_MS)
                opening = max(tab.evaluate("seen.busy"), default=0)
                tab.evaluate(FORGET)
                gesture.run(tab)
                tab.wait_for_timeout(SETTLED_MS)
                seen = tab.evaluate("seen")
                frames = sorted(seen["frames"])
                found[name] = {
                    "opening": float(opening),
                    "busy": float(max(seen["busy"], default=0)),
                    "frame": float(frames[len(frames) * 19 // 20]),
                    "shift": float(seen["shift"]),
                    "elements": float(tab.evaluate("document.querySelectorAll('*').length")),
                }
                tab.context.close()
    return found


def make_large(base: Path) -> str:
    """A home with a project in which an agent has changed, and said, very much."""
    from mulligan.core.entries import ASSISTANT_OUTPUT, TOOL_CALL, USER_INPUT, NewEntry
    from mulligan.workspace.workspace import open_workspace

    home, root = str(base / "home"), base / "large"
    root.mkdir()
    lines = [f"const value{number} = {number};" for number in range(LINES)]
    (root / "a.js").write_text("\n".join(lines) + "\n")
    with open_workspace(root, home=home) as workspace:
        workspace.checkpoint("First checkpoint")
        session = workspace.sessions.create(agent="codex", title="Everything", process=0).id
        workspace.sessions.begin_turn(session, "Change everything.")
        lines[:: LINES // 200] = ["let changed = true;"] * len(lines[:: LINES // 200])
        (root / "a.js").write_text("\n".join(lines) + "\n")
        for number in range(FILES):
            path = root / f"made/{number // 100:02}/file_{number:04}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"value_{each} = {number}\n" for each in range(12)))
        for number in range(ENTRIES // 4):
            said = f"Answer {number}.\n\n- one `thing`\n- another\n\n" + "And so on. " * (
                number % 40
            )
            call = {"name": "Bash", "call": f"c{number}", "input": {"command": "make"}}
            workspace.sessions.append(
                session,
                NewEntry(USER_INPUT, f"Question {number}."),
                NewEntry(TOOL_CALL, "", call | {"status": "success", "output": "fine\n" * 9}),
                NewEntry(ASSISTANT_OUTPUT, said),
                NewEntry(ASSISTANT_OUTPUT, f"```python\nvalue = {number}\nprint(value)\n```"),
            )
        workspace.sessions.end_turn(session)
    return home


@contextmanager
def served(home: str) -> Iterator[tuple[Callable[[str], Any], dict[str, str]]]:
    """A server on a home, and a browser: opens tabs with empty caches, which watch themselves."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("MULLIGAN_BROWSER") or shutil.which("chromium")
    process = subprocess.Popen(
        [sys.executable, "-m", "mulligan", "serve", "--json"],
        env=os.environ | {"MULLIGAN_HOME": home}, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        process.stdout.readline()
        server = running(home)
        assert server is not None
        project = next(Path(home, "projects").iterdir()).name
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=program, args=ARGUMENTS)

            def open_tab(path: str) -> Any:
                # A context of its own has an empty cache, and needs the cookie first. It is asked
                # for beside the tab, so that the page itself is not loaded before it is measured.
                context = browser.new_context(viewport={"width": 1360, "height": 850})
                page = urlsplit(ask(server, "POST", "/api/v1/page-address", {})["page"])
                asked = Request(f"{server.url}/?{page.query}", headers={"host": page.netloc})
                with urlopen(asked) as answer:
                    cookie = answer.headers["set-cookie"].partition(";")[0]
                name, _, value = cookie.partition("=")
                url = f"http://{page.netloc}"
                context.add_cookies([{"name": name, "value": value, "url": url}])
                tab = context.new_page()
                tab.add_init_script(WATCH)
                tab.goto(url + path)
                return tab

            rows = ask(server, "GET", f"/api/v1/projects/{project}/sessions")["sessions"]
            yield open_tab, {"project": project, "session": rows[0]["session"]}
            browser.close()
    finally:
        process.terminate()
        process.wait(20)


def wheel(times: int, by: int) -> Callable[[Any], None]:
    def run(tab: Any) -> None:
        tab.mouse.move(800, 500)
        for _ in range(times):
            tab.mouse.wheel(0, by)
            tab.wait_for_timeout(16)

    return run


def press(key: str, times: int) -> Callable[[Any], None]:
    def run(tab: Any) -> None:
        for _ in range(times):
            tab.keyboard.press(key)
            tab.wait_for_timeout(16)

    return run


def to_the_ends(tab: Any) -> None:
    for key in ("Home", "End", "Home"):
        tab.locator(".timeline").press(key)
        tab.wait_for_timeout(400)


GESTURES = {
    "review: scroll": Gesture("review", ".hunk-head", wheel(120, 700)),
    "review: next change": Gesture("review", ".hunk-head", press("j", 80)),
    "review: to the last change": Gesture("review", ".hunk-head", press("k", 4)),
    "review: two columns and back": Gesture("review", ".hunk-head", press("s", 2)),
    "review: keep ten changes": Gesture("review", ".hunk-head", press("y", 10)),
    "session: scroll back": Gesture("session", ".entry", wheel(120, -700)),
    "session: previous message": Gesture("session", ".entry", press("k", 60)),
    "session: from end to end": Gesture("session", ".entry", to_the_ends),
}


def print_sizes(found: dict[str, dict[str, int]]) -> None:
    print(f"{'file':44} {'bytes':>9} {'gzip':>9}")
    for name, row in found.items():
        mark = "  at once" if row["first"] else ""
        print(f"{name:44} {row['bytes']:9,} {row['gzip']:9,}{mark}")
    for title, chosen in (("at once", [1]), ("all", [0, 1])):
        rows = [row for row in found.values() if row["first"] in chosen]
        total, packed = (sum(row[key] for row in rows) for key in ("bytes", "gzip"))
        print(f"{title:44} {total:9,} {packed:9,}")


def print_times(found: dict[str, dict[str, list[float]]]) -> None:
    print(f"\n{'view (medians, ms)':32} {'first paint':>12} {'data shown':>12} {'shift':>8}")
    for name, row in found.items():
        paint, data, shift = (median(row[key]) for key in ("first paint", "data shown", "shift"))
        word = "ok" if paint < BAR_MS and shift < BAR_SHIFT else "MISSED"
        print(f"{name:32} {paint:12.0f} {data:12.0f} {shift:8.3f}  {word}")


def print_smoothness(found: dict[str, dict[str, float]]) -> None:
    print(
        f"\n{'with much to show (ms)':32} {'opening':>9} {'busy':>9} {'frame':>9} {'shift':>8} "
        f"{'elements':>9}"
    )
    for name, row in found.items():
        word = "ok" if row["busy"] < BAR_BUSY_MS else "MISSED"
        print(
            f"{name:32} {row['opening']:9.0f} {row['busy']:9.0f} {row['frame']:9.0f} "
            f"{row['shift']:8.3f} {row['elements']:9,.0f}  {word}"
        )


if __name__ == "__main__":
    sys.exit(main())
