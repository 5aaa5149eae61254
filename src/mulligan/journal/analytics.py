"""Analytics: which tools agents used, when, how often, how long and with what success.

All of it is counted from `tool_events`, which hold no content: no arguments, no output, no paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import apsw

from mulligan.journal.db import Database

KEYS: Mapping[str, str] = {
    "tool": "t.tool",
    "agent": "t.agent",
    "session": "s.id",
    "hour": "substr(t.created_at, 1, 13)",
    "day": "substr(t.created_at, 1, 10)",
    "month": "substr(t.created_at, 1, 7)",
}
"""What calls can be counted by. Hours, days and months are UTC, as all times are."""

TIMES = ("hour", "day", "month")


class Chosen(NamedTuple):
    """Which calls count; times are from `after` to before `before`."""

    after: str | None = None
    before: str | None = None
    agent: str | None = None
    session: int | None = None
    tool: str | None = None


class Part(NamedTuple):
    """Calls that are alike. `success` is `None` for those that have not come to an end.

    `duration` is rounded to milliseconds, and `took` is the sum of the exact ones.
    """

    key: tuple[str, ...]
    success: bool | None
    duration: float | None
    calls: int
    took: float


class Call(NamedTuple):
    """One call of a tool. The duration is in milliseconds."""

    created_at: str
    session: str
    agent: str
    tool: str
    success: bool | None
    duration: float | None
    error_type: str | None


def parts(db: Database, by: Sequence[str], chosen: Chosen) -> Iterator[Part]:
    """The calls, put together where they are alike; enough for counts, averages and percentiles."""
    where, values = _where(chosen)
    keys = ", ".join(KEYS[name] for name in by)
    sql = (
        f"SELECT t.success, round(t.duration), count(*), total(t.duration), {keys} "
        f"FROM tool_events t JOIN sessions s ON s.number = t.session {where} "
        f"GROUP BY t.success, round(t.duration), {keys}"
    )
    for success, duration, count, took, *key in db.rows(sql, *values):
        yield Part(tuple(key), _outcome(success), duration, count, took)


def calls(db: Database, chosen: Chosen) -> list[Call]:
    """The calls themselves, in the order of time."""
    where, values = _where(chosen)
    sql = (
        "SELECT t.created_at, s.id, t.agent, t.tool, t.success, t.duration, t.error_type "
        f"FROM tool_events t JOIN sessions s ON s.number = t.session {where} "
        "ORDER BY t.created_at, t.entry"
    )
    return [
        Call(time, session, agent, tool, _outcome(success), duration, error)
        for time, session, agent, tool, success, duration, error in db.rows(sql, *values)
    ]


def delete_all(db: apsw.Connection) -> int:
    """Forgets every call, inside the caller's transaction; sessions and entries stay."""
    db.execute("DELETE FROM tool_events")
    return db.changes()


def _where(chosen: Chosen) -> tuple[str, list[str | int]]:
    tests = {
        "t.created_at >= ?": chosen.after,
        "t.created_at < ?": chosen.before,
        "t.agent = ?": chosen.agent,
        "t.session = ?": chosen.session,
        "t.tool = ?": chosen.tool,
    }
    given = {test: value for test, value in tests.items() if value is not None}
    return f"WHERE {' AND '.join(given)}" if given else "", list(given.values())


def _outcome(success: int | None) -> bool | None:
    return None if success is None else bool(success)
