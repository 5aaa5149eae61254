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
from mulligan.importers.folders import files_below, folders_in, path_from_env
from mulligan.importers.json_log import open_log, read_json_file, read_json_lines
from mulligan.importers.records import (
    CallEnded,
    Importer,
    InvalidRecord,
    Problem,
    ReadContent,
    Record,
    Session,
    Snapshot,
    SnapshotFile,
    Source,
)
from mulligan.importers.values import (
    as_dict,
    as_nonblank,
    as_number,
    as_str,
    as_timestamp,
    without_empty,
)

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
    project = path_from_env(environment, "PWD", home)
    places = [os.path.join(home, ".yaai")]
    places += [project, os.path.join(project, ".yaai")] if project else []
    found: list[tuple[str, str]] = []
    for place in dict.fromkeys(places):
        for folder in folders_in(os.path.join(place, SESSIONS)):
            for name in (TRANSCRIPT, SESSION):
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    info = _info(folder)
                    time = as_timestamp(info.get("createdAt")) if isinstance(info, dict) else None
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
    transcript = _Transcript(as_nonblank(info.get("id")) or name, name, frozenset(others))
    yield Session(
        transcript.session,
        directory=as_nonblank(info.get("projectPath")),
        created_at=as_timestamp(info.get("createdAt")),
        updated_at=as_timestamp(info.get("updatedAt")),
    )
    path = os.path.join(folder, TRANSCRIPT)
    if os.path.exists(path):
        for count, line in read_json_lines(path):
            if isinstance(line, Problem):
                yield line
                continue
            try:
                yield from transcript.take(line)
            except InvalidRecord as reason:
                yield Problem(path, count, str(reason))
    for path in _manifests(folder):
        try:
            yield from transcript.restore_point(path, read_json_file(path))
        except InvalidRecord as reason:
            yield Problem(path, 1, str(reason))
        except OSError as error:
            yield Problem(path, 1, f"The file cannot be read: {error.strerror}.")


def contents(source: Source) -> ReadContent:
    """The contents of restore points, by their hashes."""
    place = _place(_folder(source))

    def content(name: str) -> Iterator[bytes]:
        if not _HASH.fullmatch(name):
            raise InvalidRecord("Its hash is not a SHA-256.")
        paths = [os.path.join(place, objects, name[:2], name) for objects in OBJECTS]
        path = next(filter(os.path.exists, paths), None)
        if path is None:
            raise InvalidRecord("Its content is not among the objects of YAAI.")
        whole = sha256()
        with open_log(path) as file:
            while piece := file.read(READ_BYTES):
                whole.update(piece)
                yield piece
        if whole.hexdigest() != name:
            raise InvalidRecord("Its content is damaged: it has another hash.")

    return content


IMPORTER: Final = Importer("yaai", find, read, contents)


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
        id, type = as_nonblank(line.get("id")), as_str(line.get("type"))
        if id is None:
            raise InvalidRecord("The entry has no id.")
        if id in self._ids:
            raise InvalidRecord(f"The id {id} was given to an earlier entry.")
        if type not in TYPES:
            raise InvalidRecord(f"Entries of the type {type!r} are not known.")
        if as_str(line.get("sessionId")) not in self._names:
            raise InvalidRecord(f"The entry is of another session, {line['sessionId']}.")
        content = as_str(line.get("content"))
        data, ended = self._data(id, type, content, line)
        data |= without_empty(restorePointId=as_nonblank(line.get("restorePointId")))
        self._ids.add(id)
        self._points.setdefault(as_str(data.get("restorePointId")), id)
        yield NewEntry(
            type,
            content,
            data or None,
            id,
            self._last,
            as_timestamp(line.get("timestamp")),
            plan_item=as_nonblank(line.get("planItemId")),
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
        session = as_str(manifest.get("sessionId"))
        if session not in self._names - {""}:
            if session not in self._others:
                raise InvalidRecord(f"The session of the restore point, {session!r}, is not there.")
            return
        id = as_nonblank(manifest.get("id"))
        if id is None or id in self._taken:
            raise InvalidRecord("The restore point has no id, or one that was given before.")
        if not isinstance(manifest.get("files"), list):
            raise InvalidRecord("The restore point does not list its files.")
        self._taken.add(id)
        files = []
        for count, file in enumerate(map(as_dict, manifest["files"]), 1):
            name, mode = as_str(file.get("path")), as_number(file.get("mode"))
            if name:
                files.append(
                    SnapshotFile(name, as_str(file.get("hash")).lower(), int(mode or 0o644))
                )
            else:
                yield Problem(path, 1, f"File {count} of the restore point has no path.")
        announced = as_number(manifest.get("fileCount"))
        if announced is not None and announced > len(files):
            reason = f"It lists {len(files)} of the {announced:g} files that it counts."
            yield Problem(path, 1, reason)
        entry = as_nonblank(manifest.get("transcriptEntryId"))
        yield Snapshot(
            id,
            as_str(manifest.get("description")),
            as_timestamp(manifest.get("timestamp")),
            entry if entry in self._ids else self._points.get(id),
            tuple(files),
            path,
        )

    def _data(
        self, id: str, type: str, content: str, line: dict[str, Any]
    ) -> tuple[dict[str, Any], CallEnded | None]:
        call = as_dict(line.get("toolCall"))
        status = as_str(call.get("status"))
        match type:
            case "tool_call":
                self._call = id, status in ENDED
                data = {
                    "name": as_str(call.get("name")),
                    "input": as_dict(call.get("input")),
                    "status": status if status in CALL_STATES else PENDING,
                    "call": id,
                }
                details = without_empty(
                    output=call.get("output"), duration=as_number(call.get("duration"))
                )
                return data | details, None
            case "tool_result":
                return self._result(content, call)
            case "file_edit":
                return _file_edit(as_dict(line.get("fileEdit"))), None
            case "compact_marker":
                marker = as_dict(line.get("compactMarker"))
                count = as_number(marker.get("compactedCount"))
                return {
                    "compactedCount": int(count or 0),
                    **without_empty(summary=as_str(marker.get("summary"))),
                }, None
        return {}, None

    def _result(
        self, content: str, call: dict[str, Any]
    ) -> tuple[dict[str, Any], CallEnded | None]:
        """A result does not say of which call it is: it is of the latest."""
        status = ERROR if call.get("status") == ERROR else SUCCESS
        data = {"is_error": status == ERROR, **without_empty(name=as_str(call.get("name")))}
        if self._call is None:
            return data, None
        id, has_ended = self._call
        self._call = id, True
        return {"call": id, **data}, None if has_ended else CallEnded(id, status, content)


def _file_edit(edit: dict[str, Any]) -> dict[str, Any]:
    path, operation = as_nonblank(edit.get("path")), as_str(edit.get("operation"))
    if path is None:
        raise InvalidRecord("The file edit names no file.")
    if operation not in FILE_OPERATIONS:
        raise InvalidRecord(f"The operation {operation!r} on a file is not known.")
    texts = {name: as_str(edit.get(name)) for name in ("diff", "beforeHash", "afterHash")}
    counts = {name: as_number(edit.get(name)) for name in ("additions", "deletions")}
    return {"path": path, "operation": operation, **without_empty(**texts, **counts)}


def _info(folder: str) -> dict[str, Any] | Problem:
    path = os.path.join(folder, SESSION)
    try:
        return read_json_file(path)
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
