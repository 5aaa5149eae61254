"""Store views: the trees of each session after each operation. The newest counts."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from collections.abc import Iterator
from typing import NamedTuple

import apsw

from mulligan.core.ids import SessionNumber, TreeId
from mulligan.journal.db import Database


class View(NamedTuple):
    """The trees that a session's work is compared with.

    `approved` is the disk without the session's pending work, `written` the disk without other
    authors' edits within that work, `base` the disk without the work of the open turn. Without
    pending work `approved` and `written` are None, without an open turn `base` is.
    """

    round: int = 1
    approved: bytes | None = None
    written: bytes | None = None
    base: bytes | None = None

    @property
    def is_quiet(self) -> bool:
        """True without pending work and without an open turn."""
        return self.approved is None and self.base is None

    @property
    def is_open(self) -> bool:
        """True if a turn of the session is open."""
        return self.base is not None


def insert(db: apsw.Connection, operation: int, session: int, view: View) -> None:
    db.execute(
        "INSERT INTO views (session, operation, round, approved, written, base) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (session, operation, *view),
    )


def of_session(db: Database, session: int, before: int | None = None) -> View | None:
    """Return the session's newest view, or its view before an operation."""
    sql = (
        "SELECT round, approved, written, base FROM views WHERE session = ? AND operation < ? "
        "ORDER BY operation DESC LIMIT 1"
    )
    row = db.row(sql, session, (1 << 62) if before is None else before)
    return View(*row) if row else None


def at(db: Database, session: SessionNumber, operation: int) -> View | None:
    """Return the view that an operation recorded for a session, if any."""
    sql = "SELECT round, approved, written, base FROM views WHERE session = ? AND operation = ?"
    row = db.row(sql, session, operation)
    return View(*row) if row else None


def live(db: Database) -> dict[int, View]:
    """Return the newest views of sessions with pending work or an open turn."""
    sql = (
        "SELECT v.session, v.round, v.approved, v.written, v.base FROM views v JOIN "
        "(SELECT session, max(operation) AS operation FROM views GROUP BY session) n "
        "ON v.session = n.session AND v.operation = n.operation "
        "WHERE v.approved IS NOT NULL OR v.base IS NOT NULL"
    )
    return {row[0]: View(*row[1:]) for row in db.rows(sql)}


def open_turns(db: Database) -> dict[int, View]:
    """Return the newest views of sessions with an open turn."""
    return {session: view for session, view in live(db).items() if view.is_open}


def has_open_turn(db: Database, session: int) -> bool:
    """True if a turn of the session is open."""
    view = of_session(db, session)
    return view is not None and view.is_open


def trees(db: Database) -> Iterator[tuple[str, TreeId]]:
    """Yield every tree of every view, with the session's name for messages."""
    sql = (
        "SELECT DISTINCT 'session ' || s.id, v.approved, v.written, v.base FROM views v "
        "JOIN sessions s ON s.number = v.session"
    )
    for name, *ids in db.rows(sql):
        for id in ids:
            if id is not None:
                yield name, id


def forget(db: apsw.Connection) -> None:
    """Delete old views whose operations have lost their checkpoints: undo cannot reach them."""
    db.execute(
        "DELETE FROM views WHERE EXISTS (SELECT 1 FROM views later WHERE later.session = "
        "views.session AND later.operation > views.operation) AND NOT EXISTS (SELECT 1 FROM "
        "operations o JOIN checkpoints c ON c.id = o.after WHERE o.number >= views.operation AND "
        "o.number <= (SELECT min(later.operation) FROM views later WHERE later.session = "
        "views.session AND later.operation > views.operation))"
    )
