"""The index of the packs: where each object lies. Derived, in SQLite, rebuilt when lost.

`doomed` names packs that the garbage collector has emptied and was about to delete; `generation`
counts the times that objects were removed, so that caches which remember identities can tell
that some of them may be gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
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
CACHED_RECORDS = 1 << 13
"""So many records are remembered: those listed last, and those last asked for."""


class PackSummary(NamedTuple):
    """All that the index knows but for the objects themselves."""

    generation: int
    last_pack: int
    """The highest number that a pack ever had: numbers are not used again, because another
    process may still read the pack that had one."""
    packs: dict[int, int]
    """The known packs and where each ends."""
    truncated: frozenset[int]
    """Packs that do not end with a whole record, and are not to be appended to."""
    pending_delete: tuple[int, ...]


class PackIndex:
    """The rows of one `objects` directory. Safe to use from several threads."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._lock = RLock()
        # Why it is open for reading only, if it is.
        self._refusal: MulliganError | None = None
        self._summary: tuple[int, PackSummary] | None = None
        self._recent: tuple[int, dict[bytes, Record]] = (-1, {})
        self._path = os.path.join(directory, "index.sqlite")
        with self._translated():
            try:
                self._connect()
            except (apsw.NotADBError, apsw.CorruptError):
                self._recreate()

    def _connect(self) -> None:
        self._refusal = None
        try:
            self._db = _connect_to_write(self._path)
        except sqlite_readonly.FAILURES as problem:
            if not os.path.exists(self._path):
                raise
            self._refusal = self._failed(problem)
            self._db = _connect_to_read(self._path)
        self._write_back = WalCheckpointer(self._db, self._path)
        self._opened = _file(self._path)
        self._summary = None
        self._recent = (-1, {})

    def _disconnect(self) -> None:
        self._write_back.finish()
        self._db.close()

    def is_damaged(self) -> bool:
        """Whether the database itself is not as it should be; looks at all of it."""
        with self._lock:
            try:
                rows: Any = self._db.execute("PRAGMA integrity_check").fetchall()
            except (apsw.CorruptError, apsw.NotADBError):
                return True
        return bool(rows != [("ok",)])

    def summary(self) -> PackSummary:
        """Read anew only when somebody has written since."""
        with self._lock, self._translated():
            version = self._version()
            if self._summary is None or self._summary[0] != version:
                self._summary = (version, self._read_summary())
            return self._summary[1]

    def _version(self) -> int:
        """Changes with what other connections commit; our own commits drop what is remembered."""
        row: Any = self._db.execute("PRAGMA data_version").fetchone()
        return int(row[0])

    def _read_summary(self) -> PackSummary:
        # Not only what is asked for: one that is damaged inside is to be noticed early.
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
        """Whether not even a glance at it succeeds."""
        try:
            self.summary()
        except Corrupt:
            return True
        return False

    def rebuild(self) -> None:
        """Sets a damaged database aside; the packs will be listed again as strays."""
        with self._lock:
            self._disconnect()
            self._recreate()

    @contextmanager
    def synced(self) -> Iterator[None]:
        """Within this, what is written is synced: packs are about to be deleted on its strength."""
        with self._lock, self._translated():
            self._db.execute("PRAGMA synchronous = FULL")
            try:
                yield
            finally:
                self._db.execute("PRAGMA synchronous = NORMAL")

    def _recreate(self) -> None:
        # Derived data: set aside rather than deleted, and made again from the packs.
        os.replace(self._path, f"{self._path}.damaged")
        for ending in ("-wal", "-shm"):
            if os.path.exists(self._path + ending):
                os.unlink(self._path + ending)
        self._connect()
        highest = max((number for number, _start, _end in self.unindexed({})), default=0)
        # Whoever remembers identities must ask again, and no number may come twice.
        generation = int.from_bytes(os.urandom(6))
        self._db.execute("UPDATE meta SET generation = ?, last_pack = ?", (generation, highest))
        self._summary = None

    def reopen_if_replaced(self) -> None:
        """If somebody has deleted it, or made it again, what we have open counts no more."""
        with self._lock, self._translated():
            if _file(self._path) != self._opened:
                self._disconnect()
                self._connect()

    @contextmanager
    def _writing(self, *, more: bool = False) -> Iterator[None]:
        """One transaction. `more`: whatever is listed stays listed as it is."""
        if self._refusal is not None:
            raise self._refusal
        with self._translated():
            if not more:
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
        try:
            yield
        except (apsw.BusyError, apsw.LockedError) as problem:
            raise Busy(f"{self._path} is held by another process; try again.") from problem
        except (apsw.NotADBError, apsw.CorruptError) as problem:
            raise Corrupt(
                f"{self._path} is damaged; `mulligan verify --repair` makes it again."
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
        """Those of the objects that are listed, asked for together."""
        with self._lock, self._translated():
            recent = self._cached_records()
            found = {id: recent[id] for id in ids if id in recent}
            wanted = iter([id for id in ids if id not in found] if found else ids)
            while some := list(islice(wanted, LARGE_BATCH_ROWS)):
                # Always the same few statements, so that they are prepared once.
                slots = LARGE_BATCH_ROWS if len(some) > SMALL_BATCH_ROWS else SMALL_BATCH_ROWS
                some += some[-1:] * (slots - len(some))
                sql = f"SELECT * FROM objects WHERE id IN ({','.join('?' * slots)})"
                rows: Any = self._db.execute(sql, some).fetchall()
                records = [Record._make(row) for row in rows]
                found.update([(record.id, record) for record in records])
                self._cache_records(records)
        return found

    def _cached_records(self) -> dict[bytes, Record]:
        """The records that were listed or found last, if nobody else has written since."""
        version = self._version()
        if self._recent[0] != version:
            self._recent = (version, {})
        return self._recent[1]

    def _cache_records(self, records: list[Record]) -> None:
        recent = self._recent[1]
        if len(recent) + len(records) > CACHED_RECORDS:
            recent.clear()
        recent.update([(record.id, record) for record in records[-CACHED_RECORDS:]])

    def has(self, id: bytes) -> bool:
        return self._one("SELECT 1 FROM objects WHERE id = ?", id) is not None

    def _one(self, sql: str, id: bytes) -> Any:
        # Asked for every file of a project: no context manager stands in the way here.
        try:
            with self._lock:
                return self._db.execute(sql, (id,)).fetchone()
        except apsw.Error:
            with self._translated():
                raise

    def all(self) -> Iterator[Record]:
        """Every record, in the order of the packs."""
        with self._lock, self._translated():
            rows: Any = self._db.execute("SELECT * FROM objects ORDER BY pack, offset").fetchall()
        return (Record(*row) for row in rows)

    def count(self) -> tuple[int, int]:
        """How many objects there are, and their bytes in the packs."""
        with self._lock, self._translated():
            row: Any = self._db.execute("SELECT count(*), total(stored) FROM objects").fetchone()
        return int(row[0]), int(row[1])

    def add(
        self,
        found: Iterable[Record],
        ends: dict[int, int],
        *,
        torn: Container[int] = (),
        replacing: bool = False,
    ) -> None:
        """Lists objects whose bytes are on the disk, and where their packs end; one transaction.

        A `torn` pack does not end with a whole record, and is not appended to any more.
        """
        conflict = "REPLACE" if replacing else "IGNORE"
        # In the order of the key: a B-tree grows fastest at its end.
        rows = sorted(found, key=_id)
        with self._lock:
            with self._writing(more=not replacing):
                before = self._db.total_changes()
                self._insert(rows, conflict)
                are_all_new = self._db.total_changes() - before == len(rows)
                self._set_ends(ends, torn)
            if are_all_new and self._recent[0] >= 0:
                self._cache_records(rows)

    def replace_pack(self, old: int, moved: Iterable[Record], ends: dict[int, int]) -> None:
        """What lived in a pack now lives elsewhere; the pack is doomed."""
        with self._lock, self._writing():
            self._insert(list(moved), "REPLACE")
            self._set_ends(ends, ())
            self._db.execute("DELETE FROM packs WHERE number = ?", (old,))
            self._db.execute("INSERT OR IGNORE INTO doomed VALUES (?)", (old,))

    def drop(self, ids: Iterable[bytes]) -> None:
        """Objects are gone: from now on, whoever has their content stores it anew."""
        with self._lock, self._writing():
            self._db.executemany("DELETE FROM objects WHERE id = ?", [(id,) for id in ids])
            self._db.execute("UPDATE meta SET generation = generation + 1")

    def drop_missing_packs(self) -> None:
        """Forgets packs whose files are not there; their objects must have been dropped."""
        for number in self.summary().packs:
            if not os.path.exists(os.path.join(self.directory, pack_name(number))):
                with self._lock, self._writing():
                    self._db.execute("DELETE FROM packs WHERE number = ?", (number,))

    def purge(self, unlink: Callable[[str], None] = os.unlink) -> None:
        """Deletes the doomed packs."""
        with self._lock, self._translated():
            for number in self.summary().pending_delete:
                try:
                    unlink(os.path.join(self.directory, pack_name(number)))
                except FileNotFoundError:
                    pass
                with self._writing():
                    self._db.execute("DELETE FROM doomed WHERE number = ?", (number,))

    def unindexed(self, known: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
        """Packs that hold more than is listed: their number, where that begins, where it ends.

        `known` are the packs at a glance.
        """
        for name in sorted(os.listdir(self.directory)):
            number = pack_number(name)
            if number is not None:
                end = os.path.getsize(os.path.join(self.directory, name))
                start = known.get(number, 0)
                if number not in known or start != end:
                    yield number, start, end

    def _insert(self, rows: list[Record], conflict: str) -> None:
        """Several rows a statement: to begin one takes as long as to insert a row."""
        together = len(rows) - len(rows) % SMALL_BATCH_ROWS
        for start, end, count in ((0, together, SMALL_BATCH_ROWS), (together, len(rows), 1)):
            values = ",".join(["(?,?,?,?,?,?,?,?)"] * count)
            self._db.executemany(
                f"INSERT OR {conflict} INTO objects VALUES {values}",
                (tuple(chain(*rows[at : at + count])) for at in range(start, end, count)),
            )

    def _set_ends(self, ends: dict[int, int], torn: Container[int]) -> None:
        rows = [(number, end, number not in torn) for number, end in ends.items()]
        self._db.executemany("INSERT OR REPLACE INTO packs VALUES (?,?,?)", rows)
        if ends:
            self._db.execute("UPDATE meta SET last_pack = max(last_pack, ?)", (max(ends),))


def _file(path: str) -> tuple[int, int] | None:
    """Which file has this name now."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _id(record: Record) -> bytes:
    return record.id


def _connect_to_read(path: str) -> apsw.Connection:
    db = sqlite_readonly.connect(path)
    row: Any = db.execute("PRAGMA user_version").fetchone()
    if row[0] != 1:
        db.close()
        raise NewerFormat(f"{path} was not written by this Mulligan; nothing was changed.")
    return db


def _connect_to_write(path: str) -> apsw.Connection:
    db = apsw.Connection(path)
    db.set_busy_timeout(10_000)
    row: Any = db.execute("PRAGMA user_version").fetchone()
    if row[0] > 1:
        db.close()
        raise NewerFormat(f"{path} was written by a later Mulligan; use that one.")
    # Identities are scattered: each new row is a page of its own in the log.
    db.execute("PRAGMA page_size = 1024")
    db.execute("PRAGMA journal_mode = WAL")
    # What a power loss takes from the index is still in the packs, and is listed again.
    db.execute("PRAGMA synchronous = NORMAL")
    if row[0] == 0:
        db.execute("BEGIN IMMEDIATE")
        db.execute(SCHEMA)
        # One that was lost is made again: whoever remembers identities must ask anew.
        db.execute("UPDATE meta SET generation = ?", (int.from_bytes(os.urandom(6)),))
        db.execute("COMMIT")
    return db
