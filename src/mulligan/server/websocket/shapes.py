"""Convert sessions, entries and restore points to YAAI's JSON."""

from __future__ import annotations

from typing import Any

from mulligan.core.coverage import decode_path
from mulligan.core.entries import (
    BRANCH_SUMMARY,
    COMPACT_MARKER,
    ENDED,
    FILE_EDIT,
    SUCCESS,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TYPES,
)
from mulligan.journal.sessions import SessionRow
from mulligan.workspace.project.location import ProjectLocation
from mulligan.workspace.project.process import current_status
from mulligan.workspace.results.files import Checkpoint, TreeEntry
from mulligan.workspace.results.sessions import Entry, Session

SHOWN = (*TYPES[: TYPES.index(SYSTEM_MESSAGE) + 1], BRANCH_SUMMARY)
"""The types that YAAI knows, and summaries, which go as system messages."""


def session(found: Session) -> dict[str, Any]:
    return {
        "id": found.id,
        "projectPath": found.project,
        "status": found.status,
        "createdAt": found.created_at,
        "updatedAt": found.updated_at,
        "title": found.title,
        "agent": found.agent,
    }


def session_row(project: ProjectLocation, row: SessionRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "projectPath": decode_path(project.root),
        "status": current_status(row),
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
        "title": row.title,
        "agent": row.agent,
    }


def entry(found: Entry) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": found.id,
        "sessionId": found.session,
        "type": SYSTEM_MESSAGE if found.type == BRANCH_SUMMARY else found.type,
        "content": found.content,
        "timestamp": found.created_at,
        "seq": found.seq,
        "isCompacted": found.is_compacted,
    }
    names = {TOOL_CALL: "toolCallData", FILE_EDIT: "fileEditData", COMPACT_MARKER: "compactData"}
    if found.type in names and found.data is not None:
        shown[names[found.type]] = found.data
    if found.checkpoint is not None:
        shown["restorePointId"] = found.checkpoint
    if found.plan_item is not None:
        shown["planItemId"] = found.plan_item
    return shown


def tool_event(found: Entry) -> dict[str, Any] | None:
    """Convert a finished tool call to an analytics event; None while it runs."""
    data = found.data or {}
    if found.type != TOOL_CALL or data.get("status") not in ENDED:
        return None
    success = data["status"] == SUCCESS
    return {
        "sessionId": found.session,
        "toolName": data.get("name"),
        "durationMs": data.get("duration"),
        "success": success,
        "errorType": None if success else "tool_error",
    }


def restore_point(found: Checkpoint, session: str | None, entry: str | None) -> dict[str, Any]:
    shown = {
        "id": found.id,
        "sessionId": found.session or session,
        "description": found.message,
        "timestamp": found.created_at,
        "totalSize": found.bytes,
        "fileCount": found.files,
    }
    linked = found.entry or entry
    return shown | ({} if linked is None else {"transcriptEntryId": linked})


def file(found: TreeEntry) -> dict[str, Any]:
    """Convert a file of a restore point; `mode` is a decimal number: 420 is 0o644."""
    return {
        "path": found.path,
        "objectHash": found.id,
        "mode": int(found.mode, 8),
        "size": found.size,
    }
