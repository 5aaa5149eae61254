"""openat2 opens a directory only if no component is a link or leads outside."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mulligan.worktree.fs import safe_paths
from mulligan.worktree.fs.openat2 import open_beneath
from mulligan.worktree.fs.safe_paths import OPEN_DIRECTORY, Directories

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no openat2")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "root" / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "outside" / "b").mkdir(parents=True)
    (tmp_path / "root" / "a" / "file").write_text("no folder")
    (tmp_path / "root" / "link").symlink_to("a")
    (tmp_path / "root" / "a" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "root" / "a" / "up").symlink_to("../../outside")
    return tmp_path / "root"


@pytest.mark.parametrize(
    "path",
    ["link/b", "a/out/b", "a/up/b", "a/up", "a/../a/b/../../../outside/b", "../outside", "/", "a/x",
     "a/file", "a/b\0c", "a/file/b"],
)  # fmt: skip
def test_links_and_paths_that_lead_outside_are_refused(place: Path, path: str) -> None:
    root = os.open(place, os.O_RDONLY)
    try:
        assert open_beneath(root, path.encode(), OPEN_DIRECTORY) is None
    finally:
        os.close(root)


@pytest.mark.parametrize("path", ["link/b", "a/out/b", "a/up/b", "a/file/b", "a/x/y", "a/b/c"])
@pytest.mark.parametrize("min_opens", [0, 1000])
def test_openat2_and_a_walk_give_the_same(
    place: Path, path: str, min_opens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_paths, "MIN_OPENS_FOR_OPENAT2", min_opens)
    with Directories(os.fsencode(place)) as directories:
        if path == "a/b/c":
            found = os.fstat(directories.open(path.encode()))
            assert os.path.samestat(found, os.stat(place / path))
        else:
            wanted = FileNotFoundError if path == "a/x/y" else NotADirectoryError
            with pytest.raises(wanted):
                directories.open(path.encode())
