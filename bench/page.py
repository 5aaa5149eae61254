"""The page: how much a browser loads, and how soon it shows something.

    .venv/bin/python bench/page.py [--repeat 5] [--json FILE]

Sizes are of the built files, as they are and with gzip. Times are of a real browser and a real
server on loopback, with an empty cache: the first paint, and when a view shows its data.
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
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "src/mulligan/server/page"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
READY = {
    "home": ("/", ".session-row"),
    "review": ("/p/{project}/review", ".hunk-head"),
    "checkpoints": ("/p/{project}/checkpoints", ".diff-line"),
    "search": ("/search?q=due", ".hit"),
    "statistics": ("/statistics", ".plot rect"),
}
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
BAR_MS = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    asked = parser.parse_args()
    found = {"sizes": sizes(), "times": times(asked.repeat)}
    print_sizes(found["sizes"])
    print_times(found["times"])
    if asked.json:
        Path(asked.json).write_text(json.dumps(found, indent=2), "utf-8")


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
    from playwright.sync_api import sync_playwright

    from mulligan.cli.demo import prepare

    program = os.environ.get("MULLIGAN_BROWSER") or shutil.which("chromium")
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        home = prepare(Path(os.path.realpath(folder)))
        process = subprocess.Popen(
            [sys.executable, "-m", "mulligan", "serve", "--json"],
            env=os.environ | {"MULLIGAN_HOME": home}, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            token = Path(home, "server.token").read_text("ascii").strip()
            project = next(Path(home, "projects").iterdir()).name
            browser = driver.chromium.launch(executable_path=program, args=ARGUMENTS)
            for name, (path, ready) in READY.items():
                address = url + path.format(project=project)
                rows = [look(browser, url, token, address, ready) for _ in range(repeat)]
                found[name] = {key: [row[key] for row in rows] for key in rows[0]}
            browser.close()
        finally:
            process.terminate()
            process.wait(20)
    return found


def look(browser: Any, url: str, token: str, address: str, ready: str) -> dict[str, float]:
    # A context of its own has an empty cache, and needs the cookie first.
    with browser.new_context(viewport={"width": 1360, "height": 850}) as context:
        context.add_cookies([{"name": "mulligan_token", "value": token, "url": url}])
        tab = context.new_page()
        tab.goto(address)
        tab.wait_for_selector(ready)
        shown = tab.evaluate("performance.now()")
        return {"first paint": float(tab.evaluate(FIRST_PAINT)), "data shown": float(shown)}


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
    print(f"\n{'view (median of milliseconds)':32} {'first paint':>12} {'data shown':>12}")
    for name, row in found.items():
        paint, data = median(row["first paint"]), median(row["data shown"])
        word = "ok" if paint < BAR_MS else "MISSED"
        print(f"{name:32} {paint:12.0f} {data:12.0f}  {word}")


if __name__ == "__main__":
    main()
