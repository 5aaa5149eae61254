"""Measure what each speed mechanism buys: `./dev bench mechanisms [options]`.

Each mechanism is switched off by replacing attributes of its modules. The same scenario runs with
and without it in turn, each time on the same files; the medians are compared. `--markdown` prints
the rows of the table in README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import apsw

import mulligan

SOURCE = Path(mulligan.__file__).parent
CHANGED_FILES = 200
NEW_FILES = 4_000
REST_S = 0.05
MEMO_REST_S = 3.2
"""Git's files must be older than `stat_memo.RACY_SECONDS` to be remembered."""


@dataclass(frozen=True)
class Mechanism:
    """A mechanism, its modules, the scenario that shows it, and what replaces it."""

    name: str
    modules: tuple[str, ...]
    scenario: Callable[[Project], float]
    off: tuple[tuple[str, Any], ...]
    files_per_directory: int = 20


class Project:
    """A project of small files with a new home, and the seconds of one step."""

    def __init__(self, place: Path, *, files: int, per_directory: int, depth: int) -> None:
        self.root = place / "project"
        self.home = place / "home"
        self._rng = random.Random(files)
        self._words = [f"{self._rng.getrandbits(40):x}" for _ in range(3_000)]
        below = Path(*(f"level {level}" for level in range(depth)))
        self.paths = [
            self.root / f"part {at // per_directory}" / below / f"{at}.txt" for at in range(files)
        ]
        for path in self.paths:
            path.parent.mkdir(parents=True, exist_ok=True)
        self.edit(files)
        subprocess.run(["git", "init", "-q", self.root], check=True)

    def edit(self, count: int) -> None:
        """Write 1 to 8 KB of new text to each of the first files."""
        for path in self.paths[:count]:
            size = self._rng.randrange(1 << 10, 8 << 10)
            path.write_text(" ".join(self._rng.choices(self._words, k=size // 11)))

    def open(self, **options: Any) -> mulligan.Workspace:
        return mulligan.open(self.root, home=str(self.home), **options)


def first_checkpoint(project: Project) -> float:
    """The first checkpoint of 4,000 files."""
    with (
        tempfile.TemporaryDirectory(dir=project.home.parent) as home,
        mulligan.open(project.root, home=home) as workspace,
    ):
        return seconds(workspace.checkpoint)


def unchanged(project: Project) -> float:
    """A checkpoint with no change."""
    with project.open() as workspace:
        workspace.checkpoint()
        rest(MEMO_REST_S)
        workspace.checkpoint()
        return seconds(workspace.checkpoint)


def after_recent_edits(project: Project) -> float:
    """A checkpoint with no change, after one that came 10 ms behind 200 edits."""
    with project.open() as workspace:
        workspace.checkpoint()
        project.edit(CHANGED_FILES)
        time.sleep(0.01)
        workspace.checkpoint()
        return seconds(workspace.checkpoint)


def row(project: Project) -> float:
    """Ten checkpoints in a row, each with 200 edits."""
    with project.open() as workspace:
        workspace.checkpoint()
        rest()
        total = 0.0
        for _ in range(10):
            project.edit(CHANGED_FILES)
            total += seconds(workspace.checkpoint)
        return total


def watched_edits(project: Project) -> float:
    """A checkpoint with a watcher, 0.3 s after 200 edits."""
    with project.open(watch=True) as workspace:
        workspace.checkpoint()
        rest()
        project.edit(CHANGED_FILES)
        time.sleep(0.3)
        return seconds(workspace.checkpoint)


def restore(project: Project) -> float:
    """A restore of 200 files."""
    with project.open() as workspace:
        first = workspace.checkpoint()
        project.edit(CHANGED_FILES)
        workspace.checkpoint()
        rest()
        return seconds(lambda: workspace.restore(first.id))


def restore_scattered(project: Project) -> float:
    """A restore of 200 files in 200 directories."""
    return restore(project)


def _close_at_once(_self: Any, fd: int) -> None:
    os.close(fd)


def _unlink_at_once(_self: Any, name: bytes, parent: int) -> None:
    os.unlink(name, dir_fd=parent)


class _ForegroundTask:
    """A task that `start` does at once."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.start = work

    def wait(self) -> None:
        pass


class _AutoCheckpoint:
    """SQLite's own checkpoints, in the thread that commits."""

    def __init__(self, db: apsw.Connection, _path: str) -> None:
        from mulligan.store.wal_checkpointer import CHECKPOINT_PAGES

        db.wal_autocheckpoint(CHECKPOINT_PAGES)

    def finish(self) -> None:
        pass


MECHANISMS = (
    Mechanism(
        "hash workers and fork",
        ("workspace/snapshot/hash_workers", "worktree/scan/fork"),
        first_checkpoint,
        (("mulligan.worktree.scan.reader:READ_THREADS", 1),),
    ),
    Mechanism(
        "prefetch",
        ("workspace/snapshot/prefetch",),
        watched_edits,
        (("mulligan.workspace.snapshot.prefetch:MAX_PREFETCHED_FILES", -1),),
    ),
    Mechanism(
        "WAL checkpointer",
        ("store/wal_checkpointer",),
        row,
        (("mulligan.store.index:WalCheckpointer", _AutoCheckpoint),),
    ),
    Mechanism(
        "deferred unlink",
        ("worktree/fs/deferred_unlink",),
        restore,
        (
            ("mulligan.worktree.fs.deferred_unlink:DeferredUnlink.hold", _close_at_once),
            ("mulligan.worktree.fs.deferred_unlink:DeferredUnlink.unlink", _unlink_at_once),
        ),
    ),
    Mechanism(
        "one syncfs instead of many fsyncs",
        ("worktree/fs/sync",),
        restore,
        (("mulligan.worktree.fs.sync:_syncfs", lambda: None),),
    ),
    Mechanism(
        "background sync",
        ("worktree/fs/background",),
        restore,
        (("mulligan.worktree.fs.sync:BackgroundTask", _ForegroundTask),),
    ),
    Mechanism(
        "unnamed files created ahead",
        ("worktree/restore/unnamed_files",),
        restore,
        (("mulligan.worktree.restore.unnamed_files:MIN_FILES_FOR_THREAD", sys.maxsize),),
    ),
    Mechanism(
        "verified cache",
        ("store/verified_cache",),
        restore,
        (("mulligan.store.verified_cache:VerifiedCache.contains", lambda *_: False),),
    ),
    Mechanism(
        "racy cutoff",
        ("worktree/scan/racy",),
        after_recent_edits,
        (("mulligan.worktree.scan.racy:_TICK_NS", 0),),
    ),
    Mechanism(
        "stat memo",
        ("worktree/ignore/stat_memo",),
        unchanged,
        (
            (
                "mulligan.worktree.ignore.stat_memo:StatMemo.get",
                lambda _self, _key, compute: compute(),
            ),
        ),
    ),
    Mechanism(
        "openat2",
        ("worktree/fs/openat2",),
        restore_scattered,
        (("mulligan.worktree.fs.safe_paths:open_beneath", lambda *_: None),),
        files_per_directory=1,
    ),
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev bench mechanisms", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", default="", help="mechanisms with this in a name")
    parser.add_argument("--runs", type=int, default=15, help="runs with and without (default 15)")
    parser.add_argument("--depth", type=int, default=3, help="directories above each file")
    parser.add_argument("--cache", type=Path, help="the directory to measure in")
    parser.add_argument("--markdown", action="store_true", help="print rows for README.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there")
    options = parser.parse_args(arguments)
    chosen = [each for each in MECHANISMS if options.only in each.name]
    results = []
    for mechanism in chosen:
        with tempfile.TemporaryDirectory(prefix="mechanisms-", dir=options.cache) as place:
            is_first = mechanism.scenario is first_checkpoint
            files = NEW_FILES if is_first else 2 * CHANGED_FILES
            project = Project(
                Path(place),
                files=files,
                per_directory=mechanism.files_per_directory,
                depth=options.depth,
            )
            samples = compare(mechanism, project, options.runs)
        results.append({"mechanism": mechanism.name, **samples})
        print(describe(mechanism, samples, markdown=options.markdown), flush=True)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{os.cpu_count()} processors, load {load} at the end.", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def compare(mechanism: Mechanism, project: Project, runs: int) -> dict[str, list[float]]:
    """Run the scenario with and without the mechanism in turn, each first every other time."""
    mechanism.scenario(project)  # warms the caches
    samples: dict[str, list[float]] = {"with": [], "without": []}
    for number in range(runs):
        for way in sorted(samples, reverse=bool(number % 2)):
            with switched_off(mechanism.off if way == "without" else ()):
                samples[way].append(mechanism.scenario(project))
    return samples


@contextmanager
def switched_off(replacements: tuple[tuple[str, Any], ...]) -> Iterator[None]:
    """Replace each `module:attribute`; one that does not exist is an error."""
    originals = []
    for target, replacement in replacements:
        module, _colon, attribute = target.partition(":")
        owner: Any = import_module(module)
        *outer, name = attribute.split(".")
        for each in outer:
            owner = getattr(owner, each)
        originals.append((owner, name, getattr(owner, name)))
        setattr(owner, name, replacement)
    try:
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def describe(mechanism: Mechanism, samples: dict[str, list[float]], *, markdown: bool) -> str:
    ours, bare = median(samples["with"]), median(samples["without"])
    lines = sum(len((SOURCE / f"{each}.py").read_text().splitlines()) for each in mechanism.modules)
    # A typical deviation of one run, so that a difference within it is not taken for a gain.
    spread = median(abs(each - ours) for each in samples["with"]) / ours
    what = (mechanism.scenario.__doc__ or "").rstrip(".")
    figures = (
        f"{ours * 1000:.1f} ms",
        f"{bare * 1000:.1f} ms",
        f"{(bare / ours - 1) * 100:+.0f} %",
    )
    if markdown:
        modules = ", ".join(f"`{each}`" for each in mechanism.modules)
        cells = (mechanism.name, modules, str(lines), what, *figures, f"± {spread * 100:.0f} %")
        return f"| {' | '.join(cells)} |"
    return f"{mechanism.name:<34} {figures[0]:>10} {figures[1]:>10} {figures[2]:>7}  {what}"


def seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def rest(pause: float = REST_S) -> None:
    """Sync, so that earlier writes are not charged to the next step."""
    os.sync()
    time.sleep(pause)


if __name__ == "__main__":
    sys.exit(main())
