"""Reading with other processes: the same answers as without, whatever becomes of them."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan.errors import OutOfSpace
from mulligan.store.writer import Writer
from mulligan.workspace.snapshot import hash_workers
from mulligan.worktree.scan import fork, reader

FILES = 300


@pytest.fixture(params=["forked", "begun"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Forked before anything is known, or begun when there is work."""
    if request.param == "forked" and sys.platform != "linux":
        pytest.skip("no child elsewhere")
    monkeypatch.setattr(reader, "can_fork", lambda: request.param == "forked")
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(reader, "MIN_BYTES_FOR_WORKERS", 1)
    monkeypatch.setattr(reader, "READ_THREADS", 2)
    monkeypatch.setattr(reader, "BATCH_FILES", 16)
    root = tmp_path / "project"
    for number in range(FILES):
        folder = root / f"folder {number % 7}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file {number}").write_bytes(b"line %d\n" % number * (number + 1))
    (root / "empty").touch()
    (root / "random").write_bytes(os.urandom(5000))
    (root / "large").write_bytes(os.urandom(3 << 20))
    (root / ".gitignore").write_text("*.secret\n")
    (root / "a.secret").write_text("guarded")
    return root


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were given work."""
    found: list[int] = []
    say = hash_workers.Worker.send

    def noted(self: hash_workers.Worker, message: Any) -> None:
        if isinstance(message, list):
            found.append(self.pid)
        say(self, message)

    monkeypatch.setattr(hash_workers.Worker, "send", noted)
    return found


def everything(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def kept(root: Path) -> tuple[str, dict[str, bytes]]:
    with mulligan.open(root) as workspace:
        checkpoint = workspace.checkpoint()
        assert workspace.maintenance.verify().problems == ()
        files = [each for each in workspace.entries(checkpoint.id) if each.kind == "file"]
        return checkpoint.tree, {
            each.path: workspace.read(checkpoint.id, each.path) for each in files
        }


def assert_gone(processes: Iterable[int]) -> None:
    for pid in processes:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def test_what_others_read_is_kept_to_the_byte_and_they_are_gone_afterwards(
    project: Path, way: str, busy: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    start = hash_workers.HashWorkers._begin_one
    monkeypatch.setattr(
        hash_workers.HashWorkers, "_begin_one", lambda self: started.append(1) or start(self)
    )
    tree, files = kept(project)
    assert len(set(busy)) == 2
    assert bool(started) == (way == "begun")
    assert_gone(busy)
    assert files == everything(project)
    monkeypatch.setattr(reader, "MIN_BYTES_FOR_WORKERS", 1 << 40)
    monkeypatch.setattr(reader, "can_fork", lambda: False)
    monkeypatch.setenv("MULLIGAN_HOME", str(project.parent / "another home"))
    assert kept(project)[0] == tree


def test_of_a_new_project_they_read_while_the_rest_is_listed(
    project: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    give, finish = hash_workers.HashWorkers.submit, reader.FileReader.finish

    def giving(self: hash_workers.HashWorkers, batch: Any) -> bool:
        order.append("give")
        return give(self, batch)

    def finishing(self: reader.FileReader) -> Any:
        order.append("finish")
        return finish(self)

    monkeypatch.setattr(hash_workers.HashWorkers, "submit", giving)
    monkeypatch.setattr(reader.FileReader, "finish", finishing)
    assert kept(project)[1] == everything(project)
    assert order[0] == ("give" if way == "forked" else "finish")


@pytest.mark.parametrize("count", [15, 16, 17, 31, 32, 33, 64])
def test_any_number_of_files_comes_to_its_end(tmp_path: Path, project: Path, count: int) -> None:
    root = tmp_path / "another"
    root.mkdir()
    for number in range(count):
        (root / f"{number}").write_text(f"file {number}")
    assert kept(root)[1] == everything(root)


@pytest.mark.parametrize("ahead", [1, 6])
def test_one_that_is_killed_leaves_its_files_to_us(
    project: Path, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    monkeypatch.setattr(hash_workers, "QUEUE_DEPTH", ahead)
    take = hash_workers.HashWorkers.poll
    deaths = []

    def killing(self: hash_workers.HashWorkers, *, wait: bool) -> Any:
        found = take(self, wait=wait)
        if found and not deaths:
            deaths.append(self._workers[0].pid)
            os.kill(deaths[0], signal.SIGKILL)
        return found

    monkeypatch.setattr(hash_workers.HashWorkers, "poll", killing)
    assert kept(project)[1] == everything(project)
    assert_gone(deaths)
    assert deaths


def test_when_all_are_killed_we_read_the_rest(
    project: Path, busy: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    take = hash_workers.HashWorkers.poll

    def killing(self: hash_workers.HashWorkers, *, wait: bool) -> Any:
        for hand in self._workers:
            os.kill(hand.pid, signal.SIGKILL)
        return take(self, wait=wait)

    monkeypatch.setattr(hash_workers.HashWorkers, "poll", killing)
    assert kept(project)[1] == everything(project)
    assert_gone(busy)


def test_a_death_is_noticed_though_somebody_else_holds_the_pipe(
    project: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "begun":
        pytest.skip("to begin one needs a pipe, too")
    take = hash_workers.HashWorkers.poll
    held: list[int] = []
    pipe = os.pipe

    def kept_open() -> tuple[int, int]:
        ends = pipe()
        held.append(os.dup(ends[1]))
        return ends

    def killing(self: hash_workers.HashWorkers, *, wait: bool) -> Any:
        for hand in self._workers:
            os.kill(hand.pid, signal.SIGKILL)
        return take(self, wait=wait)

    monkeypatch.setattr(hash_workers, "REPLY_TIMEOUT_MS", 100)
    monkeypatch.setattr(hash_workers.os, "pipe", kept_open)
    monkeypatch.setattr(hash_workers.HashWorkers, "poll", killing)
    try:
        assert kept(project)[1] == everything(project)
    finally:
        for fd in held:
            os.close(fd)


def test_what_one_says_when_it_dies_in_the_middle_does_not_count(
    project: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "begun":
        pytest.skip("it would have to be told")
    framed = hash_workers._framed
    parent = os.getpid()

    def torn(message: Any, records: Any = ()) -> bytes:
        data = framed(message, records)
        if os.getpid() == parent:
            return data
        os.write(next(iter(replies())), data[: len(data) * 2 // 3])
        os._exit(1)

    def replies() -> Iterator[int]:
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2:
                try:
                    os.write(fd, b"")
                except OSError:
                    continue
                yield fd

    monkeypatch.setattr(hash_workers, "_framed", torn)
    assert kept(project)[1] == everything(project)


def test_what_many_files_hold_is_stored_once(project: Path) -> None:
    for number in range(200):
        (project / f"copy {number}").write_bytes(bytes(range(256)) * 80)
    with mulligan.open(project) as workspace:
        checkpoint = workspace.checkpoint()
        count, stored = workspace.project.store.index.count()
        packs = sum(each.stat().st_size for each in project.parent.rglob("*.pack"))
        assert packs - stored < (count + 1) * 100
        assert workspace.read(checkpoint.id, "copy 199") == bytes(range(256)) * 80


def test_what_is_stored_is_not_stored_again_when_the_cache_is_lost(
    project: Path, busy: list[int]
) -> None:
    tree, _files = kept(project)
    packs = {each: each.stat().st_size for each in project.parent.rglob("*.pack")}
    next(project.parent.glob("home/projects/*/index")).unlink()
    (project / "folder 1" / "new").write_text("new")
    busy.clear()
    assert kept(project)[0] != tree
    assert busy
    grown = {each: each.stat().st_size for each in project.parent.rglob("*.pack")}
    assert sum(grown.values()) - sum(packs.values()) < 5000
    assert kept(project)[1] == everything(project)


def test_many_bytes_are_said_in_parts_and_through_narrow_pipes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    pipe = os.pipe

    def narrow() -> tuple[int, int]:
        ends = pipe()
        fcntl.fcntl(ends[0], fcntl.F_SETPIPE_SZ, 4096)
        return ends

    for number in range(100):
        (project / f"{'long ' * 40}{number}").write_bytes(os.urandom(40_000))
    monkeypatch.setattr(hash_workers, "MIN_REPLY_BYTES", 1 << 16)
    monkeypatch.setattr(hash_workers, "PIPE_BYTES", 4096)
    monkeypatch.setattr(hash_workers.os, "pipe", narrow)
    assert kept(project)[1] == everything(project)


def test_when_what_they_read_cannot_be_stored_they_are_gone_and_nothing_is_believed(
    project: Path, busy: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Writer.put_framed
    count = iter(range(100))

    def full(self: Writer, listed: Any, records: bytes) -> None:
        if next(count) == 3:
            raise OutOfSpace("full")
        put(self, listed, records)

    monkeypatch.setattr(Writer, "put_framed", full)
    with mulligan.open(project) as workspace, pytest.raises(OutOfSpace):
        workspace.checkpoint()
    assert_gone(busy)
    monkeypatch.setattr(Writer, "put_framed", put)
    assert kept(project)[1] == everything(project)


@pytest.mark.parametrize("executable", ["/nowhere/python3", "/usr/bin/blender", None])
def test_without_a_python_to_start_everything_is_read_here(
    project: Path, monkeypatch: pytest.MonkeyPatch, executable: str | None
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert kept(project)[1] == everything(project)


def test_what_cannot_be_read_is_named_as_ever(project: Path) -> None:
    hidden = project / "folder 1" / "file 1"
    hidden.unlink()
    os.mkfifo(hidden)
    gone = project / "folder 2" / "file 2"
    gone.unlink()
    gone.symlink_to("/etc/passwd")
    os.truncate(project / "large", 101 << 20)
    with mulligan.open(project) as workspace:
        checkpoint = workspace.checkpoint()
        assert [(each.path, each.reason) for each in checkpoint.coverage.skipped] == [
            (b"folder 1/file 1", "is a named pipe"),
            (b"large", "is larger than the limit: 101.0 MB, and the limit is 100.0 MB"),
        ]
        assert workspace.read(checkpoint.id, "folder 2/file 2") == b"/etc/passwd"


def test_what_may_not_even_be_looked_at_is_named_as_it_is_without_others(
    project: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "begun":
        pytest.skip("it would have to be told")
    hidden = b"file 1"
    opened, looked = os.open, os.stat

    def open_(path: Any, *given: Any, **more: Any) -> int:
        if path == hidden:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *given, **more)

    def stat(path: Any, *given: Any, **more: Any) -> os.stat_result:
        if path == hidden:
            raise PermissionError(errno.EACCES, "Permission denied")
        return looked(path, *given, **more)

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "stat", stat)
    reasons = []
    with mulligan.open(project) as workspace:
        for _ in range(2):
            skipped = workspace.checkpoint().coverage.skipped
            reasons.append([(each.path, each.reason) for each in skipped])
    expected = [(b"folder 1/file 1", "cannot be accessed: Permission denied")]
    assert reasons == [expected, expected]


def test_a_file_that_has_grown_large_meanwhile_is_read_by_us(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = project / "folder 3" / "file 3"
    give = hash_workers.HashWorkers.submit

    def grow(self: hash_workers.HashWorkers, batch: Any) -> bool:
        if any(job.name == b"file 3" for job in batch):
            growing.write_bytes(os.urandom(2 << 20))
        return give(self, batch)

    monkeypatch.setattr(hash_workers.HashWorkers, "submit", grow)
    assert kept(project)[1] == everything(project)


def test_those_that_were_not_needed_are_sent_away(
    project: Path, way: str, busy: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    forked: list[int] = []
    real = fork._fork

    def noted(work: Callable[[], None], keep: Collection[int]) -> int | None:
        pid = real(work, keep)
        if pid is not None:
            forked.append(pid)
        return pid

    monkeypatch.setattr(fork, "_fork", noted)
    monkeypatch.setattr(reader, "MIN_BYTES_FOR_WORKERS", 1 << 40)
    monkeypatch.setattr(reader, "BATCH_FILES", 1 << 20)
    descriptors = len(os.listdir("/proc/self/fd"))
    assert kept(project)[1] == everything(project)
    assert not busy
    assert len(forked) == (2 if way == "forked" else 0)
    assert_gone(forked)
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_without_room_for_any_everything_is_read_all_the_same(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork, "_fork", lambda work, keep: None)
    assert kept(project)[1] == everything(project)


def test_where_descriptors_are_few_none_is_taken_away_and_none_leaks(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipes = []
    pipe = os.pipe

    def few() -> tuple[int, int]:
        if len(pipes) >= 3:
            raise OSError(errno.EMFILE, "too many open files")
        pipes.append(pipe())
        return pipes[-1]

    descriptors = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(hash_workers.os, "pipe", few)
    assert kept(project)[1] == everything(project)
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("way", ["forked"], indirect=True)
def test_a_scan_leaves_the_interpreters_garbage_collector_and_switch_interval_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is its user's: a library must not tune it."""
    before = (gc.isenabled(), gc.get_threshold(), sys.getswitchinterval())
    seen: list[tuple[object, ...]] = []
    put_framed = Writer.put_framed

    def noting(self: Writer, *given: Any) -> None:
        seen.append((gc.isenabled(), gc.get_threshold(), sys.getswitchinterval()))
        put_framed(self, *given)

    monkeypatch.setattr(Writer, "put_framed", noting)
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
    assert seen and set(seen) == {before}
