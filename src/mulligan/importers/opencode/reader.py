"""Import OpenCode's sessions: a SQLite database in `~/.local/share/opencode`, or older JSON files.

Both hold sessions, their messages, and the parts of each message, as rows or as one file each,
ordered by time and id. A sub-agent has a session of its own, which in a database is read with the
session that spawned it, below its call.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

import apsw

from mulligan.importers.database import (
    SQLITE_ERRORS,
    Cell,
    UnreadableDatabase,
    can_read_in_place,
    decode_text,
    describe_error,
    open_readonly,
    read_rows,
)
from mulligan.importers.folders import files_below, files_in, path_from_env
from mulligan.importers.json_log import parse_object, read_json_file
from mulligan.importers.opencode.entries import SessionConverter, SpawnedSession
from mulligan.importers.records import Importer, Problem, Record, Session, Source
from mulligan.importers.values import as_dict, as_nonblank, as_str, as_timestamp

SESSION_COLUMNS: Final = (
    *("id", "parent_id", "directory", "title", "revert", "agent", "model"),
    *("time_created", "time_updated"),
)
DATA_COLUMNS: Final = ("id", "time_created", "data")
LIST_COLUMNS: Final = ("id", "parent_id", "time_created")
MAX_AGENT_DEPTH: Final = 50  # of sub-agents that spawn sub-agents

DEFAULT_TITLES: Final = ("New session - ", "Child session - ")


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """Find the sessions in files, then those in databases, oldest first.

    Honours XDG_DATA_HOME and OPENCODE_DB. A database that cannot be listed, or must be copied to
    be read, is one source.
    """
    data = path_from_env(environment, "XDG_DATA_HOME", home) or os.path.join(
        home, ".local", "share"
    )
    folder = os.path.join(data, "opencode")
    in_databases: list[tuple[str, str, str]] = []
    whole: list[str] = []
    known_ids: set[str] = set()
    for path in _databases(folder, path_from_env(environment, "OPENCODE_DB", home)):
        try:
            with open_readonly(path) as connection:
                sessions = list(read_rows(connection, "session", LIST_COLUMNS, "TRUE"))
        except (OSError, UnreadableDatabase):
            whole.append(path)
            continue
        ids = {decode_text(row.get("id")) for row in sessions}
        known_ids |= ids
        if can_read_in_place(path) and "" not in ids:
            roots = _root_sessions(sessions)
            in_databases += [
                (as_timestamp(row.get("time_created")) or "", path, id)
                for row in sessions
                if (id := decode_text(row.get("id"))) in roots
            ]
        else:
            whole.append(path)
    for path in _session_files(folder):
        if _stem(path) not in known_ids:
            yield Source(path)
    yield from map(Source, whole)
    for _, path, id in sorted(in_databases):
        yield Source(path, id)


def read(source: Source) -> Iterator[Record]:
    """Read one session, or all sessions of a database if the source names none."""
    if source.path.endswith(".json"):
        yield from _read_files(source.path)
        return
    try:
        with open_readonly(source.path) as connection:
            if source.part:
                yield from _read_session(connection, source.path, source.part)
                return
            order = "TRUE ORDER BY time_created, id"
            sessions = list(read_rows(connection, "session", LIST_COLUMNS, order))
            roots = _root_sessions(sessions)
            for row in sessions:
                id = decode_text(row.get("id"))
                if not id:
                    yield Problem(source.path, 0, "A session has no id, or an id that is not text.")
                elif id in roots:
                    yield from _read_session(connection, source.path, id)
    except UnreadableDatabase as reason:
        yield Problem(source.path, 0, str(reason))


IMPORTER: Final = Importer("opencode", find, read)


def _read_session(connection: apsw.Connection, path: str, id: str) -> Iterator[Record]:
    """Read one session of a database; damage to it does not affect the others."""
    try:
        row = next(read_rows(connection, "session", SESSION_COLUMNS, "id = ?", id), None)
        if row is None:
            yield Problem(path, 0, f"There is no session {id} any more.")
        else:
            yield from _read_session_row(connection, path, id, row)
    except (UnreadableDatabase, *SQLITE_ERRORS) as error:
        reason = str(error) if isinstance(error, UnreadableDatabase) else describe_error(error)
        yield Problem(path, 0, f"Session {id} cannot be read, or not to its end: {reason}")


def _read_session_row(
    connection: apsw.Connection, path: str, id: str, row: dict[str, Cell]
) -> Iterator[Record]:
    model = as_dict(_parse_cell(row.get("model")))
    session = _session(
        id,
        directory=decode_text(row.get("directory")),
        title=decode_text(row.get("title")),
        model=as_str(model.get("id")),
        mode=decode_text(row.get("agent")),
        parent=decode_text(row.get("parent_id")),
        times=(row.get("time_created"), row.get("time_updated")),
    )
    yield session
    reader = _MessageReader(connection, path)
    revert = as_dict(_parse_cell(row.get("revert")))
    yield from reader.session(id, SessionConverter(session, revert))
    yield from reader.unnamed_agents(session)


class _MessageReader:
    """Read the messages of a session and of its sub-agents from a database."""

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self._connection, self._path = connection, path
        self._sessions_read: dict[str, None] = {}  # an ordered set
        self._agent_depth = 0

    def session(self, id: str, converter: SessionConverter) -> Iterator[Record]:
        """Read the messages of one session, and of the sub-agents that its calls name."""
        self._sessions_read[id] = None
        by_session = "session_id = CAST(? AS TEXT) ORDER BY time_created, id"
        is_empty = True
        for message in read_rows(self._connection, "message", DATA_COLUMNS, by_session, id):
            is_empty = False
            info = _parse_row(self._path, "message", message)
            if isinstance(info, Problem):
                yield info
            else:
                yield from self._message(message, info, converter)
        yield from converter.leaf()
        if is_empty and _has_newer_form(self._connection, id):
            reason = f"Session {id} is in the table 'session_message', which is not supported."
            yield Problem(self._path, 0, reason)

    def unnamed_agents(self, session: Session) -> Iterator[Record]:
        """Read the sub-agents that no call names, by their parent sessions."""
        condition = "parent_id = CAST(? AS TEXT) ORDER BY time_created, id"
        searched: set[str] = set()
        while parents := [id for id in self._sessions_read if id not in searched]:
            for parent in parents:
                searched.add(parent)
                try:
                    agents = list(
                        read_rows(self._connection, "session", ("id",), condition, parent)
                    )
                except (UnreadableDatabase, apsw.SQLError):
                    return  # older databases have no column `parent_id`
                for row in agents:
                    converter = SessionConverter(session, {}, off_path=True)
                    yield from self._agent(decode_text(row.get("id")), converter)

    def _message(
        self, row: dict[str, Cell], info: dict[str, Any], converter: SessionConverter
    ) -> Iterator[Record]:
        id = decode_text(row.get("id"))
        yield from converter.begin(id, info, row.get("time_created"))
        for part in read_rows(
            self._connection, "part", DATA_COLUMNS, "message_id = CAST(? AS TEXT) ORDER BY id", id
        ):
            data = _parse_row(self._path, "part", part)
            if isinstance(data, Problem):
                yield data
                continue
            own, time = decode_text(part.get("id")), part.get("time_created")
            yield from self._records(converter.part(own, data, time))
        yield from self._records(converter.end())

    def _records(self, converted: Iterator[Record | SpawnedSession | str]) -> Iterator[Record]:
        for record in converted:
            if isinstance(record, str):
                yield Problem(self._path, 0, record)
            elif isinstance(record, SpawnedSession):
                yield from self._agent(record.session, record.converter)
            else:
                yield record

    def _agent(self, id: str, converter: SessionConverter) -> Iterator[Record]:
        if not id or id in self._sessions_read:
            return
        if self._agent_depth == MAX_AGENT_DEPTH:
            # `unnamed_agents` reads it later if it names its parent.
            reason = f"Session {id} is nested too deep to be read below its call."
            yield Problem(self._path, 0, reason)
            return
        self._agent_depth += 1
        yield from self.session(id, converter)
        self._agent_depth -= 1


def _root_sessions(sessions: list[dict[str, Cell]]) -> set[str]:
    """Return the sessions without a parent, and one session of each cycle of parents.

    All others are read with their parents.
    """
    parents = {decode_text(row.get("id")): decode_text(row.get("parent_id")) for row in sessions}
    parents.pop("", None)  # a session without an id has no children
    roots = {id for id, parent in parents.items() if parent not in parents or parent == id}
    visited = set(roots)
    for start in parents:
        path: dict[str, None] = {}
        id = start
        while id not in visited and id not in path:
            path[id] = None
            id = parents[id]
        if id in path:  # a cycle
            roots.add(id)
        visited |= path.keys()
    return roots


def _read_files(path: str) -> Iterator[Record]:
    """Read an older session: `session/<project>/<id>.json`, `message/<id>/`, `part/<message>/`.

    Even older versions used `session/info`, `session/message/<id>` and `session/part/<id>`.
    """
    info = read_json_file(path)
    if isinstance(info, Problem):
        yield info
        return
    # OpenCode moved sessions between projects without changing the file: only its name is right.
    id = _stem(path)
    base = os.path.dirname(os.path.dirname(path))
    if os.path.basename(os.path.dirname(path)) == "info":
        messages, parts = os.path.join(base, "message", id), os.path.join(base, "part", id)
    else:
        base = os.path.dirname(base)
        messages, parts = os.path.join(base, "message", id), os.path.join(base, "part")
    times = as_dict(info.get("time"))
    session = _session(
        id,
        directory=as_str(info.get("directory")),
        title=as_str(info.get("title")),
        model="",
        mode="",
        parent=as_str(info.get("parentID")),
        times=(times.get("created"), times.get("updated")),
    )
    yield session
    converter = SessionConverter(session, as_dict(info.get("revert")))
    # Ids begin with their time, so they sort by time.
    for message in _read_objects(messages):
        if isinstance(message, Problem):
            yield message
        else:
            yield from _read_message_files(converter, *message, messages, parts)
    yield from converter.leaf()


def _read_message_files(
    converter: SessionConverter, id: str, info: dict[str, Any], messages: str, parts: str
) -> Iterator[Record]:
    yield from converter.begin(id, info, None)
    for part in _read_objects(os.path.join(parts, id)):
        if isinstance(part, Problem):
            yield part
            continue
        part_id, data = part
        path = os.path.join(parts, id, part_id + ".json")
        for record in converter.part(part_id, data, None):
            if not isinstance(record, SpawnedSession):  # has a file of its own
                yield Problem(path, 1, record) if isinstance(record, str) else record
    path = os.path.join(messages, id + ".json")
    for record in converter.end():
        yield Problem(path, 1, record) if isinstance(record, str) else record


def _session(
    id: str,
    *,
    directory: str,
    title: str,
    model: str,
    mode: str,
    parent: str,
    times: tuple[object, object],
) -> Session:
    return Session(
        id,
        directory=as_nonblank(directory),
        title=None if title.startswith(DEFAULT_TITLES) else as_nonblank(title),
        model=as_nonblank(model),
        mode=as_nonblank(mode),
        created_at=as_timestamp(times[0]),
        updated_at=as_timestamp(times[1]),
        forked_from=as_nonblank(parent),
    )


def _parse_row(path: str, table: str, row: dict[str, Cell]) -> dict[str, Any] | Problem:
    id, data = decode_text(row.get("id")), row.get("data")
    if not id:
        return Problem(path, 0, f"A row of the table {table!r} has no id.")
    if not isinstance(data, bytes):
        return Problem(path, 0, f"Row {id} of the table {table!r} is not text, or is too large.")
    value = parse_object(data)
    if isinstance(value, str):
        return Problem(path, 0, f"Row {id} of the table {table!r}: {value}")
    return value


def _has_newer_form(connection: apsw.Connection, id: str) -> bool:
    try:
        messages = read_rows(
            connection, "session_message", ("id",), "session_id = CAST(? AS TEXT)", id
        )
        return next(messages, None) is not None
    except (UnreadableDatabase, apsw.Error):
        return False


def _read_objects(folder: str) -> Iterator[tuple[str, dict[str, Any]] | Problem]:
    for path in sorted(files_below(folder, ".json")):
        try:
            value = read_json_file(path)
        except OSError as error:
            yield Problem(path, 1, f"The file cannot be read: {error.strerror}.")
            continue
        yield value if isinstance(value, Problem) else (_stem(path), value)


def _databases(folder: str, named: str | None) -> list[str]:
    """List the databases in the data folder, and the one that the user named."""
    paths = {
        path for path in files_in(folder, ".db") if os.path.basename(path).startswith("opencode")
    }
    return sorted(paths | {named} if named and os.path.isfile(named) else paths)


def _session_files(folder: str) -> list[str]:
    """List the sessions in files, oldest first: newer ids sort before older ones."""
    storage = os.path.join(folder, "storage", "session")
    older = os.path.join(folder, "project")
    paths = [path for path in files_below(storage, ".json") if _stem(path).startswith("ses_")]
    paths += [
        path
        for path in files_below(older, ".json")
        if _stem(path).startswith("ses_") and os.path.basename(os.path.dirname(path)) == "info"
    ]
    return sorted(paths, key=lambda path: (_stem(path), path), reverse=True)


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".json")


def _parse_cell(value: Cell) -> object:
    return parse_object(value) if isinstance(value, bytes) else None
