"""What is measured, in order, on one copy of a corpus.

A journey is a generator that stops after every measured step. The driver in `run.py` gives each
contestant one step in turn, so that a machine that slows down for a minute slows down everyone.
Every restore is compared with the bytes that were there before: a fast wrong answer is an error.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from bench import corpora
from bench.contestant import Contestant
from bench.corpora import Tree

# Between a change and the checkpoint of it, for everyone. Only the row comes back to back.
_PAUSE = 0.1


@dataclass(frozen=True)
class Scenario:
    """A column of the table. Bytes are shown as MB."""

    key: str
    title: str
    unit: str = "seconds"
    corpora: str = "SML"


SCENARIOS = {
    scenario.key: scenario
    for scenario in (
        Scenario("first", "first", corpora="SMLB"),
        Scenario("disk", "disk MB", "bytes", corpora="SMLB"),
        Scenario("same", "no change"),
        Scenario("edits", "10 edits"),
        Scenario("changes", "200 changes"),
        Scenario("diff", "list + diff"),
        Scenario("one", "one file"),
        Scenario("restore", "restore"),
        Scenario("row", "in a row"),
        Scenario("row-disk", "growth MB", "bytes"),
        Scenario("byte", "one byte", corpora="B"),
        Scenario("byte-disk", "growth MB", "bytes", corpora="B"),
        Scenario("memory", "memory MB", "bytes", corpora="L"),
        Scenario("start", "start", corpora="-"),
    )
}

Record = Callable[[str, float], None]


@dataclass(frozen=True)
class Course:
    """Which corpus, which scenarios, how often each short step, and how many in a row."""

    corpus: str
    wanted: Collection[str]
    takes: int = 3
    row: int = 200

    def asks(self, *keys: str) -> bool:
        return any(key in self.wanted and self.corpus in SCENARIOS[key].corpora for key in keys)


def journey(contestant: Contestant, tree: Tree, course: Course, record: Record) -> Iterator[None]:
    """Measure one contestant on its copy, step by step; record what is asked for."""

    def note(key: str, value: float) -> None:
        if course.asks(key):
            record(key, value)

    contestant.setup()
    yield
    _rest()
    note("first", contestant.checkpoint())
    if course.asks("disk"):
        note("disk", contestant.disk_bytes())
    if course.asks("memory") and (peak := contestant.peak_memory()) is not None:
        note("memory", peak)
    yield

    if course.asks("same"):
        for _ in range(course.takes):
            _rest()
            note("same", contestant.checkpoint())
            yield

    if course.asks("edits"):
        for number in range(course.takes):
            _rest()
            corpora.plan(tree, f"edits-{number}", edits=10).apply(tree.root)
            time.sleep(_PAUSE)
            note("edits", contestant.checkpoint())
            yield

    if course.asks("changes", "diff", "one", "restore"):
        for number in range(course.takes):
            _two_hundred_changes(contestant, tree, number, note)
            yield

    if course.asks("row", "row-disk"):
        before = contestant.disk_bytes()
        seconds = 0.0
        for number in range(course.row):
            corpora.plan(tree, f"row-{number}", edits=5).apply(tree.root)
            seconds += contestant.checkpoint()
            if number % 20 == 19:
                yield
        note("row", seconds)
        note("row-disk", contestant.disk_bytes() - before)

    if course.asks("byte", "byte-disk") and not contestant.leaves_out_large:
        for path in tree.large[: course.takes]:
            _one_byte(contestant, tree, path, note)
            yield


def _two_hundred_changes(contestant: Contestant, tree: Tree, number: int, note: Record) -> None:
    """Change, checkpoint, look at it, take back one file, take back everything.

    All in one step, as an agent's turn that is undone at once: if others had their turn in
    between, their rest would put this one's files on the disk, which makes them slower to replace.
    """
    change = corpora.plan(tree, f"changes-{number}", edits=100, adds=50, deletes=50)
    _rest()
    change.apply(tree.root)
    time.sleep(_PAUSE)
    note("changes", contestant.checkpoint())
    note("diff", contestant.diff())
    if contestant.listed not in (None, len(change.after)):
        raise RuntimeError(f"a diff showed {contestant.listed} files of {len(change.after)}")
    path = change.edited[0]
    note("one", contestant.restore_one(path))
    _expect_undone(change.not_undone(tree.root, path))
    change.apply(tree.root, path)
    time.sleep(_PAUSE)
    note("restore", contestant.restore_last())
    _expect_undone(change.not_undone(tree.root))
    # The next change begins from a checkpoint of the restored tree.
    contestant.checkpoint()


def _one_byte(contestant: Contestant, tree: Tree, path: str, note: Record) -> None:
    """Change a byte of a large file; then see that both versions can be had back."""
    file = tree.root / path
    before = contestant.disk_bytes()
    old = file.read_bytes()
    _rest()
    corpora.change_one_byte(file)
    time.sleep(_PAUSE)
    note("byte", contestant.checkpoint())
    note("byte-disk", contestant.disk_bytes() - before)
    new = file.read_bytes()
    for version in (old, new):
        contestant.restore_one(path)
        if file.read_bytes() != version:
            raise RuntimeError(f"a restore of {path} brought other bytes")
        contestant.checkpoint()


def _expect_undone(differing: list[str]) -> None:
    if differing:
        raise RuntimeError(
            f"a restore left {len(differing)} paths as they were, first {differing[0]}"
        )


def _rest() -> None:
    """Let the machine come to rest: what others left to be written is not charged to this one."""
    os.sync()
    time.sleep(_PAUSE)
