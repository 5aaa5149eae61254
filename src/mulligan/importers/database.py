"""Open another program's SQLite database without writing to it or beside it.

To read a database in WAL mode, SQLite creates missing `-shm` and `-wal` files and leaves them
behind. To avoid that, the files that exist decide how to open:

1. `-wal` and `-shm`: the program is running or was killed. Read in place, as one more reader.
2. `-wal` only: no program has the database open, and most data may be in the log. Copy both to a
   temporary folder and read the copy. The same holds for an unfinished transaction.
3. Neither: the file is complete. Read in place as immutable, and check afterwards that it did not
   change.

A database that is not in WAL mode can always be read in place. Values may have any type, and
nothing in the file is executed: views, triggers, virtual tables and generated columns are
refused. The size of values and the number of VM steps are limited.
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

from mulligan.importers.json_log import MAX_RECORD_BYTES, open_log

BUSY_TIMEOUT_MS: Final = 2000
MAX_NAME_BYTES: Final = 1 << 20  # of every column but `data`
MIN_VM_STEPS: Final = 200_000_000  # takes some seconds
VM_STEPS_PER_BYTE: Final = 20
VM_STEPS_PER_CALLBACK: Final = 1_000_000
JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")

Cell = int | float | bytes | None


class UnreadableDatabase(Exception):
    """The database, or a part of it, cannot be read. The message says why."""


SQLITE_ERRORS: Final = (apsw.Error, UnicodeDecodeError)
"""What apsw raises for a damaged or malicious file."""


class _NeedsCopy(Exception):
    """The database cannot be read in place."""


@contextmanager
def open_readonly(path: str) -> Iterator[apsw.Connection]:
    """Open a connection with one read transaction.

    Raises OSError if the file itself cannot be read, and `UnreadableDatabase` for all other
    errors, including those raised while the caller reads.
    """
    _check_file(path)
    try:
        with _connect(path) as connection:
            connection.execute("BEGIN")
            yield connection
    except SQLITE_ERRORS as error:
        raise UnreadableDatabase(describe_error(error)) from error


def can_read_in_place(path: str) -> bool:
    """Return True if opening the database does not copy it."""
    return _has_wal_and_shm(path) or _size(path + "-wal") == 0


def read_rows(
    connection: apsw.Connection, table: str, names: tuple[str, ...], condition: str, *values: str
) -> Iterator[dict[str, Cell]]:
    """Yield a table's rows with those of the columns `names` that exist; text as bytes.

    Oversized values are read as None. Raises `UnreadableDatabase` if the table is missing or has
    none of the columns.
    """
    _check_table(connection, table)
    table_columns = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    columns = [name for (name,) in table_columns if name in names]
    if not columns:
        raise UnreadableDatabase(f"The table {table!r} has none of the columns that are known.")
    selected = ", ".join(
        f"CASE WHEN typeof({name}) IN ('integer', 'real') THEN {name}"
        f" WHEN octet_length({name}) <= {MAX_RECORD_BYTES if name == 'data' else MAX_NAME_BYTES}"
        f" THEN CAST({name} AS BLOB) END"
        for name in columns
    )
    query = f"SELECT {selected} FROM {table} WHERE {condition}"
    for row in connection.execute(query, values):
        yield dict(zip(columns, row, strict=True))


def decode_text(value: Cell) -> str:
    """Decode stored text; return "" for all other values."""
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def describe_error(error: Exception) -> str:
    """Explain an error from `SQLITE_ERRORS` to the user."""
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


def _check_table(connection: apsw.Connection, table: str) -> None:
    """Raise `UnreadableDatabase` unless `table` is a table of plain columns.

    Views, virtual tables and generated columns may run code.
    """
    sql = "SELECT type FROM pragma_table_list(?) WHERE schema = 'main'"
    kind = connection.execute(sql, (table,)).fetchone()
    if kind is None:
        raise UnreadableDatabase(f"There is no table {table!r} in the database.")
    if kind[0] != "table":
        raise UnreadableDatabase(f"{table!r} is a {kind[0]} in the database, and not a table.")
    sql = "SELECT name FROM pragma_table_xinfo(?) WHERE hidden LIMIT 1"
    if connection.execute(sql, (table,)).fetchone() is not None:
        raise UnreadableDatabase(f"The table {table!r} has columns that are computed.")


@contextmanager
def _connect(path: str) -> Iterator[apsw.Connection]:
    """Open the database in one of the three ways in the module's docstring."""
    if _has_wal_and_shm(path) or not _is_wal_mode(path):
        try:
            with _open_connection(path, "mode=ro") as connection:
                _check_in_place(connection)
                yield connection
            return
        except _NeedsCopy:
            pass
    elif can_read_in_place(path):
        before = _stat_key(path)
        with _open_connection(path, "mode=ro&immutable=1") as connection:
            yield connection
        if _stat_key(path) != before:
            raise UnreadableDatabase("The database was changed while it was read; read it again.")
        return
    with _temporary_copy(path) as copy, _open_connection(copy, "mode=rw") as connection:
        yield connection


@contextmanager
def _open_connection(path: str, mode: str) -> Iterator[apsw.Connection]:
    flags = apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE
    uri = f"file:{quote(os.fsencode(os.path.abspath(path)))}?{mode}"
    with closing(apsw.Connection(uri, flags=flags)) as connection:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        for setting in (
            apsw.SQLITE_DBCONFIG_ENABLE_VIEW,
            apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER,
            apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA,
        ):
            connection.config(setting, 0)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, 2 * MAX_RECORD_BYTES)
        connection.set_progress_handler(_StepBudget(_size(path)).spend, VM_STEPS_PER_CALLBACK)
        connection.execute("PRAGMA query_only = ON")
        yield connection


class _StepBudget:
    """Limit a connection's VM steps by the size of its file."""

    def __init__(self, file_bytes: int) -> None:
        self._left = MIN_VM_STEPS + VM_STEPS_PER_BYTE * file_bytes

    def spend(self) -> bool:
        """Return True to interrupt the query."""
        self._left -= VM_STEPS_PER_CALLBACK
        return self._left < 0


@contextmanager
def _temporary_copy(path: str) -> Iterator[str]:
    _check_journal(path + "-journal")
    with tempfile.TemporaryDirectory(prefix="mulligan-") as folder:
        copy = os.path.join(folder, "copy")
        try:
            for suffix in ("", "-journal", "-wal"):
                if suffix == "" or _size(path + suffix) > 0:
                    shutil.copyfile(path + suffix, copy + suffix)
        except OSError as error:
            raise UnreadableDatabase(f"The database cannot be copied: {error.strerror}.") from error
        yield copy


def _check_journal(path: str) -> None:
    """Raise `UnreadableDatabase` for an unfinished transaction over several databases.

    Its journal ends with the name of a super-journal, which SQLite would delete after rollback.
    """
    if _size(path) < len(JOURNAL_MAGIC):
        return
    with open_log(path) as file:
        file.seek(-len(JOURNAL_MAGIC), os.SEEK_END)
        if file.read() == JOURNAL_MAGIC:
            raise UnreadableDatabase("A transaction over several databases was not finished.")


def _check_file(path: str) -> None:
    """Raise OSError unless `path` is a readable regular file, without opening it.

    Closing a descriptor would drop the POSIX locks of other connections in this process.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", path)
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _check_in_place(connection: apsw.Connection) -> None:
    """Raise `_NeedsCopy` if reading would write to the `-shm` or roll back a transaction."""
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
        raise _NeedsCopy from error


def _has_wal_and_shm(path: str) -> bool:
    return os.path.exists(path + "-wal") and os.path.exists(path + "-shm")


def _is_wal_mode(path: str) -> bool:
    """Check the file format versions in the header."""
    with open_log(path) as file:
        return file.read(20)[18:] == b"\2\2"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _stat_key(path: str) -> tuple[int, int, int]:
    """Return values that differ once the database has changed."""
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size, _size(path + "-wal")
