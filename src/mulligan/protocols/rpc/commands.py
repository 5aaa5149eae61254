"""The RPC commands on sessions, entries and turns, and the table of all commands.

Names and shapes are pi's: an entry is a message, a summary or custom, and a session's position is
its leaf. Commands that pi does not have follow the same conventions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mulligan.core.entries import NewEntry
from mulligan.protocols.params import Count, Params
from mulligan.protocols.rpc.entries import entry_line, session_line
from mulligan.protocols.rpc.files import (
    NavigateTree,
    RestoreFiles,
    Undo,
    navigate_tree,
    redo,
    restore_files,
    undo,
)
from mulligan.protocols.rpc.rpc_session import CommandResult, RpcParams, RpcSession

DEFAULT_PAGE_ROWS = 100
MAX_PAGE_ROWS = 10_000


class Page(RpcParams, frozen=True, kw_only=True):
    limit: Count = DEFAULT_PAGE_ROWS

    @property
    def rows(self) -> int:
        return max(1, min(self.limit, MAX_PAGE_ROWS))


class ListSessions(Page, frozen=True, kw_only=True):
    cursor: str | None = None


class NewSession(RpcParams, frozen=True, kw_only=True):
    name: str = ""
    agent: str = ""


class SwitchSession(RpcParams, frozen=True, kw_only=True):
    session_id: str


class ClearSessions(RpcParams, frozen=True, kw_only=True):
    """`confirm` is the word that the call without it returned."""

    confirm: str | None = None


class GetEntries(Page, frozen=True, kw_only=True):
    since_seq: Count = 0


class AppendEntry(RpcParams, frozen=True, kw_only=True):
    entry_type: str
    content: str = ""
    data: dict[str, Any] | None = None


class BeginTurn(RpcParams, frozen=True, kw_only=True):
    message: str


class EndTurn(RpcParams, frozen=True, kw_only=True):
    interrupted: bool = False


class EntryRange(RpcParams, frozen=True, kw_only=True):
    """Two entries; by default the beginning of the session, and its leaf."""

    from_entry_id: str | None = None
    to_entry_id: str | None = None


class GetFileDiff(EntryRange, frozen=True, kw_only=True):
    file_path: str


def get_state(rpc: RpcSession, params: Params) -> CommandResult:
    """Return the selected session and its leaf."""
    count = rpc.workspace.sessions.count_entries(rpc.session.id)
    return CommandResult(session_line(rpc.session) | {"entryCount": count})


def list_sessions(rpc: RpcSession, params: ListSessions) -> CommandResult:
    """List the sessions, newest first."""
    page = rpc.workspace.sessions.list(limit=params.rows, cursor=params.cursor)
    return CommandResult(
        {
            "sessions": [session_line(each) for each in page.sessions],
            "hasMore": page.has_more,
            "nextCursor": page.next_cursor,
        }
    )


def new_session(rpc: RpcSession, params: NewSession) -> CommandResult:
    """Create a session and select it."""
    rpc.select(rpc.workspace.sessions.create(title=params.name, agent=params.agent).id)
    return get_state(rpc, params)


def switch_session(rpc: RpcSession, params: SwitchSession) -> CommandResult:
    """Select a session."""
    rpc.select(params.session_id)
    return get_state(rpc, params)


def clear_sessions(rpc: RpcSession, params: ClearSessions) -> CommandResult:
    """Delete all sessions; without `confirm`, only return the word to confirm with."""
    done = rpc.workspace.sessions.clear(params.confirm)
    if done.cleared:
        rpc.unselect()
    return CommandResult(done.as_json())


def get_entries(rpc: RpcSession, params: GetEntries) -> CommandResult:
    """List the entries of all branches in append order."""
    page = rpc.workspace.sessions.transcript(
        rpc.session.id, since=params.since_seq, limit=params.rows, include_compacted=True
    )
    return CommandResult(
        {
            "entries": [entry_line(each) for each in page.entries],
            "leafId": rpc.session.leaf,
            "hasMore": page.has_more,
            "nextSeq": page.next_seq,
        }
    )


def get_tree(rpc: RpcSession, params: Params) -> CommandResult:
    """Return the branches of the session."""
    branches = [
        {
            "firstId": each.first.id,
            "lastId": each.last.id,
            "parentId": each.parent_entry,
            "entries": each.entries,
            "active": each.active,
        }
        for each in rpc.workspace.sessions.branches(rpc.session.id)
    ]
    session = rpc.session
    skipped = {"skipFiles": True} if rpc.workspace.sessions.files_skipped(session.id) else {}
    return CommandResult({"branches": branches, "leafId": session.leaf} | skipped)


def append_entry(rpc: RpcSession, params: AppendEntry) -> CommandResult:
    """Append an entry at the leaf."""
    entry = NewEntry(params.entry_type, params.content, params.data)
    return CommandResult(entry_line(rpc.workspace.sessions.append(rpc.session.id, entry)[0]))


def begin_turn(rpc: RpcSession, params: BeginTurn) -> CommandResult:
    """Begin a turn: take a checkpoint, then append the message."""
    # This process ends with its client, whichever process began the session.
    turn = rpc.workspace.sessions.begin_turn(rpc.session.id, params.message, process=None)
    return CommandResult(
        {
            "entryId": turn.entry,
            "checkpointId": turn.checkpoint,
            "turnIndex": turn.turn,
            "session": turn.round,
        }
    )


def end_turn(rpc: RpcSession, params: EndTurn) -> CommandResult:
    """End the open turn."""
    step = rpc.workspace.sessions.end_turn(rpc.session.id, interrupted=params.interrupted)
    changed = {name: list(getattr(step, name)) for name in ("added", "modified", "deleted")}
    return CommandResult(
        {
            "entryId": step.entry,
            "checkpointId": step.checkpoint,
            "turnIndex": step.turn,
            "diff": changed if step.entry is not None else None,
        }
    )


def get_modified_files(rpc: RpcSession, params: EntryRange) -> CommandResult:
    """List the files that differ between two entries."""
    files = [
        {"path": each.path, "status": each.status, "turnIndex": each.turn, "entryId": each.entry}
        for each in rpc.workspace.sessions.modified_files(
            rpc.session.id, params.from_entry_id, params.to_entry_id
        )
    ]
    return CommandResult({"files": files})


def get_file_diff(rpc: RpcSession, params: GetFileDiff) -> CommandResult:
    """Return a file at two entries; null if it is in neither."""
    diff = rpc.workspace.sessions.file_diff(
        rpc.session.id, params.file_path, params.from_entry_id, params.to_entry_id
    )
    if diff is None:
        return CommandResult(None)
    content = diff.as_json()
    return CommandResult(
        {
            "path": diff.path,
            "oldContent": content["old_content"],
            "newContent": content["new_content"],
            "oldHash": diff.old_hash,
            "newHash": diff.new_hash,
            "unifiedDiff": diff.unified,
        }
    )


class Command(NamedTuple):
    run: Callable[[RpcSession, Any], CommandResult]
    params: type[Params] = Params


COMMANDS = {
    "get_state": Command(get_state),
    "list_sessions": Command(list_sessions, ListSessions),
    "new_session": Command(new_session, NewSession),
    "switch_session": Command(switch_session, SwitchSession),
    "clear_sessions": Command(clear_sessions, ClearSessions),
    "get_entries": Command(get_entries, GetEntries),
    "get_tree": Command(get_tree),
    "append_entry": Command(append_entry, AppendEntry),
    "begin_turn": Command(begin_turn, BeginTurn),
    "end_turn": Command(end_turn, EndTurn),
    "get_modified_files": Command(get_modified_files, EntryRange),
    "get_file_diff": Command(get_file_diff, GetFileDiff),
    "navigate_tree": Command(navigate_tree, NavigateTree),
    "restore_files": Command(restore_files, RestoreFiles),
    "undo": Command(undo, Undo),
    "redo": Command(redo, Undo),
}
