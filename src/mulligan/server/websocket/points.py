"""Restore points over the WebSocket: made, restored, dropped by age. Runs in threads."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable
from typing import Any

from mulligan.clock import now_ns
from mulligan.core.coverage import encode_path
from mulligan.core.entries import SYSTEM_MESSAGE, NewEntry
from mulligan.core.times import nanoseconds
from mulligan.journal import operations
from mulligan.server.websocket.actions import point
from mulligan.server.websocket.payloads import CreatePoint, InvalidPayload, RestoreBody
from mulligan.workspace.results.files import RestoreResult, TreeEntry
from mulligan.workspace.snapshot.named_files import GivenFile
from mulligan.workspace.workspace import Workspace

DEFAULT_FILE_MODE = 0o644


def create(workspace: Workspace, given: CreatePoint) -> dict[str, Any]:
    """Make a point of `files` as given; without `files`, of the whole project as it is."""
    entry = given.transcript_entry_id
    if entry is not None:
        # Looked for first: a name that is none makes no checkpoint.
        entry = workspace.sessions.entry(entry, given.session_id).id
    missing: list[str] = []
    if given.files is None:
        made = workspace.checkpoint(given.description, session=given.session_id)
    else:
        files = _files(workspace, given.files)
        made = workspace.checkpoint_files(given.description, files, session=given.session_id)
        held = {each.path for each in workspace.entries(made.id)}
        missing = [path for path in (os.fsdecode(each.path) for each in files) if path not in held]
    if entry is not None:
        workspace.sessions.link_entry(entry, given.session_id, checkpoint=made.id)
    return point(workspace, made.id) | ({"missingFiles": missing} if missing else {})


def restore(workspace: Workspace, given: RestoreBody) -> dict[str, Any]:
    """Bring the files back, in the project or in another directory.

    In the project, what a session had is in a backup point, and the session pauses.
    """
    target = given.target_dir
    elsewhere = (
        target is not None
        and os.path.realpath(encode_path(target)) != workspace.project.location.root
    )
    found = point(workspace, given.restore_point_id)
    held = [each for each in workspace.entries(found["id"]) if each.kind != "directory"]
    unknown = [path for path in given.files if path not in {each.path for each in held}]
    files = [path for path in given.files if path not in unknown]
    if given.files and not files:
        return {"restoredFiles": [], "skippedFiles": unknown, "deletedFiles": []}
    if elsewhere:
        return _elsewhere(workspace, found["id"], str(target), files, unknown, given.dry_run)
    held = [each for each in held if not files or each.path in files]
    session = found["sessionId"]
    # Without turns the user's work cannot be told from the agent's: then all is as asked.
    force = given.force or (session is not None and not _has_turns(workspace, session))
    if given.dry_run:
        plan = workspace.restore(found["id"], files, force=force, preview=True)
        return _outcome(plan, held, unknown)
    done = workspace.restore(found["id"], files, force=force, session=session)
    if session is not None and done.operation is not None:
        workspace.sessions.change(session, status="paused")
        words = f"Restored to {found['id']}: {found['description']}"
        data = {"kind": "restore", "backup": done.safety_checkpoint}
        workspace.sessions.append(session, NewEntry(SYSTEM_MESSAGE, words, data))
    return _outcome(done, held, unknown) | {"backupPointId": done.safety_checkpoint}


def delete_old(workspace: Workspace, older_than: str | int, session: str | None) -> int:
    """Drop the points that are older than a time; give how many those were."""
    try:
        limit = older_than * 1_000_000 if isinstance(older_than, int) else nanoseconds(older_than)
    except (ValueError, OverflowError):
        raise InvalidPayload("`olderThan` is a time, as 2026-11-15T12:00:00Z.") from None
    age = max(0.0, (now_ns() - limit) / 1e9)
    return len(workspace.maintenance.forget(older_than=age, session=session).forgotten)


def _elsewhere(
    workspace: Workspace,
    id: str,
    directory: str,
    files: list[str],
    unknown: list[str],
    dry_run: bool,
) -> dict[str, Any]:
    done = workspace.restore_to(id, directory, files, force=True, preview=dry_run)
    return {
        "restoredFiles": list(done.restored),
        "skippedFiles": [*unknown, *(each.path for each in done.skipped)],
        "deletedFiles": [],
        "backupPointId": done.backup,
    }


def _outcome(done: RestoreResult, held: Iterable[TreeEntry], unknown: list[str]) -> dict[str, Any]:
    """`restoredFiles` names every file of the point that is now as it was in the point.

    A guarded file that is on the disk is left alone, so it counts only where it was written.
    """
    skipped = [each.path for each in done.skipped]
    restored = [
        each.path
        for each in held
        if each.path not in skipped and (not each.guarded or each.path in done.restored)
    ]
    return {
        "restoredFiles": restored,
        "skippedFiles": [*unknown, *skipped],
        "deletedFiles": list(done.deleted),
    }


def _has_turns(workspace: Workspace, session: str) -> bool:
    return operations.last_begun_turn(workspace.project.journal, session) is not None


def _files(workspace: Workspace, given: tuple[Any, ...]) -> list[GivenFile]:
    """Paths, or objects with a path, a content and a mode; a path alone is named once or often."""
    found: dict[bytes, GivenFile] = {}
    for each in given:
        file = {"path": each} if isinstance(each, str) else each
        if not isinstance(file, dict) or not isinstance(file.get("path"), str):
            raise InvalidPayload("`files` is a list of paths, or of objects with a `path`.")
        path = workspace.project.path(file["path"])
        content, mode = _content(file), file.get("mode", DEFAULT_FILE_MODE)
        if not isinstance(mode, int) or isinstance(mode, bool) or not 0 <= mode <= 0o777:
            raise InvalidPayload("The `mode` of a file is a number, as 420.")
        new = GivenFile(path, content, mode)
        if found.get(path, new) != new:
            raise InvalidPayload(f"{file['path']} is named twice, with different contents.")
        found[path] = new
    return list(found.values())


def _content(file: dict[str, Any]) -> bytes | None:
    """Text, text in base64 where `encoding` says so, or a buffer as JavaScript writes one."""
    content, encoding = file.get("content"), file.get("encoding", "utf8")
    try:
        if content is None:
            return None
        if isinstance(content, dict) and content.get("type") == "Buffer":
            return bytes(content.get("data") or ())
        if isinstance(content, str) and encoding == "base64":
            return base64.b64decode(content, validate=True)
        if isinstance(content, str) and encoding in ("utf8", "utf-8"):
            return encode_path(content)
    except (TypeError, ValueError, binascii.Error):
        pass
    raise InvalidPayload(
        'The `content` of a file is text, base64 with `encoding` "base64", or a Buffer.'
    )
