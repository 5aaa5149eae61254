"""Store and find sessions: conversations with one agent about the project."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import apsw

from mulligan.core.coverage import storable
from mulligan.core.ids import EntryId, SessionId, SessionNumber
from mulligan.errors import Ambiguous, NotFound
from mulligan.journal.db import PREFIX_MIN_CHARACTERS, Database

COLUMNS = (
    "number, id, agent, title, model, mode, directory, status, process, leaf, memory, "
    "auto_approve_commands, auto_approve_sensitive_edits, sensitive_file_patterns, forked_from, "
    "source, created_at, updated_at"
)
LEAF_ID = "(SELECT e.id FROM entries e WHERE e.number = (sessions.number << 32) | sessions.leaf)"
SELECT = f"SELECT {COLUMNS}, {LEAF_ID} FROM sessions"
LATER = (
    "max(iif(updated_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+60 seconds'), '', updated_at), ?)"
)
"""The later of `updated_at` and `?`; a stored time in the future is a wrong clock's."""
CHANGEABLE = frozenset(COLUMNS.split(", ")) - {"number", "id", "created_at"}


class SessionRow(NamedTuple):
    """A session's row; `leaf` is the `seq` of its current entry.

    `process` is the agent's process, if known; `source` is the log that it was imported from.
    """

    number: SessionNumber
    id: SessionId
    agent: str
    title: str
    model: str | None
    mode: str | None
    directory: str | None
    status: str
    process: str | None
    leaf: int | None
    memory: str
    auto_approve_commands: bool
    auto_approve_sensitive_edits: bool
    sensitive_file_patterns: dict[str, bool]
    forked_from: SessionId | None
    source: str | None
    created_at: str
    updated_at: str
    leaf_id: EntryId | None


def insert(
    db: apsw.Connection, id: str, created_at: str, values: Mapping[str, Any]
) -> SessionNumber:
    """Add a session, inside the caller's transaction; return its number."""
    columns = _columns(values) | {"id": id, "created_at": created_at}
    columns.setdefault("updated_at", created_at)
    names = ", ".join(columns)
    marks = ", ".join("?" * len(columns))
    db.execute(f"INSERT INTO sessions ({names}) VALUES ({marks})", tuple(columns.values()))
    return SessionNumber(db.last_insert_rowid())


def update(db: apsw.Connection, number: SessionNumber, values: Mapping[str, Any]) -> None:
    """Set columns of a session; `updated_at` only moves forward."""
    columns = _columns(values)
    sets = ", ".join(
        f"{name} = {LATER}" if name == "updated_at" else f"{name} = ?" for name in columns
    )
    db.execute(f"UPDATE sessions SET {sets} WHERE number = ?", (*columns.values(), number))


def stop(db: apsw.Connection, row: SessionRow) -> None:
    """Mark a session as stopped, unless another process has used it since `row`."""
    db.execute(
        "UPDATE sessions SET status = 'stopped', process = NULL "
        "WHERE number = ? AND process IS ? AND updated_at = ?",
        (row.number, row.process, row.updated_at),
    )


def set_leaf(db: apsw.Connection, id: SessionId | None, leaf: int | None) -> None:
    """Move a session's leaf; its time of change stays."""
    db.execute("UPDATE sessions SET leaf = ? WHERE id = ?", (leaf, id))


def delete(db: apsw.Connection, number: SessionNumber) -> None:
    """Delete a session and its rows in all tables."""
    db.execute("DELETE FROM sessions WHERE number = ?", (number,))


def newest_first(
    db: Database,
    *,
    limit: int | None = None,
    offset: int = 0,
    after: tuple[str, int] | None = None,
    status: str | None = None,
    agent: str | None = None,
) -> list[SessionRow]:
    """Return sessions by time of change; `after` is a cursor (time, number)."""
    where: list[str] = ["1"]
    values: list[str | int] = []
    for name, value in (("status", status), ("agent", agent)):
        if value is not None:
            where.append(f"{name} = ?")
            values.append(value)
    if after is not None:
        where.append("(updated_at, number) < (?, ?)")
        values += after
    sql = (
        f"{SELECT} WHERE {' AND '.join(where)} "
        "ORDER BY updated_at DESC, number DESC LIMIT ? OFFSET ?"
    )
    return [_row(row) for row in db.rows(sql, *values, -1 if limit is None else limit, offset)]


def count(db: Database) -> int:
    return int(db.row("SELECT count(*) FROM sessions")[0])


def by_id(db: Database, id: str) -> SessionRow | None:
    return _one(db.row(f"{SELECT} WHERE id = ?", id))


def by_number(db: Database, number: int) -> SessionRow | None:
    return _one(db.row(f"{SELECT} WHERE number = ?", number))


def resolve(db: Database, name: str) -> SessionRow:
    """Return the session with this id, unambiguous prefix, or `@N`: N before the newest."""
    name = storable(name)
    if name.startswith("@"):
        steps = name[1:] or "0"
        if steps.isascii() and steps.isdigit() and len(steps) < 10:
            newest = newest_first(db, limit=1, offset=int(steps))
            if newest:
                return newest[0]
        raise NotFound(f"There is no session {name!r} here; `mulligan sessions` lists them.")
    exact = by_id(db, name)
    if exact is not None:
        return exact
    sql = f"{SELECT} WHERE substr(id, 1, ?) = ? LIMIT 3"
    rows = db.rows(sql, len(name), name) if name else []
    if len(rows) == 1:
        return _row(rows[0])
    if rows:
        few = ", ".join(row[1] for row in rows)
        raise Ambiguous(f"Session {name} matches several ({few}…); give more characters.")
    raise NotFound(f"There is no session {name!r} here; `mulligan sessions` lists them.")


def is_prefix(db: Database, name: str) -> bool:
    """True if `name` is a proper prefix of a session's id."""
    if len(name) < PREFIX_MIN_CHARACTERS:
        return False
    sql = "SELECT 1 FROM sessions WHERE substr(id, 1, ?) = ? AND id <> ? LIMIT 1"
    return db.row(sql, len(name), name, name) is not None


def with_process(db: Database, statuses: Iterable[str]) -> list[SessionRow]:
    """Return the sessions with one of these statuses and a known process."""
    chosen = tuple(statuses)
    marks = ", ".join("?" * len(chosen))
    sql = f"{SELECT} WHERE status IN ({marks}) AND process IS NOT NULL"
    return [_row(row) for row in db.rows(sql, *chosen)]


def most_active(db: Database, numbers: Iterable[int]) -> SessionNumber:
    """Return the session with an unfinished tool call, else the last changed one."""
    chosen = tuple(numbers)
    marks = ", ".join("?" * len(chosen))
    sql = (
        f"SELECT s.number FROM sessions s WHERE s.number IN ({marks}) ORDER BY EXISTS (SELECT 1 "
        "FROM tool_events t WHERE t.session = s.number AND t.success IS NULL) DESC, "
        "s.updated_at DESC LIMIT 1"
    )
    number: SessionNumber = db.row(sql, *chosen)[0]
    return number


def _columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """Check the names of columns, and encode JSON columns."""
    unknown = set(values) - CHANGEABLE
    if unknown:
        raise ValueError(f"A session has no changeable {', '.join(sorted(unknown))}.")
    columns = dict(values)
    if "sensitive_file_patterns" in columns:
        columns["sensitive_file_patterns"] = json.dumps(columns["sensitive_file_patterns"])
    return columns


def _one(row: Any) -> SessionRow | None:
    return _row(row) if row else None


def _row(row: Any) -> SessionRow:
    commands, edits, patterns = row[11:14]
    values = (*row[:11], bool(commands), bool(edits), json.loads(patterns), *row[14:])
    return SessionRow(*values)
