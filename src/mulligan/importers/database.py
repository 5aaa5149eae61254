"""Database: a foreign SQLite file, read and never written.

Nothing is created beside it either. SQLite itself would: to read a database in WAL mode it makes
a `-shm` and a `-wal` where they are missing, and leaves them behind. So there are three ways in:

- with both there the program runs, or was killed: the file is read in place, as one more reader;
- with a `-wal` alone nobody has it open, and most may be in the log: both are copied to a
  temporary folder, and read there. So it is with a transaction that was never finished;
- with neither the file is all there is: it is read in place as one that does not change, and
  whether it did is looked at in the end.

A database without WAL can always be read in place. Views in the file are not run, and nothing in
it is trusted to be of its type.
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

PATIENCE: Final = 2000  # milliseconds to wait for a lock

Value = int | float | bytes | None


class Unreadable(Exception):
    """The database, or a part of it, cannot be read. Its text says why."""


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
    except apsw.Error as error:
        raise Unreadable(_reason(error)) from error
    except UnicodeDecodeError as error:  # apsw, on names in the schema
        raise Unreadable("The database is damaged: a name is not UTF-8.") from error


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
    found = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    columns = [name for (name,) in found if name in names]
    if not columns:
        raise Unreadable(f"There is no table {table!r} in the database.")
    selected = ", ".join(
        f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN {name}"
        f" WHEN octet_length({name}) <= {LINE_LIMIT} THEN CAST({name} AS BLOB) END"
        for name in columns
    )
    query = f"SELECT {selected} FROM {table} WHERE {condition}"
    for row in connection.execute(query, values):
        yield dict(zip(columns, row, strict=True))


def decoded(value: Value) -> str:
    """A text as it is stored, or the empty one."""
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


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
        connection.set_busy_timeout(PATIENCE)
        for setting in (
            apsw.SQLITE_DBCONFIG_ENABLE_VIEW,
            apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER,
            apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA,
        ):
            connection.config(setting, 0)
        connection.execute("PRAGMA query_only = ON")
        yield connection


@contextmanager
def _copied(path: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="mulligan-") as folder:
        copy = os.path.join(folder, "copy")
        try:
            for suffix in ("", "-journal", "-wal"):
                if suffix == "" or _size(path + suffix) > 0:
                    shutil.copyfile(path + suffix, copy + suffix)
        except OSError as error:
            raise Unreadable(f"The database cannot be copied: {error.strerror}.") from error
        yield copy


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


def _reason(error: apsw.Error) -> str:
    match error:
        case apsw.NotADBError():
            return "Not a SQLite database."
        case apsw.BusyError() | apsw.LockedError():
            return "The database is locked by another program; try again later."
        case apsw.CorruptError():
            return f"The database is damaged: {error}."
        case _:
            return f"The database cannot be read: {error}."
