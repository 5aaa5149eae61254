"""Import the folders of YAAI's first versions: `session.json` and `transcript.jsonl` per session.

Entries have the same types as ours but no parents: each follows the one before. A restore point
is a manifest: a list of files and the SHA-256 of their contents, which are stored under their
hashes in `snapshots/objects`.
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
from mulligan.importers.folders import files_below, folders_in, is_plain_file, path_from_env
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
    """Find the sessions in `~/.yaai`, in PWD and in its `.yaai`, oldest first.

    YAAI could be configured to use other folders, which the user must name. A source is the
    transcript, or `session.json` if there is no transcript.
    """
    project = path_from_env(environment, "PWD", home)
    places = [os.path.join(home, ".yaai")]
    places += [project, os.path.join(project, ".yaai")] if project else []
    dated_logs: list[tuple[str, str]] = []
    for place in dict.fromkeys(places):
        for folder in folders_in(os.path.join(place, SESSIONS)):
            paths = (os.path.join(folder, name) for name in (TRANSCRIPT, SESSION))
            path = next(filter(is_plain_file, paths), None)
            if path is not None:
                info = _session_info(folder)
                time = as_timestamp(info.get("createdAt")) if isinstance(info, dict) else None
                dated_logs.append((time or "", path))
    for _, path in sorted(dated_logs):
        yield Source(path)


def read(source: Source) -> Iterator[Record]:
    """Read one session, given its transcript, its `session.json` or its folder."""
    folder = _session_folder(source)
    name = os.path.basename(os.path.abspath(folder))
    info = _session_info(folder)
    if isinstance(info, Problem):
        yield info
        info = {}
    others = map(os.path.basename, folders_in(os.path.join(_data_folder(folder), SESSIONS)))
    transcript = _Transcript(as_nonblank(info.get("id")) or name, name, frozenset(others))
    yield Session(
        transcript.session,
        directory=as_nonblank(info.get("projectPath")),
        created_at=as_timestamp(info.get("createdAt")),
        updated_at=as_timestamp(info.get("updatedAt")),
    )
    path = os.path.join(folder, TRANSCRIPT)
    if os.path.exists(path):
        for number, line in read_json_lines(path):
            if isinstance(line, Problem):
                yield line
                continue
            try:
                yield from transcript.add_line(line)
            except InvalidRecord as reason:
                yield Problem(path, number, str(reason))
    for path in _manifest_paths(folder):
        try:
            yield from transcript.add_restore_point(path, read_json_file(path))
        except InvalidRecord as reason:
            yield Problem(path, 1, str(reason))
        except OSError as error:
            yield Problem(path, 1, f"The file cannot be read: {error.strerror}.")


def contents(source: Source) -> ReadContent:
    """Open the file contents of restore points, which are named by their hashes."""
    place = _data_folder(_session_folder(source))

    def content(name: str) -> Iterator[bytes]:
        if not _HASH.fullmatch(name):
            raise InvalidRecord("Its hash is not a SHA-256.")
        paths = [os.path.join(place, objects, name[:2], name) for objects in OBJECTS]
        path = next(filter(os.path.exists, paths), None)
        if path is None:
            raise InvalidRecord("Its content is missing.")
        hash = sha256()
        with open_log(path) as file:
            while piece := file.read(READ_BYTES):
                hash.update(piece)
                yield piece
        if hash.hexdigest() != name:
            raise InvalidRecord("Its content is damaged: its hash is different.")

    return content


IMPORTER: Final = Importer("yaai", find, read, contents)


class _Transcript:
    """Convert the lines and restore points of one session to records."""

    def __init__(self, session: str, name: str, others: frozenset[str]) -> None:
        self.session = session
        self._session_names = {session, name, ""}
        self._other_sessions = others
        self._entry_ids: set[str] = set()
        self._point_ids: set[str] = set()
        self._last_entry: str | None = None
        self._entry_of_point: dict[str, str] = {}
        self._last_call: tuple[str, bool] | None = None  # its id, and whether it has ended

    def add_line(self, line: dict[str, Any]) -> Iterator[Record]:
        """Convert one line of the transcript."""
        id, type = as_nonblank(line.get("id")), as_str(line.get("type"))
        if id is None:
            raise InvalidRecord("The entry has no id.")
        if id in self._entry_ids:
            raise InvalidRecord(f"An earlier entry has the id {id}.")
        if type not in TYPES:
            raise InvalidRecord(f"Unknown type of entry: {type!r}.")
        if as_str(line.get("sessionId")) not in self._session_names:
            raise InvalidRecord(f"The entry belongs to another session, {line['sessionId']}.")
        content = as_str(line.get("content"))
        data, ended = self._data(id, type, content, line)
        data |= without_empty(restorePointId=as_nonblank(line.get("restorePointId")))
        self._entry_ids.add(id)
        self._entry_of_point.setdefault(as_str(data.get("restorePointId")), id)
        yield NewEntry(
            type,
            content,
            data or None,
            id,
            self._last_entry,
            as_timestamp(line.get("timestamp")),
            plan_item=as_nonblank(line.get("planItemId")),
            is_compacted=line.get("isCompacted") is True,
        )
        self._last_entry = id
        if ended is not None:
            yield ended

    def add_restore_point(self, path: str, manifest: dict[str, Any] | Problem) -> Iterator[Record]:
        """Convert one manifest; skip those of other sessions in the shared folder."""
        if isinstance(manifest, Problem):
            yield manifest
            return
        session = as_str(manifest.get("sessionId"))
        if session not in self._session_names - {""}:
            if session not in self._other_sessions:
                raise InvalidRecord(f"The session of the restore point, {session!r}, is missing.")
            return
        id = as_nonblank(manifest.get("id"))
        if id is None or id in self._point_ids:
            raise InvalidRecord("The restore point has no id, or an earlier one has the same id.")
        if not isinstance(manifest.get("files"), list):
            raise InvalidRecord("The restore point does not list its files.")
        self._point_ids.add(id)
        files = []
        for number, file in enumerate(map(as_dict, manifest["files"]), 1):
            name, mode = as_str(file.get("path")), as_number(file.get("mode"))
            if name:
                files.append(
                    SnapshotFile(name, as_str(file.get("hash")).lower(), int(mode or 0o644))
                )
            else:
                yield Problem(path, 1, f"File {number} of the restore point has no path.")
        file_count = as_number(manifest.get("fileCount"))
        if file_count is not None and file_count > len(files):
            reason = f"It lists {len(files)} of the {file_count:g} files that it counts."
            yield Problem(path, 1, reason)
        entry = as_nonblank(manifest.get("transcriptEntryId"))
        yield Snapshot(
            id,
            as_str(manifest.get("description")),
            as_timestamp(manifest.get("timestamp")),
            entry if entry in self._entry_ids else self._entry_of_point.get(id),
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
                self._last_call = id, status in ENDED
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
        """Attach a result to the latest call, since results do not name theirs."""
        status = ERROR if call.get("status") == ERROR else SUCCESS
        data = {"is_error": status == ERROR, **without_empty(name=as_str(call.get("name")))}
        if self._last_call is None:
            return data, None
        id, has_ended = self._last_call
        self._last_call = id, True
        return {"call": id, **data}, None if has_ended else CallEnded(id, status, content)


def _file_edit(edit: dict[str, Any]) -> dict[str, Any]:
    path, operation = as_nonblank(edit.get("path")), as_str(edit.get("operation"))
    if path is None:
        raise InvalidRecord("The file edit names no file.")
    if operation not in FILE_OPERATIONS:
        raise InvalidRecord(f"Unknown operation on a file: {operation!r}.")
    texts = {name: as_str(edit.get(name)) for name in ("diff", "beforeHash", "afterHash")}
    counts = {name: as_number(edit.get(name)) for name in ("additions", "deletions")}
    return {"path": path, "operation": operation, **without_empty(**texts, **counts)}


def _session_info(folder: str) -> dict[str, Any] | Problem:
    path = os.path.join(folder, SESSION)
    try:
        return read_json_file(path)
    except OSError as error:
        return Problem(path, 1, f"The file cannot be read: {error.strerror}.")


def _session_folder(source: Source) -> str:
    """Return the session's folder, given itself or a file in it."""
    is_folder = stat.S_ISDIR(os.stat(source.path).st_mode)
    return source.path if is_folder else os.path.dirname(source.path)


def _data_folder(folder: str) -> str:
    """Return the folder that holds `sessions` and `snapshots`."""
    return os.path.dirname(os.path.dirname(os.path.abspath(folder)))


def _manifest_paths(folder: str) -> list[str]:
    """List the manifests in the session's folder and in the shared folders."""
    folders = [os.path.join(folder, MANIFESTS[0])]
    folders += [os.path.join(_data_folder(folder), name) for name in MANIFESTS]
    return [path for each in folders for path in sorted(files_below(each, ".json"))]
