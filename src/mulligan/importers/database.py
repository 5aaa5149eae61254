"""Database: a foreign SQLite file, read and never written.

Nothing is created beside it either. SQLite itself would: to read a database in WAL mode it makes
a `-shm` and a `-wal` where they are missing, and leaves them behind. So there are three ways in:

- with both there the program runs, or was killed: the file is read in place, as one more reader;
- with a `-wal` alone nobody has it open, and most may be in the log: both are copied to a
  temporary folder, and read there. So it is with a transaction that was never finished;
- with neither the file is all there is: it is read in place as one that does not change, and
  whether it did is looked at in the end.

A database without WAL can always be read in place. Nothing in the file is trusted to be of its
type, and nothing in it is run: views, triggers, virtual tables and generated columns are refused,
values have a largest size, and a read has a largest number of steps.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final
from urllib.parse import quote

import apsw

from mulligan.importers.lines import LINE_LIMIT, open_log

BUSY_TIMEOUT_MS: Final = 2000  # milliseconds to wait for a lock
NAME_LIMIT: Final = 1 << 20  # bytes of an id, a title or a path; of all others LINE_LIMIT
STEPS_MIN: Final = 200_000_000  # of SQLite's virtual machine: some seconds
STEPS_PER_BYTE: Final = 20
STEPS_AT_ONCE: Final = 1_000_000
JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")

Value = int | float | bytes | None


class Unreadable(Exception):
    """The database, or a part of it, cannot be read. Its text says why."""


FAILURES: Final = (apsw.Error, UnicodeDecodeError)
"""What apsw raises while a file is read that is damaged or made to do harm."""


class _NotInPlace(Exception):
    """Only a copy of the database can be read."""


@contextmanager
def opened(path: str) -> Iterator[apsw.Connection]:
    """A connection to read with; what is read sees one moment.

    Raises OSError when the file itself cannot be read, and `Unreadable` for everything else, also
    for what goes wrong while reading.
    """
    _check(path)
    try:
        with _connected(path) as connection:
            connection.execute("BEGIN")
            yield connection
    except FAILURES as error:
        raise Unreadable(reason_of(error)) from error


def is_read_in_place(path: str) -> bool:
    """Whether reading does not begin with a copy of everything."""
    return _is_shared(path) or _size(path + "-wal") == 0


def rows(
    connection: apsw.Connection, table: str, names: tuple[str, ...], condition: str, *values: str
) -> Iterator[dict[str, Value]]:
    """The rows of a table, with those of the columns that it has; texts as they are stored.

    A value larger than anybody wants to read comes as None. Raises `Unreadable` if there is no
    such table, or no such column as the condition needs.
    """
    _check_table(connection, table)
    found = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    columns = [name for (name,) in found if name in names]
    if not columns:
        raise Unreadable(f"The table {table!r} has none of the columns that are known.")
    selected = ", ".join(
        f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN {name}"
        f" WHEN octet_length({name}) <= {LINE_LIMIT if name == 'data' else NAME_LIMIT}"
        f" THEN CAST({name} AS BLOB) END"
        for name in columns
    )
    query = f"SELECT {selected} FROM {table} WHERE {condition}"
    for row in connection.execute(query, values):
        yield dict(zip(columns, row, strict=True))


def decoded(value: Value) -> str:
    """A text as it is stored, or the empty one."""
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _check_table(connection: apsw.Connection, table: str) -> None:
    """Raise `Unreadable` for anything else than a table of plain columns: it may run code."""
    sql = "SELECT type FROM pragma_table_list(?) WHERE schema = 'main'"
    kind = connection.execute(sql, (table,)).fetchone()
    if kind is None:
        raise Unreadable(f"There is no table {table!r} in the database.")
    if kind[0] != "table":
        raise Unreadable(f"{table!r} is a {kind[0]} in the database, and not a table.")
    sql = "SELECT name FROM pragma_table_xinfo(?) WHERE hidden LIMIT 1"
    if connection.execute(sql, (table,)).fetchone() is not None:
        raise Unreadable(f"The table {table!r} has columns that are computed.")


@contextmanager
def _connected(path: str) -> Iterator[apsw.Connection]:
    if _is_shared(path) or not _is_wal(path):
        try:
            with _connection(path, "mode=ro") as connection:
                _look(connection)
                yield connection
            return
        except _NotInPlace:
            pass
    elif is_read_in_place(path):
        before = _state(path)
        with _connection(path, "mode=ro&immutable=1") as connection:
            yield connection
        if _state(path) != before:
            raise Unreadable("The database was changed while it was read; read it again.")
        return
    with _copied(path) as copy, _connection(copy, "mode=rw") as connection:
        yield connection


@contextmanager
def _connection(path: str, mode: str) -> Iterator[apsw.Connection]:
    flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE
    name = f"file:{quote(os.fsencode(os.path.abspath(path)))}?{mode}"
    with closing(apsw.Connection(name, flags=flags)) as connection:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        for setting in (
            apsw.SQLITE_DBCONFIG_ENABLE_VIEW,
            apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER,
            apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA,
        ):
            connection.config(setting, 0)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, 2 * LINE_LIMIT)
        connection.set_progress_handler(_Budget(_size(path)).spend, STEPS_AT_ONCE)
        connection.execute("PRAGMA query_only = ON")
        yield connection


class _Budget:
    """The steps that a connection may take, by the size of its file."""

    def __init__(self, size: int) -> None:
        self._left = STEPS_MIN + STEPS_PER_BYTE * size

    def spend(self) -> bool:
        """True to interrupt the query."""
        self._left -= STEPS_AT_ONCE
        return self._left < 0


@contextmanager
def _copied(path: str) -> Iterator[str]:
    _check_journal(path + "-journal")
    with tempfile.TemporaryDirectory(prefix="mulligan-") as folder:
        copy = os.path.join(folder, "copy")
        try:
            for suffix in ("", "-journal", "-wal"):
                if suffix == "" or _size(path + suffix) > 0:
                    shutil.copyfile(path + suffix, copy + suffix)
        except OSError as error:
            raise Unreadable(f"The database cannot be copied: {error.strerror}.") from error
        yield copy


def _check_journal(path: str) -> None:
    """Raise `Unreadable` for a transaction of several databases.

    Its journal ends with the name of a file, which SQLite would delete after the rollback.
    """
    if _size(path) < len(JOURNAL_MAGIC):
        return
    with open_log(path) as file:
        file.seek(-len(JOURNAL_MAGIC), os.SEEK_END)
        if file.read() == JOURNAL_MAGIC:
            raise Unreadable("A transaction over several databases was not finished.")


def _check(path: str) -> None:
    """Not by opening it: closing it again would drop the locks of another reader in here."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", path)
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _look(connection: apsw.Connection) -> None:
    """Fails where a reader would have to write: in the `-shm`, or to finish a transaction."""
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
        raise _NotInPlace from error


def _is_shared(path: str) -> bool:
    return os.path.exists(path + "-wal") and os.path.exists(path + "-shm")


def _is_wal(path: str) -> bool:
    """By the file format's version for reading, in its header."""
    with open_log(path) as file:
        return file.read(20)[18:] == b"\2\2"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _state(path: str) -> tuple[int, int, int]:
    about = os.stat(path)
    return about.st_mtime_ns, about.st_size, _size(path + "-wal")


def reason_of(error: Exception) -> str:
    """Say why a database, or what was asked of it, cannot be read."""
    match error:
        case UnicodeDecodeError():
            return "The database is damaged: a name is not UTF-8."
        case apsw.InterruptError():
            return "The database takes too long to read; an index may be missing."
        case apsw.NotADBError():
            return "Not a SQLite database."
        case apsw.BusyError() | apsw.LockedError():
            return "The database is locked by another program; try again later."
        case apsw.CorruptError():
            return f"The database is damaged: {error}."
        case _:
            return f"The database cannot be read: {error}."
