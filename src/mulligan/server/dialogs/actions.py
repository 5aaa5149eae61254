"""Handle the requests about dialogs, in worker threads."""

from __future__ import annotations

import os
from typing import TypedDict

from mulligan.journal import sessions
from mulligan.journal.checkpoints import IMPORTED, by_id, first_of_session, listed
from mulligan.workspace.results.sessions import Session
from mulligan.workspace.workspace import Workspace

CURRENT = "current-dialog"


class Dialog(TypedDict):
    id: str
    title: str
    created_at: str
    updated_at: str
    active_session: str
    last_approved_at: str | None
    initial_checkpoint: str | None


class DialogsFound(TypedDict):
    current_dialog_id: str | None
    dialogs: list[Dialog]


class DialogFound(TypedDict):
    id: str | None
    meta: Dialog | None


class DialogCheckpoint(TypedDict):
    commit_id: str
    message: str


class DialogCheckpoints(TypedDict):
    """Oldest first."""

    dialog_id: str
    checkpoints: list[DialogCheckpoint]
    initial_checkpoint: str | None


class ChangedFile(TypedDict):
    """`diff` is there for modified text, `base_content` for what was text of up to 1 MiB."""

    path: str
    status: str
    additions: int
    deletions: int
    diff: str | None
    base_content: str | None
    is_binary: bool
    is_too_large: bool


class DialogSession(TypedDict):
    """Without anything to approve there is no active session."""

    active_session: str | None
    session_ref: str | None
    has_unapproved: bool
    last_approved_at: str | None
    changed_files: list[ChangedFile]


class DialogApproved(TypedDict):
    approved_commit: str
    new_session: str
    commits_approved: int


class DialogReset(TypedDict):
    """`pre_reset_checkpoint` holds what was there before; `skipped` was changed by others."""

    reset_to: str | None
    new_session: str
    pre_reset_checkpoint: str | None
    skipped: list[str]


class DialogRestored(TypedDict):
    """`skipped` are files that the user has changed, which stay unless `force`."""

    restored_to: str
    new_checkpoint: str
    skipped: list[str]


def dialogs(
    workspace: Workspace, sort: str, descending: bool, limit: int, offset: int
) -> DialogsFound:
    rows = sessions.newest_first(workspace.project.journal)
    if sort == "created_at":
        rows.sort(key=lambda row: row.created_at, reverse=True)
    if not descending:
        rows.reverse()
    page = rows[offset : offset + limit]
    return {
        "current_dialog_id": _current(workspace),
        "dialogs": [one(workspace, row.id) for row in page],
    }


def create(workspace: Workspace, title: str, set_current: bool) -> Dialog:
    # The agent's process is unknown, and the session must outlive the server.
    made = workspace.sessions.create(title=title, process=0)
    if set_current:
        _set_current(workspace, made.id)
    return _shown(workspace, made)


def one(workspace: Workspace, dialog: str) -> Dialog:
    return _shown(workspace, workspace.sessions.get(dialog))


def current(workspace: Workspace) -> DialogFound:
    id = _current(workspace)
    return {"id": id, "meta": None if id is None else one(workspace, id)}


def set_current(workspace: Workspace, dialog: str) -> None:
    _set_current(workspace, dialog)


def retitle(workspace: Workspace, dialog: str, title: str | None) -> None:
    if title is not None:
        workspace.sessions.change(dialog, title=title)


def delete(workspace: Workspace, dialog: str) -> None:
    workspace.sessions.delete(dialog)


def checkpoints(workspace: Workspace, dialog: str) -> DialogCheckpoints:
    """List the checkpoints that the dialog took or was restored to."""
    found = listed(workspace.project.journal, dialog)
    return {
        "dialog_id": dialog,
        "checkpoints": [{"commit_id": row.id, "message": row.message} for row in found],
        "initial_checkpoint": _initial(workspace, dialog),
    }


def status(workspace: Workspace, dialog: str) -> DialogSession:
    found = workspace.review.round_status(dialog)
    files: list[ChangedFile] = [
        {
            "path": each.path,
            "status": each.status,
            "additions": each.additions,
            "deletions": each.deletions,
            "diff": each.diff,
            "base_content": each.base_content,
            "is_binary": each.is_binary,
            "is_too_large": each.is_too_large,
        }
        for each in found.changed_files
    ]
    return {
        "active_session": found.round if found.has_unapproved else None,
        "session_ref": f"refs/heads/{found.round}" if found.has_unapproved else None,
        "has_unapproved": found.has_unapproved,
        "last_approved_at": found.last_approved_at,
        "changed_files": files,
    }


def approve(workspace: Workspace, dialog: str, message: str) -> DialogApproved:
    done = workspace.review.approve(dialog, message)
    return {
        "approved_commit": done.approved_checkpoint,
        "new_session": done.new_round,
        "commits_approved": done.checkpoints,
    }


def reset(workspace: Workspace, dialog: str, force: bool) -> DialogReset:
    done = workspace.review.reset(dialog, force=force)
    return {
        "reset_to": _as_approved(workspace, dialog, done.reset_to),
        "new_session": done.new_round,
        "pre_reset_checkpoint": done.safety_checkpoint,
        "skipped": [each.path for each in done.files.skipped],
    }


def restore(workspace: Workspace, dialog: str, checkpoint: str, force: bool) -> DialogRestored:
    """Restore a checkpoint; take a new one of the result in the same session."""
    target = workspace.find(checkpoint)
    done = workspace.restore(target.id, force=force, session=dialog)
    new = done.new_checkpoint
    if new is None:
        # No file was changed, but the protocol promises a new checkpoint.
        words = "Left as it was, not restored to" if done.skipped else "Restored to"
        new = workspace.checkpoint(f"{words} {target.id}", session=dialog).id
    return {
        "restored_to": target.id,
        "new_checkpoint": new,
        "skipped": [each.path for each in done.skipped],
    }


def _as_approved(workspace: Workspace, dialog: str, checkpoint: str | None) -> str | None:
    """Return the last approved or initial checkpoint if its tree is the same, else `checkpoint`.

    The trees differ if the user has worked since.
    """
    merged = [each.approved_checkpoint for each in workspace.review.rounds(dialog)
              if each.status == "merged"]  # fmt: skip
    approved = merged[-1] if merged else _initial(workspace, dialog)
    rows = [
        by_id(workspace.project.journal, each)
        for each in (approved, checkpoint)
        if each is not None
    ]
    trees = {None if row is None else row.tree for row in rows}
    return approved if len(rows) == 2 and len(trees) == 1 else checkpoint


def _shown(workspace: Workspace, session: Session) -> Dialog:
    rounds = workspace.review.rounds(session.id)
    approved = [each.closed_at for each in rounds if each.status == "merged"]
    return {
        "id": session.id,
        "title": session.title,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "active_session": rounds[-1].name,
        "last_approved_at": approved[-1] if approved else None,
        "initial_checkpoint": _initial(workspace, session.id),
    }


def _initial(workspace: Workspace, session: str) -> str | None:
    row = first_of_session(workspace.project.journal, session, ("initial", IMPORTED))
    return row.id if row is not None else None


def _current(workspace: Workspace) -> str | None:
    """Return the dialog that a client chose, if it exists, else the newest one."""
    try:
        with open(workspace.project.location.path(CURRENT), encoding="utf-8") as file:
            chosen = file.read()
    except (OSError, UnicodeDecodeError):
        chosen = ""
    if chosen and sessions.by_id(workspace.project.journal, chosen) is not None:
        return chosen
    newest = sessions.newest_first(workspace.project.journal, limit=1)
    return newest[0].id if newest else None


def _set_current(workspace: Workspace, dialog: str) -> None:
    path = workspace.project.location.path(CURRENT)
    temporary = f"{path}.{os.urandom(4).hex()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(dialog)
    os.replace(temporary, path)
