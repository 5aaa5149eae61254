"""Record operations: the changes of a project, in order, never removed.

An operation that changes files is recorded as `planned` with its target tree before the first file
changes, and becomes `applied` at the end. Recovery finishes an operation that is still planned
while no process works on it.
"""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

import json
from typing import Any, NamedTuple

import apsw

from mulligan.core.ids import CheckpointId, SessionId, TreeId
from mulligan.core.undo_order import Step
from mulligan.journal.db import Database

COLUMNS = (
    "number, kind, state, changed, created_at, session, undoes, target, before, after, "
    "plan_tree, plan_guarded, summary, head, intent"
)

NEIGHBOURING_OPERATIONS = 16


class OperationRow(NamedTuple):
    """An operation's row; `before` and `after` are checkpoints of the whole project."""

    number: int
    kind: str
    state: str
    changed: bool
    created_at: str
    session: SessionId | None
    undoes: int | None
    target: CheckpointId | None
    before: CheckpointId | None
    after: CheckpointId | None
    plan_tree: TreeId | None
    plan_guarded: TreeId | None
    summary: dict[str, Any]
    head: str | None
    intent: dict[str, Any]


def plan(
    db: apsw.Connection,
    *,
    kind: str,
    created_at: str,
    before: str,
    plan_tree: bytes,
    plan_guarded: bytes,
    target: str | None = None,
    undoes: int | None = None,
    session: str | None = None,
    intent: dict[str, Any] | None = None,
) -> int:
    """Record a planned operation; return its number."""
    db.execute(
        "INSERT INTO operations (kind, state, changed, created_at, session, undoes, target, before,"
        " plan_tree, plan_guarded, intent) VALUES (?, 'planned', 1, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            kind, created_at, session, undoes, target, before, plan_tree, plan_guarded,
            _written(intent),
        ),
    )  # fmt: skip
    return db.last_insert_rowid()


def record(
    db: apsw.Connection,
    *,
    kind: str,
    created_at: str,
    after: str,
    before: str | None = None,
    session: str | None = None,
    changed: bool = False,
    undoes: int | None = None,
    head: str | None = None,
    summary: dict[str, Any] | None = None,
    intent: dict[str, Any] | None = None,
) -> int:
    """Record an applied operation that changes no file, such as a checkpoint.

    Undo considers it if `changed` is set.
    """
    db.execute(
        "INSERT INTO operations (kind, state, changed, created_at, session, before, after, undoes, "
        "head, summary, intent) VALUES (?, 'applied', ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            kind, changed, created_at, session, before, after, undoes, head, _written(summary),
            _written(intent),
        ),
    )  # fmt: skip
    return db.last_insert_rowid()


def finish(
    db: apsw.Connection,
    number: int,
    *,
    after: str,
    changed: bool,
    summary: dict[str, Any],
    head: str | None = None,
) -> None:
    db.execute(
        "UPDATE operations SET state = 'applied', after = ?, changed = ?, summary = ?, head = ? "
        "WHERE number = ? AND state = 'planned'",
        (after, changed, json.dumps(summary), head, number),
    )


def abandon(db: apsw.Connection, number: int, reason: str) -> None:
    db.execute(
        "UPDATE operations SET state = 'abandoned', changed = 0, summary = ? "
        "WHERE number = ? AND state = 'planned'",
        (json.dumps({"reason": reason}), number),
    )


def unfinished(db: Database) -> list[OperationRow]:
    sql = f"SELECT {COLUMNS} FROM operations WHERE state = 'planned' ORDER BY number"
    return [_row(row) for row in db.rows(sql)]


def by_number(db: Database, number: int) -> OperationRow | None:
    row = db.row(f"SELECT {COLUMNS} FROM operations WHERE number = ?", number)
    return _row(row) if row else None


def newest_first(
    db: Database, limit: int | None = None, before: int | None = None
) -> list[OperationRow]:
    sql = f"SELECT {COLUMNS} FROM operations WHERE number < ? ORDER BY number DESC LIMIT ?"
    top = (1 << 62) if before is None else before
    return [_row(row) for row in db.rows(sql, top, -1 if limit is None else limit)]


def last_applied(db: Database) -> OperationRow | None:
    """Return the newest applied operation; its `after` is the last observed disk."""
    sql = (
        f"SELECT {COLUMNS} FROM operations WHERE state = 'applied' AND after IS NOT NULL "
        "ORDER BY number DESC LIMIT 1"
    )
    row = db.row(sql)
    return _row(row) if row else None


def since(db: Database, kinds: tuple[str, ...]) -> list[OperationRow]:
    """Return the newest applied operation of these kinds, and all after it."""
    marks = ", ".join("?" * len(kinds))
    sql = (
        f"SELECT {COLUMNS} FROM operations WHERE state = 'applied' AND number >= (SELECT "
        f"max(number) FROM operations WHERE state = 'applied' AND kind IN ({marks})) "
        "ORDER BY number"
    )
    return [_row(row) for row in db.rows(sql, *kinds)]


def last_head(db: Database) -> str | None:
    """Return git's HEAD commit as of the last operation that recorded it."""
    sql = (
        "SELECT head FROM operations WHERE state = 'applied' AND head IS NOT NULL "
        "ORDER BY number DESC LIMIT 1"
    )
    row = db.row(sql)
    return row[0] if row else None


def of_session(db: Database, session: str, kinds: tuple[str, ...]) -> list[OperationRow]:
    """Return a session's applied operations of these kinds, oldest first."""
    marks = ", ".join("?" * len(kinds))
    sql = (
        f"SELECT {COLUMNS} FROM operations WHERE session = ? AND state = 'applied' "
        f"AND kind IN ({marks}) ORDER BY number"
    )
    return [_row(row) for row in db.rows(sql, session, *kinds)]


def last_checkpoint(db: Database, number: int) -> int:
    """Return the `seq` of the newest checkpoint as of operation `number`.

    An operation can name an older checkpoint of equal files, so its neighbours count, too.
    """
    sql = (
        "SELECT max(c.seq) FROM (SELECT before, after FROM operations WHERE number <= ? "
        "AND state = 'applied' ORDER BY number DESC LIMIT ?) o "
        "JOIN checkpoints c ON c.id IN (o.before, o.after)"
    )
    return int(db.row(sql, number, NEIGHBOURING_OPERATIONS)[0] or 0)


def of_last_turn(db: Database, session: str) -> list[OperationRow]:
    """Return the beginning of a session's last turn and its operations since, oldest first."""
    sql = (
        f"SELECT {COLUMNS} FROM operations WHERE session = ?1 AND state = 'applied' AND kind IN "
        "('begin_turn', 'turn') AND number >= coalesce((SELECT max(number) FROM operations WHERE "
        "session = ?1 AND state = 'applied' AND kind = 'begin_turn'), 0) ORDER BY number"
    )
    return [_row(row) for row in db.rows(sql, session)]


def last_begun_turn(db: Database, session: str) -> int | None:
    """Return the operation that began a session's last turn."""
    sql = "SELECT max(number) FROM operations WHERE session = ? AND kind = 'begin_turn'"
    number: int | None = db.row(sql, session)[0]
    return number


def newest_change(db: Database, up_to: int | None) -> Step | None:
    """Return the newest changing operation up to a number, for undo and redo."""
    sql = (
        "SELECT number, kind, undoes FROM operations WHERE changed AND state = 'applied' "
        "AND number <= ? ORDER BY number DESC LIMIT 1"
    )
    row = db.row(sql, (1 << 62) if up_to is None else up_to)
    return Step(*row) if row else None


def _written(content: dict[str, Any] | None) -> str:
    return json.dumps(content) if content else "{}"


def _row(row: Any) -> OperationRow:
    number, kind, state, changed, *more, summary, head, intent = row
    intended = json.loads(intent) if intent else {}
    values = (number, kind, state, bool(changed), *more, json.loads(summary), head, intended)
    return OperationRow(*values)
