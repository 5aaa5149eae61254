"""Count agents' tool calls by tool, agent, session and time.

The source is `tool_events`, which hold no content: no arguments, no output, no paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import apsw

from mulligan.core.ids import SessionId, SessionNumber
from mulligan.journal.db import Database

KEYS: Mapping[str, str] = {
    "tool": "t.tool",
    "agent": "t.agent",
    "session": "s.id",
    "hour": "substr(t.created_at, 1, 13)",
    "day": "substr(t.created_at, 1, 10)",
    "month": "substr(t.created_at, 1, 7)",
}
"""The SQL of each grouping key. Hours, days and months are UTC."""

TIMES = ("hour", "day", "month")


class CallFilter(NamedTuple):
    """Which calls to count; `after` is inclusive, `before` exclusive."""

    after: str | None = None
    before: str | None = None
    agent: str | None = None
    session: SessionNumber | None = None
    tool: str | None = None


class CallGroup(NamedTuple):
    """Calls with equal key, success and rounded duration.

    `success` is `None` for unfinished calls. `duration` is in whole milliseconds, and `took` is
    the sum of the exact durations.
    """

    key: tuple[str, ...]
    success: bool | None
    duration: float | None
    calls: int
    took: float


class Call(NamedTuple):
    """One tool call; the duration is in milliseconds."""

    created_at: str
    session: SessionId
    agent: str
    tool: str
    success: bool | None
    duration: float | None
    error_type: str | None


def call_groups(db: Database, by: Sequence[str], chosen: CallFilter) -> Iterator[CallGroup]:
    """Yield groups of equal calls, enough for counts, averages and percentiles."""
    where, values = _where(chosen)
    keys = ", ".join(KEYS[name] for name in by)
    sql = (
        f"SELECT t.success, round(t.duration), count(*), total(t.duration), {keys} "
        f"FROM tool_events t JOIN sessions s ON s.number = t.session {where} "
        f"GROUP BY t.success, round(t.duration), {keys}"
    )
    for success, duration, count, took, *key in db.rows(sql, *values):
        yield CallGroup(tuple(key), _outcome(success), duration, count, took)


def calls(db: Database, chosen: CallFilter) -> list[Call]:
    """Return single calls in order of time."""
    where, values = _where(chosen)
    sql = (
        "SELECT t.created_at, s.id, t.agent, t.tool, t.success, t.duration, t.error_type "
        f"FROM tool_events t JOIN sessions s ON s.number = t.session {where} "
        "ORDER BY t.created_at, t.entry"
    )
    return [
        Call(time, SessionId(session), agent, tool, _outcome(success), duration, error)
        for time, session, agent, tool, success, duration, error in db.rows(sql, *values)
    ]


def delete_all(db: apsw.Connection) -> int:
    """Delete all tool events; sessions and entries stay. Needs a transaction."""
    db.execute("DELETE FROM tool_events")
    return db.changes()


def _where(chosen: CallFilter) -> tuple[str, list[str | int]]:
    conditions = {
        "t.created_at >= ?": chosen.after,
        "t.created_at < ?": chosen.before,
        "t.agent = ?": chosen.agent,
        "t.session = ?": chosen.session,
        "t.tool = ?": chosen.tool,
    }
    used = {condition: value for condition, value in conditions.items() if value is not None}
    return f"WHERE {' AND '.join(used)}" if used else "", list(used.values())


def _outcome(success: int | None) -> bool | None:
    return None if success is None else bool(success)
