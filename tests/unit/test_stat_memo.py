"""A memoized result is used only while the files that it depends on are unchanged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mulligan.worktree.ignore import stat_memo
from mulligan.worktree.ignore.stat_memo import StatMemo, depends_on


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """All files were changed long before they are read."""
    monkeypatch.setattr(stat_memo, "RACY_SECONDS", -3600)


class Asked:
    """Reads some files, and counts how often."""

    def __init__(self, *paths: Path) -> None:
        self.count = 0
        self._paths = [os.fsencode(path) for path in paths]
        self._remembered = StatMemo[list[bytes | None]]()

    def __call__(self) -> list[bytes | None]:
        return self._remembered.get("question", self._find)

    def _find(self) -> list[bytes | None]:
        self.count += 1
        return [_content(depends_on(path)) for path in self._paths]


def _content(path: bytes) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


@pytest.mark.usefixtures("long_ago")
def test_unchanged_files_are_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    asked = Asked(tmp_path / "a", tmp_path / "missing")
    assert asked() == asked() == [b"1", None]
    assert asked.count == 1


CHANGES: dict[str, Callable[[Path], object]] = {
    "written": lambda path: path.write_text("22"),
    "same size": lambda path: path.write_text("2"),
    "same time": lambda path: (path.write_text("2"), os.utime(path, (1, 1))),
    "replaced": lambda path: (
        path.with_name("new").write_text("2"),
        path.with_name("new").rename(path),
    ),
    "deleted": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link": lambda path: (
        path.with_name("other").write_text("2"),
        path.unlink(),
        path.symlink_to("other"),
    ),
}


@pytest.mark.usefixtures("long_ago")
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_is_read_again(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a"
    path.write_text("1")
    os.utime(path, (1, 1))
    asked = Asked(path)
    assert asked() == [b"1"]
    time.sleep(0.02)
    CHANGES[change](path)
    assert asked() == [_content(os.fsencode(path))] != [b"1"]


@pytest.mark.usefixtures("long_ago")
def test_a_missing_file_is_read_once_it_exists(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a"
    asked = Asked(path)
    assert asked() == [None]
    path.parent.mkdir()
    path.write_text("1")
    assert asked() == [b"1"]


@pytest.mark.usefixtures("long_ago")
def test_a_link_differs_from_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link"
    memo = StatMemo[bool]()

    def is_there() -> bool:
        return memo.get("q", lambda: os.path.lexists(depends_on(os.fsencode(link))))

    assert not is_there()
    link.symlink_to("nowhere")
    assert is_there()
    link.unlink()
    assert not is_there()


@pytest.mark.usefixtures("long_ago")
def test_a_link_to_another_name_of_the_same_file_is_another_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    os.link(tmp_path / "a", tmp_path / "b")
    link = tmp_path / "link"
    link.symlink_to("a")
    memo = StatMemo[str]()

    def where() -> str:
        return memo.get("q", lambda: os.fsdecode(os.path.realpath(depends_on(bytes(link)))))

    assert where() == str(tmp_path / "a")
    time.sleep(0.02)
    link.unlink()
    link.symlink_to("b")
    assert where() == str(tmp_path / "b")
    (tmp_path / "b").unlink()
    (tmp_path / "b").write_text("2")
    assert where() == str(tmp_path / "b")


@pytest.mark.usefixtures("long_ago")
def test_a_link_loop_is_a_link(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.symlink_to("a")
    asked = Asked(path)
    assert asked() == asked() == [None]
    path.unlink()
    path.write_text("1")
    assert asked() == [b"1"]


def test_a_racily_clean_file_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1")
    asked = Asked(path)
    assert asked() == asked() == [b"1"]
    assert asked.count == 2


def test_a_racily_clean_target_of_a_link_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "target").write_text("1")
    (tmp_path / "link").symlink_to("target")
    lstat = os.lstat

    def long_ago(path: bytes) -> os.stat_result:
        real = lstat(path)
        return os.stat_result((*real[:9], 1), {"st_ctime_ns": 10**9})

    monkeypatch.setattr(os, "lstat", long_ago)
    asked = Asked(tmp_path / "link")
    assert asked() == asked() == [b"1"]
    assert asked.count == 2


@pytest.mark.usefixtures("long_ago")
def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1")
    memo = StatMemo[bytes | None]()

    def find() -> bytes | None:
        found = _content(depends_on(os.fsencode(path)))
        path.write_text("22")
        return found

    assert memo.get("question", find) == b"1"
    assert memo.get("question", lambda: _content(os.fsencode(path))) == b"22"


def test_results_are_kept_by_key_and_their_number_is_limited(tmp_path: Path) -> None:
    memo = StatMemo[int]()
    for number in [*range(100), *range(100)]:
        assert memo.get(number, lambda number=number: number) == number  # type: ignore[misc]
    assert len(memo._entries) <= stat_memo.MAX_MEMO_ENTRIES
