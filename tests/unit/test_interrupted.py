"""Interrupts and failures between any two steps: all old or all new, and nothing that is listed is
gone."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mulligan
from mulligan.core.tree import Change, file_entry
from mulligan.errors import Busy, Corrupt, MulliganError
from mulligan.journal import operations
from mulligan.store.index import PackIndex
from mulligan.store.writer import Writer
from mulligan.workspace.restore import run
from mulligan.worktree.fs import leases, rename
from mulligan.worktree.fs.deferred_unlink import DeferredUnlink
from mulligan.worktree.fs.safe_paths import Directories
from mulligan.worktree.restore import apply, displaced, staging_recovery
from mulligan.worktree.restore.displaced import DisplacedFiles
from mulligan.worktree.restore.staging_area import Slot
from mulligan.worktree.scan import stat_cache
from mulligan.worktree.watch.inotify import Watcher

NAMES = [f"f{number}" for number in range(10)]


def write(project: Path, word: str) -> None:
    for name in NAMES:
        (project / name).write_text(f"{word} {name}")


def read(project: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(project.iterdir())}


def told(word: str) -> dict[str, str]:
    return {name: f"{word} {name}" for name in sorted(NAMES)}


@pytest.fixture
def changed(project: Path) -> str:
    """A project that was `old` at a checkpoint and is `new` now; gives that checkpoint."""
    write(project, "old")
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
    write(project, "new")
    return taken.id


@pytest.fixture(autouse=True)
def everything_is_sound_in_the_end(project: Path) -> Iterator[None]:
    yield
    with mulligan.open(project) as workspace:
        assert workspace.maintenance.verify().problems == ()


# The store


@pytest.mark.parametrize("moment", ["listed", "noted"])
def test_an_interrupt_while_objects_are_listed_takes_nothing_back(
    project: Path, changed: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    with monkeypatch.context() as patch:
        if moment == "listed":
            interrupt_after(patch, PackIndex, "add")
        else:
            interrupt_before(patch, Writer, "_committed")
        with mulligan.open(project) as workspace, pytest.raises(KeyboardInterrupt):
            workspace.checkpoint()
    with mulligan.open(project) as workspace:
        assert workspace.maintenance.verify().problems == ()
        workspace.checkpoint()
        assert workspace.maintenance.verify().problems == ()
        workspace.restore(changed)
    assert read(project) == told("old")


@pytest.mark.parametrize("moment", ["before", "listed", "noted"])
def test_an_interrupted_garbage_collection_loses_nothing(
    project: Path, changed: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    (project / "waste").write_bytes(os.urandom(5000))
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        (project / "waste").unlink()
        kept = workspace.checkpoint()
        workspace.maintenance.forget(keep_last=1)
    with monkeypatch.context() as patch:
        if moment == "before":
            interrupt_before(patch, PackIndex, "replace_pack")
        elif moment == "listed":
            interrupt_after(patch, PackIndex, "replace_pack")
        else:
            interrupt_before(patch, Writer, "_committed")
        with mulligan.open(project) as workspace, pytest.raises(KeyboardInterrupt):
            workspace.maintenance.gc()
    with mulligan.open(project) as workspace:
        workspace.maintenance.gc()
        assert workspace.maintenance.verify().problems == ()
        write(project, "other")
        workspace.restore(kept.id)
    assert read(project) == told("new")


def interrupt_after(patch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    real = getattr(owner, name)

    def interrupted(*given: Any, **more: Any) -> None:
        real(*given, **more)
        raise KeyboardInterrupt

    patch.setattr(owner, name, interrupted)


def interrupt_before(patch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    def interrupted(*_given: Any, **_more: Any) -> None:
        raise KeyboardInterrupt

    patch.setattr(owner, name, interrupted)


# A restore


@pytest.mark.parametrize(
    "problem", [Busy("It ends."), OSError(errno.EIO, "no"), KeyboardInterrupt()]
)
def test_what_ends_a_restore_in_the_middle_does_not_make_it_forgotten(
    project: Path, changed: str, problem: BaseException
) -> None:
    def end(stage: str, done: int, total: int | None) -> None:
        if stage == "restoring" and done == 4:
            raise problem

    with mulligan.open(project, progress=end) as workspace, pytest.raises(type(problem)):
        workspace.restore(changed)
    assert read(project) not in (told("old"), told("new"))
    with mulligan.open(project) as workspace:
        assert [(each.kind, each.state) for each in workspace.project.recovered] == [
            ("restore", "applied")
        ]
        assert read(project) == told("old")
        workspace.undo()
    assert read(project) == told("new")


@pytest.mark.parametrize("written_down", [True, False])
def test_a_restore_that_was_interrupted_before_it_changed_anything_stays_undone(
    project: Path, changed: str, monkeypatch: pytest.MonkeyPatch, written_down: bool
) -> None:
    def fail(*_: object) -> None:
        raise MulliganError("no")

    with monkeypatch.context() as patch:
        patch.setattr(run, "_read_back", lambda *_: signal.raise_signal(signal.SIGINT))
        if not written_down:
            patch.setattr(operations, "abandon", fail)
        with mulligan.open(project) as workspace, pytest.raises(KeyboardInterrupt):
            workspace.restore(changed)
    assert read(project) == told("new")
    (project / "f0").write_text("edited since")
    with mulligan.open(project) as workspace:
        assert len(workspace.project.recovered) == (0 if written_down else 1)
        [last] = workspace.operations(limit=1)
        assert (last.kind, last.state) == ("restore", "abandoned")
        assert "before it changed anything" in last.summary["reason"]
    assert read(project) == told("new") | {"f0": "edited since"}


def test_a_staging_folder_that_could_not_be_opened_does_not_stay(
    project: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def failing(path: bytes | str, *given: Any, **more: Any) -> int:
        if os.fsencode(path).startswith(b".mulligan-tmp-"):
            raise OSError(errno.EMFILE, "too many open files")
        return real(path, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        with mulligan.open(project) as workspace, pytest.raises(OSError, match="too many"):
            workspace.restore(changed)
    with mulligan.open(project) as workspace:
        assert [each.state for each in workspace.project.recovered] == ["abandoned"]
    assert read(project) == told("new")


def test_two_homes_do_not_share_a_staging_folder(
    project: Path, changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags: list[str] = []
    real = apply.apply

    def noting(root: bytes, tag: str, *given: Any, **more: Any) -> apply.Applied:
        tags.append(tag)
        return real(root, tag, *given, **more)

    monkeypatch.setattr(apply, "apply", noting)
    with mulligan.open(project) as workspace:
        workspace.restore(changed)
    with mulligan.open(project, home=str(tmp_path / "other home")) as workspace:
        first = workspace.checkpoint()
        write(project, "newer")
        workspace.restore(first.id)
    # The same number in both, but for what follows it.
    assert len(tags) == len(set(tags)) == 2
    assert len({len(tag.partition("-")[2]) for tag in tags}) == 1


def test_an_interrupted_restore_whose_plan_is_damaged_keeps_nobody_waiting(
    project: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(stage: str, done: int, total: int | None) -> None:
        if stage == "restoring" and done == 4:
            raise KeyboardInterrupt

    def damaged(*_: object) -> None:
        raise Corrupt("A tree cannot be decompressed.")

    with mulligan.open(project, progress=end) as workspace, pytest.raises(KeyboardInterrupt):
        workspace.restore(changed)
    half = read(project)
    with monkeypatch.context() as patch:
        patch.setattr("mulligan.workspace.restore.recover.plan_between", damaged)
        with mulligan.open(project) as workspace:
            [given_up] = workspace.project.recovered
            assert given_up.state == "abandoned"
            assert "cannot be decompressed" in given_up.summary["reason"]
            assert workspace.maintenance.verify(repair=True).problems == ()
    assert read(project) == half


def test_an_interrupted_restore_that_cannot_be_finished_keeps_nobody_from_reading(
    project: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(stage: str, done: int, total: int | None) -> None:
        if stage == "restoring" and done == 4:
            raise KeyboardInterrupt

    def refuse(*_: object) -> list[bytes]:
        raise OSError(errno.EROFS, "Read-only file system")

    with mulligan.open(project, progress=end) as workspace, pytest.raises(KeyboardInterrupt):
        workspace.restore(changed)
    half = read(project)
    with monkeypatch.context() as patch:
        patch.setattr(staging_recovery, "rescue", refuse)
        with mulligan.open(project) as workspace:
            assert workspace.read(changed, "f0") == b"old f0"
            assert workspace.log()
            assert workspace.maintenance.verify().problems == ()
            assert workspace.maintenance.doctor()
            with pytest.raises(MulliganError, match=r"cannot be finished.*Read-only"):
                workspace.checkpoint()
    assert read(project) == half
    with mulligan.open(project) as workspace:
        assert [each.state for each in workspace.project.recovered] == ["applied"]
    assert read(project) == told("old")


@pytest.fixture
def poor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without exchange, and without hard links."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(rename, "_system_call", lambda: None)
    monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("poor")
def test_a_restore_works_where_there_is_neither_exchange_nor_a_second_name(
    project: Path, changed: str
) -> None:
    (project / "more").write_text("more")
    with mulligan.open(project) as workspace:
        done = workspace.restore(changed)
        assert (done.skipped, done.verified) == ((), True)
        assert read(project) == told("old")
        workspace.undo()
    assert read(project) == told("new") | {"more": "more"}


@pytest.mark.usefixtures("poor")
def test_nothing_is_overwritten_where_there_is_no_way_to_move_but_to_look_first(
    project: Path,
) -> None:
    write(project, "mine")
    fd = os.open(project, os.O_RDONLY)
    try:
        with pytest.raises(FileExistsError):
            rename.move_if_free(b"f0", fd, b"f1", fd)
    finally:
        os.close(fd)
    assert read(project) == told("mine")


@pytest.mark.usefixtures("poor")
def test_a_file_that_cannot_be_replaced_is_still_there(
    project: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = apply.move_if_free

    def failing(source: bytes, source_fd: int, target: bytes, target_fd: int) -> None:
        if source.startswith(b"w") and target == b"f3":
            raise OSError(errno.EIO, "the disk is failing")
        move(source, source_fd, target, target_fd)

    monkeypatch.setattr(apply, "move_if_free", failing)
    with mulligan.open(project) as workspace:
        done = workspace.restore(changed)
        assert [each.path for each in done.skipped] == ["f3"]
        assert not done.verified
    assert read(project) == told("old") | {"f3": "new f3"}


# Watching, forking, a full disk


def test_an_interrupt_while_events_are_taken_in_loses_none(
    project: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mulligan.open(project, watch=True) as workspace:
        workspace.checkpoint()
        assert workspace.project.prefetcher is not None
        workspace.project.prefetcher.close()
        workspace.project.prefetcher = None
        workspace.project.save_cache(now=True)
        (project / "f1").write_text("newest")
        with monkeypatch.context() as patch:
            interrupt_before(patch, Watcher, "_parse")
            with pytest.raises(KeyboardInterrupt):
                workspace.checkpoint()
        taken = workspace.checkpoint()
        assert workspace.read(taken.id, "f1") == b"newest"


def in_a_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        try:
            work()
            os._exit(0)
        except mulligan.UsageError:
            os._exit(7)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_process_cannot_write_by_way_of_its_parents_workspace(
    project: Path, changed: str
) -> None:
    def anew() -> None:
        with mulligan.open(project) as own:
            own.checkpoint("by a child")

    with mulligan.open(project) as workspace:
        assert in_a_child(lambda: workspace.checkpoint() and None) == 7
        assert in_a_child(lambda: bool(workspace.log()) and None) == 0
        assert in_a_child(workspace.close) == 0
        assert in_a_child(anew) == 0
        assert workspace.log()[0].message == "by a child"
        workspace.checkpoint()


def test_a_child_that_lives_on_does_not_hold_the_project(project: Path, changed: str) -> None:
    children = []

    def fork(stage: str, done: int, total: int | None) -> None:
        if stage == "restoring" and not children:
            children.append(os.fork())
            if not children[0]:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(60)
                while True:
                    signal.pause()

    try:
        with mulligan.open(project, progress=fork) as workspace:
            workspace.restore(changed)
        assert children
        with mulligan.open(project, wait=0) as workspace:
            workspace.checkpoint()
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_no_room_for_what_can_be_lost_does_not_make_a_failure_of_what_is_done(
    project: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with mulligan.open(project) as workspace:
        directory = Path(workspace.project.location.directory)
        with monkeypatch.context() as patch:
            patch.setattr(stat_cache.os, "replace", full)
            workspace.project.drop_cache()
            (directory / "index").unlink()
            workspace.project._saved_at = 0.0
            assert workspace.checkpoint().id
            assert workspace.restore(changed).verified
        assert not list(directory.glob("index.*tmp"))
    assert read(project) == told("old")


# Odd file systems


def test_names_that_a_file_system_keeps_for_deleted_files_are_not_rescued(project: Path) -> None:
    (project / ".nfs0001").write_text("x")
    (project / ".fuse_hidden7").write_text("x")
    fd = os.open(project, os.O_RDONLY)
    try:
        with Directories(os.fsencode(project)) as directories:
            assert staging_recovery.clear(directories, fd, [], lambda _id: iter(())) == []
    finally:
        os.close(fd)


@pytest.mark.parametrize("times", [1, 1000], ids=["by us", "by others"])
def test_a_staging_folder_in_which_something_is_still_open_does_no_harm(
    project: Path, changed: str, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    real, tries = os.rmdir, []

    def refusing(path: bytes, *, dir_fd: int | None = None) -> None:
        tries.append(path)
        if len(tries) <= times:
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        real(path, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", refusing)
        with mulligan.open(project) as workspace:
            assert workspace.restore(changed).verified
            assert len(tries) == 2
            workspace.undo()
            workspace.redo()
    left = list(project.glob(".mulligan-tmp-*"))
    assert bool(left) == (times > 1)
    for each in left:
        each.rmdir()
    assert read(project) == told("old")


def test_a_write_in_the_moment_of_the_rename_is_noticed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"as it was"
    (project / "r0").write_bytes(content)
    before = file_entry(b"", 0o644, len(content), rubbish_id(content))
    real = os.fstat

    def coarse(fd: int) -> Any:
        # The clock of this file system has not moved on.
        found = real(fd)
        return SimpleNamespace(
            st_mode=found.st_mode, st_size=found.st_size, st_mtime_ns=found.st_mtime_ns,
            st_ctime_ns=1, st_ino=found.st_ino, st_dev=found.st_dev,
        )  # fmt: skip

    parent = os.open(project, os.O_RDONLY)
    try:
        monkeypatch.setattr(displaced.os, "fstat", coarse)
        # Nor does it have leases, which would keep a program from writing to it.
        monkeypatch.setattr(leases, "HAS_LEASES", False)
        with DeferredUnlink() as freeing:
            heap = DisplacedFiles(freeing)
            change = Change(b"f", before, None)
            assert heap.accept(change, Slot(parent, b"r0")) is None
            (project / "r0").write_bytes(b"it is new")
            assert [each.change for each in heap.delete_all()] == [change]
    finally:
        monkeypatch.undo()
        os.close(parent)
    assert (project / "r0").read_bytes() == b"it is new"


def rubbish_id(content: bytes) -> bytes:
    from hashlib import sha256

    return sha256(content).digest()


@pytest.mark.parametrize("many", [False, True])
def test_a_file_of_another_size_is_read_whatever_its_times_say(project: Path, many: bool) -> None:
    """As after a power loss, which can leave a file empty that was just written."""
    write(project, "old")
    if many:
        for number in range(3000):
            (project / f"more {number}").write_text(f"{number}")
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        root = workspace.project.cache().root
        assert root is not None
        kind, mode, size, modified, at, inode, _id = root.files[b"f0"]
        root.files[b"f0"] = (kind, mode, size + 1, modified, at, inode, root.files[b"f1"][6])
        root.changed(b"f0")
        taken = workspace.checkpoint()
        assert workspace.read(taken.id, "f0") == b"old f0"
