"""Append entries with the clock and the ids of this process."""

from __future__ import annotations

import apsw

from mulligan.clock import now_ns
from mulligan.core.ids import SessionNumber
from mulligan.journal.append import Appender
from mulligan.workspace.new_id import new_id


def appending(db: apsw.Connection, session: SessionNumber, *, lenient: bool = False) -> Appender:
    """Return an appender with this process's clock and ids."""
    return Appender(db, session, new_id=new_id, now=now_ns, lenient=lenient)
