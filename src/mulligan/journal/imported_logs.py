"""Remember how each log looked when it was last imported."""

from __future__ import annotations

from mulligan.journal.db import Database

MIGRATIONS = (
    """
    CREATE TABLE sources (
      agent TEXT NOT NULL,
      path TEXT NOT NULL,
      part TEXT NOT NULL,
      looks TEXT NOT NULL,
      PRIMARY KEY (agent, path, part)
    ) WITHOUT ROWID;
    """,
)


def fingerprint(db: Database, agent: str, path: str, part: str) -> str | None:
    """Return the log's fingerprint as of its last import by this agent's importer."""
    sql = "SELECT looks FROM sources WHERE agent = ? AND path = ? AND part = ?"
    row = db.row(sql, agent, path, part)
    return row[0] if row else None


def record(db: Database, agent: str, path: str, part: str, fingerprint: str) -> None:
    """Store a log's fingerprint, in a transaction of its own."""
    with db.writing() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?)", (agent, path, part, fingerprint)
        )
