"""A file is trusted only if every change after it was read must get a later ctime."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import mulligan
from mulligan.worktree.scan import racy as module
from mulligan.worktree.scan.racy import is_racy, racy_cutoff

SECOND = 1_000_000_000
MOMENT = 1_700_000_000 * SECOND + 123_456_789
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets that clock be read")


@pytest.fixture
def workspace(project: Path) -> Iterator[mulligan.Workspace]:
    with mulligan.open(project) as opened:
        yield opened


@pytest.mark.parametrize(
    ("changed", "racy"),
    [
        (MOMENT + 1, True),
        (MOMENT, True),
        (MOMENT - 1, False),
        # Whole seconds: the next change may carry the same time for a second to come.
        (MOMENT // SECOND * SECOND, True),
        (MOMENT // SECOND * SECOND - SECOND, True),
        (MOMENT // SECOND * SECOND - 3 * SECOND, False),
    ],
)
def test_a_file_changed_before_the_cutoff_is_trusted(changed: int, racy: bool) -> None:
    assert is_racy(changed, MOMENT) is racy


def test_no_later_change_gets_a_time_before_the_cutoff(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    device = file.stat().st_dev
    with file.open("r+b", buffering=0) as open_file:
        for number in range(20_000):
            moment = racy_cutoff(device)
            open_file.write(b"%05d" % number)
            open_file.seek(0)
            # Not on every turn: some kernels use finer time stamps after a stat.
            if number % 7 == 0:
                assert os.fstat(open_file.fileno()).st_ctime_ns > moment


@LINUX
def test_on_a_local_disk_the_cutoff_comes_from_the_coarse_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: pytest.fail("that is another clock"))
    disk = os.makedev(8, 1)
    first = racy_cutoff(disk)
    assert 0 <= racy_cutoff(disk) - first < 60 * SECOND


def test_on_other_file_systems_the_cutoff_has_a_fixed_margin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: MOMENT)
    assert racy_cutoff(os.makedev(0, 45)) == MOMENT - module.UNKNOWN_CLOCK_MARGIN_NS
    monkeypatch.setattr(module, "_TICK_NS", 0)
    assert racy_cutoff(os.makedev(8, 1)) == MOMENT - module.UNKNOWN_CLOCK_MARGIN_NS


def test_without_a_coarse_clock_the_tick_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(clock: int) -> float:
        raise OSError("Invalid argument")

    monkeypatch.setattr(time, "clock_getres", refuse)
    assert module._tick_ns() == 0


@pytest.mark.parametrize("pause", [0, 0.002, 0.006, 0.02])
def test_an_edit_of_the_same_size_is_seen_however_soon_it_comes(
    project: Path, workspace: mulligan.Workspace, pause: float
) -> None:
    file = project / "file"
    for number in range(40):
        content = b"%03d" % number
        file.write_bytes(content)
        time.sleep(pause)
        assert workspace.read(workspace.checkpoint().id, "file") == content


@LINUX
def test_a_file_that_was_left_alone_for_a_moment_is_read_once(
    project: Path, workspace: mulligan.Workspace
) -> None:
    (project / "file").write_text("content")
    time.sleep(0.03)
    workspace.checkpoint()
    root = workspace.project.cache().root
    assert root is not None
    on_disk = os.major(project.stat().st_dev) != 0
    assert (root.files[b"file"][4] >= 0) == on_disk
