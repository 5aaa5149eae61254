"""Reading with other processes: the same answers as without, whatever becomes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan.files import contents
from mulligan.workspace import hands

FILES = 300


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(contents, "MUCH", 1)
    monkeypatch.setattr(contents, "WORKERS", 2)
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
def begun(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that were started."""
    found: list[subprocess.Popen[bytes]] = []
    begin = hands.Hands._begin

    def noted(self: hands.Hands) -> subprocess.Popen[bytes]:
        found.append(begin(self))
        return found[-1]

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
    project: Path, begun: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, files = kept(project)
    assert begun
    assert all(process.poll() is not None for process in begun)
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
        os.kill(self._own.process.pid, signal.SIGKILL)
        deaths.append(self._own.process.pid)
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
