"""RPC commands that change files: navigate, restore, undo and redo."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from mulligan.errors import NotFound, UsageError
from mulligan.protocols.params import Count
from mulligan.protocols.rpc.entries import entry_line
from mulligan.protocols.rpc.rpc_session import CommandResult, Event, RpcParams, RpcSession

if TYPE_CHECKING:
    from mulligan.workspace.results.files import RestoreResult
    from mulligan.workspace.results.sessions import Navigation
    from mulligan.workspace.workspace import Workspace

TREE_HASH_CHARACTERS = 64


class FileParams(RpcParams, frozen=True, kw_only=True):
    """`preview` changes nothing; `force` overwrites the user's changes, too."""

    preview: bool = False
    force: bool = False


class NavigateTree(FileParams, frozen=True, kw_only=True):
    """With `can_veto` the move waits for the client's session_before_tree_result."""

    target_id: str
    summarize: bool = False
    skip_files: bool = False
    custom_summary: str | None = None
    can_veto: bool = False


class RestoreFiles(FileParams, frozen=True, kw_only=True):
    target_entry_id: str | None = None
    snapshot_hash: str | None = None
    files: list[str] | None = None


class Undo(FileParams, frozen=True, kw_only=True):
    """`expect` is the only operation to take back; another one is refused."""

    expect: Count | None = None


def navigate_tree(rpc: RpcSession, params: NavigateTree) -> CommandResult:
    """Go to an entry, and the files with it unless `skip_files`."""
    goto = partial(
        rpc.workspace.sessions.goto, params.target_id, session=rpc.session.id,
        skip_files=params.skip_files, summarize=params.summarize,
    )  # fmt: skip
    before = _before_event(rpc, params)
    summary = params.custom_summary
    if not params.preview and params.can_veto:
        plan = goto(preview=True, force=params.force, summary=summary).files
        before["files"] = None if plan is None else _file_changes(plan)
        reply = _ask_client(rpc, before)
        if reply is None or reply.get("cancel"):
            leaf = before["oldLeafId"]
            return CommandResult(
                {"newLeafId": leaf, "oldLeafId": leaf, "files": None, "cancelled": True,
                 "preview": False}
            )  # fmt: skip
        summary = reply.get("summary", summary)
    elif not params.preview:
        rpc.send_event(before)
    overwritten = (
        _changed_by_user(goto(preview=True, summary=summary).files) if params.force else ()
    )
    moved = goto(preview=params.preview, force=params.force, summary=summary)
    position = _new_position(rpc, params, moved)
    data = dict(position)
    if moved.text is not None:
        data["editorText"] = moved.text
    data["files"] = None if moved.files is None else _file_changes(moved.files, overwritten)
    data |= {"cancelled": False, "preview": params.preview}
    return CommandResult(data, ({"type": "session_tree"} | position,))


def _before_event(rpc: RpcSession, params: NavigateTree) -> Event:
    event = {
        "type": "session_before_tree",
        "targetId": rpc.workspace.sessions.entry(params.target_id, rpc.session.id).id,
        "oldLeafId": rpc.session.leaf,
        "userWantsSummary": params.summarize or params.custom_summary is not None,
    }
    return event | ({"skipFiles": True} if params.skip_files else {})


def _ask_client(rpc: RpcSession, event: Event) -> Event | None:
    """Return the client's reply; None, which cancels, if the reply is invalid."""
    if rpc.ask_client is None:
        raise UsageError("canVeto needs a client that can reply: start `mulligan rpc`.")
    reply = rpc.ask_client(event) or {"cancel": True}
    is_flag = isinstance(reply.get("cancel", False), bool)
    return reply if is_flag and isinstance(reply.get("summary", ""), str) else None


def _new_position(rpc: RpcSession, params: NavigateTree, moved: Navigation) -> dict[str, Any]:
    """Return the fields that the event and the response share."""
    position: dict[str, Any] = {"newLeafId": moved.new_leaf, "oldLeafId": moved.old_leaf}
    if moved.summary_entry is not None:
        entry = rpc.workspace.sessions.entry(moved.summary_entry, moved.session)
        position["summaryEntry"] = entry_line(entry)
    position |= {"skipFiles": True} if params.skip_files else {}
    return position | ({"preview": True} if params.preview else {})


def restore_files(rpc: RpcSession, params: RestoreFiles) -> CommandResult:
    """Restore files as of an entry or a snapshot; the session's leaf stays."""
    if (params.target_entry_id is None) == (params.snapshot_hash is None):
        raise UsageError("Give either targetEntryId or snapshotHash.")
    if params.files == []:
        return CommandResult(
            {"restored": [], "deleted": [], "skipped": [], "dirty": [], "reasons": {}}
        )
    workspace, paths = rpc.workspace, params.files or ()
    checkpoint = (
        _checkpoint_of_snapshot(workspace, params.snapshot_hash)
        if params.snapshot_hash is not None
        else _checkpoint_at_entry(workspace, rpc.session.id, params.target_entry_id or "")
    )
    overwritten: Iterable[str] = ()
    if params.force:
        overwritten = _changed_by_user(workspace.restore(checkpoint, paths, preview=True))
    result = workspace.restore(
        checkpoint, paths, force=params.force, session=rpc.session.id, preview=params.preview
    )
    return CommandResult(_file_changes(result, overwritten))


def undo(rpc: RpcSession, params: Undo) -> CommandResult:
    """Undo the last operation that changed something."""
    result = rpc.workspace.undo(preview=params.preview, force=params.force, expect=params.expect)
    return CommandResult(_file_changes(result) | _operation_numbers(result))


def redo(rpc: RpcSession, params: Undo) -> CommandResult:
    """Redo the last undone operation."""
    result = rpc.workspace.redo(preview=params.preview, force=params.force, expect=params.expect)
    return CommandResult(_file_changes(result) | _operation_numbers(result))


def _file_changes(result: RestoreResult, overwritten: Iterable[str] = ()) -> dict[str, Any]:
    """List the paths by outcome. `dirty` are the user's changes, skipped or overwritten."""
    return {
        "restored": list(result.restored),
        "deleted": list(result.deleted),
        "skipped": [each.path for each in result.skipped],
        "dirty": sorted({*result.dirty, *_changed_by_user(result), *overwritten}),
        "reasons": {each.path: each.reason for each in result.skipped},
    }


def _operation_numbers(result: RestoreResult) -> dict[str, int | None]:
    return {"operation": result.operation, "undoes": result.undoes}


def _changed_by_user(result: RestoreResult | None) -> list[str]:
    """List the files that were skipped because the user changed them."""
    # Imported here: `mulligan rpc` starts without the engine.
    from mulligan.workspace.restore.taking_out import THE_USERS

    skipped = () if result is None else result.skipped
    return [each.path for each in skipped if each.reason == THE_USERS]


def _checkpoint_at_entry(workspace: Workspace, session: str, entry: str) -> str:
    checkpoint = workspace.sessions.checkpoint_at(entry, session)
    if checkpoint is None:
        raise NotFound(f"No checkpoint holds the files as of entry {entry}.")
    return checkpoint.id


def _checkpoint_of_snapshot(workspace: Workspace, name: str) -> str:
    """Return the checkpoint with this tree hash, or with this id."""
    # Imported here: `mulligan rpc` starts without the engine.
    from mulligan.journal import checkpoints

    if len(name) == TREE_HASH_CHARACTERS:
        try:
            checkpoint = checkpoints.by_tree(workspace.project.journal, bytes.fromhex(name))
        except ValueError:
            checkpoint = None
        if checkpoint is not None:
            return checkpoint.id
    return workspace.find(name).id
