"""Opening a SQLite file the way Mulligan keeps them all: WAL, full sync, one writer, migrated."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

import apsw

from mulligan import sqlite_readonly
from mulligan.errors import Busy, Corrupt, MulliganError, NewerFormat, UsageError, write_failed

BUSY_MILLISECONDS = 10_000
MEMORY = ":memory:"
"""The path of a database that no file holds."""
PREFIX_MIN_CHARACTERS = 4
"""Users name things by a beginning of their ids that is at least so long."""
PAGE_BYTES = 1024
"""Of a new file: a checkpoint adds a few small rows, and each page of them is logged."""
LOG_PAGES = 500
"""So many are logged before they are carried over into the file, and the log begins anew."""


class Database:
    """One SQLite file. Safe to use from several threads; transactions may not interleave.

    Where it cannot be written to, it is opened for reading, without a byte written beside it.
    """

    def __init__(
        self, path: str, migrations: Sequence[str], *, page_bytes: int = PAGE_BYTES
    ) -> None:
        self.path = path
        self._lock = RLock()
        # Why it is open for reading only, if it is.
        self._refusal: MulliganError | None = None
        if path != MEMORY:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with self._translated():
            try:
                self._connect(len(migrations), page_bytes)
            except sqlite_readonly.FAILURES as problem:
                if not os.path.exists(path):
                    raise
                self._refusal = self._failed(problem)
                self._db = sqlite_readonly.connect(path)
                self._refuse_newer(len(migrations))
        self._migrate(migrations)

    def _connect(self, known: int, page_bytes: int) -> None:
        self._db = apsw.Connection(self.path)
        self._db.set_busy_timeout(BUSY_MILLISECONDS)
        # Before anything else: what a later Mulligan wrote is not touched at all.
        self._refuse_newer(known)
        self._db.execute(f"PRAGMA page_size = {page_bytes}")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
        self._db.execute("PRAGMA foreign_keys = ON")

    def leave_log(self) -> None:
        """Closing will not carry the log over into the file: whoever opens it next goes on with it.

        What was committed is safe in the log. To carry it over takes more syncs than to commit,
        and a hook's agent would wait for them.
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
        """The first row, or `None`."""
        with self._lock, self._translated():
            return self._db.execute(sql, values).fetchone()

    @contextmanager
    def writing_without_sync(self) -> Iterator[apsw.Connection]:
        """One transaction that a power loss may take back, though never a killed process.

        Transactions after it are synced with it: order is kept.
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
        """One transaction that may write; all of it happens, or nothing."""
        if self._refusal is not None:
            raise self._refusal
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
                f"{self.path} has format {version}, and this Mulligan knows up to {known}. "
                "Nothing was changed; use the newer Mulligan."
            )

    def _migrate(self, migrations: Sequence[str]) -> None:
        with self._translated():
            version = self._version()
        while version < len(migrations):
            with self.writing() as db:
                # Another process may have migrated while this one waited for the lock.
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
        try:
            yield
        except UnicodeEncodeError as problem:
            raise UsageError(
                f"{ascii(problem.object)[:60]} holds half a character (a lone surrogate); no text "
                "that is kept or searched for can. Nothing was changed."
            ) from problem
        except (apsw.BusyError, apsw.LockedError) as problem:
            raise Busy(f"{self.path} is held by another process; try again.") from problem
        except (apsw.NotADBError, apsw.CorruptError, apsw.SQLError) as problem:
            raise Corrupt(
                f"{self.path} cannot be read as a database ({problem}). Nothing was changed; "
                "keep the file, and put a copy from a backup in its place."
            ) from problem
        except apsw.NoMemError as problem:
            raise MemoryError(str(problem)) from problem
        except sqlite_readonly.FAILURES as problem:
            raise self._failed(problem) from problem

    def _failed(self, problem: apsw.Error) -> MulliganError:
        code = sqlite_readonly.system_error(problem, getattr(self, "_db", None))
        return write_failed(self.path, code, problem)
