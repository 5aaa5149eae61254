"""Open a SQLite file in WAL mode without writing a byte: on a read-only or full disk.

A reader of such a file writes too: it makes the log's index (`-shm`), and the log if there is none.

1. If log and index are there and readable, SQLite reads both as they are, with its usual locks.
2. If there is no log, the file itself is all there is: it is opened as immutable.
3. If there is a log without a usable index, SQLite makes the index in memory. It does that only
   for a file that is its own, so the locks are left out.

In 2 and 3 another process that writes at the same time is not noticed. Where this process may not
write, another rarely does; what a reader then finds torn is reported as damaged, never as content.
"""

from __future__ import annotations

import errno
import os
from urllib.parse import quote

import apsw

BUSY_MILLISECONDS = 10_000
FAILURES = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.FullError)
"""What SQLite raises where it cannot write to a file, or beside it."""


def system_error(problem: apsw.Error, db: apsw.Connection | None) -> int | None:
    """The system's error number behind one of `FAILURES`, where SQLite tells."""
    if isinstance(problem, apsw.ReadOnlyError):
        return errno.EROFS
    if isinstance(problem, apsw.FullError):
        return errno.ENOSPC
    try:
        return db.system_errno or None if db is not None else None
    except apsw.ConnectionClosedError:
        return None


def connect(path: str) -> apsw.Connection:
    """A connection that reads `path` as of its last commit; raises what SQLite does."""
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"
    if not _has_content(f"{path}-wal"):
        return _opened(f"{address}&immutable=1")
    if os.path.exists(f"{path}-shm"):
        try:
            return _opened(address)
        except FAILURES:
            pass
    return _opened(address, vfs="unix-none", pragma="locking_mode = EXCLUSIVE")


def _opened(address: str, *, vfs: str | None = None, pragma: str | None = None) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    db = apsw.Connection(address, flags=flags, vfs=vfs)
    try:
        db.set_busy_timeout(BUSY_MILLISECONDS)
        if pragma is not None:
            db.execute(f"PRAGMA {pragma}")
        db.execute("SELECT * FROM sqlite_schema LIMIT 1").fetchall()
    except BaseException:
        db.close()
        raise
    return db


def _has_content(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except OSError:
        return False
