"""Default excludes are explained, and the user's ignore file is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import mulligan
from mulligan.errors import UsageError, WouldLoseWork
from mulligan.workspace.excludes import NOTES, excludes, write_excludes
from mulligan.worktree.ignore.scope import DEFAULT_EXCLUDES


def fill(project: Path) -> None:
    single = ("a.log", "src/b.log", "src/c.pyc")
    for name in (*single, "node_modules/a/index.js", "node_modules/b.js", "dist/x", "src/main.py"):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_every_default_exclude_is_explained_once() -> None:
    explained = [pattern for patterns in NOTES.values() for pattern in patterns]
    assert sorted(explained) == sorted(DEFAULT_EXCLUDES)


def test_each_default_says_how_much_it_leaves_out(project: Path) -> None:
    fill(project)
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        found = excludes(workspace.project)
    by_pattern = {each.pattern: each for each in found.defaults}
    assert by_pattern["node_modules/"].files == 2
    assert by_pattern["dist/"].files == 1
    assert by_pattern["target/"].files == 0
    assert by_pattern["*.log"].files == 2
    assert by_pattern["*.pyc"].files == 1
    assert found.single_files == 0
    assert found.text == "" and found.version is None
    assert all(each.left_out for each in found.defaults)


def test_without_the_stat_cache_single_files_are_counted_together(project: Path) -> None:
    fill(project)
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        os.unlink(workspace.project.location.path("index"))
        found = excludes(workspace.project)
    by_pattern = {each.pattern: each.files for each in found.defaults}
    assert by_pattern["node_modules/"] == 2
    assert by_pattern["*.log"] == 0
    assert found.single_files == 3


def test_a_default_that_is_taken_back_is_in_the_next_checkpoint(project: Path) -> None:
    fill(project)
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        done = write_excludes(workspace.project, "!node_modules/\n", None)
        assert done.restored == (".mulliganignore",)
        by_pattern = {each.pattern: each.left_out for each in excludes(workspace.project).defaults}
        assert by_pattern["node_modules/"] is False
        assert by_pattern["dist/"] is True
        held = {each.path for each in workspace.entries(workspace.checkpoint().id)}
        assert "node_modules/b.js" in held
        assert "dist/x" not in held
        assert workspace.maintenance.verify().clean


def test_what_the_file_held_is_stored_first_and_one_undo_brings_it_back(project: Path) -> None:
    file = project / ".mulliganignore"
    file.write_bytes(b"# mine, and in no checkpoint\r\n*.caf\xe9\n")
    file.chmod(0o600)
    before = file.read_bytes()
    with mulligan.open(project) as workspace:
        found = excludes(workspace.project)
        write_excludes(workspace.project, found.text + "secret/\n", found.version)
        assert file.read_bytes() == before + b"secret/\n"
        assert file.stat().st_mode & 0o777 == 0o600
        now = excludes(workspace.project)
        write_excludes(workspace.project, "", now.version)
        assert not file.exists()
        workspace.undo()
        workspace.undo()
        assert file.read_bytes() == before
        assert workspace.maintenance.verify().clean


def test_a_file_that_was_changed_meanwhile_is_left_alone(project: Path) -> None:
    file = project / ".mulliganignore"
    file.write_text("one/\n")
    with mulligan.open(project) as workspace:
        version = excludes(workspace.project).version
        file.write_text("two/\n")
        with pytest.raises(WouldLoseWork, match="changed meanwhile"):
            write_excludes(workspace.project, "three/\n", version)
        with pytest.raises(WouldLoseWork, match="changed meanwhile"):
            write_excludes(workspace.project, "three/\n", None)
    assert file.read_text() == "two/\n"


def test_a_file_that_git_ignores_is_written_and_undone_too(project: Path) -> None:
    (project / ".gitignore").write_text(".mulliganignore\n")
    file = project / ".mulliganignore"
    file.write_text("one/\n")
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        write_excludes(workspace.project, "two/\n", excludes(workspace.project).version)
        assert file.read_text() == "two/\n"
        workspace.undo()
        assert file.read_text() == "one/\n"
        assert workspace.maintenance.verify().clean


def test_a_link_is_not_written_through(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("theirs/\n")
    os.symlink(elsewhere, project / ".mulliganignore")
    with mulligan.open(project) as workspace:
        with pytest.raises(UsageError, match="not a regular file"):
            excludes(workspace.project)
        with pytest.raises(UsageError, match="not a regular file"):
            write_excludes(workspace.project, "mine/\n", None)
    assert elsewhere.read_text() == "theirs/\n"
