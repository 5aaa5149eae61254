"""Room in the journal's log: made at once by whoever stays, and no commit pays for it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.journal import db
from mulligan.journal.db import LOG_HEAD, LOG_PAGES, PAGE_BYTES, Database

SIZE = LOG_PAGES * (PAGE_BYTES + LOG_HEAD)
TABLE = ("CREATE TABLE t (n INTEGER PRIMARY KEY)",)
COMMITS = """
import os, signal, sys
from mulligan.journal.db import Database
db = Database(sys.argv[1], ("CREATE TABLE t (n INTEGER PRIMARY KEY)",))
first, count = int(sys.argv[2]), int(sys.argv[3])
if "room" in sys.argv:
    db.make_room_in_log()
print("ready", flush=True)
for number in range(first, first + count):
    with db.writing() as connection:
        connection.execute("INSERT INTO t VALUES (?)", (number,))
os.kill(os.getpid(), signal.SIGKILL)
"""


def committing(path: Path, first: int, count: int, *more: str) -> subprocess.Popen[bytes]:
    """A process that commits so many numbers, one after another, and is killed after the last."""
    command = [sys.executable, "-c", COMMITS, str(path), str(first), str(count), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def numbers(database: Database) -> list[int]:
    return [number for (number,) in database.rows("SELECT n FROM t ORDER BY n")]


def log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def test_what_is_committed_lies_where_room_was_made(path: Path) -> None:
    database = Database(str(path), TABLE)
    database.make_room_in_log()
    size = log_of(path).stat().st_size
    assert size >= SIZE
    for number in range(50):
        with database.writing() as connection:
            connection.execute("INSERT INTO t VALUES (?)", (number,))
    assert log_of(path).stat().st_size == size
    database.make_room_in_log()
    assert log_of(path).stat().st_size == size
    other = Database(str(path), TABLE)
    assert numbers(other) == numbers(database) == list(range(50))
    other.close()
    database.close()
    assert not log_of(path).exists()


def test_after_a_kill_all_that_was_committed_is_there(path: Path) -> None:
    killed = committing(path, 0, 40, "room")
    assert killed.wait(30) == -signal.SIGKILL
    assert log_of(path).stat().st_size >= SIZE
    database = Database(str(path), TABLE)
    assert numbers(database) == list(range(40))
    database.close()


def test_a_log_that_has_nothing_but_room_is_an_empty_one(path: Path) -> None:
    Database(str(path), TABLE).close()
    killed = committing(path, 0, 0, "room")
    assert killed.wait(30) == -signal.SIGKILL
    database = Database(str(path), TABLE)
    assert numbers(database) == []
    database.close()


def test_room_is_never_made_over_what_others_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(str(path), TABLE)
    others = [committing(path, first, 300) for first in (0, 1000)]
    pages = 0
    while any(other.poll() is None for other in others):
        # A little more each time, right behind what was just committed.
        pages = log_of(path).stat().st_size // (PAGE_BYTES + LOG_HEAD) + 2
        monkeypatch.setattr(db, "LOG_PAGES", pages)
        database.make_room_in_log()
    assert pages
    assert numbers(database) == [*range(300), *range(1000, 1300)]
    database.close()


@pytest.mark.skipif(sys.platform != "linux", reason="sets a limit for a file's size")
def test_where_there_is_no_space_nothing_is_made_and_nothing_fails(path: Path) -> None:
    database = Database(str(path), TABLE)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, before[1]))
    try:
        database.make_room_in_log()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    with database.writing() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    assert numbers(database) == [1]
    database.close()
    assert os.path.getsize(path) > 0
