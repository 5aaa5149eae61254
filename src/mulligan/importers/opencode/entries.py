"""Convert OpenCode's messages and parts to one chain of entries.

An entry has the id of its part. A tool's part holds the call and, once it has ended, the result:
importing it again after that adds the result and leaves the call as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    COMPACT_MARKER,
    ERROR,
    FILE_EDIT,
    PENDING,
    RUNNING,
    SUCCESS,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    USER_INPUT,
    NewEntry,
)
from mulligan.importers import edit_data
from mulligan.importers.records import CallEnded, Compacted, Leaf, Record, Session
from mulligan.importers.values import (
    as_dict,
    as_list,
    as_nonblank,
    as_number,
    as_str,
    as_timestamp,
    without_empty,
)

EDIT_TOOLS: Final = ("write", "edit", "multiedit", "patch", "apply_patch")
IGNORED_PARTS: Final = ("step-start", "step-finish", "snapshot", "agent")
OPERATIONS: Final = {
    "add": "create",
    "added": "create",
    "create": "create",
    "delete": "delete",
    "deleted": "delete",
    "move": "rename",
}
_HUNK: Final = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)


class SpawnedSession(NamedTuple):
    """The session of a sub-agent, to be read now with `converter`."""

    session: str
    converter: SessionConverter


class SessionConverter:
    """Convert one session: for each message `begin`, `part`…, `end`; after the last `leaf`.

    A text instead of a record is the reason why a part could not be converted. Entries of a
    sub-agent are off the path, below the entry `root`.
    """

    def __init__(
        self,
        session: Session,
        revert: dict[str, Any],
        *,
        off_path: bool = False,
        root: str | None = None,
    ) -> None:
        self._session = session
        self._off_path = off_path
        self._reverted_to = as_str(revert.get("messageID"))
        self._reverted_leaf: list[str | None] = []  # one item if the user has reverted
        self._entry_ids: set[str] = set()
        self._last_entry = root
        # By message, its first entry and the number of entries before that.
        self._first_entries: dict[str, tuple[str, int]] = {}
        self._kept_from = ""  # the first message that the next compaction keeps
        self._turn_changes: dict[str, tuple[str, str]] = {}  # by path: operation and diff
        self._turn_paths: set[str] = set()  # with an edit entry in this turn
        self._message = _Message("", {}, None)

    def begin(self, id: str, info: dict[str, Any], time: object) -> Iterator[Record]:
        """Begin a message, and yield the session if the message says more of it."""
        self._message = message = _Message(id, info, time)
        if id and id == self._reverted_to:
            self._reverted_leaf = [self._last_entry]
        if message.is_user:
            self._turn_changes, self._turn_paths = _changes_of_turn(info), set()
        if self._off_path:
            return
        # In older versions only the messages name the directory and the model.
        directory = self._session.directory or as_nonblank(as_dict(info.get("path")).get("cwd"))
        model = self._session.model or message.model
        if (directory, model) != (self._session.directory, self._session.model):
            self._session = Session(self._session.id, directory=directory, model=model)
            yield self._session

    def part(
        self, id: str, part: dict[str, Any], time: object
    ) -> Iterator[Record | SpawnedSession | str]:
        """Convert a part of the current message."""
        at = as_timestamp(time) or self._message.time
        kind, text = as_str(part.get("type")), as_str(part.get("text"))
        match kind:
            case "text" | "reasoning" if not text.strip():
                return  # it has only begun
            case "text" if self._message.is_summary:
                yield from self._compaction(id, text, at)
            case "text" if part.get("synthetic") is True or part.get("ignored") is True:
                yield from self._add_entry(
                    id, NewEntry(SYSTEM_MESSAGE, text, {"synthetic": True}), at
                )
            case "text":
                type = USER_INPUT if self._message.is_user else ASSISTANT_OUTPUT
                yield from self._add_entry(id, NewEntry(type, text), at)
            case "reasoning":
                entry = NewEntry(ASSISTANT_OUTPUT, text, {"kind": "reasoning"})
                yield from self._add_entry(id, entry, at)
            case "tool":
                yield from self._tool(id, part, at)
            case "file":
                yield from self._add_entry(id, _attachment(part), at)
            case "subtask":
                yield from self._add_entry(id, _subtask(part), at)
            case "retry":
                yield from self._add_entry(id, _error_entry(part.get("error")), at)
            case "patch":
                yield from self._changed_files(id, part, at)
            case "compaction":
                self._kept_from = as_str(part.get("tail_start_id"))
            case _ if kind not in IGNORED_PARTS:
                yield f"Part {id}: unknown type {kind!r}."

    def end(self) -> Iterator[Record | str]:
        """End the current message, and yield its error if it failed."""
        if self._message.error:
            error = _error_entry(self._message.error)
            yield from self._add_entry(self._message.id, error, self._message.ended_at)

    def leaf(self) -> Iterator[Record]:
        """Yield the leaf. Always, since a result that is imported later must not become it."""
        if self._last_entry is not None and not self._off_path:
            yield Leaf(self._reverted_leaf[0] if self._reverted_leaf else self._last_entry)

    def _add_entry(self, id: str, entry: NewEntry, at: str | None) -> Iterator[Record | str]:
        if id in self._entry_ids:
            yield f"An earlier entry has the id {id}."
            return
        self._entry_ids.add(id)
        model = None if self._message.is_user else self._message.model
        self._first_entries.setdefault(self._message.id, (id, len(self._entry_ids) - 1))
        yield entry._replace(
            id=id,
            parent=self._last_entry,
            created_at=entry.created_at or at,
            model=model,
            off_path=self._off_path,
        )
        self._last_entry = id

    def _compaction(self, id: str, summary: str, at: str | None) -> Iterator[Record | str]:
        before, count = self._first_entries.get(self._kept_from, (id, len(self._entry_ids)))
        data = {"compactedCount": count, "summary": summary}
        yield from self._add_entry(id, NewEntry(COMPACT_MARKER, summary, data), at)
        if not self._off_path:
            yield Compacted(before)

    def _tool(
        self, id: str, part: dict[str, Any], at: str | None
    ) -> Iterator[Record | SpawnedSession | str]:
        call, name = as_str(part.get("callID")) or id, as_str(part.get("tool"))
        state = as_dict(part.get("state"))
        times, metadata = as_dict(state.get("time")), as_dict(state.get("metadata"))
        began_at, status = as_timestamp(times.get("start")) or at, as_str(state.get("status"))
        data = {
            "name": name,
            "input": as_dict(state.get("input")),
            "status": PENDING if status == "pending" else RUNNING,
            "call": call,
        }
        yield from self._add_entry(id, NewEntry(TOOL_CALL, data=data, created_at=began_at), at)
        if name == "task" and (child := as_str(metadata.get("sessionId"))):
            yield SpawnedSession(child, SessionConverter(self._session, {}, off_path=True, root=id))
        if status not in ("completed", "error"):
            return
        # The status of a failed command is "completed".
        is_error = status == "error" or (name == "bash" and metadata.get("exit") not in (0, None))
        output = as_str(state.get("error" if status == "error" else "output"))
        duration = _duration(times)
        yield CallEnded(call, ERROR if is_error else SUCCESS, output, duration)
        ended_at = as_timestamp(times.get("end")) or began_at
        result = {"call": call, "name": name, "is_error": is_error}
        yield from self._add_entry(f"{id}:1", NewEntry(TOOL_RESULT, output, result), ended_at)
        if status == "completed" and name in EDIT_TOOLS:
            for count, edit in enumerate(_file_edits(name, state, metadata), 2):
                self._message.edited_paths.add(edit["path"])
                self._turn_paths.add(edit["path"])
                entry = NewEntry(FILE_EDIT, edit["path"], edit)
                yield from self._add_entry(f"{id}:{count}", entry, ended_at)

    def _changed_files(
        self, id: str, part: dict[str, Any], at: str | None
    ) -> Iterator[Record | str]:
        """Yield edits of files that commands changed; tools yield their own edits.

        The log holds one diff per file and turn, which is used for the file's first edit only.
        """
        paths = {path for path in map(as_nonblank, as_list(part.get("files"))) if path}
        for count, path in enumerate(sorted(paths - self._message.edited_paths)):
            name = path.removeprefix(self._message.root.rstrip("/") + "/")
            operation, diff = self._turn_changes.get(name, ("modify", ""))
            data = _edit(path, operation, "" if path in self._turn_paths else diff)
            self._turn_paths.add(path)
            entry = NewEntry(FILE_EDIT, path, data)
            yield from self._add_entry(f"{id}:{count}" if count else id, entry, at)


class _Message:
    """The fields of a message that its parts need."""

    def __init__(self, id: str, info: dict[str, Any], time: object) -> None:
        times = as_dict(info.get("time"))
        self.id = id
        self.is_user = info.get("role") == "user"
        self.is_summary = info.get("summary") is True
        self.model = as_nonblank(info.get("modelID")) or as_nonblank(
            as_dict(info.get("model")).get("modelID")
        )
        self.time = as_timestamp(times.get("created")) or as_timestamp(time)
        self.ended_at = as_timestamp(times.get("completed")) or self.time
        self.error = as_dict(info.get("error"))
        self.root = as_str(as_dict(info.get("path")).get("root"))
        self.edited_paths: set[str] = set()


def _file_edits(
    tool: str, state: dict[str, Any], metadata: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    input = as_dict(state.get("input"))
    path = as_nonblank(input.get("filePath"))
    if tool == "write" and path:
        content = as_str(input.get("content"))
        describe = edit_data.created if metadata.get("exists") is False else edit_data.overwritten
        yield describe(path, content)
        return
    for file in map(as_dict, as_list(metadata.get("files"))):
        if old := as_nonblank(file.get("filePath")):
            new = as_nonblank(file.get("movePath")) or old
            operation = OPERATIONS.get(as_str(file.get("type")), "modify")
            diff = as_str(file.get("patch")) or as_str(file.get("diff"))
            yield _edit(new, operation, diff) | ({"old_path": old} if new != old else {})
    results = as_list(metadata.get("results")) if tool == "multiedit" else [metadata]
    for result in map(as_dict, results):
        if path and as_nonblank(result.get("diff")):
            yield _edit(path, None, result["diff"])


def _edit(path: str, operation: str | None, diff: str) -> dict[str, Any]:
    """Describe an edit by OpenCode's hunks below our own diff header."""
    hunk = _HUNK.search(diff)
    if operation is None:
        operation = "create" if hunk and hunk[1] == "0" else "modify"
    if hunk is None:
        return {"path": path, "operation": operation}
    return edit_data.from_diff(
        path, operation, edit_data.diff_header(path, operation) + diff[hunk.start() :]
    )


def _changes_of_turn(info: dict[str, Any]) -> dict[str, tuple[str, str]]:
    diffs = map(as_dict, as_list(as_dict(info.get("summary")).get("diffs")))
    return {
        path: (OPERATIONS.get(as_str(diff.get("status")), "modify"), as_str(diff.get("patch")))
        for diff in diffs
        if (path := as_nonblank(diff.get("file")))
    }


def _attachment(part: dict[str, Any]) -> NewEntry:
    """Convert an attached file, without its content."""
    url, name = as_str(part.get("url")), as_nonblank(part.get("filename"))
    path = as_dict(part.get("source")).get("path")
    attachment = without_empty(
        mime=part.get("mime"), name=name, path=path, url=None if url.startswith("data:") else url
    )
    return NewEntry(SYSTEM_MESSAGE, name or "", {"attachment": attachment})


def _subtask(part: dict[str, Any]) -> NewEntry:
    subtask = without_empty(agent=part.get("agent"), command=part.get("command"))
    return NewEntry(SYSTEM_MESSAGE, as_str(part.get("prompt")), {"subtask": subtask})


def _error_entry(error: object) -> NewEntry:
    error = as_dict(error)
    name = as_str(error.get("name"))
    message = as_nonblank(as_dict(error.get("data")).get("message"))
    text = message or as_nonblank(error.get("message")) or name
    return NewEntry(SYSTEM_MESSAGE, text, {"error": text, "reason": name})


def _duration(times: dict[str, Any]) -> float | None:
    start, end = as_number(times.get("start")), as_number(times.get("end"))
    return end - start if start is not None and end is not None and end >= start else None
