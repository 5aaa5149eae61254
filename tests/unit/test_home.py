"""Which project a directory belongs to, and where its data is kept."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan.errors import NotFound, RefusedRoot
from mulligan.workspace.project.location import (
    find_project,
    home_directory,
    known_projects,
    register,
)


def root_of(path: Path, home: Path, **options: bool) -> Path:
    return Path(os.fsdecode(find_project(str(path), str(home), **options).root))


def test_mulligan_home_is_where_the_data_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "chosen"))
    assert home_directory() == str(tmp_path / "chosen")
    assert home_directory(str(tmp_path / "given")) == str(tmp_path / "given")


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULLIGAN_HOME", "here")
    assert home_directory() == str(tmp_path / "here")
    assert home_directory("there") == str(tmp_path / "there")


@pytest.mark.skipif(sys.platform != "linux", reason="XDG is of Linux")
def test_without_mulligan_home_the_users_data_directory_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MULLIGAN_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert home_directory() == str(tmp_path / "data/mulligan")
    monkeypatch.setenv("XDG_DATA_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_directory() == str(tmp_path / ".local/share/mulligan")
    monkeypatch.setenv("MULLIGAN_HOME", "")
    assert home_directory() == str(tmp_path / ".local/share/mulligan")


def test_a_plain_directory_is_its_own_project(project: Path, mulligan_home: Path) -> None:
    (project / "sub").mkdir()
    assert root_of(project, mulligan_home) == project
    assert root_of(project / "sub", mulligan_home) == project / "sub"


def test_below_a_known_project_one_is_in_that_project(project: Path, mulligan_home: Path) -> None:
    nested = project / "a/b/c"
    nested.mkdir(parents=True)
    (project / "a/.git").mkdir()
    (project / "a/b/.mulligan.toml").touch()
    mulligan.open(project).close()
    assert root_of(nested, mulligan_home) == project


def test_the_nearest_known_project_counts(project: Path, mulligan_home: Path) -> None:
    inner = project / "a"
    (inner / "b").mkdir(parents=True)
    mulligan.open(inner).close()
    mulligan.open(project).close()
    assert root_of(inner / "b", mulligan_home) == inner
    assert root_of(project, mulligan_home) == project


def test_a_mulligan_toml_marks_the_top(project: Path, mulligan_home: Path) -> None:
    nested = project / "a/b"
    nested.mkdir(parents=True)
    (project / ".mulligan.toml").touch()
    (project / "a/.git").mkdir()
    assert root_of(nested, mulligan_home) == project


@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_the_top_of_a_git_work_tree_is_the_project(
    project: Path, mulligan_home: Path, kind: str
) -> None:
    nested = project / "a/b"
    nested.mkdir(parents=True)
    if kind == "directory":
        (project / ".git").mkdir()
        (project / ".git/HEAD").touch()
    elif kind == "file":
        (project / ".git").write_text("gitdir: ../elsewhere\n")
    else:
        (project / ".git").symlink_to("../elsewhere")
    assert root_of(nested, mulligan_home) == project


def test_an_empty_git_folder_above_makes_no_project(project: Path, mulligan_home: Path) -> None:
    (project / "a").mkdir()
    (project / ".git").mkdir()
    assert root_of(project / "a", mulligan_home) == project / "a"


@pytest.mark.parametrize("path", ["/", "/home", "/root", "~"])
def test_everything_a_user_has_is_refused_as_a_project(mulligan_home: Path, path: str) -> None:
    given = os.path.expanduser(path)
    if not os.path.isdir(given):
        pytest.skip(f"there is no {path} here")
    with pytest.raises(RefusedRoot, match="--any-root"):
        find_project(given, str(mulligan_home))
    expected = Path(os.path.realpath(given))
    assert root_of(Path(given), mulligan_home, allow_any_root=True) == expected


def test_a_project_that_may_not_be_listed_has_no_identity_and_is_found(
    project: Path, mulligan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Any, *given: Any, **named: Any) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    assert root_of(project, mulligan_home) == project


def test_a_link_to_a_home_directory_is_refused_too(tmp_path: Path, mulligan_home: Path) -> None:
    (tmp_path / "link").symlink_to(os.path.expanduser("~"))
    with pytest.raises(RefusedRoot):
        find_project(str(tmp_path / "link"), str(mulligan_home))


@pytest.mark.parametrize("marker", [".git", ".mulligan.toml"])
def test_a_home_directory_under_git_is_passed_over(mulligan_home: Path, marker: str) -> None:
    home = Path(os.path.expanduser("~"))
    (home / marker).mkdir()
    (home / marker / "HEAD").touch()
    (home / "work/sub").mkdir(parents=True)
    assert root_of(home / "work/sub", mulligan_home) == home / "work/sub"
    assert root_of(home / "work/sub", mulligan_home, allow_any_root=True) == home


def test_a_home_that_was_allowed_once_is_a_known_project(mulligan_home: Path) -> None:
    home = Path(os.path.expanduser("~"))
    (home / "work").mkdir()
    mulligan.open(home, allow_any_root=True).close()
    assert root_of(home / "work", mulligan_home) == home


def test_a_directory_that_is_not_there_is_not_found(project: Path, mulligan_home: Path) -> None:
    (project / "file").touch()
    for path in (project / "missing", project / "file"):
        with pytest.raises(NotFound):
            find_project(str(path), str(mulligan_home))


def test_a_link_to_a_project_is_the_same_project(
    project: Path, tmp_path: Path, mulligan_home: Path
) -> None:
    (tmp_path / "link").symlink_to(project)
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
    with mulligan.open(tmp_path / "link") as workspace:
        assert [each.id for each in workspace.log()] == [taken.id]
        (project / "f").write_text("two")
        workspace.restore("@", [str(tmp_path / "link" / "f")])
    assert (project / "f").read_text() == "one"
    assert len(known_projects(str(mulligan_home))) == 1


def test_a_project_is_known_after_it_was_moved(
    project: Path, tmp_path: Path, mulligan_home: Path
) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
    project.rename(tmp_path / "moved")
    with mulligan.open(tmp_path / "moved") as workspace:
        assert [each.id for each in workspace.log()] == [first.id]
        (tmp_path / "moved/f").write_text("two")
        workspace.restore(first.id)
        assert workspace.maintenance.verify().clean
    assert (tmp_path / "moved/f").read_text() == "one"
    assert [each.root for each in known_projects(str(mulligan_home))] == [
        os.fsencode(tmp_path / "moved")
    ]


def test_a_project_may_be_moved_there_and_back(project: Path, tmp_path: Path) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
    for here, there in ((project, tmp_path / "moved"), (tmp_path / "moved", project)) * 2:
        here.rename(there)
        with mulligan.open(there) as workspace:
            assert len(workspace.log()) == 1


def test_a_copy_is_a_project_of_its_own(project: Path, tmp_path: Path) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
    shutil.copytree(project, tmp_path / "copy")
    with mulligan.open(tmp_path / "copy") as workspace:
        assert workspace.log() == []
    with mulligan.open(project) as workspace:
        assert len(workspace.log()) == 1


def test_a_project_deleted_and_made_again_keeps_its_history(project: Path) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
    shutil.rmtree(project)
    project.mkdir()
    with mulligan.open(project) as workspace:
        workspace.restore(taken.id)
    assert (project / "f").read_text() == "one"


def test_a_new_directory_with_the_inode_of_a_deleted_project_is_not_that_project(
    tmp_path: Path,
) -> None:
    # Others may be faster to take the number, so it is tried more than once.
    for attempt in range(20):
        old, new = tmp_path / f"old{attempt}", tmp_path / f"new{attempt}"
        old.mkdir()
        (old / "f").write_text("one")
        inode = old.stat().st_ino
        with mulligan.open(old) as workspace:
            taken = workspace.checkpoint()
        shutil.rmtree(old)
        new.mkdir()
        if new.stat().st_ino == inode:
            break
    else:
        pytest.skip("this file system does not use the number of a deleted inode again")
    (new / "other").write_text("another project")
    with mulligan.open(new) as workspace:
        assert workspace.log() == []
    old.mkdir()
    with mulligan.open(old) as workspace:
        assert [each.id for each in workspace.log()] == [taken.id]


def test_data_inside_of_the_project_is_not_part_of_it(project: Path) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project, home=str(project / "data")) as workspace:
        first = workspace.checkpoint()
        assert [each.path for each in workspace.entries(first.id)] == ["f"]
        (project / "f").write_text("two")
        assert workspace.restore(first.id).restored == ("f",)
        assert workspace.maintenance.verify().clean


def test_data_is_for_the_users_eyes_only(project: Path, mulligan_home: Path) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        directory = Path(workspace.project.location.directory)
    for path in (directory, directory / "objects"):
        assert path.stat().st_mode & 0o077 == 0, path
    for pack in (directory / "objects").glob("*.pack"):
        assert pack.stat().st_mode & 0o077 == 0, pack


def test_a_damaged_project_file_does_not_cost_the_history(
    project: Path, mulligan_home: Path
) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        path = Path(workspace.project.location.path("project.json"))
    path.write_text("{")
    with mulligan.open(project) as workspace:
        assert len(workspace.log()) == 1


def test_names_that_are_not_utf8_are_kept(tmp_path: Path, mulligan_home: Path) -> None:
    root = os.fsencode(tmp_path) + b"/pro\xffject\n"
    os.mkdir(root)
    with mulligan.open(os.fsdecode(root)) as workspace:
        workspace.checkpoint()
    assert [each.root for each in known_projects(str(mulligan_home))] == [root]


def test_threads_that_open_a_new_project_at_once_all_succeed(project: Path) -> None:
    (project / "f").write_text("one")
    problems: list[BaseException] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        try:
            barrier.wait()
            with mulligan.open(project) as workspace:
                workspace.checkpoint()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with mulligan.open(project) as workspace:
        assert len(workspace.log()) == 8


def test_registering_twice_changes_nothing(project: Path, mulligan_home: Path) -> None:
    found = find_project(str(project), str(mulligan_home))
    register(found)
    path = Path(found.path("project.json"))
    before = path.read_bytes()
    register(found)
    assert path.read_bytes() == before
    assert json.loads(before)["root"] == str(project)


def test_asking_does_not_make_a_project(project: Path, mulligan_home: Path) -> None:
    """A query in the wrong directory must not register a project."""
    for command in ("log", "status", "verify"):
        run = subprocess.run(
            [sys.executable, "-m", "mulligan", command],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 3, run.stderr
    assert not mulligan_home.exists() or known_projects(str(mulligan_home)) == []


def test_a_project_whose_directory_is_gone_can_be_made_again(
    project: Path, mulligan_home: Path
) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "a").write_text("a\n")
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
    shutil.rmtree(project)
    with pytest.raises(NotFound, match="make the directory again"):
        mulligan.open(project)
    project.mkdir()
    with mulligan.open(project) as workspace:
        workspace.restore("@")
        assert workspace.maintenance.verify().clean
    assert (project / "sub" / "a").read_text() == "a\n"
