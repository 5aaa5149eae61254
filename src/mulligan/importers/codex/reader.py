"""Codex: one JSONL file a session ("rollout"), in folders by date.

A rollout tells most things twice or three times: as what went to and came from the model
(`response_item`), as an event, and as an item of a turn. What was said is taken from whichever
comes first, and a repetition is told by counting: a text becomes as many entries as the source
that has it most often. Calls are taken from the model's side; of commands and changes that it
does not show (those that a script of the model made) the items are taken. There is no tree but
for turns that were rolled back: what follows hangs where they began.

A fork holds what is new in it, and says which rollout it goes on from and how far: that is read
first. Sub-agents have rollouts of their own, which are read along with the one that names them,
below the call that spawned them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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
from mulligan.importers.codex.parts import (
    CALLS,
    OUTPUTS,
    SILENT_EVENTS,
    SILENT_ITEMS,
    SILENT_LINES,
    SILENT_RESPONSES,
    Output,
    command_line,
    edits_in_changes,
    edits_in_patch,
    milliseconds,
    output_of,
    patch_in,
    text_of,
    typed_text,
    working_directory,
)
from mulligan.importers.codex.rollouts import find, is_named_in, name_of, parent_of, rollout_of
from mulligan.importers.json_log import parse_object, read_json_file, read_json_lines
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


def read(source: Source) -> Iterator[Record]:
    """The session in a rollout, with its sub-agents; a sub-agent's is one only by itself."""
    return _Reader(source.path).records()


IMPORTER: Final = Importer("codex", find, read)

_REASONING: Final = {"kind": "reasoning"}


class _Call:
    """A tool call that was seen."""

    def __init__(self, entry: str, name: str, patch: str | None) -> None:
        self.entry = entry
        self.name = name
        self.patch = patch
        self.changes: object = None  # announced, and not known to be made
        self.ended = False
        self.edited = False


class _Reader:
    """Reads one rollout from its beginning.

    One that belongs to another's session has a `prefix` before the ids of its entries. `until` is
    the line before which a fork was made, counted from 0. What a sub-agent does hangs below `root`,
    off the path of the conversation.
    """

    def __init__(
        self,
        path: str,
        *,
        above: _Reader | None = None,
        until: int | None = None,
        root: str | None = None,
    ) -> None:
        self.path = path
        self.session: Session = above.session if above else Session(name_of(path))
        self.named = above is not None  # by the log itself
        self.begun: bool = above.begun if above else False
        self.brought: set[str] = above.brought if above else {self.session.id}
        self.prefix = f"{name_of(path)}:" if above else ""
        self.off_path = root is not None
        self.until = until
        self.waiting: dict[str, str] = {}  # sub-agents to be read, and the calls that spawned them
        self.line = 0
        self.made = 0  # entries of this line
        self.last = root
        self.rewound = False
        self.time: str | None = None
        self.model: str | None = None
        self.calls: dict[str, _Call] = {}
        self.turns: list[str | None] = []  # what stood above each message of the user
        self.depth = 0  # entries since the last compaction
        self.told: Counter[tuple[str, int]] = Counter()  # by source and text
        self.taken: Counter[int] = Counter()

    def records(self) -> Iterator[Record]:
        for number, value in self._lines():
            if isinstance(value, Problem):
                yield value
                continue
            if self._is_past(value) or (number == 1 and self._is_told_elsewhere(value)):
                break
            self.line, self.made = number, 0
            self.time = as_timestamp(value.get("timestamp")) or self.time
            yield from self._line(value)
        for agent in tuple(self.waiting):
            yield from self._agent(agent)
        if self.rewound and not self.off_path:
            yield Leaf(self.last)
        if self.begun and not self.prefix:
            yield self.session._replace(updated_at=self.time)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        if not self.path.endswith(".json"):
            yield from read_json_lines(self.path)
            return
        # The first versions wrote one object: the session, and the items of the conversation.
        whole = read_json_file(self.path)
        if isinstance(whole, Problem):
            yield 1, whole
            return
        yield 1, as_dict(whole.get("session"))
        for number, item in enumerate(as_list(whole.get("items")), 2):
            yield number, as_dict(item)

    def _line(self, value: dict[str, Any]) -> Iterator[Record]:
        kind, payload = as_str(value.get("type")), value.get("payload")
        if not isinstance(payload, dict):
            yield from self._bare(value)
        elif kind == "session_meta":
            self._meta(payload)
            yield from self._base(as_dict(payload.get("history_base")))
        elif kind == "turn_context":
            self.model = as_str(payload.get("model")) or self.model
            directory = self.session.directory or as_str(payload.get("cwd")) or None
            self.session = self.session._replace(model=self.model, directory=directory)
        elif kind == "response_item":
            yield from self._response(payload)
        elif kind == "event_msg":
            yield from self._event(payload)
        elif kind == "compacted":
            yield from self._compacted(payload)
        elif kind not in SILENT_LINES:
            yield self._unknown("line", kind)

    def _bare(self, value: dict[str, Any]) -> Iterator[Record]:
        """A line of the older form, without an envelope."""
        kind = as_str(value.get("type"))
        if "type" not in value and "id" in value:
            self._meta(value)
        elif value.get("record_type") == "state":
            pass
        elif kind in ("message", "reasoning") or kind in (CALLS | OUTPUTS | SILENT_RESPONSES):
            yield from self._response(value)
        else:
            yield self._unknown("line", kind)

    def _meta(self, meta: dict[str, Any]) -> None:
        # A fork's rollout goes on with a copy of the one it was forked from, its meta included.
        if self.named or self.begun:
            return
        self.named = True
        origin = as_str(meta.get("forked_from_id")) or parent_of(meta)
        self.session = self.session._replace(
            id=as_str(meta.get("id")) or self.session.id,
            directory=as_str(meta.get("cwd")) or None,
            created_at=as_timestamp(meta.get("timestamp")) or self.time,
            forked_from=origin or None,
        )
        self.time = self.time or self.session.created_at

    def _base(self, base: dict[str, Any]) -> Iterator[Record]:
        """What was said before a fork was made, of which its own rollout says only where it is."""
        thread, until = as_str(base.get("thread_id")), base.get("end_ordinal_exclusive")
        if self.line != 1 or self.off_path or thread in self.brought or not isinstance(until, int):
            return
        path = rollout_of(thread, self.path)
        if path is None:
            return
        self.brought.add(thread)
        time, known = self.time, self.session
        origin = _Reader(path, above=self, until=until)
        try:
            yield from origin.records()
        except OSError as error:
            yield Problem(path, 0, f"Cannot be read: {error.strerror}.")
        self.begun, self.last, self.depth = origin.begun, origin.last, origin.depth
        self.rewound, self.turns, self.calls = origin.rewound, origin.turns, origin.calls
        self.session = known._replace(title=known.title or origin.session.title)
        self.time, self.made = time, 0

    def _agent(self, thread: str) -> Iterator[Record]:
        """What a sub-agent said and did, as far as it has come."""
        root = self.waiting.pop(thread, None)
        if root is None or thread in self.brought:
            return
        path = rollout_of(thread, self.path)
        if path is None:
            return
        self.brought.add(thread)
        try:
            for record in _Reader(path, above=self, root=root).records():
                if not isinstance(record, Compacted):  # which is about the conversation
                    yield record
        except OSError as error:
            yield Problem(path, 0, f"Cannot be read: {error.strerror}.")

    def _spawned(self, call: str, thread: str) -> None:
        known = self.calls.get(call)
        if thread and known is not None and thread not in self.brought:
            self.waiting.setdefault(thread, known.entry)

    def _is_past(self, value: dict[str, Any]) -> bool:
        ordinal = value.get("ordinal")
        return self.until is not None and isinstance(ordinal, int) and ordinal >= self.until

    def _is_told_elsewhere(self, value: dict[str, Any]) -> bool:
        """Whether this is a sub-agent's, and the rollout that it works for tells of it."""
        parent = parent_of(as_dict(value.get("payload"))) if not self.prefix else ""
        path = rollout_of(parent, self.path)
        return path is not None and is_named_in(self.session.id, path)

    def _response(self, item: dict[str, Any]) -> Iterator[Record]:
        kind = as_str(item.get("type"))
        if kind == "message":
            yield from self._message(item)
        elif kind == "agent_message":
            about = without_empty(author=item.get("author"), recipient=item.get("recipient"))
            text = text_of(item.get("content"))
            yield from self._entry(SYSTEM_MESSAGE, text, {"kind": "message", **about})
        elif kind == "reasoning":
            parts = [*as_list(item.get("summary")), *as_list(item.get("content"))]
            yield from self._reasoned("response", [text_of([part]) for part in parts])
        elif kind in CALLS:
            yield from self._call(item)
        elif kind in OUTPUTS:
            output = item.get("output", item.get("tools"))
            yield from self._result(as_str(item.get("call_id")), output_of(output))
        elif kind not in SILENT_RESPONSES:
            yield self._unknown("item", kind)

    def _message(self, item: dict[str, Any]) -> Iterator[Record]:
        role, content = as_str(item.get("role")), item.get("content")
        if role == "user":
            if self.session.directory is None:
                self.session = self.session._replace(directory=working_directory(content))
            yield from self._said("response", USER_INPUT, typed_text(content))
        elif role == "assistant":
            yield from self._said("response", ASSISTANT_OUTPUT, text_of(content))
        elif role not in ("developer", "system"):
            yield self._unknown("role", role)

    def _call(self, item: dict[str, Any]) -> Iterator[Record]:
        kind = as_str(item.get("type"))
        arguments: Any = item.get("arguments", item.get("input", item.get("action")))
        if isinstance(arguments, str) and isinstance(parsed := parse_object(arguments), dict):
            arguments = parsed
        name = as_str(item.get("name")) or kind.removesuffix("_call")
        call = as_str(item.get("call_id")) or as_str(item.get("id")) or self._next_id()
        status = PENDING
        if kind in ("web_search_call", "image_generation_call"):  # which have no output to come
            status = SUCCESS if item.get("status", "completed") == "completed" else ERROR
            arguments = arguments or without_empty(prompt=item.get("revised_prompt"))
        yield from self._called(call, name, arguments, status)

    def _called(
        self, call: str, name: str, arguments: Any, status: str = PENDING
    ) -> Iterator[Record]:
        # A script may hold patches too; what becomes of them is told by items of their own.
        patch = patch_in(arguments) if name != "exec" else None
        self.calls[call] = _Call(self._next_id(), name, patch)
        data = {"name": name, "input": arguments, "status": status, "call": call}
        yield from self._entry(TOOL_CALL, "", data)

    def _result(self, id: str, output: Output) -> Iterator[Record]:
        call = self.calls.get(id)
        failed = output.failed
        if call is not None:
            if call.patch and failed is None and not call.edited:
                failed = "Success." not in output.text
            yield from self._ended(id, call, bool(failed), output.duration)
        name = call.name if call else None
        data = without_empty(call=id, name=name, is_error=bool(failed))
        yield from self._entry(TOOL_RESULT, output.text, data)
        if call is not None and not failed and not call.edited:
            call.edited = True
            edits = edits_in_changes(call.changes)
            if not call.changes and call.patch:
                edits = edits_in_patch(call.patch, self.session.directory)
            for edit in edits:
                yield from self._entry(FILE_EDIT, "", edit)

    def _ended(
        self, id: str, call: _Call, failed: bool, duration: float | None
    ) -> Iterator[Record]:
        if not call.ended:
            call.ended = True
            yield CallEnded(id, ERROR if failed else SUCCESS, duration=duration)

    def _event(self, event: dict[str, Any]) -> Iterator[Record]:
        kind = as_str(event.get("type"))
        match kind:
            case "user_message":
                yield from self._said("event", USER_INPUT, typed_text(event.get("message")))
            case "agent_message":
                yield from self._said("event", ASSISTANT_OUTPUT, as_str(event.get("message")))
            case "agent_reasoning" | "agent_reasoning_raw_content":
                yield from self._reasoned("event", [as_str(event.get("text"))])
            case "item_completed":
                yield from self._item(as_dict(event.get("item")))
            case "exec_command_end":
                yield from self._command(as_str(event.get("call_id")), event)
            case "mcp_tool_call_end":
                yield from self._mcp(as_str(event.get("call_id")), event)
            case "patch_apply_begin":
                if call := self.calls.get(as_str(event.get("call_id"))):
                    call.changes = event.get("changes")
            case "patch_apply_end":
                failed = event.get("success") is False
                yield from self._changed(as_str(event.get("call_id")), event, failed)
            case "turn_aborted" | "error" | "stream_error" | "warning":
                text = as_str(event.get("message")) or as_str(event.get("reason"))
                data = {"kind": "interrupted" if kind == "turn_aborted" else kind}
                yield from self._entry(SYSTEM_MESSAGE, text, data)
            case "thread_name_updated":
                title = as_str(event.get("thread_name")) or None
                self.session = self.session._replace(title=title)
            case "collab_agent_spawn_end":
                self._spawned(as_str(event.get("call_id")), as_str(event.get("new_thread_id")))
            case "thread_rolled_back":
                self._roll_back(event.get("num_turns"))
            case _ if kind not in SILENT_EVENTS:
                yield self._unknown("event", kind)

    def _item(self, item: dict[str, Any]) -> Iterator[Record]:
        kind, id = as_str(item.get("type")), as_str(item.get("id"))
        match kind:
            case "UserMessage":
                yield from self._said("item", USER_INPUT, typed_text(item.get("content")))
            case "AgentMessage":
                yield from self._said("item", ASSISTANT_OUTPUT, text_of(item.get("content")))
            case "Reasoning":
                parts = [*as_list(item.get("summary_text")), *as_list(item.get("raw_content"))]
                yield from self._reasoned("item", [text_of([part]) for part in parts])
            case "Plan" | "plan":
                text = as_str(item.get("text"))
                yield from self._said("item", ASSISTANT_OUTPUT, text, {"kind": "plan"})
            case "CommandExecution":
                yield from self._command(id, item)
            case "FileChange":
                failed = item.get("status") in ("failed", "declined")
                yield from self._changed(id, item, failed)
            case "McpToolCall":
                yield from self._mcp(id, item)
            case "SubAgentActivity":
                thread = as_str(item.get("agent_thread_id"))
                self._spawned(id, thread)
                if item.get("kind") == "completed":
                    yield from self._agent(thread)
            case _ if kind not in SILENT_ITEMS:
                yield self._unknown("item", kind)

    def _command(self, id: str, told: dict[str, Any]) -> Iterator[Record]:
        """A command that has ended; its output is taken here only if the model's call is hidden."""
        code = told.get("exit_code")
        failed = told.get("status") in ("failed", "declined") or code not in (0, None)
        asked = {"command": command_line(told.get("command"))}
        text = as_str(told.get("aggregated_output")) or as_str(told.get("stdout"))
        output = Output(text, failed, milliseconds(told.get("duration")))
        yield from self._made(id, "exec_command", asked, output)

    def _mcp(self, id: str, told: dict[str, Any]) -> Iterator[Record]:
        asked = as_dict(told.get("invocation")) or told
        name = ".".join(filter(None, (as_str(asked.get("server")), as_str(asked.get("tool")))))
        result = as_dict(told.get("result"))
        result = as_dict(result.get("Ok")) or result
        failed = told.get("status") == "failed" or "Err" in result or result.get("isError") is True
        output = Output(text_of(result.get("content")), failed, milliseconds(told.get("duration")))
        yield from self._made(id, name or "mcp", asked.get("arguments"), output)

    def _changed(self, id: str, told: dict[str, Any], failed: bool) -> Iterator[Record]:
        text = as_str(told.get("stdout")) or as_str(told.get("stderr"))
        call = self.calls.get(id)
        if call is not None and call.edited:
            return
        output = Output(text, failed)
        if call is not None:
            call.edited = True
            yield from self._ended(id, call, failed, None)
        else:
            yield from self._called(id or self._next_id(), "apply_patch", None)
        if not failed:
            for edit in edits_in_changes(told.get("changes")):
                yield from self._entry(FILE_EDIT, "", edit)
        if call is None:
            yield from self._result(id, output)

    def _made(self, id: str, name: str, asked: Any, output: Output) -> Iterator[Record]:
        call = self.calls.get(id)
        if call is not None:
            yield from self._ended(id, call, bool(output.failed), output.duration)
        else:
            id = id or self._next_id()
            yield from self._called(id, name, asked)
            yield from self._result(id, output)

    def _reasoned(self, source: str, texts: list[str]) -> Iterator[Record]:
        for text in texts:
            yield from self._said(source, ASSISTANT_OUTPUT, text, _REASONING)

    def _said(
        self, source: str, type: str, text: str, data: dict[str, Any] | None = None
    ) -> Iterator[Record]:
        if not text.strip():
            return
        key = hash((type, str(data), text.strip()))
        self.told[source, key] += 1
        if self.told[source, key] <= self.taken[key]:
            return
        self.taken[key] += 1
        if type == USER_INPUT:
            self.turns.append(self.last)
        yield from self._entry(type, text, data)

    def _compacted(self, payload: dict[str, Any]) -> Iterator[Record]:
        summary = as_str(payload.get("message"))
        data = {"compactedCount": self.depth, **without_empty(summary=summary)}
        yield from self._entry(COMPACT_MARKER, summary, data)
        self.depth = 0
        if self.last is not None:
            yield Compacted(self.last)

    def _roll_back(self, turns: object) -> None:
        if isinstance(turns, int) and turns > 0 and self.turns:
            self.last = self.turns[-turns:][0]
            del self.turns[-turns:]
            self.rewound = True

    def _entry(self, type: str, content: str, data: dict[str, Any] | None) -> Iterator[Record]:
        if not self.begun:
            self.begun = True
            yield self.session
        id = self._next_id()
        self.made += 1
        self.depth += 1
        model = self.model if type in (ASSISTANT_OUTPUT, TOOL_CALL) else None
        yield NewEntry(type, content, data, id, self.last, self.time, model, off_path=self.off_path)
        self.last, self.rewound = id, False

    def _next_id(self) -> str:
        id = f"{self.prefix}L{self.line}"
        return f"{id}:{self.made}" if self.made else id

    def _unknown(self, what: str, kind: str) -> Problem:
        return Problem(self.path, self.line, f"Unknown type of {what}: {kind[:40] or 'none'}.")
