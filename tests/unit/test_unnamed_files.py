"""Unnamed files are created ahead, in the right directory, and none stays open."""

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
from mulligan.worktree.restore import unnamed_files
from mulligan.worktree.restore.unnamed_files import UnnamedFile, with_unnamed_files

MIN_FILES = unnamed_files.MIN_FILES_FOR_THREAD
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
    """The changes that came, and the number of files that came with them."""
    came, files = [], 0
    for change, file in with_unnamed_files(os.fsencode(root), wanted):
        came.append(change)
        if file is not None:
            files += 1
            status = os.fstat(file.fd)
            assert (status.st_nlink, status.st_size, status.st_dev) == (0, 0, file.device)
            os.close(file.fd)
    return came, files


@pytest.fixture
def _awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller takes the first change when the thread has created a file."""
    create, has_created = unnamed_files._create, threading.Event()

    def noted(*given: Any) -> UnnamedFile | None:
        file = create(*given)
        has_created.set()
        return file

    class Awaited(BackgroundTask):
        def start(self) -> None:
            # A caller that has nothing else to do could be faster than the thread.
            super().start()
            has_created.wait()

    monkeypatch.setattr(unnamed_files, "_create", noted)
    monkeypatch.setattr(unnamed_files, "BackgroundTask", Awaited)


@pytest.mark.usefixtures("_awaited")
@pytest.mark.parametrize("count", [0, 1, MIN_FILES - 1, MIN_FILES, 20 * MIN_FILES])
def test_each_comes_once_and_many_come_with_a_file(root: Path, count: int) -> None:
    wanted = changes(count)
    came, files = drained(root, wanted)
    assert sorted(came) == sorted(wanted)
    assert files == 0 if count < MIN_FILES else 0 < files <= count


@pytest.mark.usefixtures("_awaited")
def test_a_file_is_created_in_the_directory_of_its_path(
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
    for change, file in with_unnamed_files(os.fsencode(root), changes(3 * MIN_FILES)):
        if file is not None:
            assert folders[file.fd] == (root / os.fsdecode(change.path)).parent.stat().st_ino
            os.close(file.fd)
            files += 1
    assert files


def test_links_and_paths_without_a_directory_come_without_a_file(root: Path) -> None:
    link = link_entry(b"", 1, b"\0" * 32)
    wanted = [Change(each.path, None, link) for each in changes(MIN_FILES)]
    wanted += [Change(b"new/" + each.path, None, each.after) for each in changes(MIN_FILES)]
    came, files = drained(root, wanted)
    assert sorted(came) == sorted(wanted)
    assert files == 0


def test_a_caller_that_stops_early_leaves_nothing_open(root: Path) -> None:
    with closing(with_unnamed_files(os.fsencode(root), changes(10 * MIN_FILES))) as each:
        for number, (_change, file) in enumerate(each):
            if file is not None:
                os.close(file.fd)
            if number == 5:
                time.sleep(0.05)
                break


def test_an_interrupt_at_the_end_waits_for_the_thread(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupts = iter([KeyboardInterrupt, KeyboardInterrupt])
    may_go_on, begun = threading.Event(), threading.Event()
    create = unnamed_files._create

    class Interrupted(BackgroundTask):
        def _run(self) -> bool:
            if threading.current_thread() is threading.main_thread():
                for interrupt in interrupts:
                    raise interrupt
                may_go_on.set()
            return super()._run()

    def held_up(directories: Directories, change: Change) -> UnnamedFile | None:
        begun.set()
        may_go_on.wait()
        return create(directories, change)

    monkeypatch.setattr(unnamed_files, "BackgroundTask", Interrupted)
    monkeypatch.setattr(unnamed_files, "_create", held_up)
    each = with_unnamed_files(os.fsencode(root), changes(100 * MIN_FILES))
    _change, file = next(each)
    if file is not None:
        os.close(file.fd)
    begun.wait()
    with pytest.raises(KeyboardInterrupt):
        each.close()


def test_the_number_of_open_files_is_limited(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(os.listdir("/proc/self/fd"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(
        resource, "getrlimit", lambda _: (8 * unnamed_files.FILE_LIMIT_DIVISOR, limits[1])
    )
    with closing(with_unnamed_files(os.fsencode(root), changes(5 * MIN_FILES))) as each:
        _change, file = next(each)
        time.sleep(0.1)
        # Waiting files, one handed out, and open directories.
        assert len(os.listdir("/proc/self/fd")) - before <= 8 + 1 + 3
        if file is not None:
            os.close(file.fd)


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

    monkeypatch.setattr(unnamed_files, "BackgroundTask", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(with_unnamed_files(os.fsencode(root), changes(10 * MIN_FILES)))


def test_changes_left_by_a_failed_thread_come_without_a_file(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(unnamed_files, "_create", fail)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    wanted = changes(2 * MIN_FILES)
    came, files = drained(root, wanted)
    assert sorted(came) == sorted(wanted)
    assert files == 0


def test_the_last_file_of_the_thread_comes_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = unnamed_files._create
    begun = threading.Event()

    def slowly(*given: Any) -> unnamed_files.UnnamedFile | None:
        begun.set()
        time.sleep(0.05)
        return create(*given)

    class AskedWhenItEnds(BackgroundTask):
        @property
        def is_done(self) -> bool:
            # The thread ends between the two questions of the caller's loop.
            self.wait()
            return True

    monkeypatch.setattr(unnamed_files, "MAX_FILES_AHEAD", 10 * MIN_FILES)
    monkeypatch.setattr(unnamed_files, "_create", slowly)
    monkeypatch.setattr(unnamed_files, "BackgroundTask", AskedWhenItEnds)
    wanted = changes(MIN_FILES)
    came = []
    for change, file in with_unnamed_files(os.fsencode(root), wanted):
        begun.wait()
        came.append(change)
        if file is not None:
            os.close(file.fd)
    assert sorted(came) == sorted(wanted)
