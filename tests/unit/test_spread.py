"""The same work for many paths: each once, in folders of one's own, and one failure ends it."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from mulligan.files import spread as spreading
from mulligan.files.reach import Directories
from mulligan.files.spread import MANY, spread


@pytest.fixture(autouse=True)
def three_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreading, "WORKERS", 3)


@pytest.mark.parametrize("count", [0, 1, MANY - 1, MANY, 20 * MANY])
def test_each_is_done_once(tmp_path: Path, count: int) -> None:
    done: list[int] = []
    spread(os.fsencode(tmp_path), range(count), lambda directories, item: done.append(item))
    assert sorted(done) == list(range(count))


def test_many_are_done_by_several_each_with_folders_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").write_bytes(b"here")
    seen: dict[int, Directories] = {}
    all_here = threading.Barrier(3)

    def work(directories: Directories, item: int) -> None:
        if seen.setdefault(threading.get_ident(), directories) is not directories:
            raise AssertionError("one thread, two sets of folders")
        if item < 3:
            all_here.wait(30)
        assert os.stat(b"x", dir_fd=directories.open(b"d")).st_size == 4

    spread(os.fsencode(tmp_path), range(MANY), work)
    assert len(set(map(id, seen.values()))) == len(seen) == 3


@pytest.mark.parametrize("problem", [OSError(28, "full"), KeyboardInterrupt()])
def test_what_one_raises_ends_all_and_is_raised_when_none_is_at_work(
    tmp_path: Path, problem: BaseException
) -> None:
    done: list[int] = []
    before = threading.active_count()
    interval = sys.getswitchinterval()

    def work(directories: Directories, item: int) -> None:
        if item == 100:
            raise problem
        done.append(item)

    with pytest.raises(type(problem)) as raised:
        spread(os.fsencode(tmp_path), range(100_000), work)
    assert raised.value is problem
    assert len(done) < 50_000
    assert threading.active_count() == before
    assert sys.getswitchinterval() == interval


def test_an_interrupt_while_others_are_at_work_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = threading.get_ident()
    is_joining = threading.Event()
    join = threading.Thread.join

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        if not is_joining.is_set():
            is_joining.set()
            raise KeyboardInterrupt
        join(thread, timeout)

    def work(directories: Directories, item: int) -> None:
        if threading.get_ident() != here:
            is_joining.wait(30)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        spread(os.fsencode(tmp_path), range(2 * MANY), work)
    assert threading.active_count() == before


def test_without_threads_it_is_done_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    spread(os.fsencode(tmp_path), range(2 * MANY), lambda directories, item: done.append(item))
    assert done == list(range(2 * MANY))
