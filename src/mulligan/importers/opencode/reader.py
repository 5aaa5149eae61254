"""OpenCode: a SQLite database in `~/.local/share/opencode`, and JSON files in older versions.

Both hold the same things: sessions, their messages, and the parts of each message, in rows or in
one file each. Messages and parts follow each other by time and by id. A sub-agent has a session of
its own, which in a database is read along with the one that it works for, below its call.
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

SESSION: Final = (
    *("id", "parent_id", "directory", "title", "revert", "agent", "model"),
    *("time_created", "time_updated"),
)
ROW: Final = ("id", "time_created", "data")
LISTED: Final = ("id", "parent_id", "time_created")
MAX_DEPTH: Final = 50  # of sub-agents that set sub-agents to work

# What a session is called until somebody or some model has thought of a title.
UNTITLED: Final = ("New session - ", "Child session - ")


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """The sessions in the databases, oldest first, before them those that only files hold.

    Honours XDG_DATA_HOME and OPENCODE_DB. A database that cannot be listed, or has to be copied
    to be read, is found as a whole.
    """
    data = path_from_env(environment, "XDG_DATA_HOME", home) or os.path.join(
        home, ".local", "share"
    )
    folder = os.path.join(data, "opencode")
    named = path_from_env(environment, "OPENCODE_DB", home)
    databases = {
        path for path in files_in(folder, ".db") if os.path.basename(path).startswith("opencode")
    }
    if named and os.path.isfile(named):
        databases.add(named)
    in_databases: list[tuple[str, str, str]] = []
    whole: list[str] = []
    known: set[str] = set()
    for path in sorted(databases):
        try:
            with open_readonly(path) as connection:
                found = list(read_rows(connection, "session", LISTED, "TRUE"))
        except (OSError, UnreadableDatabase):
            whole.append(path)
            continue
        ids = {decode_text(row.get("id")) for row in found}
        known |= ids
        if can_read_in_place(path) and "" not in ids:
            first = _first_of_all(found)
            in_databases += [
                (as_timestamp(row.get("time_created")) or "", path, id)
                for row in found
                if (id := decode_text(row.get("id"))) in first
            ]
        else:
            whole.append(path)
    for path in _session_files(folder):
        if _stem(path) not in known:
            yield Source(path)
    yield from map(Source, whole)
    for _, path, id in sorted(in_databases):
        yield Source(path, id)


def read(source: Source) -> Iterator[Record]:
    """One session; or, for a database without a part named, all of them one after another."""
    if source.path.endswith(".json"):
        yield from _read_files(source.path)
        return
    try:
        with open_readonly(source.path) as connection:
            if source.part:
                yield from _read_session(connection, source.path, source.part)
                return
            found = list(read_rows(connection, "session", LISTED, "TRUE ORDER BY time_created, id"))
            first = _first_of_all(found)
            for row in found:
                id = decode_text(row.get("id"))
                if not id:
                    yield Problem(source.path, 0, "A session has no id, or one that is no text.")
                elif id in first:
                    yield from _read_session(connection, source.path, id)
    except UnreadableDatabase as reason:
        yield Problem(source.path, 0, str(reason))


IMPORTER: Final = Importer("opencode", find, read)


def _read_session(connection: apsw.Connection, path: str, id: str) -> Iterator[Record]:
    """One session of a database; where it is damaged, the others can still be read."""
    try:
        found = next(read_rows(connection, "session", SESSION, "id = ?", id), None)
        if found is None:
            yield Problem(path, 0, f"There is no session {id} any more.")
        else:
            yield from _read_rows(connection, path, id, found)
    except (UnreadableDatabase, *SQLITE_ERRORS) as error:
        reason = str(error) if isinstance(error, UnreadableDatabase) else describe_error(error)
        yield Problem(path, 0, f"Session {id} cannot be read, or not to its end: {reason}")


def _read_rows(
    connection: apsw.Connection, path: str, id: str, row: dict[str, Cell]
) -> Iterator[Record]:
    model = as_dict(_object(row.get("model")))
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
    reading = _Reading(connection, path)
    yield from reading.session(id, SessionConverter(session, as_dict(_object(row.get("revert")))))
    yield from reading.others(id, session)


class _Reading:
    """Reads the messages of a session, and those of the sub-agents that work for it."""

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self._connection, self._path = connection, path
        self._brought: dict[str, None] = {}
        self._depth = 0

    def session(self, id: str, conversation: SessionConverter) -> Iterator[Record]:
        self._brought[id] = None
        by_session = "session_id = CAST(? AS TEXT) ORDER BY time_created, id"
        is_empty = True
        for message in read_rows(self._connection, "message", ROW, by_session, id):
            is_empty = False
            info = _taken(self._path, "message", message)
            if isinstance(info, Problem):
                yield info
            else:
                yield from self._message(message, info, conversation)
        yield from conversation.leaf()
        if is_empty and _has_newer_form(self._connection, id):
            reason = f"Session {id} is kept in the table 'session_message', which is not known yet."
            yield Problem(self._path, 0, reason)

    def others(self, id: str, session: Session) -> Iterator[Record]:
        """The sub-agents that no call has named, and those that work for them."""
        condition = "parent_id = CAST(? AS TEXT) ORDER BY time_created, id"
        asked: set[str] = set()
        while above := [each for each in self._brought if each not in asked]:
            for parent in above:
                asked.add(parent)
                try:
                    found = list(read_rows(self._connection, "session", ("id",), condition, parent))
                except (UnreadableDatabase, apsw.SQLError):
                    return  # an older form, in which nothing is said of them
                for row in found:
                    off_path = SessionConverter(session, {}, off_path=True)
                    yield from self._bring(decode_text(row.get("id")), off_path)

    def _message(
        self, row: dict[str, Cell], info: dict[str, Any], conversation: SessionConverter
    ) -> Iterator[Record]:
        id = decode_text(row.get("id"))
        yield from conversation.begin(id, info, row.get("time_created"))
        for part in read_rows(
            self._connection, "part", ROW, "message_id = CAST(? AS TEXT) ORDER BY id", id
        ):
            data = _taken(self._path, "part", part)
            if isinstance(data, Problem):
                yield data
                continue
            own, time = decode_text(part.get("id")), part.get("time_created")
            yield from self._records(conversation.part(own, data, time))
        yield from self._records(conversation.end())

    def _records(self, found: Iterator[Record | SpawnedSession | str]) -> Iterator[Record]:
        for record in found:
            if isinstance(record, str):
                yield Problem(self._path, 0, record)
            elif isinstance(record, SpawnedSession):
                yield from self._bring(record.session, record.conversation)
            else:
                yield record

    def _bring(self, id: str, conversation: SessionConverter) -> Iterator[Record]:
        if not id or id in self._brought:
            return
        if self._depth == MAX_DEPTH:
            # `others` comes to it, if it says whose it is.
            reason = f"Session {id} is nested too deep to be read below its call."
            yield Problem(self._path, 0, reason)
            return
        self._depth += 1
        yield from self.session(id, conversation)
        self._depth -= 1


def _first_of_all(found: list[dict[str, Cell]]) -> set[str]:
    """The sessions that work for no other; those that work for each other in a circle count too.

    All others are read with the one that they work for.
    """
    above = {decode_text(row.get("id")): decode_text(row.get("parent_id")) for row in found}
    above.pop("", None)  # one without an id is nobody's parent
    first = {id for id, parent in above.items() if parent not in above or parent == id}
    settled = set(first)
    for start in above:
        way: dict[str, None] = {}
        at = start
        while at not in settled and at not in way:
            way[at] = None
            at = above[at]
        if at in way:
            # A circle: the session where it was entered stands for all of it.
            first.add(at)
        settled |= way.keys()
    return first


def _read_files(path: str) -> Iterator[Record]:
    """A session of an older version: `session/<project>/<id>.json`, `message/<id>/`, `part/…/`.

    Before that the three were `session/info`, `session/message/<id>`, `session/part/<id>`.
    """
    info = read_json_file(path)
    if isinstance(info, Problem):
        yield info
        return
    # Sessions were moved between projects without a change in the file: its name is the id.
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
    conversation = SessionConverter(session, as_dict(info.get("revert")))
    # Ids begin with their time, so their order is that of the messages.
    for message in _objects(messages):
        if isinstance(message, Problem):
            yield message
            continue
        name, data = message
        yield from conversation.begin(name, data, None)
        for part in _objects(os.path.join(parts, name)):
            if isinstance(part, Problem):
                yield part
                continue
            own, content = part
            for record in conversation.part(own, content, None):
                where = os.path.join(parts, name, own + ".json")
                if not isinstance(record, SpawnedSession):  # there it is a session of its own
                    yield Problem(where, 1, record) if isinstance(record, str) else record
        for record in conversation.end():
            where = os.path.join(messages, name + ".json")
            yield Problem(where, 1, record) if isinstance(record, str) else record
    yield from conversation.leaf()


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
        title=None if title.startswith(UNTITLED) else as_nonblank(title),
        model=as_nonblank(model),
        mode=as_nonblank(mode),
        created_at=as_timestamp(times[0]),
        updated_at=as_timestamp(times[1]),
        forked_from=as_nonblank(parent),
    )


def _taken(path: str, table: str, row: dict[str, Cell]) -> dict[str, Any] | Problem:
    id, data = decode_text(row.get("id")), row.get("data")
    if not id:
        return Problem(path, 0, f"A row of the table {table!r} has no id.")
    if not isinstance(data, bytes):
        return Problem(path, 0, f"Row {id} of the table {table!r} has no text, or too much.")
    value = parse_object(data)
    if isinstance(value, str):
        return Problem(path, 0, f"Row {id} of the table {table!r}: {value}")
    return value


def _has_newer_form(connection: apsw.Connection, id: str) -> bool:
    try:
        found = read_rows(
            connection, "session_message", ("id",), "session_id = CAST(? AS TEXT)", id
        )
        return next(found, None) is not None
    except (UnreadableDatabase, apsw.Error):
        return False


def _objects(folder: str) -> Iterator[tuple[str, dict[str, Any]] | Problem]:
    for path in sorted(files_below(folder, ".json")):
        try:
            value = read_json_file(path)
        except OSError as error:
            yield Problem(path, 1, f"The file cannot be read: {error.strerror}.")
            continue
        yield value if isinstance(value, Problem) else (_stem(path), value)


def _session_files(folder: str) -> list[str]:
    """The sessions in files, oldest first: later ids sort before earlier ones."""
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


def _object(value: Cell) -> object:
    return parse_object(value) if isinstance(value, bytes) else None
