"""Import Codex's sessions: one JSONL file each (a "rollout"), in folders by date.

A rollout repeats most things two or three times: as a `response_item` to or from the model, as an
event, and as an item of a turn. Of a text, the first occurrence becomes an entry; repetitions are
recognised by counting, so a text becomes as many entries as the source that has it most often.
Tool calls are taken from response items; commands and file changes by a script of the model
appear only as items. Only turns that were rolled back make branches: the next turn has the same
parent as the turn that was rolled back.

A fork's rollout holds only new lines, and names its origin and how much of it to read first.
Sub-agents have their own rollouts, which are read with the one that names them, below the call
that spawned them.
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
    IGNORED_EVENTS,
    IGNORED_ITEMS,
    IGNORED_LINES,
    IGNORED_RESPONSES,
    OUTPUTS,
    Output,
    command_line,
    edits_in_changes,
    edits_in_patch,
    find_patch,
    milliseconds,
    parse_output,
    text_of,
    typed_text,
    working_directory,
)
from mulligan.importers.codex.rollouts import find, find_rollout, mentions, parent_of, session_id_of
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
    """Read the session in a rollout, with its sub-agents.

    A sub-agent's rollout yields nothing if its parent's rollout is there to be read.
    """
    return _Reader(source.path).records()


IMPORTER: Final = Importer("codex", find, read)

_REASONING: Final = {"kind": "reasoning"}


class _Call:
    """The state of a tool call."""

    def __init__(self, entry: str, name: str, patch: str | None) -> None:
        self.entry = entry
        self.name = name
        self.patch = patch
        self.planned_changes: object = None
        self.ended = False
        self.has_edits = False  # whether its edits have become entries


class _Reader:
    """Convert one rollout to records.

    `above` reads the session that this rollout is part of, as the origin of a fork or as a
    sub-agent; entry ids then get a prefix. An origin is read up to the ordinal `until`. Entries
    of a sub-agent are off the path, below the entry `root`.
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
        self.session: Session = above.session if above else Session(session_id_of(path))
        self.has_meta = above is not None
        self.session_yielded: bool = above.session_yielded if above else False
        self.threads_read: set[str] = above.threads_read if above else {self.session.id}
        self.prefix = f"{session_id_of(path)}:" if above else ""
        self.off_path = root is not None
        self.until = until
        self.pending_agents: dict[str, str] = {}  # by thread, the entries of their calls
        self.line = 0
        self.line_entries = 0  # how many entries the current line has yielded
        self.last_entry = root
        self.rolled_back = False
        self.time: str | None = None
        self.model: str | None = None
        self.calls: dict[str, _Call] = {}
        self.turn_parents: list[str | None] = []  # the parent of each user message
        self.entries_since_compaction = 0
        self.texts_seen: Counter[tuple[str, int]] = Counter()  # by source and hash
        self.texts_yielded: Counter[int] = Counter()  # by hash

    def records(self) -> Iterator[Record]:
        """Yield the records of the rollout and of its sub-agents."""
        for number, value in self._lines():
            if isinstance(value, Problem):
                yield value
                continue
            if self._is_after_fork(value) or (number == 1 and self._is_read_with_parent(value)):
                break
            self.line, self.line_entries = number, 0
            self.time = as_timestamp(value.get("timestamp")) or self.time
            yield from self._read_line(value)
        for agent in tuple(self.pending_agents):
            yield from self._read_agent(agent)
        if self.rolled_back and not self.off_path:
            yield Leaf(self.last_entry)
        if self.session_yielded and not self.prefix:
            yield self.session._replace(updated_at=self.time)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
        if not self.path.endswith(".json"):
            yield from read_json_lines(self.path)
            return
        # The first versions wrote one object with the session and its items.
        whole = read_json_file(self.path)
        if isinstance(whole, Problem):
            yield 1, whole
            return
        yield 1, as_dict(whole.get("session"))
        for number, item in enumerate(as_list(whole.get("items")), 2):
            yield number, as_dict(item)

    def _read_line(self, value: dict[str, Any]) -> Iterator[Record]:
        kind, payload = as_str(value.get("type")), value.get("payload")
        if not isinstance(payload, dict):
            yield from self._read_bare_line(value)
        elif kind == "session_meta":
            self._set_meta(payload)
            yield from self._read_fork_origin(as_dict(payload.get("history_base")))
        elif kind == "turn_context":
            self.model = as_str(payload.get("model")) or self.model
            directory = self.session.directory or as_str(payload.get("cwd")) or None
            self.session = self.session._replace(model=self.model, directory=directory)
        elif kind == "response_item":
            yield from self._response_item(payload)
        elif kind == "event_msg":
            yield from self._event(payload)
        elif kind == "compacted":
            yield from self._compacted(payload)
        elif kind not in IGNORED_LINES:
            yield self._unknown_type("line", kind)

    def _read_bare_line(self, value: dict[str, Any]) -> Iterator[Record]:
        """Read a line of the older form, which has no envelope."""
        kind = as_str(value.get("type"))
        if "type" not in value and "id" in value:
            self._set_meta(value)
        elif value.get("record_type") == "state":
            pass
        elif kind in ("message", "reasoning") or kind in (CALLS | OUTPUTS | IGNORED_RESPONSES):
            yield from self._response_item(value)
        else:
            yield self._unknown_type("line", kind)

    def _set_meta(self, meta: dict[str, Any]) -> None:
        # An older fork's rollout holds a copy of its origin, including its meta line.
        if self.has_meta or self.session_yielded:
            return
        self.has_meta = True
        origin = as_str(meta.get("forked_from_id")) or parent_of(meta)
        self.session = self.session._replace(
            id=as_str(meta.get("id")) or self.session.id,
            directory=as_str(meta.get("cwd")) or None,
            created_at=as_timestamp(meta.get("timestamp")) or self.time,
            forked_from=origin or None,
        )
        self.time = self.time or self.session.created_at

    def _read_fork_origin(self, base: dict[str, Any]) -> Iterator[Record]:
        """Read a fork's origin up to the fork, if the rollout refers to one."""
        thread, until = as_str(base.get("thread_id")), base.get("end_ordinal_exclusive")
        if self.line != 1 or self.off_path or not isinstance(until, int):
            return
        if thread in self.threads_read:
            return
        path = find_rollout(thread, self.path)
        if path is None:
            return
        self.threads_read.add(thread)
        time, session = self.time, self.session
        origin = _Reader(path, above=self, until=until)
        try:
            yield from origin.records()
        except OSError as error:
            yield Problem(path, 0, f"Cannot be read: {error.strerror}.")
        self.session_yielded = origin.session_yielded
        self.last_entry, self.rolled_back = origin.last_entry, origin.rolled_back
        self.entries_since_compaction = origin.entries_since_compaction
        self.turn_parents, self.calls = origin.turn_parents, origin.calls
        self.session = session._replace(title=session.title or origin.session.title)
        self.time, self.line_entries = time, 0

    def _read_agent(self, thread: str) -> Iterator[Record]:
        """Read the rollout of a sub-agent as far as it is written."""
        root = self.pending_agents.pop(thread, None)
        if root is None or thread in self.threads_read:
            return
        path = find_rollout(thread, self.path)
        if path is None:
            return
        self.threads_read.add(thread)
        try:
            for record in _Reader(path, above=self, root=root).records():
                if not isinstance(record, Compacted):  # applies to the main path only
                    yield record
        except OSError as error:
            yield Problem(path, 0, f"Cannot be read: {error.strerror}.")

    def _agent_spawned(self, call: str, thread: str) -> None:
        spawner = self.calls.get(call)
        if thread and spawner is not None and thread not in self.threads_read:
            self.pending_agents.setdefault(thread, spawner.entry)

    def _is_after_fork(self, value: dict[str, Any]) -> bool:
        ordinal = value.get("ordinal")
        return self.until is not None and isinstance(ordinal, int) and ordinal >= self.until

    def _is_read_with_parent(self, value: dict[str, Any]) -> bool:
        """Return True for a sub-agent's rollout that its parent's rollout mentions."""
        parent = parent_of(as_dict(value.get("payload"))) if not self.prefix else ""
        path = find_rollout(parent, self.path)
        return path is not None and mentions(path, self.session.id)

    def _response_item(self, item: dict[str, Any]) -> Iterator[Record]:
        kind = as_str(item.get("type"))
        if kind == "message":
            yield from self._message(item)
        elif kind == "agent_message":
            addresses = without_empty(author=item.get("author"), recipient=item.get("recipient"))
            text = text_of(item.get("content"))
            yield from self._add_entry(SYSTEM_MESSAGE, text, {"kind": "message", **addresses})
        elif kind == "reasoning":
            parts = [*as_list(item.get("summary")), *as_list(item.get("content"))]
            yield from self._reasoning("response", [text_of([part]) for part in parts])
        elif kind in CALLS:
            yield from self._call(item)
        elif kind in OUTPUTS:
            output = item.get("output", item.get("tools"))
            yield from self._add_result(as_str(item.get("call_id")), parse_output(output))
        elif kind not in IGNORED_RESPONSES:
            yield self._unknown_type("item", kind)

    def _message(self, item: dict[str, Any]) -> Iterator[Record]:
        role, content = as_str(item.get("role")), item.get("content")
        if role == "user":
            if self.session.directory is None:
                self.session = self.session._replace(directory=working_directory(content))
            yield from self._text("response", USER_INPUT, typed_text(content))
        elif role == "assistant":
            yield from self._text("response", ASSISTANT_OUTPUT, text_of(content))
        elif role not in ("developer", "system"):
            yield self._unknown_type("role", role)

    def _call(self, item: dict[str, Any]) -> Iterator[Record]:
        kind = as_str(item.get("type"))
        arguments: Any = item.get("arguments", item.get("input", item.get("action")))
        if isinstance(arguments, str) and isinstance(parsed := parse_object(arguments), dict):
            arguments = parsed
        name = as_str(item.get("name")) or kind.removesuffix("_call")
        call = as_str(item.get("call_id")) or as_str(item.get("id")) or self._next_id()
        status = PENDING
        if kind in ("web_search_call", "image_generation_call"):  # never have an output
            status = SUCCESS if item.get("status", "completed") == "completed" else ERROR
            arguments = arguments or without_empty(prompt=item.get("revised_prompt"))
        yield from self._add_call(call, name, arguments, status)

    def _add_call(
        self, call: str, name: str, arguments: Any, status: str = PENDING
    ) -> Iterator[Record]:
        # Patches in a script of the model (`exec`) appear as items of their own.
        patch = find_patch(arguments) if name != "exec" else None
        self.calls[call] = _Call(self._next_id(), name, patch)
        data = {"name": name, "input": arguments, "status": status, "call": call}
        yield from self._add_entry(TOOL_CALL, "", data)

    def _add_result(self, id: str, output: Output) -> Iterator[Record]:
        call = self.calls.get(id)
        failed = output.failed
        if call is not None:
            if call.patch and failed is None and not call.has_edits:
                failed = "Success." not in output.text
            yield from self._end_call(id, call, bool(failed), output.duration)
        name = call.name if call else None
        data = without_empty(call=id, name=name, is_error=bool(failed))
        yield from self._add_entry(TOOL_RESULT, output.text, data)
        if call is not None and not failed and not call.has_edits:
            call.has_edits = True
            edits = edits_in_changes(call.planned_changes)
            if not call.planned_changes and call.patch:
                edits = edits_in_patch(call.patch, self.session.directory)
            for edit in edits:
                yield from self._add_entry(FILE_EDIT, "", edit)

    def _end_call(
        self, id: str, call: _Call, failed: bool, duration: float | None
    ) -> Iterator[Record]:
        if not call.ended:
            call.ended = True
            yield CallEnded(id, ERROR if failed else SUCCESS, duration=duration)

    def _event(self, event: dict[str, Any]) -> Iterator[Record]:
        kind = as_str(event.get("type"))
        match kind:
            case "user_message":
                yield from self._text("event", USER_INPUT, typed_text(event.get("message")))
            case "agent_message":
                yield from self._text("event", ASSISTANT_OUTPUT, as_str(event.get("message")))
            case "agent_reasoning" | "agent_reasoning_raw_content":
                yield from self._reasoning("event", [as_str(event.get("text"))])
            case "item_completed":
                yield from self._item(as_dict(event.get("item")))
            case "exec_command_end":
                yield from self._command(as_str(event.get("call_id")), event)
            case "mcp_tool_call_end":
                yield from self._mcp(as_str(event.get("call_id")), event)
            case "patch_apply_begin":
                if call := self.calls.get(as_str(event.get("call_id"))):
                    call.planned_changes = event.get("changes")
            case "patch_apply_end":
                failed = event.get("success") is False
                yield from self._file_change(as_str(event.get("call_id")), event, failed)
            case "turn_aborted" | "error" | "stream_error" | "warning":
                text = as_str(event.get("message")) or as_str(event.get("reason"))
                data = {"kind": "interrupted" if kind == "turn_aborted" else kind}
                yield from self._add_entry(SYSTEM_MESSAGE, text, data)
            case "thread_name_updated":
                title = as_str(event.get("thread_name")) or None
                self.session = self.session._replace(title=title)
            case "collab_agent_spawn_end":
                self._agent_spawned(
                    as_str(event.get("call_id")), as_str(event.get("new_thread_id"))
                )
            case "thread_rolled_back":
                self._roll_back(event.get("num_turns"))
            case _ if kind not in IGNORED_EVENTS:
                yield self._unknown_type("event", kind)

    def _item(self, item: dict[str, Any]) -> Iterator[Record]:
        kind, id = as_str(item.get("type")), as_str(item.get("id"))
        match kind:
            case "UserMessage":
                yield from self._text("item", USER_INPUT, typed_text(item.get("content")))
            case "AgentMessage":
                yield from self._text("item", ASSISTANT_OUTPUT, text_of(item.get("content")))
            case "Reasoning":
                parts = [*as_list(item.get("summary_text")), *as_list(item.get("raw_content"))]
                yield from self._reasoning("item", [text_of([part]) for part in parts])
            case "Plan" | "plan":
                text = as_str(item.get("text"))
                yield from self._text("item", ASSISTANT_OUTPUT, text, {"kind": "plan"})
            case "CommandExecution":
                yield from self._command(id, item)
            case "FileChange":
                failed = item.get("status") in ("failed", "declined")
                yield from self._file_change(id, item, failed)
            case "McpToolCall":
                yield from self._mcp(id, item)
            case "SubAgentActivity":
                thread = as_str(item.get("agent_thread_id"))
                self._agent_spawned(id, thread)
                if item.get("kind") == "completed":
                    yield from self._read_agent(thread)
            case _ if kind not in IGNORED_ITEMS:
                yield self._unknown_type("item", kind)

    def _command(self, id: str, item: dict[str, Any]) -> Iterator[Record]:
        """Convert a finished command; its output matters only if there is no response item."""
        code = item.get("exit_code")
        failed = item.get("status") in ("failed", "declined") or code not in (0, None)
        input = {"command": command_line(item.get("command"))}
        text = as_str(item.get("aggregated_output")) or as_str(item.get("stdout"))
        output = Output(text, failed, milliseconds(item.get("duration")))
        yield from self._finished_call(id, "exec_command", input, output)

    def _mcp(self, id: str, item: dict[str, Any]) -> Iterator[Record]:
        invocation = as_dict(item.get("invocation")) or item
        name = ".".join(
            filter(None, (as_str(invocation.get("server")), as_str(invocation.get("tool"))))
        )
        result = as_dict(item.get("result"))
        result = as_dict(result.get("Ok")) or result
        failed = item.get("status") == "failed" or "Err" in result or result.get("isError") is True
        output = Output(text_of(result.get("content")), failed, milliseconds(item.get("duration")))
        yield from self._finished_call(id, name or "mcp", invocation.get("arguments"), output)

    def _file_change(self, id: str, item: dict[str, Any], failed: bool) -> Iterator[Record]:
        """Yield the edits of a patch, and its call and result if there is no response item."""
        text = as_str(item.get("stdout")) or as_str(item.get("stderr"))
        call = self.calls.get(id)
        if call is not None and call.has_edits:
            return
        if call is not None:
            call.has_edits = True
            yield from self._end_call(id, call, failed, None)
        else:
            yield from self._add_call(id or self._next_id(), "apply_patch", None)
        if not failed:
            for edit in edits_in_changes(item.get("changes")):
                yield from self._add_entry(FILE_EDIT, "", edit)
        if call is None:
            yield from self._add_result(id, Output(text, failed))

    def _finished_call(self, id: str, name: str, input: Any, output: Output) -> Iterator[Record]:
        """End a known call; yield the call and its result if there is no response item."""
        call = self.calls.get(id)
        if call is not None:
            yield from self._end_call(id, call, bool(output.failed), output.duration)
        else:
            id = id or self._next_id()
            yield from self._add_call(id, name, input)
            yield from self._add_result(id, output)

    def _reasoning(self, source: str, texts: list[str]) -> Iterator[Record]:
        for text in texts:
            yield from self._text(source, ASSISTANT_OUTPUT, text, _REASONING)

    def _text(
        self, source: str, type: str, text: str, data: dict[str, Any] | None = None
    ) -> Iterator[Record]:
        """Yield a text, unless the same text of another source has been yielded."""
        if not text.strip():
            return
        key = hash((type, str(data), text.strip()))
        self.texts_seen[source, key] += 1
        if self.texts_seen[source, key] <= self.texts_yielded[key]:
            return
        self.texts_yielded[key] += 1
        if type == USER_INPUT:
            self.turn_parents.append(self.last_entry)
        yield from self._add_entry(type, text, data)

    def _compacted(self, payload: dict[str, Any]) -> Iterator[Record]:
        summary = as_str(payload.get("message"))
        data = {"compactedCount": self.entries_since_compaction, **without_empty(summary=summary)}
        yield from self._add_entry(COMPACT_MARKER, summary, data)
        self.entries_since_compaction = 0
        if self.last_entry is not None:
            yield Compacted(self.last_entry)

    def _roll_back(self, turns: object) -> None:
        if isinstance(turns, int) and turns > 0 and self.turn_parents:
            self.last_entry = self.turn_parents[-turns:][0]
            del self.turn_parents[-turns:]
            self.rolled_back = True

    def _add_entry(self, type: str, content: str, data: dict[str, Any] | None) -> Iterator[Record]:
        if not self.session_yielded:
            self.session_yielded = True
            yield self.session
        id = self._next_id()
        self.line_entries += 1
        self.entries_since_compaction += 1
        model = self.model if type in (ASSISTANT_OUTPUT, TOOL_CALL) else None
        yield NewEntry(
            type, content, data, id, self.last_entry, self.time, model, off_path=self.off_path
        )
        self.last_entry, self.rolled_back = id, False

    def _next_id(self) -> str:
        id = f"{self.prefix}L{self.line}"
        return f"{id}:{self.line_entries}" if self.line_entries else id

    def _unknown_type(self, what: str, kind: str) -> Problem:
        return Problem(self.path, self.line, f"Unknown type of {what}: {kind[:40] or 'none'}.")
