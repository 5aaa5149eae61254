"""Import Mulligan's own JSONL export: one line for the session, then one per entry.

A session keeps its id, agent and settings; entries keep ids, times, parents, flags and labels.
Checkpoints that entries name stay in the store of the project in which they were taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mulligan.core.entries import STATUSES, TYPES, NewEntry
from mulligan.importers.json_log import parse_object, read_lines
from mulligan.importers.records import (
    Importer,
    InvalidRecord,
    Label,
    Leaf,
    Problem,
    Record,
    Session,
    SessionSettings,
    Source,
)
from mulligan.importers.values import as_dict, as_str, as_timestamp

VERSION: Final = 1


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """Find nothing: the user chose where to export to."""
    return iter(())


def read(source: Source) -> Iterator[Record]:
    """Read the session, its settings, its entries and their labels."""
    session: Session | None = None
    leaf: str | None = None
    known_ids: set[str] = set()
    for number, line in _read_export(source.path):
        try:
            if isinstance(line, str):
                raise InvalidRecord(line)
            if session is None:
                session, leaf = _session(line), _str_or_none(line.get("leaf"))
                yield session
                yield _settings(session.id, line)
                continue
            entry = _entry(line, known_ids)
        except InvalidRecord as problem:
            yield Problem(source.path, number, str(problem))
            if session is None:
                # Without a valid first line the file is not a Mulligan export.
                return
            continue
        yield entry
        assert entry.id is not None
        known_ids.add(entry.id)
        label = _str_or_none(line.get("label"))
        if label is not None:
            yield Label(entry.id, label)
    if session is not None and (leaf is None or leaf in known_ids):
        yield Leaf(leaf)


IMPORTER: Final = Importer("mulligan", find, read)


def _read_export(path: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield each line's number with its object, or with the reason why it is none.

    `read_json_lines` would replace lone surrogates, which here stand for the bytes of names that
    are not UTF-8.
    """
    for number, line in read_lines(path):
        if isinstance(line, str):
            yield number, line
        elif line.strip():
            value = parse_object(line)
            if isinstance(value, dict) and b"\\ud" in line:
                value = json.loads(line) | {"content": value.get("content")}
            yield number, value


def _str_or_none(value: object) -> str | None:
    """Return non-empty text unchanged."""
    return as_str(value) or None


def _session(line: dict[str, Any]) -> Session:
    id = _str_or_none(line.get("session"))
    if line.get("type") != "session" or line.get("format") != "mulligan" or id is None:
        raise InvalidRecord("Not an export of Mulligan: the first line is not its session.")
    version = line.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise InvalidRecord(f"Exported by a later Mulligan, in version {version!r} of the format.")
    return Session(
        id,
        directory=_str_or_none(line.get("directory")),
        title=_str_or_none(line.get("title")),
        model=_str_or_none(line.get("model")),
        mode=_str_or_none(line.get("mode")),
        created_at=as_timestamp(line.get("created_at")),
        updated_at=as_timestamp(line.get("updated_at")),
        forked_from=_str_or_none(line.get("forked_from")),
    )


def _settings(session: str, line: dict[str, Any]) -> SessionSettings:
    values: dict[str, Any] = {"memory": as_str(line.get("memory"))}
    # The session may have been running where it was exported; here it is not.
    values["status"] = STATUSES[-1]
    # Only the user may allow edits without approval, never an imported file.
    values["sensitive_file_patterns"] = {
        pattern: False
        for pattern, allowed in as_dict(line.get("sensitive_file_patterns")).items()
        if not allowed
    }
    return SessionSettings(session, as_str(line.get("agent")), values)


def _entry(line: dict[str, Any], known_ids: set[str]) -> NewEntry:
    id, type = _str_or_none(line.get("entry")), as_str(line.get("type"))
    if id is None:
        raise InvalidRecord("An entry without an id.")
    if id in known_ids:
        raise InvalidRecord(f"A second entry {id}; the first one counts.")
    if type not in TYPES:
        raise InvalidRecord(f"There are no entries of type {type!r}.")
    parent = _str_or_none(line.get("parent"))
    if parent is not None and parent not in known_ids:
        raise InvalidRecord(f"Its parent {parent} does not come before it.")
    data = line.get("data")
    return NewEntry(
        type,
        as_str(line.get("content")),
        data if isinstance(data, dict) else None,
        id=id,
        parent=parent,
        created_at=as_timestamp(line.get("created_at")),
        model=_str_or_none(line.get("model")),
        checkpoint=_str_or_none(line.get("checkpoint")),
        plan_item=_str_or_none(line.get("plan_item")),
        is_compacted=line.get("is_compacted") is True,
        off_path=line.get("off_path") is True,
    )
