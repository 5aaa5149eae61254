"""OpenCode's messages and parts as entries: one row of entries, each below the one before.

Each has the id of its part. A tool's part holds the call and, once it ended, the result: reading
it again after that adds the result and leaves the call as it is.
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

EDITING: Final = ("write", "edit", "multiedit", "patch", "apply_patch")
SILENT: Final = ("step-start", "step-finish", "snapshot", "agent")
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
    """A sub-agent was set to work, in a session of its own, which is to be read here."""

    session: str
    conversation: SessionConverter


class SessionConverter:
    """One session, message after message: `begin`, its parts, `end`; and `leaf` after the last.

    What of a message or a part cannot be taken comes in words instead of a record. A sub-agent's is
    off the path of the conversation that it belongs to, below the entry `root`.
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
        self._stands: list[str | None] = []  # where, if the user went back
        self._ids: set[str] = set()
        self._last = root
        self._firsts: dict[str, tuple[str, int]] = {}  # by message: its first entry, how many above
        self._kept_from = ""  # the message from which on a compaction keeps everything
        self._turn: dict[str, tuple[str, str]] = {}  # what became of files in this turn
        self._told: set[str] = set()  # of which something was said in this turn
        self._message = _Message("", {}, None)

    def begin(self, id: str, info: dict[str, Any], time: object) -> Iterator[Record]:
        self._message = message = _Message(id, info, time)
        if id and id == self._reverted_to:
            self._stands = [self._last]
        if message.is_user:
            self._turn, self._told = _changed_in_turn(info), set()
        if self._off_path:
            return
        # Older versions say in the messages alone where they worked, and with which model.
        directory = self._session.directory or as_nonblank(as_dict(info.get("path")).get("cwd"))
        model = self._session.model or message.model
        if (directory, model) != (self._session.directory, self._session.model):
            self._session = Session(self._session.id, directory=directory, model=model)
            yield self._session

    def part(
        self, id: str, part: dict[str, Any], time: object
    ) -> Iterator[Record | SpawnedSession | str]:
        at = as_timestamp(time) or self._message.time
        kind, words = as_str(part.get("type")), as_str(part.get("text"))
        match kind:
            case "text" | "reasoning" if not words.strip():
                return  # one that has only begun
            case "text" if self._message.is_summary:
                yield from self._compacted(id, words, at)
            case "text" if part.get("synthetic") is True or part.get("ignored") is True:
                yield from self._add(id, NewEntry(SYSTEM_MESSAGE, words, {"synthetic": True}), at)
            case "text":
                type = USER_INPUT if self._message.is_user else ASSISTANT_OUTPUT
                yield from self._add(id, NewEntry(type, words), at)
            case "reasoning":
                entry = NewEntry(ASSISTANT_OUTPUT, words, {"kind": "reasoning"})
                yield from self._add(id, entry, at)
            case "tool":
                yield from self._tool(id, part, at)
            case "file":
                yield from self._add(id, _attachment(part), at)
            case "subtask":
                yield from self._add(id, _subtask(part), at)
            case "retry":
                yield from self._add(id, _failure(part.get("error")), at)
            case "patch":
                yield from self._patched(id, part, at)
            case "compaction":
                self._kept_from = as_str(part.get("tail_start_id"))
            case _ if kind not in SILENT:
                yield f"Part {id}: parts of the type {kind!r} are not known."

    def end(self) -> Iterator[Record | str]:
        if self._message.error:
            failure = _failure(self._message.error)
            yield from self._add(self._message.id, failure, self._message.ended_at)

    def leaf(self) -> Iterator[Record]:
        """Always said: a result that is added late is not where the session stands."""
        if self._last is not None and not self._off_path:
            yield Leaf(self._stands[0] if self._stands else self._last)

    def _add(self, id: str, entry: NewEntry, at: str | None) -> Iterator[Record | str]:
        if id in self._ids:
            yield f"The id {id} was given before."
            return
        self._ids.add(id)
        model = None if self._message.is_user else self._message.model
        self._firsts.setdefault(self._message.id, (id, len(self._ids) - 1))
        yield entry._replace(
            id=id,
            parent=self._last,
            created_at=entry.created_at or at,
            model=model,
            off_path=self._off_path,
        )
        self._last = id

    def _compacted(self, id: str, summary: str, at: str | None) -> Iterator[Record | str]:
        before, count = self._firsts.get(self._kept_from, (id, len(self._ids)))
        data = {"compactedCount": count, "summary": summary}
        yield from self._add(id, NewEntry(COMPACT_MARKER, summary, data), at)
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
        yield from self._add(id, NewEntry(TOOL_CALL, data=data, created_at=began_at), at)
        if name == "task" and (child := as_str(metadata.get("sessionId"))):
            yield SpawnedSession(child, SessionConverter(self._session, {}, off_path=True, root=id))
        if status not in ("completed", "error"):
            return
        # A command that failed has completed all the same.
        is_error = status == "error" or (name == "bash" and metadata.get("exit") not in (0, None))
        output = as_str(state.get("error" if status == "error" else "output"))
        duration = _duration(times)
        yield CallEnded(call, ERROR if is_error else SUCCESS, output, duration)
        ended_at = as_timestamp(times.get("end")) or began_at
        result = {"call": call, "name": name, "is_error": is_error}
        yield from self._add(f"{id}:1", NewEntry(TOOL_RESULT, output, result), ended_at)
        if status == "completed" and name in EDITING:
            for count, edit in enumerate(_file_edits(name, state, metadata), 2):
                self._message.edited.add(edit["path"])
                self._told.add(edit["path"])
                entry = NewEntry(FILE_EDIT, edit["path"], edit)
                yield from self._add(f"{id}:{count}", entry, ended_at)

    def _patched(self, id: str, part: dict[str, Any], at: str | None) -> Iterator[Record | str]:
        """What OpenCode found changed on the disk, by commands: of its own tools we know.

        How is told for the turn as a whole, once it is over: that is the diff of this change if
        it is the only one of the file.
        """
        paths = {path for path in map(as_nonblank, as_list(part.get("files"))) if path}
        for count, path in enumerate(sorted(paths - self._message.edited)):
            name = path.removeprefix(self._message.root.rstrip("/") + "/")
            operation, diff = self._turn.get(name, ("modify", ""))
            data = _edit(path, operation, "" if path in self._told else diff)
            self._told.add(path)
            entry = NewEntry(FILE_EDIT, path, data)
            yield from self._add(f"{id}:{count}" if count else id, entry, at)


class _Message:
    """What the parts of a message need to know of it."""

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
        self.edited: set[str] = set()


def _file_edits(
    tool: str, state: dict[str, Any], metadata: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    input = as_dict(state.get("input"))
    path = as_nonblank(input.get("filePath"))
    if tool == "write" and path:
        content = as_str(input.get("content"))
        made = edit_data.created if metadata.get("exists") is False else edit_data.overwritten
        yield made(path, content)
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
    """The hunks are OpenCode's, the lines above them as we write them everywhere."""
    hunk = _HUNK.search(diff)
    if operation is None:
        operation = "create" if hunk and hunk[1] == "0" else "modify"
    if hunk is None:
        return {"path": path, "operation": operation}
    return edit_data.from_diff(
        path, operation, edit_data.diff_header(path, operation) + diff[hunk.start() :]
    )


def _changed_in_turn(info: dict[str, Any]) -> dict[str, tuple[str, str]]:
    diffs = map(as_dict, as_list(as_dict(info.get("summary")).get("diffs")))
    return {
        path: (OPERATIONS.get(as_str(diff.get("status")), "modify"), as_str(diff.get("patch")))
        for diff in diffs
        if (path := as_nonblank(diff.get("file")))
    }


def _attachment(part: dict[str, Any]) -> NewEntry:
    """A file that was handed over; its content, if it is in the log at all, stays there."""
    url, name = as_str(part.get("url")), as_nonblank(part.get("filename"))
    path = as_dict(part.get("source")).get("path")
    about = without_empty(
        mime=part.get("mime"), name=name, path=path, url=None if url.startswith("data:") else url
    )
    return NewEntry(SYSTEM_MESSAGE, name or "", {"attachment": about})


def _subtask(part: dict[str, Any]) -> NewEntry:
    about = without_empty(agent=part.get("agent"), command=part.get("command"))
    return NewEntry(SYSTEM_MESSAGE, as_str(part.get("prompt")), {"subtask": about})


def _failure(error: object) -> NewEntry:
    error = as_dict(error)
    name = as_str(error.get("name"))
    words = as_nonblank(as_dict(error.get("data")).get("message")) or as_nonblank(
        error.get("message")
    )
    return NewEntry(SYSTEM_MESSAGE, words or name, {"error": words or name, "reason": name})


def _duration(times: dict[str, Any]) -> float | None:
    start, end = as_number(times.get("start")), as_number(times.get("end"))
    return end - start if start is not None and end is not None and end >= start else None
