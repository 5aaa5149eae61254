"""The commands of the line protocol, over the verbs of a workspace.

Names and shapes are pi's: an entry is a message, a summary or something custom; where a session
stands is its leaf. What pi's document does not name follows the same manner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mulligan.core.entries import NewEntry
from mulligan.errors import NotFound, UsageError
from mulligan.protocols.arguments import FLAG, NUMBER, OBJECT, TEXT, TEXTS, Argument
from mulligan.protocols.rpc.entries import entry_line, session_line

if TYPE_CHECKING:
    from mulligan.workspace.results.files import RestoreResult
    from mulligan.workspace.results.sessions import Session
    from mulligan.workspace.workspace import Workspace

DEFAULT_PAGE_ROWS = 100
LARGEST_PAGE = 10_000


Ask = Callable[[dict[str, Any]], dict[str, Any] | None]


class RpcSession:
    """Where commands are carried out: a project, opened when it is first needed, and a session."""

    def __init__(self, opening: Callable[[], Workspace], session: str | None = None) -> None:
        self._opening = opening
        self._workspace: Workspace | None = None
        self._name = session
        self.tell: Callable[[dict[str, Any]], None] = lambda event: None
        """Send an event to the client before the command goes on."""
        self.ask: Ask | None = None
        """Send an event and wait for the client's reply; None if the client sent something else."""

    @property
    def workspace(self) -> Workspace:
        if self._workspace is None:
            self._workspace = self._opening()
        return self._workspace

    @property
    def session(self) -> Session:
        """The session that commands are about: the one chosen, else the one changed last."""
        try:
            found = self.workspace.sessions.get(self._name or "@")
        except NotFound:
            if self._name is not None:
                raise
            raise NotFound("There is no session yet; new_session begins one.") from None
        self._name = found.id
        return found

    def choose(self, session: str) -> Session:
        """Commands are about another session from now on."""
        found = self.workspace.sessions.get(session)
        self._name = found.id
        return found

    def choose_none(self) -> None:
        """Commands are about the session changed last, whichever that is."""
        self._name = None

    def close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()


class Done(NamedTuple):
    """What a command has to say, and what happened on the way."""

    data: Any
    events: tuple[dict[str, Any], ...] = ()


class Command(NamedTuple):
    about: str
    run: Callable[..., Done]
    arguments: tuple[Argument, ...] = ()


def get_state(desk: RpcSession) -> Done:
    return Done(session_line(desk.session) | _count(desk))


def list_sessions(desk: RpcSession, limit: int, cursor: str | None) -> Done:
    page = desk.workspace.sessions.list(limit=_page(limit), cursor=cursor)
    return Done(
        {
            "sessions": [session_line(each) for each in page.sessions],
            "hasMore": page.has_more,
            "nextCursor": page.next_cursor,
        }
    )


def new_session(desk: RpcSession, name: str, agent: str) -> Done:
    return switch_session(desk, desk.workspace.sessions.create(title=name, agent=agent).id)


def switch_session(desk: RpcSession, session_id: str) -> Done:
    desk.choose(session_id)
    return get_state(desk)


def clear_sessions(desk: RpcSession, confirm: str | None) -> Done:
    done = desk.workspace.sessions.clear(confirm)
    if done.cleared:
        desk.choose_none()
    return Done(done.as_json())


def get_entries(desk: RpcSession, since_seq: int, limit: int) -> Done:
    page = desk.workspace.sessions.transcript(
        desk.session.id, since=since_seq, limit=_page(limit), include_compacted=True
    )
    return Done(
        {
            "entries": [entry_line(each) for each in page.entries],
            "leafId": desk.session.leaf,
            "hasMore": page.has_more,
            "nextSeq": page.next_seq,
        }
    )


def get_tree(desk: RpcSession) -> Done:
    branches = [
        {
            "firstId": each.first.id,
            "lastId": each.last.id,
            "parentId": each.parent_entry,
            "entries": each.entries,
            "active": each.active,
        }
        for each in desk.workspace.sessions.branches(desk.session.id)
    ]
    session = desk.session
    skipped = {"skipFiles": True} if desk.workspace.sessions.files_skipped(session.id) else {}
    return Done({"branches": branches, "leafId": session.leaf} | skipped)


def append_entry(
    desk: RpcSession, entry_type: str, content: str, data: dict[str, Any] | None
) -> Done:
    made = desk.workspace.sessions.append(desk.session.id, NewEntry(entry_type, content, data))
    return Done(entry_line(made[0]))


def begin_turn(desk: RpcSession, message: str) -> Done:
    # This process ends with its client, whichever process began the session.
    begun = desk.workspace.sessions.begin_turn(desk.session.id, message, process=None)
    return Done(
        {
            "entryId": begun.entry,
            "checkpointId": begun.checkpoint,
            "turnIndex": begun.turn,
            "session": begun.round,
        }
    )


def end_turn(desk: RpcSession, interrupted: bool) -> Done:
    step = desk.workspace.sessions.end_turn(desk.session.id, interrupted=interrupted)
    changed = {name: list(getattr(step, name)) for name in ("added", "modified", "deleted")}
    return Done(
        {
            "entryId": step.entry,
            "checkpointId": step.checkpoint,
            "turnIndex": step.turn,
            "diff": changed if step.entry is not None else None,
        }
    )


def get_modified_files(
    desk: RpcSession, from_entry_id: str | None, to_entry_id: str | None
) -> Done:
    files = [
        {"path": each.path, "status": each.status, "turnIndex": each.turn, "entryId": each.entry}
        for each in desk.workspace.sessions.modified_files(
            desk.session.id, from_entry_id, to_entry_id
        )
    ]
    return Done({"files": files})


def get_file_diff(
    desk: RpcSession, file_path: str, from_entry_id: str | None, to_entry_id: str | None
) -> Done:
    found = desk.workspace.sessions.file_diff(
        desk.session.id, file_path, from_entry_id, to_entry_id
    )
    if found is None:
        return Done(None)
    content = found.as_json()
    return Done(
        {
            "path": found.path,
            "oldContent": content["old_content"],
            "newContent": content["new_content"],
            "oldHash": found.old_hash,
            "newHash": found.new_hash,
            "unifiedDiff": found.unified,
        }
    )


def navigate_tree(
    desk: RpcSession,
    target_id: str,
    summarize: bool,
    skip_files: bool,
    preview: bool,
    force: bool,
    custom_summary: str | None,
    can_veto: bool,
) -> Done:
    going = partial(
        desk.workspace.sessions.goto, target_id, session=desk.session.id, skip_files=skip_files,
        summarize=summarize,
    )  # fmt: skip
    before: dict[str, Any] = {
        "type": "session_before_tree",
        "targetId": desk.workspace.sessions.entry(target_id, desk.session.id).id,
        "oldLeafId": desk.session.leaf,
        "userWantsSummary": summarize or custom_summary is not None,
    }
    before |= {"skipFiles": True} if skip_files else {}
    if not preview and not can_veto:
        desk.tell(before)
    elif not preview:
        plan = going(preview=True, force=force, summary=custom_summary).files
        before["files"] = None if plan is None else _restored(plan)
        reply = _asked(desk, before)
        if reply is None or reply.get("cancel"):
            stays = {"newLeafId": before["oldLeafId"], "oldLeafId": before["oldLeafId"]}
            return Done(stays | {"files": None, "cancelled": True, "preview": False})
        custom_summary = reply.get("summary", custom_summary)
    dirty = _spared(going(preview=True, summary=custom_summary).files) if force else ()
    moved = going(preview=preview, force=force, summary=custom_summary)
    event: dict[str, Any] = {
        "type": "session_tree",
        "newLeafId": moved.new_leaf,
        "oldLeafId": moved.old_leaf,
    }
    if moved.summary_entry is not None:
        event["summaryEntry"] = entry_line(
            desk.workspace.sessions.entry(moved.summary_entry, moved.session)
        )
    event |= {"skipFiles": True} if skip_files else {}
    event |= {"preview": True} if preview else {}
    answer: dict[str, Any] = {name: event[name] for name in event if name != "type"}
    if moved.text is not None:
        answer["editorText"] = moved.text
    answer["files"] = None if moved.files is None else _restored(moved.files, dirty)
    return Done(answer | {"cancelled": False, "preview": preview}, (event,))


def _asked(desk: RpcSession, event: dict[str, Any]) -> dict[str, Any] | None:
    """The client's reply to an event. None, which cancels, for a reply that makes no sense."""
    if desk.ask is None:
        raise UsageError("canVeto needs a client that can reply: start `mulligan rpc`.")
    reply = desk.ask(event) or {"cancel": True}
    is_flag = isinstance(reply.get("cancel", False), bool)
    return reply if is_flag and isinstance(reply.get("summary", ""), str) else None


def restore_files(
    desk: RpcSession,
    target_entry_id: str | None,
    snapshot_hash: str | None,
    files: list[str] | None,
    preview: bool,
    force: bool,
) -> Done:
    """The files as they were at an entry, or in a snapshot; the session stays where it is."""
    if (target_entry_id is None) == (snapshot_hash is None):
        raise UsageError("Give targetEntryId or snapshotHash, and not both.")
    if files is not None and not files:
        return Done({"restored": [], "deleted": [], "skipped": [], "dirty": [], "reasons": {}})
    workspace = desk.workspace
    checkpoint = (
        _of_snapshot(workspace, snapshot_hash)
        if snapshot_hash is not None
        else _at_entry(workspace, desk.session.id, target_entry_id or "")
    )
    dirty = _spared(workspace.restore(checkpoint, files or (), preview=True)) if force else ()
    done = workspace.restore(
        checkpoint, files or (), force=force, session=desk.session.id, preview=preview
    )
    return Done(_restored(done, dirty))


def undo(desk: RpcSession, preview: bool, force: bool, expect: int | None) -> Done:
    done = desk.workspace.undo(preview=preview, force=force, expect=expect)
    return Done(_restored(done) | _numbers(done))


def redo(desk: RpcSession, preview: bool, force: bool, expect: int | None) -> Done:
    done = desk.workspace.redo(preview=preview, force=force, expect=expect)
    return Done(_restored(done) | _numbers(done))


BETWEEN = (
    Argument("fromEntryId", about="An entry; without, the session's beginning."),
    Argument("toEntryId", about="An entry; without, the leaf."),
)
PREVIEW = Argument("preview", FLAG, "Only say what would happen.", default=False)
FORCE = Argument("force", FLAG, "Overwrite what the user changed, too.", default=False)
EXPECT = Argument("expect", NUMBER, "The operation to take back, or nothing.")
LIMIT = Argument("limit", NUMBER, "At most so many.", default=DEFAULT_PAGE_ROWS)

COMMANDS = {
    "get_state": Command("Which session commands are about, and where it stands.", get_state),
    "list_sessions": Command(
        "The sessions, newest first.", list_sessions, (LIMIT, Argument("cursor"))
    ),
    "new_session": Command(
        "Begin a session, and choose it.",
        new_session,
        (Argument("name", default=""), Argument("agent", default="")),
    ),
    "switch_session": Command(
        "Choose a session.", switch_session, (Argument("sessionId", TEXT, required=True),)
    ),
    "clear_sessions": Command(
        "Delete all sessions; without confirm, only give the word to confirm with.",
        clear_sessions,
        (Argument("confirm", about="The word that the call without it gave."),),
    ),
    "get_entries": Command(
        "The entries of all branches, in the order in which they were appended.",
        get_entries,
        (Argument("sinceSeq", NUMBER, "Only those after it.", default=0), LIMIT),
    ),
    "get_tree": Command("The session's tree, as its unforked stretches.", get_tree),
    "append_entry": Command(
        "Append an entry at the leaf.",
        append_entry,
        (
            Argument("entryType", required=True),
            Argument("content", default=""),
            Argument("data", OBJECT),
        ),
    ),
    "begin_turn": Command(
        "A turn begins: checkpoint, then message.",
        begin_turn,
        (Argument("message", required=True),),
    ),
    "end_turn": Command(
        "The turn has ended.", end_turn, (Argument("interrupted", FLAG, default=False),)
    ),
    "get_modified_files": Command(
        "The files that differ between two entries.", get_modified_files, BETWEEN
    ),
    "get_file_diff": Command(
        "One file at two entries; null if it is in neither.",
        get_file_diff,
        (Argument("filePath", required=True), *BETWEEN),
    ),
    "navigate_tree": Command(
        "Go to an entry, and the files with it unless skipFiles.",
        navigate_tree,
        (
            Argument("targetId", required=True),
            Argument("summarize", FLAG, default=False),
            Argument("skipFiles", FLAG, default=False),
            PREVIEW,
            FORCE,
            Argument("customSummary", about="The words of the summary."),
            Argument("canVeto", FLAG, "Wait for a session_before_tree_result.", default=False),
        ),
    ),
    "restore_files": Command(
        "The files as they were, without moving the session.",
        restore_files,
        (Argument("targetEntryId"), Argument("snapshotHash"), Argument("files", TEXTS), PREVIEW,
         FORCE),
    ),
    "undo": Command(
        "Take back the last operation that changed something.", undo, (PREVIEW, FORCE, EXPECT)
    ),
    "redo": Command("Take back the last undo.", redo, (PREVIEW, FORCE, EXPECT)),
}  # fmt: skip


def _restored(done: RestoreResult, dirty: Iterable[str] = ()) -> dict[str, Any]:
    """What was done. Dirty is whatever is not as it was left, be it skipped or overwritten."""
    return {
        "restored": list(done.restored),
        "deleted": list(done.deleted),
        "skipped": [each.path for each in done.skipped],
        "dirty": sorted({*done.dirty, *_spared(done), *dirty}),
        "reasons": {each.path: each.reason for each in done.skipped},
    }


def _numbers(done: RestoreResult) -> dict[str, int | None]:
    """What was taken back, and the operation that did it."""
    return {"operation": done.operation, "undoes": done.undoes}


def _spared(done: RestoreResult | None) -> list[str]:
    """The files that are left alone because the user has changed them."""
    from mulligan.workspace.restore.taking_out import THE_USERS

    return [] if done is None else [each.path for each in done.skipped if each.reason == THE_USERS]


def _at_entry(workspace: Workspace, session: str, entry: str) -> str:
    """The checkpoint with the files as they were at an entry."""
    found = workspace.sessions.checkpoint_at(entry, session)
    if found is None:
        raise NotFound(f"No checkpoint says how the files were at {entry}.")
    return found.id


def _of_snapshot(workspace: Workspace, name: str) -> str:
    """The checkpoint with this tree, or with this name."""
    from mulligan.journal import checkpoints

    if len(name) == 64:
        try:
            found = checkpoints.by_tree(workspace.project.journal, bytes.fromhex(name))
        except ValueError:
            found = None
        if found is not None:
            return found.id
    return workspace.find(name).id


def _count(desk: RpcSession) -> dict[str, int]:
    return {"entryCount": desk.workspace.sessions.count_entries(desk.session.id)}


def _page(limit: int) -> int:
    return max(1, min(limit, LARGEST_PAGE))
