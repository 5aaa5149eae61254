"""Each mechanism can be switched off for a measurement, and is on again afterwards."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import mechanisms
from bench.mechanisms import MECHANISMS, Mechanism, switched_off

from mulligan.worktree.scan import racy


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: each.name)
def test_every_switch_and_module_exists(mechanism: Mechanism) -> None:
    with switched_off(mechanism.off):
        pass
    for module in mechanism.modules:
        assert (mechanisms.SOURCE / f"{module}.py").is_file()


def test_a_mechanism_is_off_only_within_the_block() -> None:
    before = racy._TICK_NS
    with switched_off((("mulligan.worktree.scan.racy:_TICK_NS", -1),)):
        assert racy._TICK_NS == -1
    assert before == racy._TICK_NS


def test_an_unknown_switch_is_an_error() -> None:
    with (
        pytest.raises(AttributeError),
        switched_off((("mulligan.worktree.scan.racy:_OLD_NAME", 0),)),
    ):
        pass


def test_it_prints_a_row_for_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        mechanisms.main(
            ["--runs", "1", "--only", "openat2", "--markdown", "--cache", str(tmp_path)]
        )
        == 0
    )
    assert capsys.readouterr().out.startswith("| openat2 | `worktree/fs/openat2` | ")
