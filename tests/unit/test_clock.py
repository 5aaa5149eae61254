"""Test wrong clocks: years ahead, years behind, or beyond what Python reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import mulligan
from mulligan.core.entries import NewEntry

YEAR = 365 * 86_400
REAL, REAL_SECONDS = time.time_ns, time.time


@pytest.fixture
def shifted(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that shifts the clock by seconds."""

    def shift(seconds: float) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: REAL() + int(seconds * 1e9))
        monkeypatch.setattr(time, "time", lambda: REAL_SECONDS() + seconds)

    return shift


def test_a_clock_years_ahead_stamps_only_what_was_taken_then(
    project: Path, shifted: Callable[[float], None]
) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        shifted(10 * YEAR)
        (project / "f").write_text("two")
        ahead = workspace.checkpoint()
        shifted(0)
        (project / "f").write_text("three")
        third = workspace.checkpoint()
        workspace.restore(first.id)
        assert first.created_at < third.created_at < ahead.created_at
        after = [each.created_at for each in workspace.log() if each.id != ahead.id]
        assert after == sorted(after, reverse=True) and after[0] < ahead.created_at
        assert all(each.created_at < ahead.created_at for each in workspace.operations()[:2])
        assert workspace.maintenance.verify().problems == ()
        assert workspace.find("@").id == third.id


def test_forgetting_by_age_goes_by_the_order_where_a_clock_was_wrong(
    project: Path, shifted: Callable[[float], None]
) -> None:
    def take(offset: float, content: str) -> str:
        shifted(offset)
        (project / "f").write_text(content)
        return workspace.checkpoint().id

    day = 86_400
    with mulligan.open(project) as workspace:
        old = take(-90 * day, "old")
        ahead = take(10 * YEAR, "ahead")
        month = take(-60 * day, "month")
        recent = take(-3 * day, "recent")
        behind = take(-50 * YEAR, "behind")
        ahead_again = take(20 * YEAR, "ahead again")
        newest = take(0, "newest")
        done = workspace.maintenance.forget(older_than=30 * day)
        assert set(done.forgotten) == {old, ahead, month}
        assert {each.id for each in workspace.log()} == {recent, behind, ahead_again, newest}


def test_a_wrong_clock_does_not_keep_a_session_the_latest(
    project: Path, shifted: Callable[[float], None]
) -> None:
    with mulligan.open(project) as workspace:
        one, other = (workspace.sessions.create(agent="x", process=0).id for _ in range(2))
        shifted(10 * YEAR)
        workspace.sessions.append(one, NewEntry("user_input", "ahead"))
        shifted(0)
        workspace.sessions.append(one, NewEntry("user_input", "now"))
        workspace.sessions.append(other, NewEntry("user_input", "later"))
        assert workspace.sessions.get("@").id == other
        ahead, now = workspace.sessions.transcript(one).entries
        # Within a session times go up; what the clock said stands beside it.
        assert ahead.created_at < now.created_at
        assert now.data is not None and now.data["at"] < ahead.created_at


def test_what_came_into_view_is_known_by_order_and_not_by_time(
    project: Path, shifted: Callable[[float], None]
) -> None:
    (project / ".gitignore").write_text("secret\n")
    (project / "secret").write_text("mine")
    with mulligan.open(project) as workspace:
        shifted(10 * YEAR)
        first = workspace.checkpoint("before it was asked for").id
        shifted(0)
        workspace.checkpoint("with the right time again")
        workspace.checkpoint(include=["secret"])
        (project / "secret").write_text("changed")
        workspace.restore(first)
        assert (project / "secret").exists()


def test_a_clock_beyond_the_year_2262_stops_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overflow(*_clock: int) -> int:
        raise OverflowError("timestamp too large to convert to C _PyTime_t")

    for name in ("time", "time_ns", "clock_gettime_ns"):
        monkeypatch.setattr(time, name, overflow)
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create(agent="x", process=0).id
        first = workspace.checkpoint()
        workspace.sessions.begin_turn(session, "Make it two")
        (project / "f").write_text("two")
        workspace.sessions.end_turn(session)
        workspace.undo()
        assert (project / "f").read_text() == "one"
        workspace.search("two")
        workspace.maintenance.forget(older_than=1.0)
        workspace.maintenance.gc()
        assert first.created_at.startswith("2262") and workspace.maintenance.verify().problems == ()
    monkeypatch.undo()
    with mulligan.open(project) as workspace:
        assert workspace.checkpoint().created_at < first.created_at
