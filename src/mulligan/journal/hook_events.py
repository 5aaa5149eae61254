"""Remember recorded hook events, so that each is recorded once.

A hook whose server does not answer in time records the event itself; the server may do so later,
within minutes. So only the last events are kept.
"""

from __future__ import annotations

import apsw

from mulligan.journal.db import Database

MAX_EVENTS = 500


def reply(db: Database, id: str) -> str | None:
    """Return the reply to a recorded event; None if it is not recorded."""
    row = db.row("SELECT reply FROM hook_events WHERE id = ?", id)
    return None if row is None else str(row[0])


def add(db: apsw.Connection, id: str, reply: str) -> None:
    """Mark an event as recorded, and delete the oldest."""
    db.execute("INSERT INTO hook_events (id, reply) VALUES (?, ?)", (id, reply))
    db.execute(
        "DELETE FROM hook_events WHERE number <= (SELECT max(number) FROM hook_events) - ?",
        (MAX_EVENTS,),
    )
