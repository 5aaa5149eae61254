"""The promises of Ollama Copilot that the engine keeps: where data is stored."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from acts import picture, write

import mulligan


def homes_of(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("projects/*"))


def test_oc_8_the_chosen_home_wins_over_the_environment_over_the_users_data_directory(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, chosen, data = tmp_path / "given", tmp_path / "chosen", tmp_path / "data"
    monkeypatch.setenv("MULLIGAN_HOME", str(chosen))
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    mulligan.open(project, home=str(given)).close()
    assert homes_of(given) and not chosen.exists() and not data.exists()
    mulligan.open(project).close()
    assert homes_of(chosen) == homes_of(given) and not data.exists()
    monkeypatch.delenv("MULLIGAN_HOME")
    mulligan.open(project).close()
    assert homes_of(data / "mulligan") == homes_of(given)


def test_oc_8_without_any_setting_data_goes_below_the_users_home(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MULLIGAN_HOME")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    mulligan.open(project).close()
    assert homes_of(tmp_path / ".local/share/mulligan")


def test_oc_8_a_project_keeps_its_place_however_it_is_reached(
    project: Path, tmp_path: Path, mulligan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {"deep/er/file": "1"})
    (tmp_path / "link").symlink_to(project)
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
    monkeypatch.chdir(project / "deep")
    for way in (project / "deep/er", tmp_path / "link", tmp_path / "link/deep", Path("er"), "."):
        with mulligan.open(way) as workspace:
            assert workspace.find("@").id == taken.id
            assert workspace.root == os.path.realpath(project)
    assert len(homes_of(mulligan_home)) == 1


def test_oc_8_a_new_inner_folder_or_repository_does_not_split_the_history(
    project: Path, mulligan_home: Path
) -> None:
    with mulligan.open(project) as workspace:
        write(project, {"a": "1"})
        taken = workspace.checkpoint()
    write(project, {"inner/.git/HEAD": "ref: refs/heads/main\n", "inner/b": "2"})
    with mulligan.open(project / "inner") as workspace:
        assert workspace.find("@").id == taken.id
    assert len(homes_of(mulligan_home)) == 1


def test_oc_8_a_project_that_was_moved_keeps_its_history(
    project: Path, tmp_path: Path, mulligan_home: Path
) -> None:
    write(project, {"a": "1", "d/b": "2"})
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
    before = picture(project)
    moved = tmp_path / "moved"
    project.rename(moved)
    write(moved, {"a": "changed"})
    with mulligan.open(moved) as workspace:
        assert workspace.find("@").id == taken.id
        assert [each.path for each in workspace.status().changed_files] == ["a"]
        workspace.restore(taken.id)
    assert picture(moved) == before
    assert len(homes_of(mulligan_home)) == 1


def test_oc_8_a_copy_of_a_project_has_a_history_of_its_own(
    project: Path, tmp_path: Path, mulligan_home: Path
) -> None:
    write(project, {"a": "1"})
    write(tmp_path / "copy", {"a": "1"})
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
    with mulligan.open(tmp_path / "copy") as workspace:
        assert workspace.log() == []
    assert len(homes_of(mulligan_home)) == 2


def test_oc_8_data_is_readable_by_its_owner_only(project: Path, mulligan_home: Path) -> None:
    write(project, {"a": "secret"})
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
    (directory,) = mulligan_home.glob("projects/*")
    assert directory.stat().st_mode & 0o077 == 0
    assert json.loads((directory / "project.json").read_text())["root"] == str(project)
