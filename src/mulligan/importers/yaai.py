"""YAAI: folders of its first versions, `sessions/<id>/session.json` and `transcript.jsonl`.

Entries there have the types that ours have, and no parents: each is below the one before. What
YAAI calls a restore point is a manifest, a list of files and the hashes of their contents, which
lie in `snapshots/objects`, each in a file that is called by its SHA-256.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from mulligan.core.entries import (
    CALL_STATES,
    ENDED,
    ERROR,
    FILE_OPERATIONS,
    PENDING,
    SUCCESS,
    TYPES,
    NewEntry,
)
from mulligan.importers.folders import files_below, folders_in, given
from mulligan.importers.lines import (
    json_file,
    json_lines,
    mapping,
    moment,
    open_log,
    string,
)
from mulligan.importers.records import (
    Content,
    Ended,
    Held,
    Importer,
    Problem,
    Record,
    Session,
    Snapshot,
    Source,
)
from mulligan.importers.shapes import Untakeable, filled, number, present

SESSIONS: Final = "sessions"
SESSION: Final = "session.json"
TRANSCRIPT: Final = "transcript.jsonl"
MANIFESTS: Final = ("manifests", os.path.join("snapshots", "manifests"))
OBJECTS: Final = (os.path.join("snapshots", "objects"), "objects")
READ_BYTES: Final = 1 << 20
_HASH: Final = re.compile(r"[0-9a-f]{64}")


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """The sessions in `~/.yaai`, in PWD and in its `.yaai`, oldest first.

    Where the folders lie was a setting of the program that read them, so others are not found:
    name them. What is found is the transcript, or `session.json` where there is none.
    """
    project = given(environment, "PWD", home)
    places = [os.path.join(home, ".yaai")]
    places += [project, os.path.join(project, ".yaai")] if project else []
    found: list[tuple[str, str]] = []
    for place in dict.fromkeys(places):
        for folder in folders_in(os.path.join(place, SESSIONS)):
            for name in (TRANSCRIPT, SESSION):
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    info = _info(folder)
                    time = moment(info.get("createdAt")) if isinstance(info, dict) else None
                    found.append((time or "", path))
                    break
    for _, path in sorted(found):
        yield Source(path)


def read(source: Source) -> Iterator[Record]:
    """One session. The source is its transcript, its `session.json`, or the folder of both."""
    folder = _folder(source)
    name = os.path.basename(os.path.abspath(folder))
    info = _info(folder)
    if isinstance(info, Problem):
        yield info
        info = {}
    others = map(os.path.basename, folders_in(os.path.join(_place(folder), SESSIONS)))
    transcript = _Transcript(filled(info.get("id")) or name, name, frozenset(others))
    yield Session(
        transcript.session,
        directory=filled(info.get("projectPath")),
        created_at=moment(info.get("createdAt")),
        updated_at=moment(info.get("updatedAt")),
    )
    path = os.path.join(folder, TRANSCRIPT)
    if os.path.exists(path):
        for count, line in json_lines(path):
            if isinstance(line, Problem):
                yield line
                continue
            try:
                yield from transcript.take(line)
            except Untakeable as reason:
                yield Problem(path, count, str(reason))
    for path in _manifests(folder):
        try:
            yield from transcript.restore_point(path, json_file(path))
        except Untakeable as reason:
            yield Problem(path, 1, str(reason))
        except OSError as error:
            yield Problem(path, 1, f"The file cannot be read: {error.strerror}.")


def contents(source: Source) -> Content:
    """The contents of restore points, by their hashes."""
    place = _place(_folder(source))

    def content(name: str) -> Iterator[bytes]:
        if not _HASH.fullmatch(name):
            raise Untakeable("Its hash is not a SHA-256.")
        paths = [os.path.join(place, objects, name[:2], name) for objects in OBJECTS]
        path = next(filter(os.path.exists, paths), None)
        if path is None:
            raise Untakeable("Its content is not among the objects of YAAI.")
        whole = sha256()
        with open_log(path) as file:
            while piece := file.read(READ_BYTES):
                whole.update(piece)
                yield piece
        if whole.hexdigest() != name:
            raise Untakeable("Its content is damaged: it has another hash.")

    return content


IMPORTER: Final = Importer("yaai", find, read, "sessions/ in ~/.yaai or in the project", contents)


class _Transcript:
    """One session as far as it was read."""

    def __init__(self, session: str, name: str, others: frozenset[str]) -> None:
        self.session = session
        self._names = {session, name, ""}
        self._others = others
        self._ids: set[str] = set()
        self._taken: set[str] = set()  # restore points
        self._last: str | None = None
        self._points: dict[str, str] = {}  # entries that name their restore point, by its id
        self._call: tuple[str, bool] | None = None  # the latest, and whether it has ended

    def take(self, line: dict[str, Any]) -> Iterator[Record]:
        id, type = filled(line.get("id")), string(line.get("type"))
        if id is None:
            raise Untakeable("The entry has no id.")
        if id in self._ids:
            raise Untakeable(f"The id {id} was given to an earlier entry.")
        if type not in TYPES:
            raise Untakeable(f"Entries of the type {type!r} are not known.")
        if string(line.get("sessionId")) not in self._names:
            raise Untakeable(f"The entry is of another session, {line['sessionId']}.")
        content = string(line.get("content"))
        data, ended = self._data(id, type, content, line)
        data |= present(restorePointId=filled(line.get("restorePointId")))
        self._ids.add(id)
        self._points.setdefault(string(data.get("restorePointId")), id)
        yield NewEntry(
            type,
            content,
            data or None,
            id,
            self._last,
            moment(line.get("timestamp")),
            plan_item=filled(line.get("planItemId")),
            is_compacted=line.get("isCompacted") is True,
        )
        self._last = id
        if ended is not None:
            yield ended

    def restore_point(self, path: str, manifest: dict[str, Any] | Problem) -> Iterator[Record]:
        """Nothing for one of another session: the manifests of all lie in one folder."""
        if isinstance(manifest, Problem):
            yield manifest
            return
        session = string(manifest.get("sessionId"))
        if session not in self._names - {""}:
            if session not in self._others:
                raise Untakeable(f"The session of the restore point, {session!r}, is not there.")
            return
        id = filled(manifest.get("id"))
        if id is None or id in self._taken:
            raise Untakeable("The restore point has no id, or one that was given before.")
        if not isinstance(manifest.get("files"), list):
            raise Untakeable("The restore point does not list its files.")
        self._taken.add(id)
        files = []
        for count, file in enumerate(map(mapping, manifest["files"]), 1):
            name, mode = string(file.get("path")), number(file.get("mode"))
            if name:
                files.append(Held(name, string(file.get("hash")).lower(), int(mode or 0o644)))
            else:
                yield Problem(path, 1, f"File {count} of the restore point has no path.")
        announced = number(manifest.get("fileCount"))
        if announced is not None and announced > len(files):
            reason = f"It lists {len(files)} of the {announced:g} files that it counts."
            yield Problem(path, 1, reason)
        entry = filled(manifest.get("transcriptEntryId"))
        yield Snapshot(
            id,
            string(manifest.get("description")),
            moment(manifest.get("timestamp")),
            entry if entry in self._ids else self._points.get(id),
            tuple(files),
            path,
        )

    def _data(
        self, id: str, type: str, content: str, line: dict[str, Any]
    ) -> tuple[dict[str, Any], Ended | None]:
        call = mapping(line.get("toolCall"))
        status = string(call.get("status"))
        match type:
            case "tool_call":
                self._call = id, status in ENDED
                data = {
                    "name": string(call.get("name")),
                    "input": mapping(call.get("input")),
                    "status": status if status in CALL_STATES else PENDING,
                    "call": id,
                }
                details = present(output=call.get("output"), duration=number(call.get("duration")))
                return data | details, None
            case "tool_result":
                return self._result(content, call)
            case "file_edit":
                return _file_edit(mapping(line.get("fileEdit"))), None
            case "compact_marker":
                marker = mapping(line.get("compactMarker"))
                count = number(marker.get("compactedCount"))
                return {
                    "compactedCount": int(count or 0),
                    **present(summary=string(marker.get("summary"))),
                }, None
        return {}, None

    def _result(self, content: str, call: dict[str, Any]) -> tuple[dict[str, Any], Ended | None]:
        """A result does not say of which call it is: it is of the latest."""
        status = ERROR if call.get("status") == ERROR else SUCCESS
        data = {"is_error": status == ERROR, **present(name=string(call.get("name")))}
        if self._call is None:
            return data, None
        id, has_ended = self._call
        self._call = id, True
        return {"call": id, **data}, None if has_ended else Ended(id, status, content)


def _file_edit(edit: dict[str, Any]) -> dict[str, Any]:
    path, operation = filled(edit.get("path")), string(edit.get("operation"))
    if path is None:
        raise Untakeable("The file edit names no file.")
    if operation not in FILE_OPERATIONS:
        raise Untakeable(f"The operation {operation!r} on a file is not known.")
    texts = {name: string(edit.get(name)) for name in ("diff", "beforeHash", "afterHash")}
    counts = {name: number(edit.get(name)) for name in ("additions", "deletions")}
    return {"path": path, "operation": operation, **present(**texts, **counts)}


def _info(folder: str) -> dict[str, Any] | Problem:
    path = os.path.join(folder, SESSION)
    try:
        return json_file(path)
    except OSError as error:
        return Problem(path, 1, f"The file cannot be read: {error.strerror}.")


def _folder(source: Source) -> str:
    """The session's folder, be it named itself or by a file in it."""
    is_folder = stat.S_ISDIR(os.stat(source.path).st_mode)
    return source.path if is_folder else os.path.dirname(source.path)


def _place(folder: str) -> str:
    """Where the folder lies that holds all sessions."""
    return os.path.dirname(os.path.dirname(os.path.abspath(folder)))


def _manifests(folder: str) -> list[str]:
    """Manifests in the session's folder, or beside the folder that holds all sessions."""
    folders = [os.path.join(folder, MANIFESTS[0])]
    folders += [os.path.join(_place(folder), name) for name in MANIFESTS]
    return [path for each in folders for path in sorted(files_below(each, ".json"))]
