"""Read the numbered events of a journal, for clients that follow it."""

from __future__ import annotations

from typing import NamedTuple

from mulligan.core.ids import SessionId, SessionNumber
from mulligan.journal.db import Database

COLUMNS = "e.number, e.kind, coalesce(s.id, e.deleted), e.subject, e.session"


class EventRow(NamedTuple):
    """One event; `subject` is an entry's `seq` or an operation's number."""

    number: int
    kind: str
    session: SessionId | None
    subject: int | None
    session_number: SessionNumber | None


def after(db: Database, number: int, limit: int = 500) -> list[EventRow]:
    """Return the events after a number, in order."""
    sql = (
        f"SELECT {COLUMNS} FROM events e LEFT JOIN sessions s ON s.number = e.session "
        "WHERE e.number > ? ORDER BY e.number LIMIT ?"
    )
    return [EventRow(*row) for row in db.rows(sql, number, limit)]


def last(db: Database) -> int:
    """Return the number of the newest event."""
    return int(db.row("SELECT coalesce(max(number), 0) FROM events")[0])


def stamp(db: Database) -> int:
    """Return a number that changes when another connection commits."""
    return int(db.row("PRAGMA data_version")[0])
