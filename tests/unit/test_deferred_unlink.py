"""A deferred unlink removes the name at once and closes every descriptor later."""

from __future__ import annotations

import os
import resource
import signal
import threading
from pathlib import Path

import pytest

from mulligan.worktree.fs import deferred_unlink
from mulligan.worktree.fs.deferred_unlink import DeferredUnlink


def test_names_are_gone_at_once_and_descriptors_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred_unlink, "MAX_HELD_FILES", 5)
    names = [f"file {number}" for number in range(23)]
    for name in names:
        (tmp_path / name).write_text(name)
    (tmp_path / "file 3").chmod(0)
    before = open_descriptors()
    parent = os.open(tmp_path, os.O_RDONLY)
    with DeferredUnlink() as unlinker:
        for name in names:
            unlinker.unlink(name.encode(), parent)
            assert not (tmp_path / name).exists()
        unlinker.hold(parent)
    deferred_unlink.finish()
    assert open_descriptors() == before


def test_without_a_descriptor_to_spare_files_are_deleted_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    parent = os.open(tmp_path, os.O_RDONLY)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        with DeferredUnlink() as unlinker:
            resource.setrlimit(resource.RLIMIT_NOFILE, (parent + 1, limits[1]))
            unlinker.unlink(b"file", parent)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        os.close(parent)
    assert not list(tmp_path.iterdir())


def test_a_child_does_not_wait_for_the_threads_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("content")
    may_go_on = threading.Event()
    close = os.close
    parent = os.open(tmp_path, os.O_RDONLY)
    monkeypatch.setattr(
        deferred_unlink, "_close", lambda each: may_go_on.wait() and list(map(close, each))
    )
    with DeferredUnlink() as unlinker:
        unlinker.unlink(b"file", parent)
        unlinker.hold(parent)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(5)
        deferred_unlink.finish()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    may_go_on.set()
    deferred_unlink.finish()


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_no_more_are_held_than_a_process_with_few_can_spare(tmp_path: Path) -> None:
    names = [f"file {number}" for number in range(200)]
    for name in names:
        (tmp_path / name).write_text(name)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    parent = os.open(tmp_path, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, limits[1]))
    try:
        with DeferredUnlink() as unlinker:
            for name in names:
                unlinker.unlink(name.encode(), parent)
                os.close(os.open(tmp_path, os.O_RDONLY))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        os.close(parent)
    deferred_unlink.finish()
    assert os.listdir(tmp_path) == []
