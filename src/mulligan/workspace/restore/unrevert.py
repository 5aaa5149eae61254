"""Append unrevert-points: where a session's files were before a restore or a move in its tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

from mulligan.core.coverage import decode_path
from mulligan.core.entries import UNREVERT_POINT, NewEntry
from mulligan.core.ids import SessionNumber
from mulligan.workspace.appending import appending

if TYPE_CHECKING:
    from mulligan.workspace.restore.plan import RestorePlan


def append_unrevert_point(
    db: apsw.Connection, session: SessionNumber, tree: bytes, plan: RestorePlan, leaf: str | None
) -> None:
    """Append the point inside the plan's transaction, so that no file changes before it is there.

    `tree` is the state before; `leaf` is where the session stands after.
    """
    data = {
        "preRollbackTreeHash": tree.hex(),
        "rolledBackToLeaf": leaf,
        "restoredFiles": [decode_path(change.path) for change in plan.changes],
    }
    appender = appending(db, session)
    appender.append(NewEntry(UNREVERT_POINT, "", data, off_path=True))
    appender.finish()
