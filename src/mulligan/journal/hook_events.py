"""Which hook events were recorded: a hook that gives up on a server records its event itself.

Only the last ones are kept. A hook and a server that have the same event are minutes apart at most.
"""

from __future__ import annotations

import apsw

from mulligan.journal.db import Database

MAX_EVENTS = 500


def reply(db: Database, id: str) -> str | None:
    """The reply to an event that was recorded; None if it was not."""
    found = db.row("SELECT reply FROM hook_events WHERE id = ?", id)
    return None if found is None else str(found[0])


def add(db: apsw.Connection, id: str, reply: str) -> None:
    """Note that an event is recorded, and forget the oldest."""
    db.execute("INSERT INTO hook_events (id, reply) VALUES (?, ?)", (id, reply))
    db.execute(
        "DELETE FROM hook_events WHERE number <= (SELECT max(number) FROM hook_events) - ?",
        (MAX_EVENTS,),
    )
