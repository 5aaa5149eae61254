"""Index the packs in SQLite: where each object lies. Derived, and rebuilt when lost.

The table `doomed` names packs that the garbage collector has emptied and not yet deleted.
`generation` changes whenever objects are removed, so that caches of ids know to check again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from operator import attrgetter
from threading import RLock
from typing import Any, NamedTuple

import apsw

from mulligan import sqlite_readonly
from mulligan.errors import Busy, Corrupt, MulliganError, NewerFormat, write_failed
from mulligan.store.packs import Record, pack_name, pack_number
from mulligan.store.wal_checkpointer import WalCheckpointer

SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
  id BLOB PRIMARY KEY, pack INTEGER NOT NULL, offset INTEGER NOT NULL, encoding INTEGER NOT NULL,
  size INTEGER NOT NULL, stored INTEGER NOT NULL, base BLOB, depth INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS packs (
  number INTEGER PRIMARY KEY, end INTEGER NOT NULL, whole INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE IF NOT EXISTS doomed (number INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS meta (generation INTEGER NOT NULL, last_pack INTEGER NOT NULL);
INSERT INTO meta SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM meta);
PRAGMA user_version = 1;
"""
SMALL_BATCH_ROWS, LARGE_BATCH_ROWS = 16, 128
MAX_CACHED_RECORDS = 1 << 13
BUSY_TIMEOUT_MS = 10_000


class PackSummary(NamedTuple):
    """The state of all packs, without their objects."""

    generation: int
    last_pack: int
    """The highest number ever used; another process may still read a deleted pack."""
    packs: dict[int, int]
    """The indexed packs, and the offset where each ends."""
    truncated: frozenset[int]
    """Packs that end in a partial record; writers must not append to them."""
    pending_delete: tuple[int, ...]


class PackIndex:
    """The index of one `objects` directory. Safe to use from several threads."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._lock = RLock()
        # The error for writes, if the database is open read-only.
        self._read_only_error: MulliganError | None = None
        # Both caches hold the `data_version` that they are valid for.
        self._summary: tuple[int, PackSummary] | None = None
        self._recent: tuple[int, dict[bytes, Record]] = (-1, {})
        self._path = os.path.join(directory, "index.sqlite")
        with self._translated():
            try:
                self._connect()
            except (apsw.NotADBError, apsw.CorruptError):
                self._recreate()

    def _connect(self) -> None:
        self._read_only_error = None
        try:
            self._db = _connect_to_write(self._path)
        except sqlite_readonly.FAILURES as problem:
            if not os.path.exists(self._path):
                raise
            self._read_only_error = self._failed(problem)
            self._db = _connect_to_read(self._path)
        self._checkpointer = WalCheckpointer(self._db, self._path)
        self._opened_file = _file_id(self._path)
        self._summary = None
        self._recent = (-1, {})

    def _disconnect(self) -> None:
        self._checkpointer.finish()
        self._db.close()

    def is_damaged(self) -> bool:
        """Run SQLite's integrity check; True if it fails."""
        with self._lock:
            try:
                rows: Any = self._db.execute("PRAGMA integrity_check").fetchall()
            except (apsw.CorruptError, apsw.NotADBError):
                return True
        return bool(rows != [("ok",)])

    def summary(self) -> PackSummary:
        """Return the state of all packs, cached until the next write."""
        with self._lock, self._translated():
            version = self._version()
            if self._summary is None or self._summary[0] != version:
                self._summary = (version, self._read_summary())
            return self._summary[1]

    def _version(self) -> int:
        """Return a number that changes with commits of other connections."""
        row: Any = self._db.execute("PRAGMA data_version").fetchone()
        return int(row[0])

    def _read_summary(self) -> PackSummary:
        # Touch both ends of the B-tree, to notice a damaged table early.
        self._db.execute("SELECT * FROM objects LIMIT 1").fetchall()
        self._db.execute("SELECT * FROM objects ORDER BY id DESC LIMIT 1").fetchall()
        meta: Any = self._db.execute("SELECT generation, last_pack FROM meta").fetchone()
        packs: Any = self._db.execute("SELECT number, end, whole FROM packs").fetchall()
        doomed: Any = self._db.execute("SELECT number FROM doomed").fetchall()
        return PackSummary(
            generation=meta[0],
            last_pack=meta[1],
            packs={number: end for number, end, _whole in packs},
            truncated=frozenset(number for number, _end, whole in packs if not whole),
            pending_delete=tuple(number for (number,) in doomed),
        )

    def is_unreadable(self) -> bool:
        """True if the database is too damaged to be read."""
        try:
            self.summary()
        except Corrupt:
            return True
        return False

    def rebuild(self) -> None:
        """Set a damaged database aside; the next `Store.repair` indexes the packs again."""
        with self._lock:
            self._disconnect()
            self._recreate()

    @contextmanager
    def synced(self) -> Iterator[None]:
        """Sync each commit, because packs are deleted after it."""
        with self._lock, self._translated():
            self._db.execute("PRAGMA synchronous = FULL")
            try:
                yield
            finally:
                self._db.execute("PRAGMA synchronous = NORMAL")

    def _recreate(self) -> None:
        """Set the database aside, and create an empty one."""
        os.replace(self._path, f"{self._path}.damaged")
        for ending in ("-wal", "-shm"):
            if os.path.exists(self._path + ending):
                os.unlink(self._path + ending)
        self._connect()
        last_pack = max((number for number, _start, _end in self.unindexed({})), default=0)
        # A new generation invalidates caches of ids; pack numbers are never reused.
        self._db.execute(
            "UPDATE meta SET generation = ?, last_pack = ?", (_random_generation(), last_pack)
        )
        self._summary = None

    def reopen_if_replaced(self) -> None:
        """Reconnect if the database file was deleted or replaced."""
        with self._lock, self._translated():
            if _file_id(self._path) != self._opened_file:
                self._disconnect()
                self._connect()

    @contextmanager
    def _writing(self, *, keep_cache: bool = False) -> Iterator[None]:
        """Run one transaction; `keep_cache` if no existing row changes."""
        if self._read_only_error is not None:
            raise self._read_only_error
        with self._translated():
            if not keep_cache:
                self._recent = (-1, {})
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            finally:
                self._summary = None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise errors of SQLite as Mulligan's."""
        try:
            yield
        except (apsw.BusyError, apsw.LockedError) as problem:
            raise Busy(f"{self._path} is held by another process; try again.") from problem
        except (apsw.NotADBError, apsw.CorruptError) as problem:
            raise Corrupt(
                f"{self._path} is damaged; `mulligan verify --repair` rebuilds it."
            ) from problem
        except apsw.NoMemError as problem:
            raise MemoryError(str(problem)) from problem
        except sqlite_readonly.FAILURES as problem:
            raise self._failed(problem) from problem

    def _failed(self, problem: apsw.Error) -> MulliganError:
        code = sqlite_readonly.system_error(problem, getattr(self, "_db", None))
        return write_failed(self._path, code, problem)

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def find(self, id: bytes) -> Record | None:
        row = self._one("SELECT * FROM objects WHERE id = ?", id)
        return Record(*row) if row else None

    def find_many(self, ids: Collection[bytes]) -> dict[bytes, Record]:
        """Return the records of all indexed ids among `ids`."""
        with self._lock, self._translated():
            recent = self._cached_records()
            by_id = {id: recent[id] for id in ids if id in recent}
            remaining = iter([id for id in ids if id not in by_id] if by_id else ids)
            while batch := list(islice(remaining, LARGE_BATCH_ROWS)):
                # Pad to one of two sizes, so that only two statements are ever prepared.
                slots = LARGE_BATCH_ROWS if len(batch) > SMALL_BATCH_ROWS else SMALL_BATCH_ROWS
                batch += batch[-1:] * (slots - len(batch))
                sql = f"SELECT * FROM objects WHERE id IN ({','.join('?' * slots)})"
                rows: Any = self._db.execute(sql, batch).fetchall()
                records = [Record._make(row) for row in rows]
                by_id.update([(record.id, record) for record in records])
                self._cache_records(records)
        return by_id

    def _cached_records(self) -> dict[bytes, Record]:
        """Return the recent records, emptied if another connection has written."""
        version = self._version()
        if self._recent[0] != version:
            self._recent = (version, {})
        return self._recent[1]

    def _cache_records(self, records: list[Record]) -> None:
        recent = self._recent[1]
        if len(recent) + len(records) > MAX_CACHED_RECORDS:
            recent.clear()
        recent.update([(record.id, record) for record in records[-MAX_CACHED_RECORDS:]])

    def has(self, id: bytes) -> bool:
        return self._one("SELECT 1 FROM objects WHERE id = ?", id) is not None

    def _one(self, sql: str, id: bytes) -> Any:
        # Called for every file of a project, so the context manager is entered only on errors.
        try:
            with self._lock:
                return self._db.execute(sql, (id,)).fetchone()
        except apsw.Error:
            with self._translated():
                raise

    def all(self) -> Iterator[Record]:
        """Return every record, by pack and offset."""
        with self._lock, self._translated():
            rows: Any = self._db.execute("SELECT * FROM objects ORDER BY pack, offset").fetchall()
        return (Record(*row) for row in rows)

    def count(self) -> tuple[int, int]:
        """Return the number of objects, and their bytes in the packs."""
        with self._lock, self._translated():
            row: Any = self._db.execute("SELECT count(*), total(stored) FROM objects").fetchone()
        return int(row[0]), int(row[1])

    def add(
        self,
        records: Iterable[Record],
        ends: dict[int, int],
        *,
        truncated: Container[int] = (),
        replacing: bool = False,
    ) -> None:
        """Index synced objects and the ends of their packs, in one transaction.

        `truncated` packs end in a partial record.
        """
        conflict = "REPLACE" if replacing else "IGNORE"
        # In key order: random inserts into a B-tree are slower.
        rows = sorted(records, key=attrgetter("id"))
        with self._lock:
            with self._writing(keep_cache=not replacing):
                before = self._db.total_changes()
                self._insert(rows, conflict)
                are_all_new = self._db.total_changes() - before == len(rows)
                self._set_ends(ends, truncated)
            if are_all_new and self._recent[0] >= 0:
                self._cache_records(rows)

    def replace_pack(self, old: int, moved: Iterable[Record], ends: dict[int, int]) -> None:
        """Point objects of a pack to their copies, and schedule the pack for deletion."""
        with self._lock, self._writing():
            self._insert(list(moved), "REPLACE")
            self._set_ends(ends, ())
            self._db.execute("DELETE FROM packs WHERE number = ?", (old,))
            self._db.execute("INSERT OR IGNORE INTO doomed VALUES (?)", (old,))

    def drop(self, ids: Iterable[bytes]) -> None:
        """Remove objects from the index, so that writers store them again."""
        with self._lock, self._writing():
            self._db.executemany("DELETE FROM objects WHERE id = ?", [(id,) for id in ids])
            self._db.execute("UPDATE meta SET generation = generation + 1")

    def drop_missing_packs(self) -> None:
        """Remove packs without a file; the caller has dropped their objects."""
        for number in self.summary().packs:
            if not os.path.exists(os.path.join(self.directory, pack_name(number))):
                with self._lock, self._writing():
                    self._db.execute("DELETE FROM packs WHERE number = ?", (number,))

    def purge(self, unlink: Callable[[str], None] = os.unlink) -> None:
        """Delete the packs that are scheduled for deletion."""
        with self._lock, self._translated():
            for number in self.summary().pending_delete:
                try:
                    unlink(os.path.join(self.directory, pack_name(number)))
                except FileNotFoundError:
                    pass
                with self._writing():
                    self._db.execute("DELETE FROM doomed WHERE number = ?", (number,))

    def unindexed(self, known: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
        """Yield (number, start, end) of pack data that is not indexed.

        `known` is `summary().packs`.
        """
        for name in sorted(os.listdir(self.directory)):
            number = pack_number(name)
            if number is not None:
                end = os.path.getsize(os.path.join(self.directory, name))
                start = known.get(number, 0)
                if number not in known or start != end:
                    yield number, start, end

    def _insert(self, rows: list[Record], conflict: str) -> None:
        """Insert rows in batches: starting a statement costs as much as inserting a row."""
        batched = len(rows) - len(rows) % SMALL_BATCH_ROWS
        for start, end, count in ((0, batched, SMALL_BATCH_ROWS), (batched, len(rows), 1)):
            values = ",".join(["(?,?,?,?,?,?,?,?)"] * count)
            self._db.executemany(
                f"INSERT OR {conflict} INTO objects VALUES {values}",
                (tuple(chain(*rows[at : at + count])) for at in range(start, end, count)),
            )

    def _set_ends(self, ends: dict[int, int], truncated: Container[int]) -> None:
        rows = [(number, end, number not in truncated) for number, end in ends.items()]
        self._db.executemany("INSERT OR REPLACE INTO packs VALUES (?,?,?)", rows)
        if ends:
            self._db.execute("UPDATE meta SET last_pack = max(last_pack, ?)", (max(ends),))


def _file_id(path: str) -> tuple[int, int] | None:
    """Return device and inode of the file at `path`, if it exists."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _random_generation() -> int:
    return int.from_bytes(os.urandom(6))


def _connect_to_read(path: str) -> apsw.Connection:
    db = sqlite_readonly.connect(path)
    row: Any = db.execute("PRAGMA user_version").fetchone()
    if row[0] != 1:
        db.close()
        raise NewerFormat(f"{path} has another format than this Mulligan's; nothing was changed.")
    return db


def _connect_to_write(path: str) -> apsw.Connection:
    db = apsw.Connection(path)
    db.set_busy_timeout(BUSY_TIMEOUT_MS)
    row: Any = db.execute("PRAGMA user_version").fetchone()
    if row[0] > 1:
        db.close()
        raise NewerFormat(f"{path} was written by a later Mulligan; use that one.")
    # Hashes are scattered, so each new row logs a page of its own: keep pages small.
    db.execute("PRAGMA page_size = 1024")
    db.execute("PRAGMA journal_mode = WAL")
    # Rows lost in a power loss are still in the packs, and are indexed again.
    db.execute("PRAGMA synchronous = NORMAL")
    if row[0] == 0:
        db.execute("BEGIN IMMEDIATE")
        db.execute(SCHEMA)
        # If a lost index is made again, a new generation invalidates caches of ids.
        db.execute("UPDATE meta SET generation = ?", (_random_generation(),))
        db.execute("COMMIT")
    return db
