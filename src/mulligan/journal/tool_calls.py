"""Find the entries of tool calls, and correct them from an agent's log."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import apsw

from mulligan.core.entries import ENDED, SUCCESS
from mulligan.core.ids import EntryId, SessionNumber
from mulligan.journal.db import Database

BY_CALL = (
    "FROM entries WHERE session = ? AND type = 'tool_call' AND data ->> 'call' = ? "
    "ORDER BY number DESC LIMIT 1"
)


class ToolCall(NamedTuple):
    """A tool call: the id of its entry, and when it began."""

    entry: EntryId
    created_at: str


def by_call_id(db: Database, session: SessionNumber, call: str) -> ToolCall | None:
    """Return the newest call with the agent's own id `call`."""
    row = db.row(f"SELECT id, created_at {BY_CALL}", session, call)
    return ToolCall(*row) if row else None


def unfinished(db: Database, session: SessionNumber, tool: str, input: object) -> ToolCall | None:
    """Return the oldest unfinished call of a tool with this input."""
    sql = (
        "SELECT e.id, e.created_at, e.data FROM tool_events t JOIN entries e ON e.number = t.entry "
        "WHERE t.session = ? AND t.success IS NULL AND t.tool = ? ORDER BY e.number"
    )
    for entry, created_at, data in db.rows(sql, session, tool):
        if json.loads(data).get("input") == input:
            return ToolCall(entry, created_at)
    return None


def data_of_calls(db: Database, session: SessionNumber) -> dict[EntryId, dict[str, Any]]:
    """Return the data of a session's calls by entry id, oldest first."""
    sql = "SELECT id, data FROM entries WHERE session = ? AND type = 'tool_call' ORDER BY number"
    return {entry: json.loads(data or "{}") for entry, data in db.rows(sql, session)}


def has_unfinished(db: Database, session: SessionNumber) -> bool:
    """True if a tool call of the session has not ended."""
    sql = "SELECT 1 FROM tool_events WHERE session = ? AND success IS NULL LIMIT 1"
    return db.row(sql, session) is not None


def set_call_id(db: apsw.Connection, session: SessionNumber, entry: str, call: str | None) -> None:
    """Add the agent's own id of a call to its entry."""
    db.execute(
        "UPDATE entries SET data = json_set(data, '$.call', ?) WHERE session = ? AND id = ?",
        (call, session, entry),
    )


def correct_outcome(
    db: apsw.Connection, session: SessionNumber, call: str, status: str, duration: float | None
) -> None:
    """Set the final status of an ended call; a duration that is known already stays."""
    row = db.execute(f"SELECT number, data {BY_CALL}", (session, call)).fetchone()
    if row is None or status not in ENDED:
        return
    number, data = row[0], json.loads(str(row[1]))
    duration = data.get("duration", duration)
    if (data.get("status"), data.get("duration")) == (status, duration):
        return
    db.execute(
        "UPDATE entries SET data = json_set(data, '$.status', ?, '$.duration', ?) WHERE number = ?",
        (status, duration, number),
    )
    failed = status != SUCCESS
    db.execute(
        "UPDATE tool_events SET success = ?, duration = ?, error_type = ? WHERE entry = ?",
        (not failed, duration, "tool_error" if failed else None, number),
    )
