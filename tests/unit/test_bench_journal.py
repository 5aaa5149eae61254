"""The benchmark of the journal: both sides do the same work, and every step finds something."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import journal

import mulligan


def test_it_runs_and_tells_the_ratio_of_every_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    options = ["--entries", "2000", "--takes", "2", "--place", str(tmp_path), "--json", str(file)]
    assert journal.main(options) == 0
    shown = capsys.readouterr().out
    results = json.loads(file.read_text())
    assert results["entries"] == 2000
    for step in ("append in bulk", "append one", "list sessions", "search, rare word",
                 *(f"page {way}, {place}" for way in ("forward", "backward", "of the path")
                   for place in ("begin", "middle", "end"))):  # fmt: skip
        samples = results["samples"][step]
        assert samples.keys() == {journal.OURS, journal.PLAIN}
        assert all(seconds > 0 for each in samples.values() for seconds in each)
        assert step in shown
    assert list(tmp_path.iterdir()) == [file]


def test_both_sides_hold_the_same_entries_and_give_the_same_pages(
    tmp_path: Path, project: Path
) -> None:
    rows: journal.Rows = {}
    with (
        mulligan.open(project) as workspace,
        closing(journal.Plain(tmp_path / "plain.sqlite")) as plain,
    ):
        names = journal.fill(workspace, plain, 1500, rows)
        counts = [workspace.sessions.count_entries(name) for name in names]
        assert sum(counts) == 1500 and counts[0] == 150
        assert plain.db.execute("SELECT count(*) FROM entries").fetchone() == (1500,)
        for since in (0, 75, 100):
            ours = workspace.sessions.transcript(
                names[0], since=since, limit=journal.PAGE + 1
            ).entries
            theirs = plain.page(since)
            assert [(entry.type, entry.content, entry.data) for entry in ours] == [
                (row[2], row[4], row[5]) for row in theirs
            ]
        for before in (52, 151):
            ours = workspace.sessions.recent(
                names[0], before=before, limit=journal.PAGE + 1
            ).entries
            theirs = plain.page_back(before)
            assert [entry.content for entry in ours] == [row[4] for row in theirs]
        assert len(plain.first_hit(journal.RARE)) == 1
        assert len(journal.first_hit(workspace, journal.RARE)) == 1


def test_a_step_that_finds_nothing_is_an_error_and_not_a_record() -> None:
    with pytest.raises(RuntimeError, match="found nothing"):
        journal.take_turns({}, "a step", 1, {journal.OURS: list})
