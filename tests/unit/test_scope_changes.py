"""What is in scope changes while one works: rules, git's index, and which checkpoint is meant."""

import os
import subprocess
from pathlib import Path

import pytest

import mulligan


def git(project: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True)


@pytest.mark.parametrize("watch", [False, True])
def test_what_git_tracks_stays_in_scope_however_often_its_index_changes(
    project: Path, watch: bool
) -> None:
    git(project, "init", "-q")
    (project / ".gitignore").write_text("*.secret\n")
    tracked = {"important.log": "log", "x.secret": "small", "dist/app.js": "built"}
    for name, content in tracked.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(content)
    git(project, "add", "-f", ".")
    with mulligan.open(project, watch=watch) as workspace:
        for number in range(5):
            (project / "important.log").write_text(f"edit {number}")
            os.utime(project / ".git/index", (number + 1, number + 1))
            taken = workspace.checkpoint()
            assert {each.path for each in workspace.entries(taken.id)} >= tracked.keys()
            assert workspace.read(taken.id, "important.log") == f"edit {number}".encode()
            assert workspace.status().changed_files == ()


def test_at_means_the_last_checkpoint_that_was_taken_whatever_was_restored_since(
    project: Path,
) -> None:
    with mulligan.open(project) as workspace:
        for name in ("a", "b"):
            (project / name).write_text("good")
        good = workspace.checkpoint("good")
        (project / "a").unlink()
        (project / "b").write_text("bad")
        assert workspace.restore("@", ["a"]).restored == ("a",)
        assert workspace.find("@").id == good.id
        assert [each.path for each in workspace.status().changed_files] == ["b"]
        assert workspace.restore("@", ["b"]).restored == ("b",)
        assert workspace.status().changed_files == ()
        workspace.undo()
        assert [each.path for each in workspace.status().changed_files] == ["b"]
        assert (project / "b").read_text() == "bad"
        assert workspace.restore("@").restored == ("b",)
        assert (project / "b").read_text() == "good"


def test_a_folder_that_became_ignored_is_restored_at_once_and_undone_exactly(
    project: Path,
) -> None:
    (project / "d").mkdir()
    (project / "d/e").write_text("mine")
    with mulligan.open(project) as workspace:
        before = workspace.checkpoint()
        (project / ".gitignore").write_text("d/\n")
        (project / "d/e").write_text("damaged, and longer")
        assert [each.path for each in workspace.status().changed_files] == [".gitignore"]
        done = workspace.restore(before.id)
        assert (done.skipped, (project / "d/e").read_text()) == ((), "mine")
        assert not (project / ".gitignore").exists()
        workspace.undo()
        assert (project / "d/e").read_text() == "damaged, and longer"
        assert (project / ".gitignore").read_text() == "d/\n"
        workspace.redo()
        assert (project / "d/e").read_text() == "mine"
        assert workspace.maintenance.verify().clean


def test_forget_keeps_the_last_that_were_taken_not_those_that_restores_made(project: Path) -> None:
    with mulligan.open(project) as workspace:
        taken = []
        for number in range(4):
            (project / "f").write_text(f"{number}")
            taken.append(workspace.checkpoint().id)
        for _ in range(3):
            workspace.restore(taken[0])
            workspace.undo()
        workspace.maintenance.forget(keep_last=2)
        left = {each.id for each in workspace.log()}
        assert left >= set(taken[2:])
        assert not left & set(taken[:2])
        assert workspace.maintenance.verify().clean


def test_a_path_that_is_nowhere_is_an_error_not_silence(project: Path) -> None:
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        with pytest.raises(mulligan.NotFound):
            workspace.diff("@", None, ["nowhere"])


def test_a_mode_that_git_does_not_know_makes_no_patch(project: Path) -> None:
    (project / "f").write_text("x\n")
    (project / "f").chmod(0o644)
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        (project / "f").chmod(0o600)
        (change,) = workspace.diff()
        assert (change.patch, change.old_mode, change.new_mode) == (b"", "100644", "100600")
