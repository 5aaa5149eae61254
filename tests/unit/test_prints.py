"""The prints of files: what the system says in one go is what it says of each."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path

import pytest

from mulligan.files import prints
from mulligan.files.index import Seen
from mulligan.files.names import UNSEEN
from mulligan.files.prints import EACH, Taking, remembered, replace, same
from mulligan.files.reach import opened

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")


def seen(path: Path) -> Seen:
    status = path.lstat()
    return (b"f", 0o644, status.st_size, 0, status.st_ctime_ns, status.st_ino, b"")


def fill(folder: Path, count: int) -> list[Path]:
    paths = [folder / f"file {number}" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_text(str(number))
    return paths


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 40])
def test_they_are_those_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, threads: int
) -> None:
    monkeypatch.setattr(prints, "AT_A_TIME", 8)
    monkeypatch.setattr(prints, "active_count", lambda: threads)
    paths = fill(tmp_path, count)
    expected = remembered([seen(path) for path in paths])
    assert len(expected) == EACH * count
    with opened(os.fsencode(tmp_path)) as fd:
        names = [os.fsencode(path.name) for path in paths]
        assert Taking()(fd, names, count) == expected


def test_each_difference_is_told_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prints, "AT_A_TIME", 8)
    paths = fill(tmp_path, 20)
    known = [seen(path) for path in paths]
    paths[2].unlink()
    paths[5].unlink()
    paths[5].write_text("5")
    os.utime(paths[9])
    paths[12].unlink()
    paths[12].symlink_to("nowhere")
    known[15] = UNSEEN
    known[17] = (*known[17][:4], -1, *known[17][5:])
    with opened(os.fsencode(tmp_path)) as fd:
        names = [os.fsencode(path.name) for path in paths]
        found = Taking()(fd, names, len(names))
    told = list(same(found, remembered(known)))
    assert [number for number, is_same in enumerate(told) if not is_same] == [2, 5, 9, 12, 15, 17]


def test_one_that_is_gone_is_not_taken_for_whatever_was_there_before_it(tmp_path: Path) -> None:
    taking = Taking()
    (path,) = fill(tmp_path, 1)
    known = remembered([seen(path)])
    with opened(os.fsencode(tmp_path)) as fd:
        assert taking(fd, [os.fsencode(path.name)], 1) == known
        path.unlink()
        assert taking(fd, [os.fsencode(path.name)], 1) != known


def test_numbers_of_all_64_bits_have_room() -> None:
    largest: Seen = (b"f", 0, 0, 0, 2**62, 2**64 - 2, b"")
    assert list(same(remembered([largest]), remembered([largest]))) == [True]
    assert list(same(remembered([largest]), remembered([UNSEEN]))) == [False]


def test_one_of_many_is_replaced() -> None:
    many: list[Seen] = [
        (b"f", 0, 0, 0, 10**18 * number + number, number, b"") for number in range(5)
    ]
    start = 3
    room = mmap.mmap(-1, start + EACH * len(many))
    room[start:] = remembered(many)
    many[3] = (b"f", 0, 0, 0, -1, 2**64 - 1, b"")
    replace(room, start, len(many), 3, many[3])
    assert room[start:] == remembered(many)


def test_where_it_is_not_allowed_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Taking, "_take", lambda *_: [-1])
    with pytest.raises(OSError, match="not allowed"):
        Taking()
