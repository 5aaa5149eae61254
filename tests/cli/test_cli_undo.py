"""Undo, redo and restore as people type them: what they stop at, and what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mulligan
from run import mull, quick, write


def turn(project: Path, files: dict[str, str], *, message: str = "do it") -> str:
    """An agent's turn that writes these files; gives the session."""
    session = quick("turn", "begin", "--new", message, project=project).lines[0]
    write(project, files)
    quick("turn", "end", session, project=project)
    return session


@pytest.fixture
def wrecked(project: Path) -> Path:
    """A project that was wrecked once, and brought back by a restore."""
    write(project, {"t": "1\n", ".gitignore": ".env\n", ".env": "KEY=1\n"})
    quick("checkpoint", project=project)
    (project / "t").unlink()
    quick("restore", "@", project=project)
    return project


def test_undo_after_a_turn_that_changed_nothing_does_not_bring_back_a_wreck(wrecked: Path) -> None:
    turn(wrecked, {})
    for preview in ([], ["--preview"]):
        done = quick("undo", *preview, project=wrecked, code=3)
        assert "The last turn changed nothing" in done.stderr and "--further" in done.stderr
    assert (wrecked / "t").exists()
    error = quick("undo", "--json", project=wrecked, code=3).json["error"]
    assert error["code"] == "nothing_to_undo"
    done = quick("undo", "--further", project=wrecked)
    assert re.search(r"Took back the restore of \d+ s ago", done.stderr)
    assert not (wrecked / "t").exists()


def test_undo_in_a_turn_that_has_changed_nothing_yet_does_not_either(wrecked: Path) -> None:
    quick("turn", "begin", "--new", "think", project=wrecked)
    for preview in ([], ["--preview"]):
        assert "going on" in quick("undo", *preview, project=wrecked, code=3).stderr
    assert (wrecked / "t").exists()


def test_once_past_an_idle_turn_undo_goes_on_as_ever(wrecked: Path) -> None:
    write(wrecked, {"t": "2\n"})
    quick("restore", "@", project=wrecked)
    turn(wrecked, {})
    quick("undo", "--further", project=wrecked)
    assert (wrecked / "t").read_text() == "2\n"
    quick("undo", project=wrecked)
    assert not (wrecked / "t").exists()
    quick("redo", project=wrecked)
    quick("undo", project=wrecked)
    assert not (wrecked / "t").exists()


def test_undo_takes_back_a_turn_that_changed_something_whatever_came_before(wrecked: Path) -> None:
    turn(wrecked, {})
    turn(wrecked, {"t": "2\n"})
    assert "Took back the turn of" in quick("undo", project=wrecked).stderr
    assert (wrecked / "t").read_text() == "1\n"


def test_a_turn_that_changed_only_guarded_files_says_so(wrecked: Path) -> None:
    session = quick("turn", "begin", "--new", "new key", project=wrecked).lines[0]
    write(wrecked, {".env": "KEY=2\n"})
    done = quick("turn", "end", session, project=wrecked)
    assert "Guarded" in done.stderr and ".env" in done.stderr
    assert ".env" in quick("undo", project=wrecked, code=3).stderr
    found = quick("status", "--json", project=wrecked).json
    assert found["guarded"] == [".env"] and found["changed_files"] == []
    assert ".env" in quick("status", project=wrecked).stderr
    quick("restore", "@", str(wrecked / ".env"), project=wrecked)
    assert (wrecked / ".env").read_text() == "KEY=1\n"


def test_beginning_a_turn_says_that_it_ended_the_one_before(wrecked: Path) -> None:
    begun = quick("turn", "begin", "--new", "one", project=wrecked)
    assert "had not been ended" not in begun.stderr
    again = quick("turn", "begin", "@", "two", project=wrecked)
    assert "had not been ended" in again.stderr
    assert quick("turn", "begin", "@", "three", "--json", project=wrecked).json["ended"]


def test_an_undo_that_leaves_everything_to_the_user_can_be_forced_afterwards(
    wrecked: Path,
) -> None:
    turn(wrecked, {"new": "agent\n"})
    write(wrecked, {"new": "mine\n"})
    done = quick("undo", project=wrecked, code=4)
    assert "--force" in done.stdout.decode() and "Nothing was changed" in done.stderr
    assert quick("undo", "--json", project=wrecked, code=4).json["error"]["code"]
    done = quick("undo", "--force", project=wrecked)
    assert "Took back the turn" in done.stderr
    assert not (wrecked / "new").exists() and (wrecked / "t").exists()
    quick("undo", project=wrecked)
    assert not (wrecked / "t").exists()


def test_an_undo_that_leaves_something_says_how_that_goes_too(wrecked: Path) -> None:
    turn(wrecked, {"a": "agent\n", "b": "agent\n"})
    write(wrecked, {"b": "mine\n"})
    done = quick("undo", project=wrecked)
    assert not (wrecked / "a").exists() and (wrecked / "b").read_text() == "mine\n"
    found = re.search("`mulligan (restore --force [0-9a-z]+) PATH`", done.stderr)
    assert found is not None
    quick(*found[1].split(), str(wrecked / "b"), project=wrecked)
    assert not (wrecked / "b").exists()
    quick("undo", project=wrecked)
    assert (wrecked / "b").read_text() == "mine\n"


def test_a_restore_that_leaves_everything_alone_would_lose_work(wrecked: Path) -> None:
    turn(wrecked, {"t": "agent\n"})
    write(wrecked, {"t": "mine\n"})
    for more in ([], ["--preview"], ["--json"]):
        quick("restore", "@", *more, project=wrecked, code=4)
    assert (wrecked / "t").read_text() == "mine\n"
    found = quick("restore", "@", "--json", project=wrecked, code=4).json
    assert found["error"]["code"] == "would_lose_work" and found["skipped"]
    forced = quick("restore", "@", "--preview", "--force", "--json", project=wrecked).json
    assert forced["restored"] == ["t"] and not forced["skipped"]
    quick("restore", "@", "--force", project=wrecked)
    assert (wrecked / "t").read_text() == "1\n"


def test_a_restore_that_keeps_what_was_to_be_kept_is_done(wrecked: Path) -> None:
    write(wrecked, {"t": "dirty\n"})
    quick("restore", "@", "--keep-dirty", project=wrecked)
    assert (wrecked / "t").read_text() == "dirty\n"
    quick("restore", "@", "--keep-dirty", "--force", "--preview", project=wrecked, code=2)


def test_a_guarded_file_is_restored_by_name_even_if_it_is_not_ignored_any_more(
    wrecked: Path,
) -> None:
    write(wrecked, {".env": "KEY=2\n"})
    (wrecked / ".gitignore").unlink()
    done = quick("restore", "@", "--preview", str(wrecked / ".env"), project=wrecked)
    assert done.lines == ["R  .env"]
    quick("restore", "@", str(wrecked / ".env"), project=wrecked)
    assert (wrecked / ".env").read_text() == "KEY=1\n"
    assert not (wrecked / ".gitignore").exists()
    quick("undo", project=wrecked)
    assert (wrecked / ".env").read_text() == "KEY=2\n"
    assert quick("verify", "--json", project=wrecked).json["clean"]


def test_redo_says_what_it_does_again(wrecked: Path) -> None:
    turn(wrecked, {"t": "2\n"})
    quick("keep", "--all", project=wrecked)
    done = quick("undo", project=wrecked)
    assert "Took back the keep of" in done.stderr and "no file had to change" in done.stderr
    done = quick("redo", "--preview", project=wrecked)
    assert "Would do the keep of" in done.stderr
    done = quick("redo", project=wrecked)
    assert "Did the keep of" in done.stderr and "again: no file had to change" in done.stderr


def test_after_a_recovery_everything_left_alone_is_named(project: Path) -> None:
    write(project, {name: f"{name} 1\n" for name in "abc"})
    quick("checkpoint", project=project)
    write(project, {name: f"{name} 2\n" for name in "abc"})
    killed_in_the_middle(project)
    write(project, {"b": "typed after the crash\n"})
    done = mull("undo", cwd=project, code=None)
    assert "Finished the restore that was interrupted" in done.stderr
    assert "Left alone: b: it was changed since the restore was planned" in done.stderr
    assert (project / "b").read_text() == "typed after the crash\n"


def killed_in_the_middle(project: Path) -> None:
    """A restore that is killed once it has changed its first file."""
    script = (
        "import os, sys, mulligan\n"
        "from mulligan.worktree.restore import apply\n"
        "done = apply._Restore._mark_changed\n"
        "def mark_changed(self, path):\n"
        "    done(self, path)\n"
        "    os.kill(os.getpid(), 9)\n"
        "apply._Restore._mark_changed = mark_changed\n"
        "with mulligan.open(sys.argv[1]) as workspace:\n"
        "    workspace.restore('@')\n"
    )
    done = subprocess.run([sys.executable, "-c", script, os.fspath(project)], check=False)
    assert done.returncode == -9


def test_folders_that_came_went_or_changed_their_mode_are_shown(project: Path) -> None:
    for name in ("gone", "kept", "mode"):
        (project / name).mkdir()
    write(project, {"mode/f": "1"})
    quick("checkpoint", project=project)
    (project / "gone").rmdir()
    (project / "new").mkdir()
    (project / "mode").chmod(0o700)
    lines = ["D  gone/", "M  mode/  0755 → 0700", "A  new/"]
    assert quick("status", project=project).lines == lines
    assert quick("diff", "--stat", project=project).lines == lines
    assert quick("diff", project=project).lines == [f"# {line}" for line in lines]
    found = quick("diff", "--json", project=project).json["folders"]
    assert [each["path"] for each in found] == ["gone", "mode", "new"]
    quick("restore", "@", project=project)
    assert "Nothing changed" in quick("status", project=project).stderr
    with mulligan.open(project) as workspace:
        assert workspace.compare("@", "@").folders == ()


def test_a_file_that_a_program_has_open_for_writing_is_named_and_force_replaces_it(
    project: Path,
) -> None:
    write(project, {"notes.txt": "one\n"})
    mull("checkpoint", cwd=project)
    write(project, {"notes.txt": "two\n"})
    with (project / "notes.txt").open("a") as log:
        ran = mull("restore", "@", cwd=project, code=4)
        assert f"(process {os.getpid()}); --force replaces it" in ran.lines[0]
        found = mull("restore", "@", "--json", cwd=project, code=4).json
        assert found["error"]["code"] == "would_lose_work"
        assert found["skipped"][0]["reason"].startswith("open for writing by ")
        forced = mull("restore", "@", "--force", cwd=project)
        assert "notes.txt.rescued-1" in forced.stderr + forced.stdout.decode()
        log.write("more\n")
    assert (project / "notes.txt").read_text() == "one\n"
    assert (project / "notes.txt.rescued-1").read_text() == "two\nmore\n"


def test_undo_of_an_expected_operation_takes_back_that_one_or_nothing(wrecked: Path) -> None:
    restored = quick("operations", "--json", project=wrecked).json["operations"][0]["operation"]
    turn(wrecked, {"t": "2\n"})
    done = quick("undo", "--expect", str(restored), project=wrecked, code=4)
    assert "was done since" in done.stderr and (wrecked / "t").read_text() == "2\n"
    assert quick("undo", "--expect", "999", project=wrecked, code=3).stderr
    latest = quick("undo", "--preview", "--json", project=wrecked).json["undoes"]
    undone = quick("undo", "--expect", str(latest), "--json", project=wrecked).json
    assert undone["undoes"] == latest and (wrecked / "t").read_text() == "1\n"
    quick("redo", "--expect", str(restored), project=wrecked, code=4)
    quick("redo", "--expect", str(undone["operation"]), project=wrecked)
    assert (wrecked / "t").read_text() == "2\n"
