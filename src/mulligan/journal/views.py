"""Views: where each session stands after each operation. The newest one of a session counts."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from collections.abc import Iterator
from typing import NamedTuple

import apsw

from mulligan.journal.db import Database

Id = bytes


class View(NamedTuple):
    """What a session's work is measured against. All three name trees.

    `approved` is the disk without the session's pending work, `written` the disk without what
    others have changed within that work, `base` the disk without what the open turn has done.
    Nothing pending: no `approved`, no `written`. No open turn: no `base`.
    """

    round: int = 1
    approved: Id | None = None
    written: Id | None = None
    base: Id | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether the session neither has pending work nor is about to have any."""
        return self.approved is None and self.base is None


def insert(db: apsw.Connection, operation: int, session: int, view: View) -> None:
    db.execute(
        "INSERT INTO views (session, operation, round, approved, written, base) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (session, operation, *view),
    )


def of_session(db: Database, session: int, before: int | None = None) -> View | None:
    """The session's newest view, or the one that it had before an operation."""
    sql = (
        "SELECT round, approved, written, base FROM views WHERE session = ? AND operation < ? "
        "ORDER BY operation DESC LIMIT 1"
    )
    row = db.row(sql, session, (1 << 62) if before is None else before)
    return View(*row) if row else None


def at(db: Database, session: int, operation: int) -> View | None:
    """The view that an operation gave a session, if it gave it one."""
    sql = "SELECT round, approved, written, base FROM views WHERE session = ? AND operation = ?"
    row = db.row(sql, session, operation)
    return View(*row) if row else None


def live(db: Database) -> dict[int, View]:
    """The newest views of all sessions that have pending work or an open turn."""
    sql = (
        "SELECT v.session, v.round, v.approved, v.written, v.base FROM views v JOIN "
        "(SELECT session, max(operation) AS operation FROM views GROUP BY session) n "
        "ON v.session = n.session AND v.operation = n.operation "
        "WHERE v.approved IS NOT NULL OR v.base IS NOT NULL"
    )
    return {row[0]: View(*row[1:]) for row in db.rows(sql)}


def trees(db: Database) -> Iterator[tuple[str, Id]]:
    """Every tree that a view names, with a word about it."""
    sql = (
        "SELECT DISTINCT 'session ' || s.id, v.approved, v.written, v.base FROM views v "
        "JOIN sessions s ON s.number = v.session"
    )
    for name, *ids in db.rows(sql):
        for id in ids:
            if id is not None:
                yield name, id


def forget(db: apsw.Connection) -> None:
    """Drops views that no undo can return to any more: those whose checkpoints are gone."""
    db.execute(
        "DELETE FROM views WHERE EXISTS (SELECT 1 FROM views later WHERE later.session = "
        "views.session AND later.operation > views.operation) AND NOT EXISTS (SELECT 1 FROM "
        "operations o JOIN checkpoints c ON c.id = o.after WHERE o.number >= views.operation AND "
        "o.number <= (SELECT min(later.operation) FROM views later WHERE later.session = "
        "views.session AND later.operation > views.operation))"
    )
