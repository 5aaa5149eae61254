"""Import Gemini CLI's sessions: one file each, in a folder per project; sub-agents in subfolders.

A file is a log of updates: a header, messages, `{"$set": …}` and `{"$rewindTo": …}`. A message is
repeated when it gains something, mostly results of its calls, so only what is new in a repetition
becomes entries. `$set.messages` replaces the messages that the model is shown: after a compression
it holds the summary. Earlier entries stay. Older versions wrote one JSON object with the same
messages, and `checkpoint-<tag>.json` files with only the history.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    COMPACT_MARKER,
    ERROR,
    FILE_EDIT,
    PENDING,
    SUCCESS,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    USER_INPUT,
    NewEntry,
)
from mulligan.importers.folders import files_below, path_from_env
from mulligan.importers.gemini.parts import (
    calls_of,
    directory_of,
    edit_in,
    locate,
    parts_of,
    response_text,
    text_of,
    thoughts_of,
)
from mulligan.importers.json_log import read_json_file, read_json_lines
from mulligan.importers.records import (
    CallEnded,
    Compacted,
    Importer,
    Leaf,
    Problem,
    Record,
    Session,
    Source,
)
from mulligan.importers.values import as_dict, as_list, as_str, as_timestamp, without_empty


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """Find a user's sessions, then saved checkpoints, each by the time in their names."""
    place = path_from_env(environment, "GEMINI_CLI_HOME", home) or home
    root = os.path.join(place, ".gemini", "tmp")
    paths = {*files_below(root, ".jsonl"), *files_below(root, ".json")}
    chats = [path for path in paths if _is_session_log(path, paths)]
    checkpoints = [
        path
        for path in paths
        if os.path.basename(path).startswith("checkpoint-")
        and os.path.dirname(os.path.dirname(path)) == root
    ]
    for group in (chats, checkpoints):
        yield from map(Source, sorted(group, key=lambda path: (os.path.basename(path), path)))


def read(source: Source) -> Iterator[Record]:
    """Read the session in a file with its sub-agents, or one sub-agent's file."""
    return _Reader(source.path).records()


IMPORTER: Final = Importer("gemini", find, read)

_AGENT_ID: Final = re.compile(r"[\w-]{1,100}")
_NONZERO_EXIT: Final = re.compile(r"^Exit Code: (?!0$)\S", re.MULTILINE)
_CONTEXT_STARTS: Final = (
    "<session_context>",
    "This is the Gemini CLI. We are setting up the context",
)
_SUMMARY_TAG: Final = "<state_snapshot>"
_SUMMARY_REPLY: Final = "Got it. Thanks for the additional context!"
_END_STATUSES: Final = {"success": SUCCESS, "error": ERROR, "cancelled": ERROR}


def _is_session_log(path: str, paths: set[str]) -> bool:
    """Return True for a session, or a sub-agent whose session's file is missing."""
    folder, name = os.path.split(path)
    if os.path.basename(folder) == "chats":
        # A resumed session of the older form continues in a `.jsonl` file of the same name.
        return name.startswith("session-") and path + "l" not in paths
    chats, session = os.path.split(folder)
    if os.path.basename(chats) != "chats" or not name.endswith(".jsonl"):
        return False
    ends = (f"-{session[:8]}.json", f"-{session[:8]}.jsonl")
    return not any(os.path.dirname(one) == chats and one.endswith(ends) for one in paths)


def _summary_in(messages: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Find the summary of a compressed conversation, by its tag or the fixed reply after it."""
    texts = [text_of(message.get("content")) for message in messages]
    for message, text, reply in zip(messages, texts, [*texts[1:], ""], strict=False):
        if _SUMMARY_TAG in text or (message.get("type") == "user" and reply == _SUMMARY_REPLY):
            return message
    return None


class _Thread:
    """The main conversation, or that of one sub-agent."""

    def __init__(self, *, off_path: bool, last_entry: str | None = None, prefix: str = "") -> None:
        self.off_path = off_path
        self.last_entry = last_entry
        self.prefix = prefix


class _Message:
    """A message so far: which parts of it have become entries."""

    def __init__(self, parent: str | None, *, has_text_entry: bool = False) -> None:
        self.parent = parent
        self.has_text_entry = has_text_entry
        self.thought_entries = 0


class _Call:
    """The state of a tool call."""

    def __init__(self, entry: str, name: str) -> None:
        self.entry = entry
        self.name = name
        self.ended = False


class _Reader:
    """Convert one session's file, and those of its sub-agents, to records."""

    def __init__(self, path: str) -> None:
        self.path = path
        location = locate(path)
        self.session = Session(location.session)
        self.project_folder = location.project_folder
        stem = os.path.splitext(os.path.basename(path))[0]
        prefix = f"{stem}:" if location.is_subagent else ""
        self.main = _Thread(off_path=location.is_subagent, prefix=prefix)
        self.session_yielded = False
        self.rewound = False
        self.time: str | None = None
        self.messages: dict[str, _Message] = {}
        self.calls: dict[str, _Call] = {}
        self.entries_since_compaction = 0  # of the main conversation
        self.pending_agents: dict[str, str | None] = {}  # and the entries of their calls
        self.agents_read: set[str] = set()
        self.entry_ids: set[str] = set()

    def records(self) -> Iterator[Record]:
        """Yield the records of the session and of its sub-agents."""
        for number, value in self._lines():
            yield from self._read_line(self.path, number, value, self.main)
        if not self.session_yielded or self.main.off_path:
            return
        ended_at = self.time
        for path in sorted(files_below(self._agents_folder(), ".jsonl")):
            self.pending_agents.setdefault(os.path.basename(path).removesuffix(".jsonl"), None)
        while self.pending_agents:
            agent = next(iter(self.pending_agents))
            yield from self._read_agent(agent, self.pending_agents.pop(agent))
        if self.rewound:
            yield Leaf(self.main.last_entry)
        yield self.session._replace(updated_at=ended_at)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        """Yield the lines of a log, or the parts of an older file as if they were lines."""
        if self.path.endswith(".jsonl"):
            yield from read_json_lines(self.path)
            return
        whole = read_json_file(self.path, list_as="history")
        if isinstance(whole, Problem):
            yield 1, whole
            return
        if "history" in whole:  # has no times
            self.time = as_timestamp(os.stat(self.path).st_mtime)
        yield 1, {name: value for name, value in whole.items() if name != "messages"}
        for number, message in enumerate(as_list(whole.get("messages")), 1):
            yield number, as_dict(message)
        for number, turn in enumerate(map(as_dict, as_list(whole.get("history"))), 1):
            kind = "gemini" if turn.get("role") == "model" else "user"
            yield number, {"id": f"L{number}", "type": kind, "content": turn.get("parts")}

    def _read_line(
        self, path: str, number: int, value: dict[str, Any] | Problem, thread: _Thread
    ) -> Iterator[Record]:
        if isinstance(value, Problem):
            yield value
        elif isinstance(value.get("$rewindTo"), str):
            self._rewind(value["$rewindTo"], thread)
        elif isinstance(value.get("$set"), dict):
            self._update_session(value["$set"], thread)
            yield from self._replace_messages(path, number, value["$set"].get("messages"), thread)
        elif as_str(value.get("id")):
            yield from self._message(path, number, value, thread)
        elif "sessionId" in value or "history" in value:
            self._update_session(value, thread)
        else:
            yield Problem(path, number, "Neither a message nor an update.")

    def _update_session(self, fields: dict[str, Any], thread: _Thread) -> None:
        """Apply a header or an update to the session."""
        if thread is not self.main:
            return
        directory = self.session.directory or directory_of(
            self.project_folder, as_str(fields.get("projectHash"))
        )
        folders = [folder for folder in as_list(fields.get("directories")) if as_str(folder)]
        self.session = self.session._replace(
            directory=directory or (folders[0] if folders else None),
            title=as_str(fields.get("summary")) or self.session.title,
            created_at=self.session.created_at or as_timestamp(fields.get("startTime")),
        )
        # A sub-agent's header has an id of its own; its folder is named by its session's id.
        if not thread.off_path and not self.session_yielded and as_str(fields.get("sessionId")):
            self.session = self.session._replace(id=fields["sessionId"])

    def _replace_messages(
        self, path: str, number: int, messages: object, thread: _Thread
    ) -> Iterator[Record]:
        """Read the messages that the model is shown from now on; some may be new."""
        shown = [
            message for message in map(as_dict, as_list(messages)) if as_str(message.get("id"))
        ]
        new = [one for one in shown if thread.prefix + one["id"] not in self.messages]
        summary = _summary_in(new)
        if summary is None:
            for message in shown:
                yield from self._message(path, number, message, thread)
            return
        for message in new:
            # The new messages around the summary are filler for the model.
            self.messages[thread.prefix + message["id"]] = _Message(
                thread.last_entry, has_text_entry=True
            )
        time = as_timestamp(summary.get("timestamp")) or self.time
        text = text_of(summary.get("content"))
        data = {"compactedCount": self.entries_since_compaction, "summary": text}
        id = thread.prefix + summary["id"]
        yield from self._add_entry(thread, id, COMPACT_MARKER, text, data, time)
        yield Compacted(id)
        self.entries_since_compaction = 0 if thread is self.main else self.entries_since_compaction

    def _message(
        self, path: str, number: int, message: dict[str, Any], thread: _Thread
    ) -> Iterator[Record]:
        """Yield what is new in a message, which may be a repetition."""
        id = thread.prefix + message["id"]
        first = id not in self.messages
        seen = self.messages.setdefault(id, _Message(thread.last_entry))
        content, kind = message.get("content"), as_str(message.get("type"))
        time = as_timestamp(message.get("timestamp")) or self.time
        if first:
            self.time = time
        text = text_of(message.get("displayContent")) or text_of(content)
        if kind == "user":
            yield from self._responses(content, thread, time)
            if text.strip() and not seen.has_text_entry and not text.startswith(_CONTEXT_STARTS):
                yield from self._add_entry(thread, id, USER_INPUT, text, None, time)
        elif kind == "gemini":
            yield from self._model_message(id, message, text, seen, thread, time)
        elif kind in ("info", "warning", "error"):
            if text.strip() and not seen.has_text_entry:
                yield from self._add_entry(thread, id, SYSTEM_MESSAGE, text, {"kind": kind}, time)
        elif first:
            yield Problem(path, number, f"Unknown type of message: {kind[:40] or 'none'}.")
        seen.has_text_entry = seen.has_text_entry or bool(text.strip())

    def _model_message(
        self,
        id: str,
        message: dict[str, Any],
        text: str,
        seen: _Message,
        thread: _Thread,
        time: str | None,
    ) -> Iterator[Record]:
        """Yield the new thoughts, the text and the calls of a message by the model."""
        model = as_str(message.get("model")) or None
        if model and not thread.off_path:
            self.session = self.session._replace(model=model)
        for thought in thoughts_of(message)[seen.thought_entries :]:
            seen.thought_entries += 1
            thought_id, data = f"{id}:thought{seen.thought_entries}", {"kind": "reasoning"}
            yield from self._add_entry(
                thread, thought_id, ASSISTANT_OUTPUT, thought, data, time, model
            )
        if text.strip() and not seen.has_text_entry:
            yield from self._add_entry(thread, id, ASSISTANT_OUTPUT, text, None, time, model)
        for position, call in enumerate(calls_of(message), 1):
            call = call if as_str(call.get("id")) else call | {"id": f"{id}:call{position}"}
            yield from self._call(call, thread, id, time, model)

    def _call(
        self,
        call: dict[str, Any],
        thread: _Thread,
        message: str,
        time: str | None,
        model: str | None,
    ) -> Iterator[Record]:
        id, name = call["id"], as_str(call.get("name"))
        if id not in self.calls:
            self.calls[id] = _Call(f"{message}:{id}", name)
            data = {"name": name, "input": call.get("args"), "status": PENDING, "call": id}
            yield from self._add_entry(thread, f"{message}:{id}", TOOL_CALL, "", data, time, model)
        status = _END_STATUSES.get(as_str(call.get("status")))
        if status is not None and not self.calls[id].ended:
            agent = as_str(call.get("agentId"))
            if agent and thread is self.main:
                time_before = self.time
                yield from self._read_agent(agent, self.calls[id].entry)
                self.time = time_before
            elif agent:
                self.pending_agents.setdefault(agent, self.calls[id].entry)
            parts = as_list(call.get("result"))
            text = "\n".join(response_text(part) for part in parts) or as_str(
                call.get("resultDisplay")
            )
            ended_at = as_timestamp(call.get("timestamp")) or time
            yield from self._end_call(id, status, text, thread, ended_at)
            if status == SUCCESS and (edit := edit_in(as_dict(call.get("resultDisplay")))):
                edit_id = f"{message}:{id}:edit"
                yield from self._add_entry(thread, edit_id, FILE_EDIT, "", edit, ended_at)

    def _responses(self, content: object, thread: _Thread, time: str | None) -> Iterator[Record]:
        """Yield results in a user message whose calls have not ended yet."""
        for part in parts_of(content):
            response = as_dict(part.get("functionResponse"))
            if not response:
                continue
            id, name = as_str(response.get("id")), as_str(response.get("name"))
            open_calls = (
                other for other, call in self.calls.items() if call.name == name and not call.ended
            )
            id = id or next(open_calls, "")
            if id in self.calls and not self.calls[id].ended:
                failed = "error" in as_dict(response.get("response"))
                status = ERROR if failed else SUCCESS
                yield from self._end_call(id, status, response_text(part), thread, time)

    def _end_call(
        self, id: str, status: str, text: str, thread: _Thread, time: str | None
    ) -> Iterator[Record]:
        call = self.calls[id]
        call.ended = True
        # The shell tool reports success even if the command failed.
        if call.name == "run_shell_command" and _NONZERO_EXIT.search(text):
            status = ERROR
        yield CallEnded(id, status)
        data = without_empty(call=id, name=call.name, is_error=status == ERROR)
        yield from self._add_entry(thread, f"{call.entry}:result", TOOL_RESULT, text, data, time)

    def _rewind(self, id: str, thread: _Thread) -> None:
        """Continue from the parent of a message; from the start if the message is unknown."""
        message = self.messages.get(thread.prefix + id)
        thread.last_entry = message.parent if message is not None else None
        if thread is self.main:
            self.rewound = self.session_yielded

    def _read_agent(self, agent: str, call: str | None) -> Iterator[Record]:
        if agent in self.agents_read or not _AGENT_ID.fullmatch(agent):
            return
        self.agents_read.add(agent)
        path = os.path.join(self._agents_folder(), f"{agent}.jsonl")
        if not os.path.isfile(path) or os.path.islink(path):
            return
        thread = _Thread(off_path=True, last_entry=call, prefix=f"{agent}:")
        try:
            for number, value in read_json_lines(path):
                yield from self._read_line(path, number, value, thread)
        except OSError as error:
            yield Problem(path, 0, f"Cannot be read: {error.strerror}.")

    def _agents_folder(self) -> str:
        # The id is untrusted: it must not lead out of this folder.
        name = self.session.id if _AGENT_ID.fullmatch(self.session.id) else "-"
        return os.path.join(os.path.dirname(self.path), name)

    def _add_entry(
        self,
        thread: _Thread,
        id: str,
        type: str,
        content: str,
        data: dict[str, Any] | None,
        time: str | None,
        model: str | None = None,
    ) -> Iterator[Record]:
        if id in self.entry_ids:
            return
        self.entry_ids.add(id)
        if not self.session_yielded:
            self.session_yielded = True
            yield self.session
        yield NewEntry(
            type, content, data, id, thread.last_entry, time, model, off_path=thread.off_path
        )
        thread.last_entry = id
        if thread is self.main:
            self.entries_since_compaction += 1
            self.rewound = False
