"""Gemini CLI: one file a session, in a folder for each project; sub-agents in folders below.

The file is a log of updates: a header, messages, `{"$set": …}` and `{"$rewindTo": …}`. A message
comes again when it has gained something, mostly the results of its calls, so of each version
only what is new becomes entries. `$set.messages` replaces what the model is shown: it brings the
summary when the conversation was compressed, and is no reason to forget the rest. Older versions
wrote one JSON object that holds the same messages, and `checkpoint-<tag>.json` files that hold
the bare history.
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
    opened,
    parts_of,
    response_text,
    text_of,
    thoughts_of,
)
from mulligan.importers.json_log import read_json_file, read_json_lines
from mulligan.importers.records import CallEnded, Compacted, Importer, Leaf, Problem, Record, Source
from mulligan.importers.values import as_dict, as_list, as_str, as_timestamp, without_empty


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """The sessions of a user, oldest first by the time in their names; then saved checkpoints."""
    place = path_from_env(environment, "GEMINI_CLI_HOME", home) or home
    root = os.path.join(place, ".gemini", "tmp")
    paths = {*files_below(root, ".jsonl"), *files_below(root, ".json")}
    chats = [path for path in paths if _in_chats(path, paths)]
    saved = [
        path
        for path in paths
        if os.path.basename(path).startswith("checkpoint-")
        and os.path.dirname(os.path.dirname(path)) == root
    ]
    for found in (chats, saved):
        yield from map(Source, sorted(found, key=lambda path: (os.path.basename(path), path)))


def read(source: Source) -> Iterator[Record]:
    """The session in a file, with its sub-agents; or the entries of one sub-agent's file."""
    return _Reader(source.path).records()


IMPORTER: Final = Importer("gemini", find, read)

_AGENT: Final = re.compile(r"[\w-]{1,100}")
_EXIT_CODE: Final = re.compile(r"^Exit Code: (?!0$)\S", re.MULTILINE)
_CONTEXT: Final = ("<session_context>", "This is the Gemini CLI. We are setting up the context")
_SNAPSHOT: Final = "<state_snapshot>"
_ANSWER: Final = "Got it. Thanks for the additional context!"
_ENDS: Final = {"success": SUCCESS, "error": ERROR, "cancelled": ERROR}


def _in_chats(path: str, paths: set[str]) -> bool:
    """Whether a file is a session of its own, or of a sub-agent whose session is gone."""
    folder, name = os.path.split(path)
    if os.path.basename(folder) == "chats":
        # A session in the older form that was resumed goes on in a file of the newer one.
        return name.startswith("session-") and path + "l" not in paths
    chats, session = os.path.split(folder)
    if os.path.basename(chats) != "chats" or not name.endswith(".jsonl"):
        return False
    ends = (f"-{session[:8]}.json", f"-{session[:8]}.jsonl")
    return not any(os.path.dirname(one) == chats and one.endswith(ends) for one in paths)


def _summary_in(messages: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The message that sums up a conversation: by its form, or by the answer made up for it."""
    texts = [text_of(message.get("content")) for message in messages]
    for message, text, after in zip(messages, texts, [*texts[1:], ""], strict=False):
        if _SNAPSHOT in text or (message.get("type") == "user" and after == _ANSWER):
            return message
    return None


class _Thread:
    """The main conversation, or that of one sub-agent."""

    def __init__(self, *, off_path: bool, last: str | None = None, prefix: str = "") -> None:
        self.off_path = off_path
        self.last = last
        self.prefix = prefix


class _Message:
    """A message that was seen, and what has become entries of it."""

    def __init__(self, above: str | None, *, said: bool = False) -> None:
        self.above = above
        self.said = said
        self.thoughts = 0


class _Call:
    """A tool call that was seen."""

    def __init__(self, entry: str, name: str) -> None:
        self.entry = entry
        self.name = name
        self.ended = False


class _Reader:
    """Reads one session's file and what belongs to it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.session, self.project, alone = opened(path)
        stem = os.path.splitext(os.path.basename(path))[0]
        self.main = _Thread(off_path=alone, prefix=f"{stem}:" if alone else "")
        self.begun = False
        self.rewound = False
        self.time: str | None = None
        self.messages: dict[str, _Message] = {}
        self.calls: dict[str, _Call] = {}
        self.depth = 0  # entries of the main conversation since the last compression
        self.waiting: dict[str, str | None] = {}  # sub-agents to be read, and their calls
        self.brought: set[str] = set()
        self.ids: set[str] = set()

    def records(self) -> Iterator[Record]:
        for number, value in self._lines():
            yield from self._line(self.path, number, value, self.main)
        if not self.begun or self.main.off_path:
            return
        ended = self.time
        for path in sorted(files_below(self._agents_folder(), ".jsonl")):
            self.waiting.setdefault(os.path.basename(path).removesuffix(".jsonl"), None)
        while self.waiting:
            agent = next(iter(self.waiting))
            yield from self._agent(agent, self.waiting.pop(agent))
        if self.rewound:
            yield Leaf(self.main.last)
        yield self.session._replace(updated_at=ended)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        """The lines of a log, or the parts of a file of the older forms as if they were lines."""
        if self.path.endswith(".jsonl"):
            yield from read_json_lines(self.path)
            return
        whole = read_json_file(self.path, list_as="history")
        if isinstance(whole, Problem):
            yield 1, whole
            return
        if "history" in whole:  # which has no times
            self.time = as_timestamp(os.stat(self.path).st_mtime)
        yield 1, {name: value for name, value in whole.items() if name != "messages"}
        for number, message in enumerate(as_list(whole.get("messages")), 1):
            yield number, as_dict(message)
        for number, turn in enumerate(map(as_dict, as_list(whole.get("history"))), 1):
            kind = "gemini" if turn.get("role") == "model" else "user"
            yield number, {"id": f"L{number}", "type": kind, "content": turn.get("parts")}

    def _line(
        self, path: str, number: int, value: dict[str, Any] | Problem, thread: _Thread
    ) -> Iterator[Record]:
        if isinstance(value, Problem):
            yield value
        elif isinstance(value.get("$rewindTo"), str):
            self._rewind(value["$rewindTo"], thread)
        elif isinstance(value.get("$set"), dict):
            self._about(value["$set"], thread)
            yield from self._shown(path, number, value["$set"].get("messages"), thread)
        elif as_str(value.get("id")):
            yield from self._message(path, number, value, thread)
        elif "sessionId" in value or "history" in value:
            self._about(value, thread)
        else:
            yield Problem(path, number, "Neither a message nor an update.")

    def _about(self, told: dict[str, Any], thread: _Thread) -> None:
        """Takes what a header or an update says of the session."""
        if thread is not self.main:
            return
        directory = self.session.directory or directory_of(
            self.project, as_str(told.get("projectHash"))
        )
        folders = [folder for folder in as_list(told.get("directories")) if as_str(folder)]
        self.session = self.session._replace(
            directory=directory or (folders[0] if folders else None),
            title=as_str(told.get("summary")) or self.session.title,
            created_at=self.session.created_at or as_timestamp(told.get("startTime")),
        )
        # A sub-agent's file has an id of its own, and its session's is that of the folder.
        if not thread.off_path and not self.begun and as_str(told.get("sessionId")):
            self.session = self.session._replace(id=told["sessionId"])

    def _shown(self, path: str, number: int, messages: object, thread: _Thread) -> Iterator[Record]:
        """The messages that the model is shown from now on, new ones among them."""
        known = [
            message for message in map(as_dict, as_list(messages)) if as_str(message.get("id"))
        ]
        new = [one for one in known if thread.prefix + one["id"] not in self.messages]
        summary = _summary_in(new)
        if summary is None:
            for message in known:
                yield from self._message(path, number, message, thread)
            return
        for message in new:
            # What stands around the summary was made up for the model.
            self.messages[thread.prefix + message["id"]] = _Message(thread.last, said=True)
        time = as_timestamp(summary.get("timestamp")) or self.time
        text = text_of(summary.get("content"))
        data = {"compactedCount": self.depth, "summary": text}
        id = thread.prefix + summary["id"]
        yield from self._entry(thread, id, COMPACT_MARKER, text, data, time)
        yield Compacted(id)
        self.depth = 0 if thread is self.main else self.depth

    def _message(
        self, path: str, number: int, message: dict[str, Any], thread: _Thread
    ) -> Iterator[Record]:
        id = thread.prefix + message["id"]
        first = id not in self.messages
        seen = self.messages.setdefault(id, _Message(thread.last))
        content, kind = message.get("content"), as_str(message.get("type"))
        time = as_timestamp(message.get("timestamp")) or self.time
        if first:
            self.time = time
        text = text_of(message.get("displayContent")) or text_of(content)
        if kind == "user":
            yield from self._responses(content, thread, id, time)
            if text.strip() and not seen.said and not text.startswith(_CONTEXT):
                yield from self._entry(thread, id, USER_INPUT, text, None, time)
        elif kind == "gemini":
            model = as_str(message.get("model")) or None
            if model and not thread.off_path:
                self.session = self.session._replace(model=model)
            for thought in thoughts_of(message)[seen.thoughts :]:
                seen.thoughts += 1
                own = f"{id}:thought{seen.thoughts}"
                data = {"kind": "reasoning"}
                yield from self._entry(thread, own, ASSISTANT_OUTPUT, thought, data, time, model)
            if text.strip() and not seen.said:
                yield from self._entry(thread, id, ASSISTANT_OUTPUT, text, None, time, model)
            for place, call in enumerate(calls_of(message), 1):
                call = call if as_str(call.get("id")) else call | {"id": f"{id}:call{place}"}
                yield from self._call(call, thread, id, time, model)
        elif kind in ("info", "warning", "error"):
            if text.strip() and not seen.said:
                yield from self._entry(thread, id, SYSTEM_MESSAGE, text, {"kind": kind}, time)
        elif first:
            yield Problem(path, number, f"Unknown type of message: {kind[:40] or 'none'}.")
        seen.said = seen.said or bool(text.strip())

    def _call(
        self,
        told: dict[str, Any],
        thread: _Thread,
        message: str,
        time: str | None,
        model: str | None,
    ) -> Iterator[Record]:
        id, name = told["id"], as_str(told.get("name"))
        if id not in self.calls:
            self.calls[id] = _Call(f"{message}:{id}", name)
            data = {"name": name, "input": told.get("args"), "status": PENDING, "call": id}
            yield from self._entry(thread, f"{message}:{id}", TOOL_CALL, "", data, time, model)
        status = _ENDS.get(as_str(told.get("status")))
        if status is not None and not self.calls[id].ended:
            agent = as_str(told.get("agentId"))
            if agent and thread is self.main:
                before = self.time
                yield from self._agent(agent, self.calls[id].entry)
                self.time = before
            elif agent:
                self.waiting.setdefault(agent, self.calls[id].entry)
            parts = as_list(told.get("result"))
            text = "\n".join(response_text(part) for part in parts) or as_str(
                told.get("resultDisplay")
            )
            ended = as_timestamp(told.get("timestamp")) or time
            yield from self._ended(id, status, text, thread, ended)
            if status == SUCCESS and (edit := edit_in(as_dict(told.get("resultDisplay")))):
                own = f"{message}:{id}:edit"
                yield from self._entry(thread, own, FILE_EDIT, "", edit, ended)

    def _responses(
        self, content: object, thread: _Thread, message: str, time: str | None
    ) -> Iterator[Record]:
        """Results that no call has told of itself."""
        for part in parts_of(content):
            response = as_dict(part.get("functionResponse"))
            if not response:
                continue
            id, name = as_str(response.get("id")), as_str(response.get("name"))
            waiting = (
                other for other, call in self.calls.items() if call.name == name and not call.ended
            )
            id = id or next(waiting, "")
            if id in self.calls and not self.calls[id].ended:
                failed = "error" in as_dict(response.get("response"))
                status = ERROR if failed else SUCCESS
                yield from self._ended(id, status, response_text(part), thread, time)

    def _ended(
        self, id: str, status: str, text: str, thread: _Thread, time: str | None
    ) -> Iterator[Record]:
        call = self.calls[id]
        call.ended = True
        # The shell's tool succeeds with commands that fail.
        if call.name == "run_shell_command" and _EXIT_CODE.search(text):
            status = ERROR
        yield CallEnded(id, status)
        data = without_empty(call=id, name=call.name, is_error=status == ERROR)
        yield from self._entry(thread, f"{call.entry}:result", TOOL_RESULT, text, data, time)

    def _rewind(self, id: str, thread: _Thread) -> None:
        """Goes back to before a message; to the very beginning if nobody knows it."""
        message = self.messages.get(thread.prefix + id)
        thread.last = message.above if message is not None else None
        if thread is self.main:
            self.rewound = self.begun

    def _agent(self, agent: str, call: str | None) -> Iterator[Record]:
        if agent in self.brought or not _AGENT.fullmatch(agent):
            return
        self.brought.add(agent)
        path = os.path.join(self._agents_folder(), f"{agent}.jsonl")
        if not os.path.isfile(path) or os.path.islink(path):
            return
        thread = _Thread(off_path=True, last=call, prefix=f"{agent}:")
        try:
            for number, value in read_json_lines(path):
                yield from self._line(path, number, value, thread)
        except OSError as error:
            yield Problem(path, 0, f"Cannot be read: {error.strerror}.")

    def _agents_folder(self) -> str:
        # The id comes from the log, and must not lead anywhere else.
        name = self.session.id if _AGENT.fullmatch(self.session.id) else "-"
        return os.path.join(os.path.dirname(self.path), name)

    def _entry(
        self,
        thread: _Thread,
        id: str,
        type: str,
        content: str,
        data: dict[str, Any] | None,
        time: str | None,
        model: str | None = None,
    ) -> Iterator[Record]:
        if id in self.ids:
            return
        self.ids.add(id)
        if not self.begun:
            self.begun = True
            yield self.session
        yield NewEntry(type, content, data, id, thread.last, time, model, off_path=thread.off_path)
        thread.last = id
        if thread is self.main:
            self.depth += 1
            self.rewound = False
