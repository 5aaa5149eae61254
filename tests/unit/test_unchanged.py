"""With a watcher and no event, a scan opens no file but checks all else it depends on."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mulligan
from mulligan import Workspace
from mulligan.worktree.scan import scanner
from mulligan.worktree.scan.scanner import Scanner


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "user"
    (found / ".config" / "git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(found))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    return found


@pytest.fixture
def root(tmp_path: Path, home: Path) -> Path:
    found = tmp_path / "project"
    found.mkdir()
    subprocess.run(["git", "init", "-q", found], check=True)
    for name in ("app.py", "notes.txt", "data.tmp"):
        (found / name).write_text(name)
    (found / ".gitignore").write_text("*.tmp\n")
    return found


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with mulligan.open(root, watch=True) as found:
        found.checkpoint()
        yield found


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Grows with each full scan."""
    found: list[bool] = []
    original = Scanner.scan_all

    def noted(self: Scanner) -> None:
        found.append(True)
        original(self)

    monkeypatch.setattr(scanner.Scanner, "scan_all", noted)
    return found


def test_nothing_is_opened_where_nothing_happened(
    workspace: Workspace, full: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = workspace.checkpoint()

    def refuse(path: bytes) -> None:
        raise AssertionError(f"{path!r} was opened")

    monkeypatch.setattr(scanner, "open_root", refuse)
    second = workspace.checkpoint()
    assert (second.tree, second.coverage) == (first.tree, first.coverage)
    assert not full


CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "the user's excludes": lambda root, home: (home / ".config" / "git" / "ignore").write_text(
        "notes.txt\n"
    ),
    "the user's configuration": lambda root, home: (
        (home / "others").write_text("notes.txt\n"),
        (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/others\n"),
    ),
    "the excludes of the repository": lambda root, home: (
        root / ".git" / "info" / "exclude"
    ).write_text("notes.txt\n"),
    "what git tracks": lambda root, home: subprocess.run(
        ["git", "add", "-f", "data.tmp"], cwd=root, check=True
    ),
    "settings": lambda root, home: (root.parent / "home" / "config.toml").write_text(
        "[checkpoints]\nmax_file_size = 7\n"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_else_counts_is_noticed(
    workspace: Workspace, root: Path, home: Path, change: str
) -> None:
    before = workspace.checkpoint()
    CHANGES[change](root, home)
    taken = workspace.checkpoint()
    assert taken.tree != before.tree
    with mulligan.open(root) as other:
        assert other.checkpoint().tree == taken.tree


def test_what_was_asked_for_is_taken_in(workspace: Workspace) -> None:
    before = workspace.checkpoint()
    taken = workspace.checkpoint(include=["data.tmp"])
    assert taken.tree != before.tree
    assert workspace.read(taken.id, "data.tmp") == b"data.tmp"


def test_the_coverage_is_stored_again_where_it_was_removed(workspace: Workspace) -> None:
    before = workspace.checkpoint()
    row = workspace.project.journal.row("SELECT coverage FROM checkpoints WHERE id = ?", before.id)
    workspace.project.store.index.drop([row[0]])
    workspace.checkpoint()
    assert workspace.project.store.has(row[0])
