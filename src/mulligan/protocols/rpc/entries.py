"""Sessions and entries in pi's JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    BRANCH_SUMMARY,
    COMPACT_MARKER,
    TOOL_CALL,
    TOOL_RESULT,
    USER_INPUT,
)

if TYPE_CHECKING:
    from mulligan.workspace.results.sessions import Entry, Session


def session_line(session: Session) -> dict[str, Any]:
    """Return a session in pi's JSON."""
    return {
        "sessionId": session.id,
        "sessionName": session.title,
        "agent": session.agent,
        "cwd": session.directory or session.project,
        "status": session.status,
        "leafId": session.leaf,
        "created": session.created_at,
        "modified": session.updated_at,
    }


def entry_line(entry: Entry) -> dict[str, Any]:
    """Return an entry in pi's JSON, plus `seq`, the cursor of get_entries."""
    data = entry.data or {}
    line: dict[str, Any] = {
        "type": "custom",
        "id": entry.id,
        "parentId": entry.parent,
        "timestamp": entry.created_at,
        "seq": entry.seq,
    }
    if entry.label is not None:
        line["label"] = entry.label
    if entry.type == USER_INPUT:
        return line | _message("user", entry.content)
    if entry.type == ASSISTANT_OUTPUT:
        kind = "thinking" if data.get("kind") == "reasoning" else "text"
        return line | _message("assistant", [{"type": kind, kind: entry.content}])
    if entry.type == TOOL_CALL:
        call = {"type": "toolCall", "id": data.get("call") or entry.id, "name": data.get("name"),
                "arguments": data.get("input"), "status": data.get("status")}  # fmt: skip
        return line | _message("assistant", [call])
    if entry.type == TOOL_RESULT:
        call = {"toolCallId": data.get("call"), "toolName": data.get("name"),
                "isError": bool(data.get("is_error"))}  # fmt: skip
        result = _message("toolResult", [{"type": "text", "text": entry.content}])
        return line | {"type": "message", "message": result["message"] | call}
    if entry.type == COMPACT_MARKER:
        return line | {"type": "compaction", "summary": data.get("summary") or entry.content}
    if entry.type == BRANCH_SUMMARY:
        skipped = {"skipFiles": True} if data.get("skipFiles") else {}
        summary = {"type": "summary", "summary": entry.content, "fromId": data.get("fromId")}
        return line | summary | skipped
    line |= {"customType": entry.type.replace("_", "-"), "data": entry.data}
    return line | ({"content": entry.content} if entry.content else {})


def _message(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "content": content}}
