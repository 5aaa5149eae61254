"""Record which files each agent's own tools wrote last."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import apsw

from mulligan.journal.db import Database


def record(
    db: apsw.Connection,
    session: int,
    contents: Iterable[tuple[bytes, bytes | None]],
    *,
    created_at: str,
    is_open: bool,
) -> None:
    """Record (path, content id) pairs; `is_open` while the tool is still writing."""
    db.executemany(
        "INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?, ?)",
        [(session, path, content, created_at, is_open) for path, content in contents],
    )


def last_writers(db: Database, sessions: Collection[int], since: str) -> dict[bytes, int]:
    """Return the session that writes each path, or wrote it last since a moment."""
    marks = ", ".join("?" * len(sessions))
    sql = (
        f"SELECT path, session FROM ledger WHERE session IN ({marks}) "
        "AND (is_open OR created_at >= ?) ORDER BY is_open, created_at"
    )
    return dict(db.rows(sql, *sessions, since))
