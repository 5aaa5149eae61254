"""Convert a session's entries to AgentSmithy's events, and back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

from mulligan.core.coverage import decode_path
from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    COMPACT_MARKER,
    FILE_EDIT,
    RUNNING,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    USER_INPUT,
    NewEntry,
)
from mulligan.errors import UsageError
from mulligan.journal import entries, operations, sessions
from mulligan.journal.sessions import SessionRow
from mulligan.workspace.results.sessions import Entry
from mulligan.workspace.sessions import edits
from mulligan.workspace.workspace import Workspace

SHOWN = (USER_INPUT, ASSISTANT_OUTPUT, TOOL_CALL, FILE_EDIT)
"""The entry types that a history shows."""
TYPES = ("chat", "reasoning", "tool_call", "tool_result", "file_edit", "summary", "error", "done")


class DialogEvent(TypedDict):
    """One event of a history: user, chat, reasoning, tool_call or file_edit."""

    type: str
    idx: int
    content: NotRequired[str]
    checkpoint: NotRequired[str | None]
    session: NotRequired[str | None]
    id: NotRequired[str]
    name: NotRequired[str]
    args: NotRequired[Any]
    file: NotRequired[str]
    diff: NotRequired[str | None]


class DialogHistory(TypedDict):
    """Events in order. `cursor` leads on in the direction that was asked for."""

    dialog_id: str
    events: list[DialogEvent]
    total_events: int
    has_more: bool
    first_idx: int | None
    last_idx: int | None
    cursor: int | None


class ChatEvent(NamedTuple):
    """An event that the client of a turn sends."""

    type: str
    content: str = ""
    id: str | None = None
    name: str = ""
    args: dict[str, Any] | None = None
    output: str | None = None
    ok: bool = True
    duration: float | None = None
    file: str = ""
    diff: str | None = None
    error: str = ""
    interrupted: bool = False


def history(
    workspace: Workspace, dialog: str, limit: int, before: int | None, after: int | None
) -> DialogHistory:
    """Return a page of the conversation: the last events, or those before or after one."""
    if before is not None and after is not None:
        raise UsageError("Give `before` or `after`, and not both.")
    session = sessions.resolve(workspace.project.journal, dialog)
    seqs = _seqs(workspace, session)
    if after is not None:
        start = min(after + 1, len(seqs))
        end = min(start + limit, len(seqs))
    else:
        end = len(seqs) if before is None else min(before, len(seqs))
        start = max(0, end - limit)
    found: list[Entry] = []
    if start < end:
        found = workspace.sessions.conversation(
            dialog, types=SHOWN, since=seqs[start] - 1, before=seqs[end - 1] + 1
        )
    rounds = _rounds(workspace, session)
    events: Any = [
        _event(workspace, entry, rounds) | {"idx": idx} for idx, entry in enumerate(found, start)
    ]
    more = end < len(seqs) if after is not None else start > 0
    return {
        "dialog_id": session.id,
        "events": events,
        "total_events": len(seqs),
        "has_more": more,
        "first_idx": start if found else None,
        "last_idx": end - 1 if found else None,
        "cursor": None if not more else end - 1 if after is not None else start,
    }


def streamed(workspace: Workspace, entry: Entry) -> list[dict[str, Any]]:
    """Convert an entry to stream events; none if it is not part of the conversation."""
    shown: list[dict[str, Any]] = []
    if entry.type == ASSISTANT_OUTPUT:
        event = _event(workspace, entry, {})
        kind = event["type"]
        shown = [{"type": f"{kind}_start"}, event, {"type": f"{kind}_end"}]
    elif entry.type in (TOOL_CALL, FILE_EDIT):
        shown = [_event(workspace, entry, {})]
    elif entry.type == COMPACT_MARKER:
        shown = [{"type": "summary_start"}, {"type": "summary_end", "content": entry.content}]
    elif entry.type == SYSTEM_MESSAGE and (entry.data or {}).get("kind") == "error":
        shown = [{"type": "error", "error": entry.content}]
    return [event | {"dialog_id": entry.session} for event in shown]


def take(workspace: Workspace, dialog: str, events: Sequence[ChatEvent]) -> bool:
    """Append the client's events to the session; true if they end the turn."""
    for event in events:
        if event.type not in TYPES:
            raise UsageError(f"There is no event {event.type!r}; there are {', '.join(TYPES)}.")
    ended = False
    for event in events:
        if event.type == "done":
            workspace.sessions.end_turn(dialog, interrupted=event.interrupted)
            ended = True
        elif event.type == "summary":
            workspace.sessions.compact(dialog, summary=event.content)
        elif event.type == "tool_result":
            status = "success" if event.ok else "error"
            workspace.sessions.end_call(
                dialog, event.id or "", status=status, output=event.output, duration=event.duration
            )
        elif event.type == "file_edit":
            _edited(workspace, dialog, event)
        else:
            workspace.sessions.append(dialog, _entry(event))
    return ended


def _entry(event: ChatEvent) -> NewEntry:
    if event.type == "reasoning":
        return NewEntry(ASSISTANT_OUTPUT, event.content, {"kind": "reasoning"})
    if event.type == "tool_call":
        if not event.name:
            raise UsageError("A tool_call has the name of its tool.")
        data: dict[str, Any] = {"name": event.name, "input": event.args or {}, "status": RUNNING}
        return NewEntry(TOOL_CALL, event.content, data | ({"call": event.id} if event.id else {}))
    if event.type == "error":
        return NewEntry(SYSTEM_MESSAGE, event.error or event.content, {"kind": "error"})
    return NewEntry(ASSISTANT_OUTPUT, event.content)


def _edited(workspace: Workspace, dialog: str, event: ChatEvent) -> None:
    """A tool has written a file: it is kept from now on, even where it would be ignored."""
    path = workspace.project.path(event.file)
    if not path:
        raise UsageError("A file_edit is of a file; the project itself is none.")
    edits.record_tool_write(
        workspace.project, sessions.resolve(workspace.project.journal, dialog), [path]
    )
    there = os.path.lexists(os.path.join(workspace.project.location.root, path))
    data: dict[str, Any] = {"path": decode_path(path), "operation": "modify" if there else "delete"}
    workspace.sessions.append(
        dialog, NewEntry(FILE_EDIT, "", data | ({"diff": event.diff} if event.diff else {}))
    )


def _event(workspace: Workspace, entry: Entry, rounds: dict[str, str]) -> dict[str, Any]:
    data = entry.data or {}
    if entry.type == USER_INPUT:
        return {
            "type": "user",
            "content": entry.content,
            "checkpoint": entry.checkpoint,
            "session": rounds.get(entry.id) or (entry.data or {}).get("round"),
        }
    if entry.type == TOOL_CALL:
        return {
            "type": "tool_call",
            "id": str(data.get("call") or entry.id),
            "name": str(data.get("name") or ""),
            "args": data.get("input") or {},
        }
    if entry.type == FILE_EDIT:
        file = os.path.join(workspace.root, str(data.get("path") or ""))
        return {"type": "file_edit", "file": file, "diff": data.get("diff")}
    kind = "reasoning" if data.get("kind") == "reasoning" else "chat"
    return {"type": kind, "content": entry.content}


def _seqs(workspace: Workspace, session: SessionRow) -> list[int]:
    """Where the events of a history are, on the way from the root to the leaf."""
    return entries.seqs_on_path(
        workspace.project.journal, session.number, session.leaf, types=SHOWN
    )


def _rounds(workspace: Workspace, session: SessionRow) -> dict[str, str]:
    """The round of each message, by its entry."""
    begun = operations.of_session(workspace.project.journal, session.id, ("begin_turn",))
    return {
        str(each.summary.get("entry")): f"session_{each.summary.get('round', 1)}" for each in begun
    }
