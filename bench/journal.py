"""The journal at a million entries: `./dev bench journal [options]`.

One session has a tenth of the entries, a thousand others share the rest. The same entries go into
a plain SQLite table that has nothing but a primary key, with the same library, the same settings
and the same fsyncs; each verb is measured beside the same work there, in turn. The plain table's
key is laid out as well as it can be for this work: what it lacks is everything else, the tree,
the events, the statistics, the links, and an index of words.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import apsw

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mulligan
from bench.contestant import allocated, timed
from mulligan import Workspace
from mulligan.core.entries import NewEntry
from mulligan.workspace.appending import appending
from mulligan.workspace.search.search import Hit, search

OURS, PLAIN = "mulligan", "plain table"
SESSIONS = 1_000
PAGE = 50
LARGE = 0.1
"""The part of all entries that one session has."""

BATCH = 5_000
COMMON, RARE = "pears", "quincunx"
SCHEMA = """
    CREATE TABLE sessions (number INTEGER PRIMARY KEY, title TEXT, updated_at TEXT);
    CREATE TABLE entries (number INTEGER PRIMARY KEY, id TEXT, type TEXT, created_at TEXT,
      content TEXT, data TEXT);
"""

Row = tuple[Any, ...]
Rows = dict[str, dict[str, list[float]]]
"""What was measured -> who -> seconds of each take."""


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    # A signal becomes an exception, so that everything is removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="mulligan-bench-journal-", dir=options.place) as place:
        rows, sizes = measure(Path(place), options.entries, options.takes)
    print(table(rows, sizes, options.entries))
    if options.json:
        results = {"entries": options.entries, "samples": rows, "bytes": sizes}
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench journal", description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000, help="default 1,000,000")
    parser.add_argument("--takes", type=int, default=51, help="of each short step (default 51)")
    parser.add_argument("--place", type=Path, help="where the journals are made (default /tmp)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args(arguments)
    if options.entries < 1_000 or options.takes < 1:
        parser.error("at least 1,000 entries, and one take")
    return options


def measure(folder: Path, entries: int, takes: int) -> tuple[Rows, dict[str, int]]:
    """Fills both, then takes every step in turn; gives the samples, and the bytes on the disk."""
    project, home = folder / "project", folder / "home"
    project.mkdir()
    rows: Rows = {}
    with (
        mulligan.open(project, home=str(home)) as workspace,
        closing(Plain(folder / "plain.sqlite")) as plain,
    ):
        names = fill(workspace, plain, entries, rows)
        take_turns(rows, "append one", min(1_000, entries), {
            OURS: one_by_one(workspace, names[0]), PLAIN: plain.one_by_one(),
        })  # fmt: skip
        large = workspace.sessions.count_entries(names[0])
        for place, at in (("begin", 0), ("middle", large // 2), ("end", large - PAGE)):
            page(rows, workspace, plain, names[0], place, at, takes)
        take_turns(rows, "list sessions", takes, {
            OURS: lambda: workspace.sessions.list(limit=PAGE).sessions, PLAIN: plain.sessions,
        })  # fmt: skip
        find(rows, workspace, plain, takes)
    with mulligan.open(project, home=str(home)) as again:
        # The caches of the process are cold; those of the system are not.
        rows["search, just opened"] = {OURS: [timed(lambda: search(again.project, RARE, limit=1))]}
    return rows, {OURS: allocated(home), PLAIN: allocated_beside(folder / "plain.sqlite")}


class Plain:
    """A table with a primary key, and nothing else."""

    def __init__(self, path: Path) -> None:
        self.db = apsw.Connection(str(path))
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute(SCHEMA)

    def close(self) -> None:
        self.db.close()

    def add(self, session: int, first: int, new: list[NewEntry]) -> None:
        """Some entries, in one transaction."""
        self.db.execute("BEGIN IMMEDIATE")
        for seq, entry in enumerate(new, first):
            self._insert((session << 32) | seq, entry)
        self.db.execute("COMMIT")

    def one_by_one(self) -> Callable[[], object]:
        last = self.db.execute("SELECT max(number) FROM entries WHERE number < 2 << 32").fetchone()
        assert last is not None
        numbers = iter(range(int(last[0]) + 1, 2 << 32))
        words = stream(99)
        return lambda: self.add(1, next(numbers) & 0xFFFFFFFF, [next(words)])

    def page(self, since: int) -> list[Row]:
        sql = "SELECT * FROM entries WHERE number > ? AND number < 2 << 32 ORDER BY number LIMIT ?"
        return [_read(row) for row in self.db.execute(sql, ((1 << 32) | since, PAGE + 1))]

    def page_back(self, before: int) -> list[Row]:
        sql = "SELECT * FROM entries WHERE number < ? AND number > ? ORDER BY number DESC LIMIT ?"
        values = ((1 << 32) | before, 1 << 32, PAGE + 1)
        return [_read(row) for row in self.db.execute(sql, values)][::-1]

    def sessions(self) -> list[Row]:
        sql = "SELECT * FROM sessions ORDER BY updated_at DESC LIMIT ?"
        return list(self.db.execute(sql, (PAGE + 1,)))

    def first_hit(self, word: str) -> list[Row]:
        sql = "SELECT * FROM entries WHERE content LIKE ? LIMIT 1"
        return list(self.db.execute(sql, (f"%{word}%",)))

    def _insert(self, number: int, entry: NewEntry) -> None:
        data = None if entry.data is None else json.dumps(entry.data)
        self.db.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)",
            (number, f"{number:x}", entry.type, str(time.time_ns()), entry.content, data),
        )


def fill(workspace: Workspace, plain: Plain, entries: int, rows: Rows) -> list[str]:
    """Fills both, batch by batch in turn; gives the sessions, the large one first."""
    large = max(2 * PAGE, int(entries * LARGE))
    rest = entries - large
    others = min(SESSIONS, max(1, rest // 20))
    counts = [large, *(rest // others + (number < rest % others) for number in range(others))]
    words = stream(1)
    names = []
    samples: dict[str, list[float]] = {OURS: [], PLAIN: []}
    done = 0
    for number, count in enumerate(counts, 1):
        name = workspace.sessions.create(
            agent="bench", title=f"Session {number}", checkpoint=False
        ).id
        names.append(name)
        plain.db.execute(
            "INSERT INTO sessions VALUES (?, ?, ?)", (number, f"Session {number}", str(number))
        )
        for first in range(1, count + 1, BATCH):
            new = [next(words) for _ in range(min(BATCH, count + 1 - first))]
            if done <= entries // 2 < done + len(new):
                new[-1] = new[-1]._replace(content=f"{new[-1].content} {RARE}")
            done += len(new)
            for who, step in (
                (OURS, partial(in_bulk, workspace, number, new)),
                (PLAIN, partial(plain.add, number, first, new)),
            ):
                samples[who].append(timed(step) / len(new))
    rows["append in bulk"] = samples
    return names


def in_bulk(workspace: Workspace, session: int, new: list[NewEntry]) -> None:
    """As an import appends: many entries, one transaction."""
    with workspace.project.journal.writing() as db:
        appender = appending(db, session)
        for entry in new:
            appender.append(entry)
        appender.finish()


def one_by_one(workspace: Workspace, session: str) -> Callable[[], object]:
    words = stream(99)
    return lambda: workspace.sessions.append(session, next(words))


def page(
    rows: Rows, workspace: Workspace, plain: Plain, session: str, place: str, at: int, takes: int
) -> None:
    """A page of the large session in each direction, and of the path to its leaf."""
    before = at + PAGE + 1
    take_turns(rows, f"page forward, {place}", takes, {
        OURS: lambda: workspace.sessions.transcript(session, since=at, limit=PAGE).entries,
        PLAIN: lambda: plain.page(at),
    })  # fmt: skip
    take_turns(rows, f"page backward, {place}", takes, {
        OURS: lambda: workspace.sessions.recent(session, before=before, limit=PAGE).entries,
        PLAIN: lambda: plain.page_back(before),
    })  # fmt: skip
    take_turns(rows, f"page of the path, {place}", takes, {
        OURS: lambda: workspace.sessions.conversation(
            session, before=before, limit=PAGE, newest=True
        ),
        PLAIN: lambda: plain.page_back(before),
    })  # fmt: skip


def find(rows: Rows, workspace: Workspace, plain: Plain, takes: int) -> None:
    """The first hit: while the index is made, and once it is there, of a rare and a common word."""
    first = timed(lambda: search(workspace.project, RARE, limit=1))
    rows["search, making the index"] = {OURS: [first]}
    for what, word in (("rare", RARE), ("common", COMMON)):
        # A plain table is read through: a few takes of that are enough.
        take_turns(rows, f"search, {what} word", min(takes, 5), {
            OURS: partial(first_hit, workspace, word), PLAIN: partial(plain.first_hit, word),
        })  # fmt: skip


def first_hit(workspace: Workspace, word: str) -> tuple[Hit, ...]:
    return search(workspace.project, word, limit=1).hits


def take_turns(
    rows: Rows, what: str, takes: int, contestants: dict[str, Callable[[], object]]
) -> None:
    """Each takes the step in turn, so many times; a step that finds nothing measures nothing."""
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(takes):
        for name, step in contestants.items():
            begun = time.perf_counter()
            found = step()
            samples[name].append(time.perf_counter() - begun)
            if not found and found is not None:
                raise RuntimeError(f"{what}: {name} found nothing")
    rows[what] = samples


def stream(seed: int) -> Iterator[NewEntry]:
    """Entries as agents make them: messages, answers, tool calls with their results."""
    random = Random(seed)
    words = [
        "".join(random.choices("abcdefghijklmnop", k=random.randint(3, 9))) for _ in range(5000)
    ]
    while True:
        yield NewEntry("user_input", f"{COMMON} {' '.join(random.choices(words, k=12))}")
        yield NewEntry("assistant_output", " ".join(random.choices(words, k=40)))
        asked = {"command": " ".join(random.choices(words, k=6))}
        yield NewEntry(
            "tool_call", data={"name": "bash", "input": asked, "status": "success", "duration": 5}
        )
        yield NewEntry("tool_result", " ".join(random.choices(words, k=25)))


def table(rows: Rows, sizes: dict[str, int], entries: int) -> str:
    """Medians in milliseconds, and how many times the plain table's each of ours is."""
    lines = [f"{entries:,} entries (medians, milliseconds)", ""]
    lines.append(f"{'':28}{OURS:>12}{PLAIN:>14}{'ratio':>9}")
    for what, samples in rows.items():
        values = {name: median(each) * 1000 for name, each in samples.items()}
        lines.append(f"{what:28}" + _cells(values.get(OURS), values.get(PLAIN)))
    size = {name: count / 1e6 for name, count in sizes.items()}
    lines.append(f"{'MB on the disk':28}" + _cells(size[OURS], size[PLAIN]))
    return "\n".join(lines)


def allocated_beside(path: Path) -> int:
    """Bytes of a database with what lies beside it."""
    return sum(each.stat().st_blocks * 512 for each in path.parent.glob(f"{path.name}*"))


def _cells(ours: float | None, plain: float | None) -> str:
    shown = [f"{ours:12,.3f}" if ours is not None else f"{'':12}"]
    shown.append(f"{plain:14,.3f}" if plain is not None else f"{'':14}")
    shown.append(
        f"{ours / plain:9,.{2 if ours > plain / 10 else 4}f}" if ours is not None and plain else ""
    )
    return "".join(shown).rstrip()


def _read(row: Row) -> Row:
    return (*row[:5], None if row[5] is None else json.loads(row[5]))


if __name__ == "__main__":
    sys.exit(main())
