"""What goes wrong between the files, the store and what is remembered of them: nothing is lost."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan import Workspace
from mulligan.errors import MulliganError, OutOfSpace
from mulligan.journal import operations
from mulligan.store.packs import Record, pack_name
from mulligan.store.writer import Writer
from mulligan.workspace.restore import finish, run
from mulligan.workspace.restore.run import finish_operation
from mulligan.worktree.fs import deferred_unlink, sync
from mulligan.worktree.fs.sync import BackgroundSync


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    found = tmp_path / "project"
    (found / "src").mkdir(parents=True)
    (found / "src" / "app.py").write_text("one\n")
    return found


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with mulligan.open(root) as found:
        yield found


def settle() -> None:
    """Lets so much time pass that the stat cache trusts what it has seen."""
    time.sleep(0.08)


def damage(workspace: Workspace, record: Record) -> None:
    with open(
        os.path.join(workspace.project.store.directory, pack_name(record.pack)), "r+b"
    ) as pack:
        pack.seek(record.offset + record.stored // 2)
        pack.write(b"damaged")


def killed(script: str, *given: object) -> None:
    """Runs a script in another process, which is to kill itself."""
    code = "import os, sys, mulligan\n" + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", code, *map(str, given)], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("watch", [False, True])
def test_after_a_full_disk_a_checkpoint_has_the_bytes(
    root: Path, monkeypatch: pytest.MonkeyPatch, watch: bool
) -> None:
    def full(writer: Writer) -> None:
        raise OutOfSpace("No space left.")

    with mulligan.open(root, watch=watch) as workspace:
        workspace.checkpoint()
        with monkeypatch.context() as context:
            context.setattr(Writer, "_sync", full)
            (root / "new").mkdir()
            (root / "new" / "file").write_bytes(content := os.urandom(3000))
            settle()
            for _ in range(2):
                with pytest.raises(OutOfSpace):
                    workspace.checkpoint()
        taken = workspace.checkpoint()
        assert workspace.read(taken.id, "new/file") == content
        assert workspace.maintenance.verify().problems == ()


def test_after_a_kill_in_gc_what_only_the_cache_knew_is_stored_anew(
    workspace: Workspace, root: Path
) -> None:
    workspace.checkpoint()
    (root / "new").mkdir()
    (root / "new" / "file").write_bytes(content := os.urandom(3000))
    settle()
    workspace.status()
    assert workspace.project.store.has(sha256(content).digest())
    killed(
        """
        from mulligan.store.index import PackIndex
        def purge(index):
            if index.summary().pending_delete:
                os.kill(os.getpid(), 9)
        PackIndex.purge = purge
        with mulligan.open(sys.argv[1]) as workspace:
            workspace.maintenance.gc()
        """,
        root,
    )
    taken = workspace.checkpoint()
    assert workspace.read(taken.id, "new/file") == content
    assert workspace.maintenance.verify().problems == ()


@pytest.mark.parametrize("watch", [False, True])
def test_a_folder_that_a_sandbox_could_have_made_counts_once_something_is_in_it(
    root: Path, watch: bool
) -> None:
    (root / ".codex").mkdir()
    settle()
    with mulligan.open(root, watch=watch) as workspace:
        for _ in range(2):
            taken = workspace.checkpoint()
            settle()
        assert not [each for each in workspace.entries(taken.id) if each.path == ".codex"]
        (root / ".codex" / "config.toml").write_text("mine\n")
        taken = workspace.checkpoint()
        assert workspace.read(taken.id, ".codex/config.toml") == b"mine\n"
        (root / ".codex" / "config.toml").unlink()
        taken = workspace.checkpoint()
        assert not [each for each in workspace.entries(taken.id) if ".codex" in each.path]


def test_what_an_interrupted_restore_had_not_read_back_is_read_back_before_it_goes_on(
    workspace: Workspace, root: Path
) -> None:
    (root / "other").write_text("one\n")
    first = workspace.checkpoint()
    (root / "src" / "app.py").write_bytes(content := os.urandom(3000))
    (root / "other").write_text("two\n")
    second = workspace.checkpoint()
    settle()
    workspace.checkpoint()
    damage(workspace, workspace.project.store.locate(sha256(content).digest()))
    killed(
        """
        from mulligan.workspace.restore import run
        run._read_back = lambda *given: os.kill(os.getpid(), 9)
        with mulligan.open(sys.argv[1]) as workspace:
            workspace.restore(sys.argv[2])
        """,
        root,
        first.id,
    )
    # So it looks as if the restore had begun.
    (root / "other").write_text("one\n")
    with mulligan.open(root) as again:
        assert [each.state for each in again.project.recovered] == ["applied"]
        assert (root / "other").read_text() == "one\n"
        assert again.read(second.id, "src/app.py") == content
        assert again.maintenance.verify().problems == ()


def test_trees_that_are_only_in_memory_are_stored_anew_before_a_restore(
    workspace: Workspace, root: Path
) -> None:
    for number in range(30):
        (root / "src" / f"{number}").write_text(f"{number}\n")
    first = workspace.checkpoint()
    (root / "src" / "new").write_text("new\n")
    settle()
    second = workspace.checkpoint()
    for each in (first, second):
        folder = workspace.project.load(bytes.fromhex(each.tree)).get(b"src")
        assert folder is not None
        damage(workspace, workspace.project.store.locate(folder.id))
    assert workspace.restore(first.id).deleted == ("src/new",)
    with mulligan.open(root) as again:
        assert again.undo().restored == ("src/new",)
        assert again.maintenance.verify().problems == ()


def test_a_disk_that_is_full_once_the_files_are_changed_is_told_of_as_that(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = workspace.checkpoint()
    (root / "src" / "app.py").write_text("two\n")

    def full(*_given: object, **_named: object) -> None:
        raise OutOfSpace("No space left; nothing was changed.")

    with monkeypatch.context() as context:
        context.setattr(run, "finish_operation", full)
        with pytest.raises(OutOfSpace, match="The files are changed"):
            workspace.restore(first.id)
    assert run.finish_operation is finish_operation
    assert workspace.undo().restored == ("src/app.py",)
    assert (root / "src" / "app.py").read_text() == "two\n"


@pytest.mark.parametrize("size", [9000, 3 << 20])
def test_what_built_on_something_damaged_is_stored_anew_by_a_repair(
    workspace: Workspace, root: Path, size: int
) -> None:
    before = os.urandom(size)
    after = b"!" + before[1:]
    (root / "file").write_bytes(before)
    workspace.checkpoint()
    (root / "file").write_bytes(after)
    settle()
    workspace.checkpoint()
    settle()
    taken = workspace.checkpoint()
    store = workspace.project.store
    record = store.locate(sha256(before).digest())
    # Of a large file, a chunk that both have.
    damage(workspace, store.locate(store.chunks(record)[-1][0]) if size > 9000 else record)
    assert workspace.maintenance.verify(repair=True).repaired == 1
    assert workspace.read(taken.id, "file") == after
    assert workspace.read(workspace.checkpoint().id, "file") == after


def test_a_damaged_chunk_that_an_edited_file_shares_is_stored_anew_before_the_file_goes(
    root: Path, workspace: Workspace
) -> None:
    before = workspace.checkpoint()
    (root / "big").write_bytes(content := os.urandom(4 << 20))
    settle()
    workspace.checkpoint()
    record = workspace.project.store.locate(sha256(content).digest())
    chunk, _length = workspace.project.store.chunks(record)[3]
    damage(workspace, workspace.project.store.locate(chunk))
    edited = content[:-10] + b"0123456789"
    (root / "big").write_bytes(edited)
    settle()
    workspace.restore(before.id)
    assert not (root / "big").exists()
    workspace.undo()
    assert (root / "big").read_bytes() == edited
    assert workspace.maintenance.verify().problems == ()


def test_what_was_repaired_meanwhile_is_found_where_it_is_now(root: Path) -> None:
    with mulligan.open(root) as workspace, mulligan.open(root) as other:
        first = workspace.checkpoint()
        (root / "big").write_bytes(content := os.urandom(3 << 20))
        settle()
        second = workspace.checkpoint()
        workspace.restore(first.id)
        workspace.restore(second.id)
        record = workspace.project.store.locate(sha256(content).digest())
        damage(workspace, record)
        assert other.maintenance.verify(repair=True).problems
        other.checkpoint()
        assert other.maintenance.verify().problems == ()
        assert workspace.read(second.id, "big") == content


@pytest.mark.parametrize("limit", range(12, 40, 3))
def test_with_too_few_descriptors_nothing_is_taken_for_gone(
    root: Path, tmp_path: Path, limit: int
) -> None:
    script = """
        import resource
        from pathlib import Path
        root = Path(sys.argv[1])
        with mulligan.open(root) as workspace:
            resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), 4096))
            try:
                print(workspace.checkpoint().files)
                print(len(workspace.restore(sys.argv[3]).skipped))
            except OSError as problem:
                print(problem.errno)
            except mulligan.MulliganError as problem:
                print(type(problem).__name__)
    """
    for number in range(100):
        (root / f"d{number % 9}").mkdir(exist_ok=True)
        (root / f"d{number % 9}" / f"f{number}").write_text(f"first {number}")
    with mulligan.open(root) as workspace:
        first = workspace.checkpoint()
        for path in sorted(root.glob("d*/f*")):
            path.write_text("second, " + path.name)
    code = "import os, sys, mulligan\n" + textwrap.dedent(script)
    subprocess.run(
        [sys.executable, "-c", code, str(root), str(limit), first.id], check=True, timeout=60
    )
    with mulligan.open(root) as workspace:
        for each in workspace.log():
            assert each.files == 101
        contents = {path.read_text()[:5] for path in root.glob("d*/f*")}
        assert contents in ({"first"}, {"secon"})
        assert not list(root.glob(".mulligan-tmp-*"))
        assert workspace.maintenance.verify().problems == ()


@pytest.mark.parametrize("count", [2, 40])
def test_a_restore_is_marked_only_once_its_files_are_there_for_good(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    for number in range(count):
        folder = root / f"d{number}"
        folder.mkdir()
        (folder / "x").write_text("one\n")
    target = workspace.checkpoint().id
    for number in range(count):
        (root / f"d{number}" / "x").write_text("two, longer\n")
    happened: list[str] = []
    sync_all, fsync, finish = BackgroundSync._sync, os.fsync, operations.finish

    def syncing(self: BackgroundSync) -> None:
        time.sleep(0.05)
        sync_all(self)
        if self._descriptors:
            happened.append("synced")

    def syncing_one(fd: int) -> None:
        fsync(fd)
        if os.readlink(f"/proc/self/fd/{fd}").startswith(str(root)):
            happened.append("synced")

    def marking(*given: Any, **more: Any) -> None:
        happened.append("marked")
        finish(*given, **more)

    monkeypatch.setattr(BackgroundSync, "_sync", syncing)
    monkeypatch.setattr(os, "fsync", syncing_one)
    monkeypatch.setattr(operations, "finish", marking)
    assert workspace.restore(target).verified
    assert happened.count("marked") == 1
    assert happened.count("synced") >= 2
    assert happened[-1] == "marked"


@pytest.mark.parametrize("count", [2, 40])
def test_a_disk_that_fails_at_the_end_of_a_restore_leaves_it_to_be_completed(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    for number in range(count):
        (root / f"d{number}").mkdir()
        (root / f"d{number}" / "x").write_text("one\n")
    target = workspace.checkpoint().id
    for number in range(count):
        (root / f"d{number}" / "x").write_text("two, longer\n")
    fsync = os.fsync

    def failing(fd: int) -> None:
        if os.readlink(f"/proc/self/fd/{fd}") == str(root / "d1"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(fd)

    with monkeypatch.context() as patched:
        patched.setattr(sync, "sync_file_system", lambda fd: False)
        patched.setattr(os, "fsync", failing)
        with pytest.raises(MulliganError, match="the disk did not take all of it"):
            workspace.restore(target)
        assert workspace.operations()[0].state == "planned"
    workspace.checkpoint()
    assert [each.kind for each in workspace.operations()[:2]] == ["checkpoint", "restore"]
    assert workspace.operations()[1].state == "applied"
    workspace.undo()
    assert (root / "d0" / "x").read_text() == "two, longer\n"
    assert workspace.maintenance.verify().problems == ()


@pytest.mark.parametrize("problem", [errno.EINVAL, errno.ENOTSUP])
def test_where_folders_cannot_be_synced_a_restore_goes_through(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, problem: int
) -> None:
    (root / "x").write_text("one\n")
    target = workspace.checkpoint().id
    (root / "x").write_text("two, longer\n")
    fsync = os.fsync

    def failing(fd: int) -> None:
        if os.readlink(f"/proc/self/fd/{fd}") == str(root):
            raise OSError(problem, os.strerror(problem))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing)
    assert workspace.restore(target).verified
    assert workspace.operations()[0].state == "applied"


def test_what_fails_before_the_mark_leaves_nothing_open(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (root / f"d{number}").mkdir()
        (root / f"d{number}" / "x").write_text("one\n")
    target = workspace.checkpoint().id
    for number in range(20):
        (root / f"d{number}" / "x").write_text("two, longer\n")

    def fail(*given: Any) -> None:
        raise RuntimeError("it fails")

    with monkeypatch.context() as patched:
        patched.setattr(finish, "coverage", fail)
        with pytest.raises(RuntimeError, match="it fails"):
            workspace.restore(target)
    deferred_unlink.finish()
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    held = [os.readlink(link) for link in links if os.path.lexists(link)]
    assert not [path for path in held if path.startswith(str(root))]
    # It was done, and the next to come says so.
    assert workspace.status().changed_files == ()
    assert workspace.operations()[0].kind == "restore"
