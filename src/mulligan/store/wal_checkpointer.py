"""Run WAL checkpoints in a background thread.

Rows keyed by hashes are scattered over the file: a hundred rows are a hundred pages. To write them
back between two syncs would take longer than the rest of the commit.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

import apsw

CHECKPOINT_PAGES = 500


class WalCheckpointer:
    """Checkpoints the WAL of one connection; call `finish` before closing it."""

    def __init__(self, db: apsw.Connection, path: str) -> None:
        self._path = path
        self._thread: Thread | None = None
        # Replaces SQLite's own checkpoint, which runs within the commit.
        db.set_wal_hook(self._on_commit)

    def finish(self) -> None:
        """Wait for a running checkpoint."""
        if self._thread is not None:
            self._thread.join()

    def _on_commit(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        if pages < CHECKPOINT_PAGES or (self._thread is not None and self._thread.is_alive()):
            return apsw.SQLITE_OK
        thread = Thread(target=self._checkpoint, name="mulligan-index")
        with suppress(RuntimeError):
            # Without a free thread the log grows until the next commit.
            thread.start()
            self._thread = thread
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        # On failure nothing is lost: the log keeps everything, and the next commit retries.
        with suppress(apsw.Error):
            own = apsw.Connection(self._path)
            try:
                # A connection opens the WAL only when it first reads.
                own.execute("PRAGMA schema_version").fetchall()
                # PASSIVE never waits for readers or writers.
                own.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            finally:
                own.close()
