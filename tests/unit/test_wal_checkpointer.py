"""Test WAL checkpoints of the pack index in the background."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from mulligan.store.index import PackIndex
from mulligan.store.packs import RAW, Record
from mulligan.store.wal_checkpointer import CHECKPOINT_PAGES

ROWS, BATCH_ROWS = 40_000, 2 * CHECKPOINT_PAGES


def records(start: int, count: int = BATCH_ROWS) -> list[Record]:
    return [
        Record(sha256(b"%d" % number).digest(), 1, abs(number), RAW, 1, 1, None, 0)
        for number in range(start, start + count)
    ]


def log_pages(folder: Path) -> int:
    """Return the logged pages that are not in the file yet, as SQLite reports them."""
    other = apsw.Connection(str(folder / "index.sqlite"))
    try:
        other.execute("SELECT * FROM meta").fetchall()
        logged, checkpointed = other.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    finally:
        other.close()
    return logged - checkpointed


def filled(folder: Path) -> PackIndex:
    """Return an index so large that new rows are scattered over its pages."""
    found = PackIndex(str(folder))
    found.add(records(-ROWS, ROWS), {1: 1})
    found._checkpointer.finish()
    return found


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PackIndex]:
    found = filled(tmp_path)
    yield found
    found.close()


def test_a_large_commit_is_checkpointed_in_the_background(index: PackIndex, tmp_path: Path) -> None:
    index.add(records(0), {1: 1})
    end = time.monotonic() + 20
    while log_pages(tmp_path) and time.monotonic() < end:
        time.sleep(0.01)
    assert log_pages(tmp_path) == 0
    assert index.count()[0] == ROWS + BATCH_ROWS


def test_the_log_does_not_grow_with_the_commits(index: PackIndex, tmp_path: Path) -> None:
    sizes = []
    for number in range(8):
        index.add(records(number * BATCH_ROWS), {1: number})
        index._checkpointer.finish()
        sizes.append((tmp_path / "index.sqlite-wal").stat().st_size)
    assert max(sizes) < 2 * sizes[0]
    assert index.count()[0] == ROWS + 8 * BATCH_ROWS
    assert not index.is_damaged()


def test_close_waits_for_the_checkpoint_and_leaves_no_log(tmp_path: Path) -> None:
    index = filled(tmp_path)
    before = threading.active_count()
    index.add(records(0), {1: 1})
    index.close()
    assert threading.active_count() == before
    assert not (tmp_path / "index.sqlite-wal").exists()
    again = PackIndex(str(tmp_path))
    assert again.count()[0] == ROWS + BATCH_ROWS
    again.close()


def test_commits_and_queries_run_during_a_checkpoint(index: PackIndex) -> None:
    for number in range(20):
        index.add(records(number * BATCH_ROWS), {1: number})
        some = records(number * BATCH_ROWS, 50)
        assert len(index.find_many([each.id for each in some])) == 50
    assert index.count()[0] == ROWS + 20 * BATCH_ROWS


def test_without_a_thread_the_next_commit_retries_the_checkpoint(
    index: PackIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        index.add(records(0), {1: 1})
    assert log_pages(tmp_path) > CHECKPOINT_PAGES
    assert index.count()[0] == ROWS + BATCH_ROWS
    index.add(records(BATCH_ROWS, 1), {1: 2})
    index._checkpointer.finish()
    assert log_pages(tmp_path) == 0


@pytest.mark.parametrize("pause", [0.0, 0.002, 0.01])
def test_a_kill_during_a_checkpoint_loses_nothing(tmp_path: Path, pause: float) -> None:
    code = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from test_wal_checkpointer import BATCH_ROWS, filled, records
index = filled(Path(sys.argv[1]))
for number in range(5):
    index.add(records(number * BATCH_ROWS), {1: number})
time.sleep(float(sys.argv[2]))
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", code, str(tmp_path), str(pause), os.path.dirname(__file__)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    index = PackIndex(str(tmp_path))
    assert not index.is_damaged()
    assert index.count()[0] == ROWS + 5 * BATCH_ROWS
    index.close()
