"""Measure review: `./dev bench review [options]`.

Two agents' turns are made: one that changes 2,000 files, and one that changes a file of 100,000
lines in 200 places. Then everything that is pending is listed, one hunk is kept, and the reader's
place is found again; beside each stands `git diff` between the same two trees, in the same run.
Ratios are what counts; the seconds are this machine's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mulligan

Rows = list[dict[str, Any]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench review", description=__doc__)
    parser.add_argument("--files", type=int, default=2_000, help="files changed (default 2,000)")
    parser.add_argument("--lines", type=int, default=100_000, help="lines of the large file")
    parser.add_argument("--takes", type=int, default=3, help="takes of each step (default 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args(arguments)
    rows: Rows = []
    with tempfile.TemporaryDirectory(prefix="mulligan-bench-review-") as place:
        os.environ["MULLIGAN_HOME"] = str(Path(place, "home"))
        rows += measure("files", Path(place, "many"), many(options.files), options.takes)
        rows += measure("lines", Path(place, "large"), large(options.lines), options.takes)
    for row in rows:
        print(
            f"{row['corpus']:<6} {row['step']:<28} {row['mulligan']:8.3f} s  "
            f"git diff {row['git']:8.3f} s  ratio {row['ratio']:6.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def many(count: int) -> tuple[dict[str, str], dict[str, str]]:
    """Files before and after: each has one line changed, in the middle of sixty."""
    before = {
        f"d{at % 50}/f{at}.py": "".join(f"line {line} of {at}\n" for line in range(60))
        for at in range(count)
    }
    after = {path: text.replace("line 30 ", "line thirty ", 1) for path, text in before.items()}
    return before, after


def large(count: int) -> tuple[dict[str, str], dict[str, str]]:
    """One large file before and after, with 200 places changed."""
    lines = [f"line {at} says something of its own\n" for at in range(count)]
    changed = list(lines)
    step = max(1, count // 200)
    for at in range(step // 2, count, step):
        changed[at] = f"line {at} was changed\n"
    return {"large.txt": "".join(lines)}, {"large.txt": "".join(changed)}


def measure(
    corpus: str, place: Path, texts: tuple[dict[str, str], dict[str, str]], takes: int
) -> Rows:
    before, after = texts
    project = place / "project"
    write(project, before)
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "-c", "user.name=b", "-c", "user.email=b@b", "commit", "-q", "-m", "before")
    rows = []
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create(agent="bench").id
        workspace.sessions.begin_turn(session, "change everything")
        write(project, after)
        workspace.sessions.end_turn(session)
        first = workspace.review.pending().hunks[0]

        def keep_one() -> None:
            workspace.review.keep(workspace.review.pending(paths=[first.path]).hunks[0].id)
            workspace.undo()

        steps: dict[str, tuple[Callable[[], object], list[str]]] = {
            "list every hunk": (workspace.review.pending, ["diff", "--no-ext-diff"]),
            "list the hunks of a file": (
                lambda: workspace.review.pending(paths=[first.path]),
                ["diff", "--", first.path],
            ),
            "keep one hunk, and undo that": (keep_one, ["diff", "--", first.path]),
            "the next change's position": (
                lambda: workspace.review.position(first.id, step=1),
                ["diff", "--no-ext-diff"],
            ),
        }
        for name, (step, command) in steps.items():
            ours = median(timed(step) for _take in range(takes))
            theirs = median(timed(partial(git, project, *command)) for _take in range(takes))
            rows.append(
                {
                    "corpus": corpus,
                    "step": name,
                    "mulligan": ours,
                    "git": theirs,
                    "ratio": ours / theirs,
                }
            )
    return rows


def write(project: Path, texts: dict[str, str]) -> None:
    for path, text in texts.items():
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def git(project: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", *arguments], cwd=project, check=True, stdout=subprocess.DEVNULL, timeout=300
    )


def timed(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
