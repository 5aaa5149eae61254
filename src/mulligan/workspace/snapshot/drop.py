"""Delete checkpoints, but keep the trees that undo and redo need."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from mulligan.core.undo_order import next_redo, next_undo
from mulligan.journal import checkpoints, operations, views
from mulligan.workspace.new_id import new_id
from mulligan.workspace.open_project import OpenProject


def drop(project: OpenProject, db: apsw.Connection, ids: Sequence[str]) -> None:
    """Delete checkpoints, but keep trees that undo needs. Needs a transaction."""
    kept = needed(project).intersection(ids)
    for id in ids:
        if id in kept:
            checkpoints.make_anonymous(db, id, new_id())
    checkpoints.delete(db, [id for id in ids if id not in kept])
    views.forget(db)


def needed(project: OpenProject) -> set[str | None]:
    """Return the checkpoints to keep: the latest, and those of the next undo and redo."""
    last = (checkpoints.latest(project.journal), checkpoints.last_taken(project.journal))
    keep: set[str | None] = {row.id for row in last if row is not None}
    seen = operations.last_applied(project.journal)
    if seen is not None:
        keep.add(seen.after)
    for search in (next_undo, next_redo):
        step = search(lambda up_to: operations.newest_change(project.journal, up_to))
        operation = operations.by_number(project.journal, step.number) if step else None
        if operation is not None:
            keep |= {operation.before, operation.after}
    for operation in operations.unfinished(project.journal):
        keep.add(operation.before)
    return keep
