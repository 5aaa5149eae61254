"""Which folders become projects when a hook or an imported log names them, and not the user."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import mulligan
from mulligan.errors import RefusedRoot, UsageError
from mulligan.workspace.project.location import find_project
from mulligan.workspace.project.refused_roots import refuse_as_project

SYSTEM = ("/etc", "/etc/ssh", "/proc/1", "/proc/self", "/sys", "/dev", "/usr/bin", "/usr", "/run")


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/home", "/home/ada", "/Users/ada", "/root", *SYSTEM),
        *("/usr/src", "/var/lib/dpkg", "/var/log/apt", "/tmp", "/var/tmp", "/opt", "/mnt", "/srv"),
        *("/run/user/1000", "/run/media/ada/disk", "relative", ".", "", "/tmp/a\0b", "/tmp/\ud800"),
    ],
)
def test_a_folder_that_is_nobodys_project_is_refused(path: str) -> None:
    assert refuse_as_project(path)


@pytest.mark.parametrize(
    "path",
    [
        *("/home/ada/code", "/root/code", "/app", "/workspace", "/opt/site", "/srv/site", "/tmp/a"),
        *("/usr/src/app", "/var/www/html", "/var/lib/jenkins/workspace", "/etcetera", "/mnt/disk"),
        *("/run/user/1000/a", "/run/media/ada/disk/a", "/dev/shm/a", b"/tmp/\xff"),
    ],
)
def test_a_folder_in_which_people_work_is_not_refused(path: str | bytes) -> None:
    assert refuse_as_project(path) is None


def test_the_users_home_what_holds_it_its_keys_and_our_own_data_are_refused(
    project: Path, mulligan_home: Path
) -> None:
    home = Path(os.environ["HOME"])
    refused = [home, home.parent, home / ".ssh", home / ".gnupg/private", mulligan_home]
    assert all(map(refuse_as_project, map(str, refused)))
    assert refuse_as_project(str(home / ".config/editor")) is None
    assert refuse_as_project(str(project)) is None


def test_a_link_to_a_system_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    assert refuse_as_project(str(tmp_path / "link"))


def test_below_the_users_own_folder_for_temporary_files_projects_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert refuse_as_project("/var/cache/mine/project")
    monkeypatch.setenv("TMPDIR", "/var/cache/mine")
    assert refuse_as_project("/var/cache/mine/project") is None
    assert refuse_as_project("/var/cache/mine")
    monkeypatch.setenv("TMPDIR", "/")
    assert refuse_as_project("/etc/ssh")


@pytest.mark.parametrize("path", ["/etc", "/proc/1"])
def test_what_a_user_names_becomes_a_project_and_is_one_for_hooks_from_then_on(
    path: str, mulligan_home: Path
) -> None:
    home = str(mulligan_home)
    with pytest.raises(RefusedRoot, match="system folder"):
        find_project(path, home, automatic=True)
    with pytest.raises(RefusedRoot, match="system folder"):
        mulligan.open(path, automatic=True)
    assert not mulligan_home.exists()

    found = find_project(path, home)
    os.makedirs(found.directory)
    Path(found.path("project.json")).write_text(json.dumps({"root": path}))
    assert find_project(path, home, automatic=True) == found


def test_a_marker_in_a_folder_that_all_share_does_not_make_it_the_project(
    tmp_path: Path, mulligan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody may write to `/tmp`, a `.git` too."""
    (tmp_path / ".mulligan.toml").touch()
    (tmp_path / "mine").mkdir()
    shared = (os.fsencode(tmp_path),)
    monkeypatch.setattr("mulligan.workspace.project.refused_roots.SHARED", shared)

    found = find_project(str(tmp_path / "mine"), str(mulligan_home), automatic=True)

    assert found.root == os.fsencode(tmp_path / "mine")


@pytest.mark.parametrize("path", ["a\0b", "/tmp/\ud800"])
def test_what_is_no_path_is_refused_in_words(path: str, mulligan_home: Path) -> None:
    with pytest.raises(UsageError, match="cannot be the path"):
        find_project(path, str(mulligan_home))
