"""Keep the paths that are always included, even if an ignore rule excludes them."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from mulligan.journal.db import Database


def add(db: apsw.Connection, paths: Iterable[bytes], since: int | None) -> None:
    """Add paths; `since` is the `seq` of the last checkpoint that may lack them."""
    db.executemany(
        "INSERT OR IGNORE INTO forced (path, since) VALUES (?, ?)",
        [(path, since) for path in paths],
    )


def paths(db: Database) -> list[bytes]:
    """Return all paths, sorted."""
    return [path for (path,) in db.rows("SELECT path FROM forced ORDER BY path")]


def with_since(db: Database) -> list[tuple[bytes, int | None]]:
    """Return (path, since) of all paths, by `since`."""
    return db.rows("SELECT path, since FROM forced ORDER BY since")
