"""Moving about in a session's tree, with the files following.

The state of the files at an entry is that of the nearest checkpoint at or before it on its path:
a message has the one from before it, the end of a turn the one that the turn arrived at. Nothing
in a session is rewritten by moving: only its leaf moves, and what was left stays reachable.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import apsw

from mulligan.core import tree
from mulligan.core.coverage import text
from mulligan.core.diff import compare, is_binary
from mulligan.core.entries import (
    BRANCH_SUMMARY,
    FILE_EDIT,
    STEP_SNAPSHOT,
    TOOL_CALL,
    TOOL_RESULT,
    UNREVERT_POINT,
    USER_INPUT,
    NewEntry,
)
from mulligan.core.times import just_after
from mulligan.core.tree import Entry as TreeEntry
from mulligan.errors import NotFound, WouldLoseWork
from mulligan.journal import checkpoints, entries, sessions
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.journal.entries import EntryRow
from mulligan.journal.sessions import SessionRow
from mulligan.journal.views import View
from mulligan.workspace import sessions as keeping
from mulligan.workspace.checkpoints import coverage, new_id
from mulligan.workspace.look import Look
from mulligan.workspace.move import Move
from mulligan.workspace.observe import Observation, observing
from mulligan.workspace.restore import perform
from mulligan.workspace.session_results import FileDifference, ModifiedFile, Navigation, Session
from mulligan.workspace.turns import named, shortened, split
from mulligan.workspace.wish import Wish, to_checkpoint

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace

STATE = "seq, checkpoint, coalesce(data ->> 'snapshotTreeHash', data ->> 'tree')"
WORKING = (TOOL_CALL, TOOL_RESULT, FILE_EDIT, USER_INPUT)


def goto(
    workspace: Workspace,
    name: str,
    *,
    session: str | None,
    skip_files: bool,
    summarize: bool,
    summary: str | None,
    preview: bool,
    force: bool,
) -> Navigation:
    """Moves the leaf to an entry; a message is gone back before, and handed back for editing."""
    with workspace.locked():
        owner = sessions.resolve(workspace.journal, session) if session is not None else None
        target = entries.resolve(workspace.journal, name, owner.number if owner else None)
        owner = owner or sessions.by_number(workspace.journal, target.session)
        assert owner is not None
        old = _entry(workspace, owner, owner.leaf)
        is_message = target.type == USER_INPUT
        new = _parent(workspace, owner, target) if is_message else target
        said = target.content if is_message else None
        done = Navigation(
            owner.id, old.id if old else None, new.id if new else None, said, None, skip_files,
            preview, None,
        )  # fmt: skip
        if target.seq == owner.leaf:
            return done._replace(new_leaf=target.id, text=None)
        if not skip_files and not _has_message(workspace, owner, new):
            raise WouldLoseWork(
                "Going there with the files would leave no message of the session standing. Go "
                "with --no-files, or restore the checkpoint itself. Nothing was changed."
            )
        if not preview:
            split(workspace)
            owner = sessions.resolve(workspace.journal, owner.id)
            old = _entry(workspace, owner, owner.leaf)
            done = done._replace(old_leaf=old.id if old else None)
        words = (summary or _summary(workspace, owner, new)) if summarize or summary else None
        if skip_files:
            return _move_leaf(workspace, owner, done, new, words, preview=preview)
        return _move_both(workspace, owner, done, target, new, words, preview=preview, force=force)


def fork(workspace: Workspace, name: str, entry: str | None, *, title: str | None) -> Session:
    """A new session with the entries up to one of another; that one stays as it is.

    A message is forked before, as `goto` goes before it.
    """
    with workspace.locked():
        source = sessions.resolve(workspace.journal, name)
        at = _entry(workspace, source, source.leaf)
        if entry is not None:
            at = entries.resolve(workspace.journal, entry, source.number)
            at = _parent(workspace, source, at) if at.type == USER_INPUT else at
        way = entries.path(workspace.journal, source.number, at.seq if at else None)
        values = {
            name: getattr(source, name)
            for name in (
                "title", "agent", "model", "mode", "directory", "memory", "auto_approve_commands",
                "auto_approve_sensitive_edits", "sensitive_file_patterns",
            )
        }  # fmt: skip
        values |= {"title": title or source.title, "forked_from": source.id}
        start = _beginning(workspace, source)
        with observing(workspace) as now:
            now.commit()
            new = new_id()
            with workspace.journal.writing() as db:
                number = sessions.insert(db, new, _now(), values)
                leaf = _copy(db, source.number, number, way) or None
                sessions.update(db, number, {"leaf": leaf})
                if start is not None:
                    # It began when the other one did, and knows that without it.
                    began = Look(
                        start.tree, start.guarded, coverage(workspace, start), start.files,
                        start.bytes,
                    )  # fmt: skip
                    now.checkpoint(
                        db, kind="initial", message=start.message, session=new, seen=began
                    )
                after = now.safety(db, "Where a fork was made")
                now.record(
                    db, kind="new_session", after=after, session=new, changes={number: View()}
                )
        workspace.save_cache()
    return keeping.get(workspace, new)


def modified_files(
    workspace: Workspace, name: str, start: str | None, end: str | None
) -> list[ModifiedFile]:
    session = sessions.resolve(workspace.journal, name)
    before, after, since, last = _between(workspace, session, start, end)
    if before is None or after is None:
        return []
    first: dict[str, tuple[int | None, str]] = {}
    for step in entries.on_path(
        workspace.journal, session.number, last, types=(STEP_SNAPSHOT,), since=since
    ):
        data = step.data or {}
        for paths in (data.get("diff") or {}).values():
            for path in paths:
                first.setdefault(path, (data.get("turnIndex"), step.id))
    changes = named(tree.differences(before.tree, after.tree, workspace.load))
    return sorted(
        ModifiedFile(path, status, *first.get(path, (None, None)))
        for status, paths in changes.items()
        for path in paths
    )


def file_diff(
    workspace: Workspace, name: str, path: bytes, start: str | None, end: str | None
) -> FileDifference | None:
    session = sessions.resolve(workspace.journal, name)
    before, after, _since, _last = _between(workspace, session, start, end)
    old, new = (_file(workspace, row, path) for row in (before, after))
    if old is None and new is None:
        return None
    contents = [None if each is None else workspace.store.get(each.id) for each in (old, new)]
    shown = b""
    if not any(is_binary(each or b"") for each in contents):
        shown, _additions, _deletions = compare(
            contents[0] or b"", contents[1] or b"", old_name=path, new_name=path
        )
    return FileDifference(
        text(path), contents[0], contents[1], old.id.hex() if old else None,
        new.id.hex() if new else None, text(shown),
    )  # fmt: skip


def state_at(workspace: Workspace, session: SessionRow, seq: int | None) -> CheckpointRow | None:
    """The checkpoint with the files as they were at an entry, or at the session's beginning."""
    return _state(workspace, session, seq)[0]


def _state(
    workspace: Workspace, session: SessionRow, seq: int | None
) -> tuple[CheckpointRow | None, int]:
    """The same, and the `seq` of the entry that it belongs to.

    Raises `NotFound` for a checkpoint that there was and that has been forgotten: another one's
    files would be the wrong ones.
    """
    ahead = _end_of_turn(workspace, session, seq) if seq is not None else None
    places = [ahead] if ahead is not None else _boundaries(workspace, session, seq)
    for at, linked, tree_id in places:
        row = checkpoints.by_id(workspace.journal, linked) if linked else None
        if row is None and tree_id:
            row = checkpoints.by_tree(workspace.journal, bytes.fromhex(tree_id))
        if row is None and session.source is None:
            raise NotFound(
                "How the files were there was forgotten with its checkpoint. Go with --no-files."
            )
        return row, at
    return _beginning(workspace, session), 0


def _boundaries(
    workspace: Workspace, session: SessionRow, seq: int | None
) -> Iterator[tuple[int, str | None, str | None]]:
    """The entries before one on its path that say how the files were, nearest first."""
    for branch, last in reversed(entries.path(workspace.journal, session.number, seq)):
        row = workspace.journal.row(
            f"SELECT {STATE} FROM entries WHERE session = ? AND branch = ? AND number <= ? AND "
            "(checkpoint IS NOT NULL OR data ->> 'tree' IS NOT NULL OR "
            "data ->> 'snapshotTreeHash' IS NOT NULL) AND "
            "type IN ('user_input', 'step_snapshot') ORDER BY number DESC LIMIT 1",
            session.number, branch, (session.number << 32) | last,
        )  # fmt: skip
        if row is not None:
            yield tuple(row)


def _move_leaf(
    workspace: Workspace,
    owner: SessionRow,
    done: Navigation,
    new: EntryRow | None,
    words: str | None,
    *,
    preview: bool,
) -> Navigation:
    if preview:
        return done
    with observing(workspace) as now:
        now.commit()
        with workspace.journal.writing() as db:
            after = now.safety(db, "Before going elsewhere in a session")
            leaf, summary = _summarized(db, owner, done, new, words)
            now.record(
                db, kind="goto", after=after, before=after.id, session=owner.id, changed=True,
                intent={"leaf": leaf, "leaf_before": owner.leaf},
            )  # fmt: skip
            sessions.update(db, owner.number, {"leaf": leaf, "updated_at": _now()})
    return done._replace(summary_entry=summary, new_leaf=summary or done.new_leaf)


def _move_both(
    workspace: Workspace,
    owner: SessionRow,
    done: Navigation,
    target: EntryRow,
    new: EntryRow | None,
    words: str | None,
    *,
    preview: bool,
    force: bool,
) -> Navigation:
    goal = state_at(workspace, owner, target.seq)
    if goal is None:
        raise NotFound(
            f"No checkpoint says how the files were at {target.id}: the session was not recorded "
            "here, or they were forgotten. Go with --no-files."
        )
    made: dict[str, Any] = {}

    def planned(db: apsw.Connection, now: Observation, move: Move) -> dict[str, Any]:
        """In the transaction of the plan: the point to return to, and the summary."""
        appender = keeping.appending(db, owner.number)
        paths = [text(change.path) for change in move.changes]
        data = {
            "preRollbackTreeHash": now.seen.tree.hex(),
            "rolledBackToLeaf": new.id if new else None,
            "restoredFiles": paths,
        }
        appender.append(NewEntry(UNREVERT_POINT, "", data, aside=True))
        appender.finish()
        leaf, summary = _summarized(db, owner, done, new, words)
        made.update(summary=summary)
        return {"leaf": leaf, "leaf_before": owner.leaf}

    def wishing(now: Observation) -> Wish:
        wish = to_checkpoint(workspace, now.seen, goal, ())
        return wish._replace(kind="goto", session=owner.id)

    files = perform(workspace, wishing, force=force, preview=preview, always=True, planned=planned)
    summary = made.get("summary")
    return done._replace(files=files, summary_entry=summary, new_leaf=summary or done.new_leaf)


def _summarized(
    db: apsw.Connection,
    owner: SessionRow,
    done: Navigation,
    new: EntryRow | None,
    words: str | None,
) -> tuple[int | None, str | None]:
    """Where the leaf goes: to the summary of what was left, if one is wanted."""
    if words is None:
        return (new.seq if new else None), None
    data: dict[str, Any] = {"fromId": done.old_leaf}
    if done.skip_files:
        data["skipFiles"] = True
    appender = keeping.appending(db, owner.number)
    appender.stand_at(new.id if new else None)
    place = appender.append(NewEntry(BRANCH_SUMMARY, words, data))
    row: Any = db.execute(
        "SELECT id FROM entries WHERE number = ?", ((owner.number << 32) | place.seq,)
    ).fetchone()
    return place.seq, row[0]


def _summary(workspace: Workspace, owner: SessionRow, new: EntryRow | None) -> str:
    """What was said and done on the way that is being left, in a few lines."""
    kept = 0
    ways = [
        entries.path(workspace.journal, owner.number, seq)
        for seq in (owner.leaf, new.seq if new else None)
    ]
    for (branch, last), (other, until) in zip(*ways, strict=False):
        if branch != other:
            break
        kept = min(last, until)
    way = [
        row
        for row in entries.on_path(workspace.journal, owner.number, owner.leaf, since=kept)
        if not row.aside
    ]
    said = [shortened(row.content) for row in way if row.type == USER_INPUT]
    calls = sum(row.type == TOOL_CALL for row in way)
    files: dict[str, str] = {}
    for row in way:
        if row.type == STEP_SNAPSHOT:
            for kind, paths in ((row.data or {}).get("diff") or {}).items():
                files |= dict.fromkeys(paths, kind)
    lines = ["Another way was tried and left:"]
    lines += [f"- asked: {each}" for each in said]
    if calls:
        lines.append(f"- {calls} tool calls")
    lines += [f"- {kind} {path}" for path, kind in sorted(files.items())]
    return "\n".join(lines)


def _between(
    workspace: Workspace, session: SessionRow, start: str | None, end: str | None
) -> tuple[CheckpointRow | None, CheckpointRow | None, int, int | None]:
    """The checkpoints of two entries, and the `seq`s between which the steps to there lie."""
    before, since = _beginning(workspace, session), 0
    if start is not None:
        first = entries.resolve(workspace.journal, start, session.number)
        before, since = _state(workspace, session, first.seq)
    last = session.leaf
    if end is not None:
        last = entries.resolve(workspace.journal, end, session.number).seq
    after, at = _state(workspace, session, last)
    return before, after, since, max(last or 0, at) or None


def _beginning(workspace: Workspace, session: SessionRow) -> CheckpointRow | None:
    """How the files were when the session began, or when the first that is known of it did."""
    row = workspace.journal.row(
        "SELECT id FROM checkpoints WHERE session = ? AND kind = 'initial' ORDER BY seq LIMIT 1",
        session.id,
    ) or workspace.journal.row(
        "SELECT checkpoint FROM entries WHERE session = ? AND type = 'user_input' AND checkpoint "
        "IS NOT NULL ORDER BY number LIMIT 1",
        session.number,
    )
    return checkpoints.by_id(workspace.journal, row[0]) if row else None


def _end_of_turn(
    workspace: Workspace, session: SessionRow, seq: int
) -> tuple[int, str | None, str | None] | None:
    """What a turn arrived at, if nothing but words came after an entry of it."""
    here = entries.by_seq(workspace.journal, session.number, seq)
    if here is None or here.type in (USER_INPUT, STEP_SNAPSHOT):
        return None
    row = workspace.journal.row(
        f"SELECT {STATE}, type FROM entries WHERE session = ? AND branch = ? AND number > ? AND "
        f"type IN ({', '.join('?' * (len(WORKING) + 1))}) ORDER BY number LIMIT 1",
        session.number, here.branch, (session.number << 32) | seq, *WORKING, STEP_SNAPSHOT,
    )  # fmt: skip
    if row is None or row[3] != STEP_SNAPSHOT:
        return None
    return row[0], row[1], row[2]


def _copy(db: apsw.Connection, source: int, target: int, way: list[tuple[int, int]]) -> int:
    """Copies the entries of a path, which is a chain; gives how many they are."""
    names = "id, type, created_at, content, data, model, checkpoint, plan_item, is_compacted"
    db.execute(
        "INSERT INTO entries (number, session, seq, parent, branch, aside, "
        f"{names}) SELECT (?1 << 32) | place, ?1, place, nullif(place - 1, 0), 1, 0, {names} FROM "
        "(SELECT e.*, row_number() OVER (ORDER BY e.seq) AS place FROM json_each(?3) part "
        "JOIN entries e ON e.session = ?2 AND e.branch = part.value ->> 0 "
        "AND e.number <= (?2 << 32) | (part.value ->> 1))",
        (target, source, json.dumps(way)),
    )
    copied = db.changes()
    db.execute(
        "INSERT INTO labels SELECT copy.number, labels.label FROM labels JOIN entries origin ON "
        "origin.number = labels.entry JOIN entries copy ON copy.session = ? AND copy.id = "
        "origin.id WHERE origin.session = ?",
        (target, source),
    )
    return copied


def _has_message(workspace: Workspace, owner: SessionRow, leaf: EntryRow | None) -> bool:
    found = leaf and entries.on_path(
        workspace.journal, owner.number, leaf.seq, types=(USER_INPUT,), limit=1
    )
    return bool(found)


def _parent(workspace: Workspace, owner: SessionRow, row: EntryRow) -> EntryRow | None:
    if row.parent is None:
        return None
    return entries.by_id(workspace.journal, owner.number, row.parent)


def _entry(workspace: Workspace, owner: SessionRow, seq: int | None) -> EntryRow | None:
    return None if seq is None else entries.by_seq(workspace.journal, owner.number, seq)


def _file(workspace: Workspace, row: CheckpointRow | None, path: bytes) -> TreeEntry | None:
    found = tree.find(row.tree, path, workspace.load) if row is not None and path else None
    return None if found is None or found.is_directory else found


def _now() -> str:
    return just_after(None, time.time_ns())
