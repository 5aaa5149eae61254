"""Open SQLite files as Mulligan keeps them: WAL, full sync, migrated."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

import apsw

from mulligan import sqlite_readonly
from mulligan.errors import Busy, Corrupt, MulliganError, NewerFormat, UsageError, write_failed

BUSY_TIMEOUT_MS = 10_000
MEMORY = ":memory:"
PREFIX_MIN_CHARACTERS = 4
"""Users type at least this much of an id."""
PAGE_BYTES = 1024
"""Page size of a new file: small, because commits add few rows and log whole pages."""
CHECKPOINT_PAGES = 500


class Database:
    """One SQLite file. Safe to use from several threads; transactions do not interleave.

    If it cannot be written to, it is opened read-only, and no file is created beside it.
    """

    def __init__(
        self, path: str, migrations: Sequence[str], *, page_bytes: int = PAGE_BYTES
    ) -> None:
        self.path = path
        self._lock = RLock()
        # The error for writes, if the database is open read-only.
        self._read_only_error: MulliganError | None = None
        if path != MEMORY:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with self._translated():
            try:
                self._connect(len(migrations), page_bytes)
            except sqlite_readonly.FAILURES as problem:
                if not os.path.exists(path):
                    raise
                self._read_only_error = self._failed(problem)
                self._db = sqlite_readonly.connect(path)
                self._refuse_newer(len(migrations))
        self._migrate(migrations)

    def _connect(self, known: int, page_bytes: int) -> None:
        self._db = apsw.Connection(self.path)
        self._db.set_busy_timeout(BUSY_TIMEOUT_MS)
        # Before any write: a file of a later format must not change.
        self._refuse_newer(known)
        self._db.execute(f"PRAGMA page_size = {page_bytes}")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        self._db.execute("PRAGMA foreign_keys = ON")

    def leave_log(self) -> None:
        """Skip the WAL checkpoint on close; the next process continues the log.

        Commits are safe in the log. A checkpoint takes more syncs than a commit, and the agent
        waits for its hook.
        """
        with self._lock:
            self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def rows(self, sql: str, *values: Any) -> list[Any]:
        with self._lock, self._translated():
            return self._db.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> Any:
        """Return the first row, or `None`."""
        with self._lock, self._translated():
            return self._db.execute(sql, values).fetchone()

    def integrity_problems(self) -> list[str]:
        """Return what SQLite's integrity check reports; empty if the file is sound."""
        reports = [row[0] for row in self.rows("PRAGMA integrity_check")]
        return [] if reports == ["ok"] else reports

    @contextmanager
    def writing_without_sync(self) -> Iterator[apsw.Connection]:
        """Run a transaction that survives a kill, but perhaps not a power loss.

        The next synced transaction makes it durable, so order is kept.
        """
        with self._lock:
            self._db.execute("PRAGMA synchronous = NORMAL")
            try:
                with self.writing() as db:
                    yield db
            finally:
                self._db.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """Run one write transaction; an exception rolls it back."""
        if self._read_only_error is not None:
            raise self._read_only_error
        with self._lock, self._translated():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _refuse_newer(self, known: int) -> None:
        version = self._version()
        if version > known:
            self.close()
            raise NewerFormat(
                f"{self.path} has format {version}; this Mulligan supports up to {known}. "
                "Nothing was changed; use the newer Mulligan."
            )

    def _migrate(self, migrations: Sequence[str]) -> None:
        with self._translated():
            version = self._version()
        while version < len(migrations):
            with self.writing() as db:
                # Another process may have migrated before this one got the lock.
                version = self._version()
                if version < len(migrations):
                    db.execute(migrations[version])
                    version += 1
                    db.execute(f"PRAGMA user_version = {version}")

    def _version(self) -> int:
        row: Any = self._db.execute("PRAGMA user_version").fetchone()
        return int(row[0])

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise errors of SQLite as Mulligan's."""
        try:
            yield
        except UnicodeEncodeError as problem:
            raise UsageError(
                f"{ascii(problem.object)[:60]} holds a lone surrogate (half a character), which "
                "cannot be stored or searched for. Nothing was changed."
            ) from problem
        except (apsw.BusyError, apsw.LockedError) as problem:
            raise Busy(f"{self.path} is held by another process; try again.") from problem
        except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError) as problem:
            raise Corrupt(
                f"{self.path} cannot be read as a database ({problem}). Nothing was changed; "
                "keep the file, and restore a copy from a backup."
            ) from problem
        except apsw.NoMemError as problem:
            raise MemoryError(str(problem)) from problem
        except sqlite_readonly.FAILURES as problem:
            raise self._failed(problem) from problem

    def _failed(self, problem: apsw.Error) -> MulliganError:
        code = sqlite_readonly.system_error(problem, getattr(self, "_db", None))
        return write_failed(self.path, code, problem)
