"""Read the earlier views of sessions, with the tree on disk at each of them."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from mulligan.core.ids import TreeId
from mulligan.journal.db import Database
from mulligan.journal.views import View


class PastView(NamedTuple):
    """A view as an operation recorded it, and the tree on disk after the operation.

    `is_own`: the operation belongs to the view's session.
    """

    session: int
    view: View
    tree: TreeId
    kind: str
    summary: dict[str, Any]
    is_own: bool


def of_other_sessions(
    db: Database, session: int | None, before: int | None, limit: int
) -> Iterator[PastView]:
    """Yield views of all sessions but one, before an operation, newest first."""
    sql = (
        "SELECT v.session, v.round, v.approved, v.written, v.base, c.tree, o.kind, o.summary, "
        "o.session IS s.id FROM views v JOIN operations o ON o.number = v.operation "
        "JOIN checkpoints c ON c.id = o.after JOIN sessions s ON s.number = v.session "
        "WHERE v.session IS NOT ? AND v.operation < ? ORDER BY v.operation DESC LIMIT ?"
    )
    rows = db.rows(sql, session, (1 << 62) if before is None else before, limit)
    for number, *view, tree, kind, summary, is_own in rows:
        yield PastView(number, View(*view), tree, kind, json.loads(summary), bool(is_own))


def written_not_on_disk(db: Database, session: int, limit: int) -> list[tuple[TreeId, TreeId]]:
    """Return (written, tree on disk) where the two differed, newest first."""
    sql = (
        "SELECT v.written, c.tree FROM views v JOIN operations o ON o.number = v.operation "
        "JOIN checkpoints c ON c.id = o.after WHERE v.session = ? AND v.written <> c.tree "
        "ORDER BY v.operation DESC LIMIT ?"
    )
    return [(written, tree) for written, tree in db.rows(sql, session, limit)]
