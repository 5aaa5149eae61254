"""Carrying what a database has logged over into its file, while whoever wrote it goes on.

Rows whose keys are hashes lie scattered: some hundred of them are as many pages, and to write each
to its place, between two syncs, takes longer than all else that is to be done about them.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

import apsw

CHECKPOINT_PAGES = 500
"""So many in the log, and it is time: then the log begins anew."""


class WalCheckpointer:
    """Sees to the log of one connection. `finish` before that is closed."""

    def __init__(self, db: apsw.Connection, path: str) -> None:
        self._path = path
        self._thread: Thread | None = None
        # In place of what SQLite would do by itself, before it says that a commit is done.
        db.set_wal_hook(self._on_commit)

    def finish(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _on_commit(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        if pages < CHECKPOINT_PAGES or (self._thread is not None and self._thread.is_alive()):
            return apsw.SQLITE_OK
        thread = Thread(target=self._checkpoint, name="mulligan-index")
        with suppress(RuntimeError):
            # If no thread is to be had, the log grows until the next commit.
            thread.start()
            self._thread = thread
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        # Whatever is wrong, the log still has everything, and the next commit tries again.
        with suppress(apsw.Error):
            own = apsw.Connection(self._path)
            try:
                # A connection that has never read anything does not know of the log.
                own.execute("PRAGMA schema_version").fetchall()
                # As much as is possible without waiting for anybody.
                own.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            finally:
                own.close()
