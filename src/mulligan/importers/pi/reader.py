"""Import pi's session files in `~/.pi/agent/sessions`: one JSON line per entry, versions 1 to 3.

The first line is the session's header; each further line has an id and its parent's id. Lines of
version 1 have neither: each follows the one before, and its line number becomes its id. The last
line is the session's leaf.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    COMPACT_MARKER,
    ERROR,
    FILE_EDIT,
    RUNNING,
    STEP_SNAPSHOT,
    SUCCESS,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    UI_EVENT,
    UNREVERT_POINT,
    USER_INPUT,
    NewEntry,
)
from mulligan.importers import edit_data
from mulligan.importers.folders import files_below, files_in, path_from_env
from mulligan.importers.json_log import read_json_file, read_json_lines
from mulligan.importers.pi.parts import (
    attachments,
    branch_summary,
    custom_message,
    edit_of,
    milliseconds_between,
    text_of,
    user_command,
)
from mulligan.importers.records import (
    CallEnded,
    Compacted,
    Importer,
    InvalidRecord,
    Leaf,
    Problem,
    Record,
    Session,
    Source,
    chain_entries,
)
from mulligan.importers.values import (
    as_dict,
    as_list,
    as_nonblank,
    as_str,
    as_timestamp,
    without_empty,
)

CUSTOM_TYPES: Final = {"step-snapshot": STEP_SNAPSHOT, "unrevert-point": UNREVERT_POINT}
FILE_TOOLS: Final = ("read", "write", "edit")


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """Find a user's session files, oldest first by the time in their names.

    Honours PI_CODING_AGENT_DIR, PI_CODING_AGENT_SESSION_DIR and `sessionDir` in pi's settings.
    Some early versions kept sessions in the agent's folder itself.
    """
    agent = path_from_env(environment, "PI_CODING_AGENT_DIR", home) or os.path.join(
        home, ".pi", "agent"
    )
    folders = {
        os.path.join(agent, "sessions"),
        path_from_env(environment, "PI_CODING_AGENT_SESSION_DIR", home),
        path_from_env({"": as_str(_settings(agent).get("sessionDir"))}, "", home),
    }
    paths = {path for folder in folders if folder for path in files_below(folder, ".jsonl")}
    paths |= {*files_in(agent, ".jsonl")}
    for path in sorted(paths, key=lambda path: (os.path.basename(path), path)):
        yield Source(path)


def read(source: Source) -> Iterator[Record]:
    """Read one session file."""
    log = _Log(source.path)
    for number, line in read_json_lines(source.path):
        if isinstance(line, Problem):
            yield line
        else:
            yield from log.add_line(number, line)
    yield from log.end()


IMPORTER: Final = Importer("pi", find, read)


class _Call(NamedTuple):
    """A tool call without a result so far."""

    name: str
    input: dict[str, Any]
    began_at: str | None


class _Log:
    """Convert the lines of one file to records."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._session: str | None = None
        self._version = 3
        self._line_ids: list[str] = []  # of version 1, which refers to lines by position
        self._last_entry: dict[str, str | None] = {}  # of each line, by line id
        self._ancestor_count: dict[str, int] = {}  # by entry id
        self._newest: str | None = None
        self._leaf: str | None = None
        self._time: str | None = None
        self._model: str | None = None
        self._open_calls: dict[str, _Call] = {}
        self._known_paths: set[str] = set()  # files that the session has read or written

    def add_line(self, number: int, line: dict[str, Any]) -> Iterator[Record]:
        """Convert one line."""
        if self._session is None:
            yield from self._begin_session(number, line)
        elif line.get("type") == "session":
            yield Problem(self._path, number, "A second header; the first one counts.")
            return
        if line.get("type") == "session":
            self._line_ids.append("")
            return
        id = as_nonblank(line.get("id")) if self._version > 1 else None
        id = id or f"L{number}"
        self._line_ids += [id] if self._version == 1 else []
        if id in self._last_entry:
            yield Problem(self._path, number, f"An earlier line has the id {id}.")
            return
        parent = self._parent(line)
        self._last_entry[id] = self._leaf = parent
        self._time = as_timestamp(line.get("timestamp")) or self._time
        try:
            records = list(self._records(id, parent, line))
        except InvalidRecord as reason:
            yield Problem(self._path, number, str(reason))
            return
        for record in records:
            if isinstance(record, NewEntry):
                if record.id in self._ancestor_count:
                    yield Problem(self._path, number, f"An earlier entry has the id {record.id}.")
                    return
                self._append(id, record)
            yield record

    def end(self) -> Iterator[Record]:
        """Yield the time of the last line, and the leaf if it is not the newest entry."""
        if self._session is None:
            return
        if self._time is not None:
            yield Session(self._session, updated_at=self._time)
        if self._leaf != self._newest:
            yield Leaf(self._leaf)

    def _begin_session(self, number: int, line: dict[str, Any]) -> Iterator[Record]:
        is_header = line.get("type") == "session"
        id = as_nonblank(line.get("id")) if is_header else None
        if id is None:
            id = _id_in_name(self._path)
            reason = "The session has no header; its id is taken from the file name."
            yield Problem(self._path, number, reason)
        self._session = id
        if not is_header:
            yield Session(id)
            return
        version = line.get("version", 1)
        self._version = version if isinstance(version, int) and version in (1, 2) else 3
        self._time = as_timestamp(line.get("timestamp"))
        origin = as_nonblank(line.get("parentSession")) or as_nonblank(line.get("branchedFrom"))
        self._model = as_nonblank(line.get("modelId"))
        yield Session(
            id,
            directory=as_nonblank(line.get("cwd")),
            model=self._model,
            created_at=self._time,
            forked_from=_id_in_name(origin) if origin else None,
        )

    def _parent(self, line: dict[str, Any]) -> str | None:
        """Return the parent entry; if its line is missing, the entry of the previous line."""
        parent = line.get("parentId", "")
        if parent is None and self._version > 1:
            return None
        return self._last_entry.get(parent, self._leaf) if isinstance(parent, str) else self._leaf

    def _append(self, line_id: str, entry: NewEntry) -> None:
        assert entry.id is not None
        above = self._ancestor_count.get(entry.parent) if entry.parent is not None else None
        self._ancestor_count[entry.id] = 0 if above is None else above + 1
        self._last_entry[line_id] = self._leaf = self._newest = entry.id

    def _records(self, id: str, parent: str | None, line: dict[str, Any]) -> Iterator[Record]:
        """Convert a line to its chain of entries, followed by its other records."""
        kind = as_str(line.get("type"))
        if kind not in _CONVERTERS:
            raise InvalidRecord(f"Unknown type of line: {kind!r}.")
        entries: list[NewEntry] = []
        others: list[Record] = []
        for record in _CONVERTERS[kind](self, id, line):
            if isinstance(record, NewEntry):
                entries.append(record._replace(created_at=self._time))
            else:
                others.append(record)
        yield from chain_entries(id, parent, entries)
        yield from others

    def _message(self, id: str, line: dict[str, Any]) -> Iterator[Record]:
        message = as_dict(line.get("message"))
        self._time = self._time or as_timestamp(message.get("timestamp"))
        content = message.get("content")
        match message.get("role"):
            case "user":
                yield NewEntry(USER_INPUT, text_of(content), attachments(content))
            case "assistant":
                yield from self._assistant(message)
            case "toolResult":
                yield from self._result(message)
            case "bashExecution":
                yield from user_command(id, message)
            case "custom" | "hookMessage":
                yield from custom_message(message)
            case "branchSummary":
                yield from branch_summary(message)
            case "compactionSummary":
                yield from self._compaction(id, message)
            case role:
                raise InvalidRecord(f"Unknown role of a message: {as_str(role)!r}.")

    def _assistant(self, message: dict[str, Any]) -> Iterator[Record]:
        model = as_nonblank(message.get("model"))
        if self._model is None:
            yield from self._set_model(model)
        is_empty = True
        content = message.get("content")
        blocks = (
            [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
        )
        for block in map(as_dict, blocks):
            match block.get("type"):
                case "text" if as_nonblank(block.get("text")):
                    yield NewEntry(ASSISTANT_OUTPUT, block["text"], model=model)
                case "thinking" if as_nonblank(block.get("thinking")):
                    data = {"kind": "reasoning"}
                    yield NewEntry(ASSISTANT_OUTPUT, block["thinking"], data, model=model)
                case "toolCall":
                    yield self._call(block, model)
                case _:
                    continue
            is_empty = False
        error = as_nonblank(message.get("errorMessage"))
        if error:
            data = {"error": error, "reason": as_str(message.get("stopReason"))}
            yield NewEntry(SYSTEM_MESSAGE, error, data, model=model)
        elif is_empty:
            yield NewEntry(ASSISTANT_OUTPUT, model=model)

    def _call(self, block: dict[str, Any], model: str | None) -> NewEntry:
        call, name = as_str(block.get("id")), as_str(block.get("name"))
        input = as_dict(block.get("arguments"))
        # Only the inputs of file tools are needed later, and an input can be large.
        self._open_calls[call] = _Call(name, input if name in FILE_TOOLS else {}, self._time)
        data = {"name": name, "input": input, "status": RUNNING, "call": call}
        return NewEntry(TOOL_CALL, data=data, model=model)

    def _result(self, message: dict[str, Any]) -> Iterator[Record]:
        id, output = as_str(message.get("toolCallId")), text_of(message.get("content"))
        is_error = message.get("isError") is True
        call = self._open_calls.pop(id, None)
        name = as_str(message.get("toolName")) or (call.name if call else "")
        data = {"call": id, "name": name, "is_error": is_error}
        yield NewEntry(TOOL_RESULT, output, data)
        if call is not None and not is_error:
            yield from self._file_edit(call, as_dict(message.get("details")))
        ended_at = as_timestamp(message.get("timestamp")) or self._time
        duration = milliseconds_between(call.began_at, ended_at) if call else None
        if id:
            yield CallEnded(id, ERROR if is_error else SUCCESS, output, duration)

    def _file_edit(self, call: _Call, details: dict[str, Any]) -> Iterator[NewEntry]:
        path = as_nonblank(call.input.get("path"))
        if call.name not in FILE_TOOLS or path is None:
            return
        if call.name == "edit":
            yield NewEntry(FILE_EDIT, path, edit_of(path, call.input, as_str(details.get("diff"))))
        elif call.name == "write":
            # The log does not say whether the file existed: assume a new one unless the session
            # has read or written it before.
            content = as_str(call.input.get("content"))
            describe = edit_data.overwritten if path in self._known_paths else edit_data.created
            yield NewEntry(FILE_EDIT, path, describe(path, content))
        self._known_paths.add(path)

    def _compaction(self, id: str, line: dict[str, Any]) -> Iterator[Record]:
        kept = line.get("firstKeptEntryId")
        index = line.get("firstKeptEntryIndex")
        if isinstance(index, int) and 0 < index < len(self._line_ids):
            kept = self._line_ids[index]
        # The first entry of a line has the line's id; a line may have no entries.
        before = kept if isinstance(kept, str) and kept in self._ancestor_count else id
        above = self._last_entry.get(id)
        count = (
            self._ancestor_count[before]
            if before != id
            else self._ancestor_count.get(above or "", -1) + 1
        )
        summary = as_str(line.get("summary"))
        data = {"compactedCount": count, "summary": summary}
        data |= without_empty(tokensBefore=line.get("tokensBefore"), details=line.get("details"))
        yield NewEntry(COMPACT_MARKER, summary, data)
        yield Compacted(before)

    def _label(self, _: str, line: dict[str, Any]) -> Iterator[Record]:
        label, target = as_str(line.get("label")), as_str(line.get("targetId"))
        yield NewEntry(SYSTEM_MESSAGE, label, {"label": {"target": target, "label": label}})

    def _session_info(self, _: str, line: dict[str, Any]) -> Iterator[Record]:
        name = as_nonblank(line.get("name"))
        yield NewEntry(UI_EVENT, name or "", {"title": name})
        if name and self._session:
            yield Session(self._session, title=name)

    def _model_change(self, _: str, line: dict[str, Any]) -> Iterator[Record]:
        model, provider = as_nonblank(line.get("modelId")), as_nonblank(line.get("provider"))
        data = {"model_change": without_empty(provider=provider, model=model)}
        name = " ".join(filter(None, (model, provider and f"({provider})")))
        yield NewEntry(SYSTEM_MESSAGE, name, data, model=model)
        yield from self._set_model(model)

    def _set_model(self, model: str | None) -> Iterator[Record]:
        if model and self._session:
            self._model = model
            yield Session(self._session, model=model)


def _thinking_level_change(_log: _Log, _: str, line: dict[str, Any]) -> Iterator[Record]:
    level = as_str(line.get("thinkingLevel"))
    yield NewEntry(UI_EVENT, level, {"thinking_level": level})


def _custom(_log: _Log, _: str, line: dict[str, Any]) -> Iterator[Record]:
    kind, data = as_str(line.get("customType")), line.get("data")
    if kind in CUSTOM_TYPES:
        yield NewEntry(CUSTOM_TYPES[kind], data=as_dict(data))
    else:
        yield NewEntry(UI_EVENT, data={"custom": kind, **without_empty(data=data)})


_CONVERTERS: Final[dict[str, Callable[[_Log, str, dict[str, Any]], Iterator[Record]]]] = {
    "message": _Log._message,
    "compaction": _Log._compaction,
    "label": _Log._label,
    "session_info": _Log._session_info,
    "model_change": _Log._model_change,
    "thinking_level_change": _thinking_level_change,
    "custom": _custom,
    "custom_message": lambda _log, _, line: custom_message(line),
    "branch_summary": lambda _log, _, line: branch_summary(line),
}


def _id_in_name(path: str) -> str:
    """Return the session id in a file name `<time>_<id>.jsonl`."""
    return os.path.basename(path).removesuffix(".jsonl").rpartition("_")[2] or path


def _settings(agent: str) -> dict[str, Any]:
    try:
        settings = read_json_file(os.path.join(agent, "settings.json"))
    except OSError:
        return {}
    return settings if isinstance(settings, dict) else {}
