"""Mulligan's own export: a line for the session, then one an entry, with everything.

Whoever exported it chose the place, so there is none to look in. A session keeps its id, its
agent and what was set of it; entries keep ids, times, parents, flags and labels. The checkpoints
that they name are in the store of the project that they were taken in, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mulligan.core.entries import STATUSES, TYPES, NewEntry
from mulligan.importers.lines import LINE_LIMIT, mapping, moment, open_log, parse, string
from mulligan.importers.records import (
    Importer,
    Kept,
    Label,
    Leaf,
    Problem,
    Record,
    Session,
    Source,
)
from mulligan.importers.shapes import Untakeable

VERSION: Final = 1


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """Exports lie where somebody put them."""
    return iter(())


def read(source: Source) -> Iterator[Record]:
    """The session and its entries, with what other agents' logs have no place for."""
    session: Session | None = None
    stands_at: str | None = None
    known: set[str] = set()
    for number, line in _lines(source.path):
        try:
            if isinstance(line, str):
                raise Untakeable(line)
            if session is None:
                session, stands_at = _session(line), _given(line.get("leaf"))
                yield session
                yield _kept(session.id, line)
                continue
            entry = _entry(line, known)
        except Untakeable as problem:
            yield Problem(source.path, number, str(problem))
            if session is None:
                # Without its first line this is no export of ours, whatever may follow.
                return
            continue
        yield entry
        assert entry.id is not None
        known.add(entry.id)
        label = _given(line.get("label"))
        if label is not None:
            yield Label(entry.id, label)
    if session is not None and (stands_at is None or stands_at in known):
        yield Leaf(stands_at)


IMPORTER: Final = Importer("mulligan", find, read, "a file that `mulligan export` wrote")


def _lines(path: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """The objects with their line numbers, or why a line is none.

    Not `json_lines`, which mends lone surrogates: in an export of ours they are the bytes of
    names that are not UTF-8.
    """
    with open_log(path) as file:
        number = 0
        while line := file.readline(LINE_LIMIT + 1):
            number += 1
            if len(line) > LINE_LIMIT:
                while (piece := file.readline(1 << 20)) and not piece.endswith(b"\n"):
                    pass
                yield number, f"The line is longer than {LINE_LIMIT >> 20} MiB."
            elif line.strip():
                found = parse(line)
                if isinstance(found, dict) and b"\\ud" in line:
                    found = json.loads(line) | {"content": found.get("content")}
                yield number, found


def _given(value: object) -> str | None:
    """A text exactly as it was written, if there is one."""
    return string(value) or None


def _session(line: dict[str, Any]) -> Session:
    id = _given(line.get("session"))
    if line.get("type") != "session" or line.get("format") != "mulligan" or id is None:
        raise Untakeable("Not an export of Mulligan: the first line is not its session.")
    version = line.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise Untakeable(f"Exported by a later Mulligan, in version {version!r} of the format.")
    return Session(
        id,
        directory=_given(line.get("directory")),
        title=_given(line.get("title")),
        model=_given(line.get("model")),
        mode=_given(line.get("mode")),
        created_at=moment(line.get("created_at")),
        updated_at=moment(line.get("updated_at")),
        forked_from=_given(line.get("forked_from")),
    )


def _kept(session: str, line: dict[str, Any]) -> Kept:
    values: dict[str, Any] = {"memory": string(line.get("memory"))}
    # Whatever it did there, nobody runs it here.
    values["status"] = STATUSES[-1]
    # What may go on without being asked is the user's to say, and not a file's.
    values["sensitive_file_patterns"] = {
        pattern: False
        for pattern, allowed in mapping(line.get("sensitive_file_patterns")).items()
        if not allowed
    }
    return Kept(session, string(line.get("agent")), values)


def _entry(line: dict[str, Any], known: set[str]) -> NewEntry:
    id, type = _given(line.get("entry")), string(line.get("type"))
    if id is None:
        raise Untakeable("An entry without an id.")
    if id in known:
        raise Untakeable(f"A second entry {id}; the first one counts.")
    if type not in TYPES:
        raise Untakeable(f"There are no entries of type {type!r}.")
    parent = _given(line.get("parent"))
    if parent is not None and parent not in known:
        raise Untakeable(f"Its parent {parent} does not come before it.")
    data = line.get("data")
    return NewEntry(
        type,
        string(line.get("content")),
        data if isinstance(data, dict) else None,
        id=id,
        parent=parent,
        created_at=moment(line.get("created_at")),
        model=_given(line.get("model")),
        checkpoint=_given(line.get("checkpoint")),
        plan_item=_given(line.get("plan_item")),
        is_compacted=line.get("is_compacted") is True,
        off_path=line.get("off_path") is True,
    )
