"""Everything that happens in a journal, numbered, for whoever follows it."""

from __future__ import annotations

from typing import NamedTuple

from mulligan.journal.db import Database

COLUMNS = "e.number, e.kind, coalesce(s.id, e.deleted), e.subject, e.session"


class EventRow(NamedTuple):
    """`subject` is the `seq` of an entry, or the number of an operation."""

    number: int
    kind: str
    session: str | None
    subject: int | None
    session_number: int | None


def after(db: Database, number: int, limit: int = 500) -> list[EventRow]:
    """What happened after an event, in order."""
    sql = (
        f"SELECT {COLUMNS} FROM events e LEFT JOIN sessions s ON s.number = e.session "
        "WHERE e.number > ? ORDER BY e.number LIMIT ?"
    )
    return [EventRow(*row) for row in db.rows(sql, number, limit)]


def last(db: Database) -> int:
    """The number of the latest event."""
    return int(db.row("SELECT coalesce(max(number), 0) FROM events")[0])


def stamp(db: Database) -> int:
    """Another number than before whenever another process has written something."""
    return int(db.row("PRAGMA data_version")[0])
