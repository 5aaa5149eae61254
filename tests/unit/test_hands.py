"""Reading with other processes: the same answers as without, whatever becomes of them."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan.files import contents, forking
from mulligan.workspace import hands

FILES = 300


@pytest.fixture(params=["forked", "begun"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Forked before anything is known, or begun when there is work."""
    if request.param == "forked" and sys.platform != "linux":
        pytest.skip("no child elsewhere")
    monkeypatch.setattr(contents, "can_fork", lambda: request.param == "forked")
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(contents, "MUCH", 1)
    monkeypatch.setattr(contents, "WORKERS", 2)
    monkeypatch.setattr(contents, "HANDS", 3)
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
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were given work."""
    found: list[int] = []
    begin = hands.Hands._begin

    def noted(self: hands.Hands) -> hands.Hand:
        hand = begin(self)
        found.append(hand.pid)
        return hand

    monkeypatch.setattr(hands.Hands, "_begin", noted)
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
        assert workspace.verify().problems == ()
        files = [each for each in workspace.entries(checkpoint.id) if each.kind == "file"]
        return checkpoint.tree, {
            each.path: workspace.read(checkpoint.id, each.path) for each in files
        }


def test_what_others_read_is_kept_to_the_byte_and_they_are_gone_afterwards(
    project: Path, way: str, begun: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    start = hands.Hands._start_one
    monkeypatch.setattr(hands.Hands, "_start_one", lambda self: started.append(1) or start(self))
    tree, files = kept(project)
    assert begun
    assert bool(started) == (way == "begun")
    for pid in begun:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    assert files == everything(project)
    monkeypatch.setattr(contents, "MUCH", 1 << 40)
    monkeypatch.setenv("MULLIGAN_HOME", str(project.parent / "another home"))
    assert kept(project)[0] == tree


def test_one_that_is_killed_leaves_its_files_to_us(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = hands.Hands.read
    deaths = []

    def dying(self: hands.Hands, batch: Any) -> Any:
        found = read(self, batch)
        os.kill(self._own.hand.pid, signal.SIGKILL)
        deaths.append(self._own.hand.pid)
        return found

    monkeypatch.setattr(hands.Hands, "read", dying)
    assert kept(project)[1] == everything(project)
    assert len(deaths) > len(set(deaths)) > 0


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
    with mulligan.open(project) as workspace:
        checkpoint = workspace.checkpoint()
        assert [(each.path, each.reason) for each in checkpoint.coverage.skipped] == [
            (b"folder 1/file 1", "is a named pipe")
        ]
        assert workspace.read(checkpoint.id, "folder 2/file 2") == b"/etc/passwd"


def test_a_file_that_has_grown_large_meanwhile_is_read_by_us(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = project / "folder 3" / "file 3"
    read = hands.Hands.read

    def grow(self: hands.Hands, batch: Any) -> Any:
        if any(job.name == b"file 3" for job in batch):
            growing.write_bytes(os.urandom(2 << 20))
        return read(self, batch)

    monkeypatch.setattr(hands.Hands, "read", grow)
    assert kept(project)[1] == everything(project)


def test_those_that_were_not_needed_are_sent_away(
    project: Path, way: str, begun: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    forked: list[int] = []
    fork = forking._fork

    def noted(work: Callable[[], None], keep: Collection[int]) -> int | None:
        pid = fork(work, keep)
        if pid is not None:
            forked.append(pid)
        return pid

    monkeypatch.setattr(forking, "_fork", noted)
    monkeypatch.setattr(contents, "MUCH", 1 << 40)
    descriptors = len(os.listdir("/proc/self/fd"))
    assert kept(project)[1] == everything(project)
    assert not begun
    assert len(forked) == (3 if way == "forked" else 0)
    for pid in forked:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_without_room_for_any_everything_is_read_all_the_same(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "_fork", lambda work, keep: None)
    assert kept(project)[1] == everything(project)


def test_where_descriptors_are_few_none_is_taken_away_and_none_leaks(
    project: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipes = []
    pipe = os.pipe

    def few() -> tuple[int, int]:
        if len(pipes) >= 3:
            raise OSError(errno.EMFILE, "too many open files")
        pipes.append(pipe())
        return pipes[-1]

    descriptors = len(os.listdir("/proc/self/fd"))
    if way == "forked":
        monkeypatch.setattr(hands.os, "pipe", few)
    assert kept(project)[1] == everything(project)
    assert len(os.listdir("/proc/self/fd")) == descriptors
