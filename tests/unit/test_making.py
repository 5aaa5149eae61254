"""Files without a name, made ahead: each where it belongs, and none that stays open."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.tree import Change, file_entry, link_entry
from mulligan.worktree.fs import background
from mulligan.worktree.fs.background import BackgroundTask
from mulligan.worktree.fs.safe_paths import Directories
from mulligan.worktree.restore import making
from mulligan.worktree.restore.making import MIN_FILES, UnnamedFile, made_for

pytestmark = pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="no such files here")


def changes(count: int) -> list[Change]:
    entry = file_entry(b"", 0o644, 3, b"\0" * 32)
    return [Change(b"d%d/f%d" % (number % 7, number), None, entry) for number in range(count)]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    for number in range(7):
        (tmp_path / f"d{number}").mkdir()
    before = set(os.listdir("/proc/self/fd"))
    yield tmp_path
    assert set(os.listdir("/proc/self/fd")) == before


def drained(root: Path, wanted: list[Change]) -> tuple[list[Change], int]:
    """Which came, and with how many of them there was a file."""
    came, files = [], 0
    for change, made in made_for(os.fsencode(root), wanted):
        came.append(change)
        if made is not None:
            files += 1
            status = os.fstat(made.fd)
            assert (status.st_nlink, status.st_size, status.st_dev) == (0, 0, made.device)
            os.close(made.fd)
    return came, files


@pytest.fixture
def _awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes the files begins when the thread has made one."""
    make, has_made = making._made, threading.Event()

    def noted(*given: Any) -> UnnamedFile | None:
        found = make(*given)
        has_made.set()
        return found

    class Awaited(BackgroundTask):
        def start(self) -> None:
            # A caller that has nothing else to do could be faster than the thread.
            super().start()
            has_made.wait()

    monkeypatch.setattr(making, "_made", noted)
    monkeypatch.setattr(making, "BackgroundTask", Awaited)


@pytest.mark.usefixtures("_awaited")
@pytest.mark.parametrize("count", [0, 1, MIN_FILES - 1, MIN_FILES, 20 * MIN_FILES])
def test_each_comes_once_and_many_come_with_a_file(root: Path, count: int) -> None:
    wanted = changes(count)
    came, files = drained(root, wanted)
    assert sorted(came) == sorted(wanted)
    assert files == 0 if count < MIN_FILES else 0 < files <= count


@pytest.mark.usefixtures("_awaited")
def test_the_file_is_made_in_the_folder_that_it_is_for(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: dict[int, int] = {}
    real = os.open

    def watched(path: bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        fd = real(path, flags, mode, dir_fd=dir_fd)
        if flags & os.O_TMPFILE == os.O_TMPFILE and dir_fd is not None:
            folders[fd] = os.fstat(dir_fd).st_ino
        return fd

    monkeypatch.setattr(os, "open", watched)
    files = 0
    for change, made in made_for(os.fsencode(root), changes(3 * MIN_FILES)):
        if made is not None:
            assert folders[made.fd] == (root / os.fsdecode(change.path)).parent.stat().st_ino
            os.close(made.fd)
            files += 1
    assert files


def test_links_and_what_has_no_folder_yet_come_without_one(root: Path) -> None:
    link = link_entry(b"", 1, b"\0" * 32)
    wanted = [Change(each.path, None, link) for each in changes(MIN_FILES)]
    wanted += [Change(b"new/" + each.path, None, each.after) for each in changes(MIN_FILES)]
    came, files = drained(root, wanted)
    assert sorted(came) == sorted(wanted)
    assert files == 0


def test_who_stops_early_leaves_nothing_open(root: Path) -> None:
    with closing(made_for(os.fsencode(root), changes(10 * MIN_FILES))) as each:
        for number, (_change, made) in enumerate(each):
            if made is not None:
                os.close(made.fd)
            if number == 5:
                time.sleep(0.05)
                break


def test_an_interrupt_at_the_end_waits_for_the_thread(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupts = iter([KeyboardInterrupt, KeyboardInterrupt])
    may_go_on, begun = threading.Event(), threading.Event()
    make = making._made

    class Interrupted(BackgroundTask):
        def _do(self) -> bool:
            if threading.current_thread() is threading.main_thread():
                for interrupt in interrupts:
                    raise interrupt
                may_go_on.set()
            return super()._do()

    def held_up(directories: Directories, change: Change) -> UnnamedFile | None:
        begun.set()
        may_go_on.wait()
        return make(directories, change)

    monkeypatch.setattr(making, "BackgroundTask", Interrupted)
    monkeypatch.setattr(making, "_made", held_up)
    each = made_for(os.fsencode(root), changes(100 * MIN_FILES))
    _change, made = next(each)
    if made is not None:
        os.close(made.fd)
    begun.wait()
    with pytest.raises(KeyboardInterrupt):
        each.close()


def test_no_more_wait_than_may_be_open(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(os.listdir("/proc/self/fd"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(
        resource, "getrlimit", lambda _: (8 * making.MAX_SHARE_OF_FILE_LIMIT, limits[1])
    )
    with closing(made_for(os.fsencode(root), changes(5 * MIN_FILES))) as each:
        _change, made = next(each)
        time.sleep(0.1)
        # Those that wait, one that was given away, and the folders on the way.
        assert len(os.listdir("/proc/self/fd")) - before <= 8 + 1 + 3
        if made is not None:
            os.close(made.fd)


def test_without_a_thread_each_comes_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(background, "start_new_thread", refuse)
    wanted = changes(2 * MIN_FILES)
    came, files = drained(root, wanted)
    assert sorted(came) == sorted(wanted)
    assert files == 0


def test_an_interrupt_while_the_thread_begins_ends_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(BackgroundTask):
        def start(self) -> None:
            super().start()
            raise KeyboardInterrupt

    monkeypatch.setattr(making, "BackgroundTask", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(made_for(os.fsencode(root), changes(10 * MIN_FILES)))


def test_what_a_broken_thread_leaves_is_done_without_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(making, "_made", fail)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    wanted = changes(2 * MIN_FILES)
    came, files = drained(root, wanted)
    assert sorted(came) == sorted(wanted)
    assert files == 0


def test_what_the_thread_made_as_its_last_comes_too(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = making._made
    begun = threading.Event()

    def slowly(*given: Any) -> making.UnnamedFile | None:
        begun.set()
        time.sleep(0.05)
        return make(*given)

    class AskedWhenItEnds(BackgroundTask):
        @property
        def is_over(self) -> bool:
            # It ends between being asked for what it has made, and for whether it is still there.
            self.wait()
            return True

    monkeypatch.setattr(making, "MAX_FILES_AHEAD", 10 * MIN_FILES)
    monkeypatch.setattr(making, "_made", slowly)
    monkeypatch.setattr(making, "BackgroundTask", AskedWhenItEnds)
    wanted = changes(MIN_FILES)
    came = []
    for change, made in made_for(os.fsencode(root), wanted):
        begun.wait()
        came.append(change)
        if made is not None:
            os.close(made.fd)
    assert sorted(came) == sorted(wanted)
