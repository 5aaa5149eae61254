"""Turns: from a user's message to the agent's stop.

Before anything may happen there is a checkpoint, the entry of the message and an operation, in
this order and in one transaction; at the end one more tree, and what the turn changed if it
changed anything. A turn whose end never came is ended by the next one that begins.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import apsw

from mulligan.core.coverage import decode_path, storable
from mulligan.core.entries import STATUSES, STEP_SNAPSHOT, USER_INPUT, NewEntry
from mulligan.core.tree import EMPTY_ID, Change, find
from mulligan.errors import UsageError, WouldLoseWork
from mulligan.journal import append, checkpoints, entries, operations, sessions, views
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.journal.sessions import SessionRow
from mulligan.journal.views import View
from mulligan.workspace.attribution.observation import Observation, observing
from mulligan.workspace.attribution.standing import quiet
from mulligan.workspace.process import runs
from mulligan.workspace.results.turns import Step, Turn
from mulligan.workspace.sessions.entries import appending
from mulligan.workspace.snapshot.checkpoints import always_include, new_id
from mulligan.workspace.snapshot.holding import last_seen
from mulligan.workspace.snapshot.take import always_included

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mulligan.workspace.restore.target import RestoreTarget
    from mulligan.workspace.results.files import RestoreResult
    from mulligan.workspace.workspace import Workspace

MAX_TITLE_CHARACTERS = 50
Paths = dict[str, tuple[str, ...]]


def begin(
    workspace: Workspace,
    name: str,
    message: str,
    *,
    id: str | None = None,
    include: Iterable[bytes] = (),
    data: dict[str, Any] | None = None,
    process: str | int | None = 0,
) -> Turn:
    """Begins a turn. Nothing that an agent does may come before this has returned.

    `process` runs the session from now on (`process.runs`).
    """
    message = storable(message)
    with workspace.locked():
        session = sessions.resolve(workspace.journal, name)
        include_paths(workspace, tuple(include))
        entry = storable(id) if id else new_id()
        with observing(workspace) as now:
            view = now.view(session.number)
            left = _work(now, view) if view.base is not None else None
            present = now.seen.tree
            opened = view._replace(
                approved=view.approved or present, written=view.written or present, base=present
            )
            now.commit()
            with workspace.journal.writing() as db:
                if left is not None:
                    _close(now, db, session, view, left, interrupted=True)
                row = now.checkpoint(
                    db, kind="turn", message=f"Before user message: {shortened(message)}",
                    session=session.id, entry=entry,
                )  # fmt: skip
                appender = appending(db, session.number)
                place = appender.append(
                    NewEntry(
                        USER_INPUT,
                        message,
                        (data or {}) | {"tree": present.hex()},
                        id=entry,
                        checkpoint=row.id,
                    )
                )
                appender.finish()
                number = now.record(
                    db, kind="begin_turn", after=row, session=session.id,
                    changes={session.number: opened},
                    summary={"entry": entry, "round": view.round},
                )  # fmt: skip
                values = {"status": "running"} | runs(process)
                if not session.title:
                    values["title"] = shortened(next(iter(message.strip().splitlines()), ""))
                sessions.update(db, session.number, values)
        workspace.save_cache()
        index = turn_index(workspace, session.number, place.seq)
    ended = left is not None
    return Turn(session.id, round_name(view), entry, row.id, number, index, ended)


def end(
    workspace: Workspace,
    name: str,
    *,
    status: str = "waiting_input",
    interrupted: bool = False,
) -> Step:
    """Ends a turn: records what it changed, if it changed anything.

    Where decisions were made meanwhile, it tells also of what was recorded before them.
    """
    if status not in STATUSES:
        raise UsageError(f"A session's status is one of {', '.join(STATUSES)}.")
    with workspace.locked():
        session = sessions.resolve(workspace.journal, name)
        with observing(workspace, acting=session.number) as now:
            view = now.view(session.number)
            if view.base is None:
                raise UsageError(f"Session {session.id} has no turn that could end.")
            work = _work(now, view)
            now.commit()
            with workspace.journal.writing() as db:
                step = _close(now, db, session, view, work, interrupted=interrupted)
                sessions.update(db, session.number, {"status": status})
            step = _as_a_whole(now, session, step, work)
        workspace.save_cache()
    return step


def record_open_turns(workspace: Workspace) -> None:
    """Makes an operation of what open turns have done so far, so that it can be taken back.

    Before any decision: what was done before it is then taken back after it, in that order.
    """
    with workspace.locked():
        for number, known in views.live(workspace.journal).items():
            session = sessions.by_number(workspace.journal, number)
            if known.base is None or session is None:
                continue
            with observing(workspace) as now:
                view = now.view(number)
                work = _work(now, view)
                if not work:
                    continue
                now.commit()
                with workspace.journal.writing() as db:
                    _close(now, db, session, view, work, goes_on=True)


def undo(
    workspace: Workspace,
    *,
    keep_dirty: bool = False,
    force: bool = False,
    preview: bool = False,
    further: bool = True,
    expect: int | None = None,
) -> RestoreResult:
    """Takes back the last operation that changed something, be it an unfinished turn."""
    from mulligan.workspace.restore import run

    with workspace.locked():
        if expect is not None:
            _check_no_open_work(workspace, expect)
        if not preview:
            record_open_turns(workspace)
        elif expect is None and (worked := _open_work(workspace)):
            return _preview_of_open_turn(workspace, *worked[-1], force=force)
        return run.undo(
            workspace, keep_dirty=keep_dirty, force=force, preview=preview, further=further,
            expect=expect,
        )  # fmt: skip


def redo(
    workspace: Workspace,
    *,
    keep_dirty: bool = False,
    force: bool = False,
    preview: bool = False,
    expect: int | None = None,
) -> RestoreResult:
    """Takes back the last undo, unless an agent has done something since."""
    from mulligan.workspace.restore import run

    with workspace.locked():
        if expect is not None:
            _check_no_open_work(workspace, expect)
        if not preview:
            record_open_turns(workspace)
        return run.redo(
            workspace, keep_dirty=keep_dirty, force=force, preview=preview, expect=expect
        )


def _check_no_open_work(workspace: Workspace, expect: int) -> None:
    """Raises if an open turn has changed files: they would be taken back first."""
    for number, _view in _open_work(workspace):
        session = sessions.by_number(workspace.journal, number)
        raise WouldLoseWork(
            f"{(session and session.agent) or 'An agent'} has changed files since operation "
            f"{expect}; nothing was taken back. `mulligan undo` takes back the agent's work first."
        )


def _open_work(workspace: Workspace) -> list[tuple[int, View]]:
    """The sessions whose open turn has changed files, with their views."""
    if not any(view.base for view in views.live(workspace.journal).values()):
        return []
    with observing(workspace) as now:
        now.commit()
        return [
            (number, view)
            for number, view in now.standing.views.items()
            if view.base is not None and _work(now, view)
        ]


def _preview_of_open_turn(
    workspace: Workspace, number: int, view: View, *, force: bool
) -> RestoreResult:
    """What an undo would do, without making an operation of what an open turn has done."""
    from mulligan.workspace.restore import run
    from mulligan.workspace.restore.taking_out import taken_out

    session = sessions.by_number(workspace.journal, number)
    base = view.base

    def wishing(now: Observation) -> RestoreTarget:
        between = (now.seen.tree, base or now.seen.tree)
        return taken_out(workspace, now, between, force=force)._replace(
            kind="undo", session=session.id if session else None
        )

    return run.perform(workspace, wishing, replace_open=force, preview=True)


def observe(workspace: Workspace, *, acting: int | None = None) -> None:
    """Puts what happened to the disk to account now, while it is known whose doing it is."""
    with workspace.locked():
        if views.live(workspace.journal):
            _note(workspace, acting=acting)


def include_paths(workspace: Workspace, paths: Collection[bytes]) -> None:
    """From now on these paths are kept wherever they lie.

    What one holds that was out of scope until now is nobody's new work.
    """
    with workspace.locked():
        forced = set(always_included(workspace))
        new = [path for path in paths if path and path not in forced]
        live = bool(views.live(workspace.journal))
        there = _out_of_view(workspace, paths, new, last_seen(workspace))
        if there and live:
            # First what is new and in scope: that is the work of whoever is at work.
            there = _out_of_view(workspace, there, new, _note(workspace))
        latest = checkpoints.latest(workspace.journal)
        since = checkpoints.position(workspace.journal, latest.id) if latest is not None else 0
        always_include(workspace, new, since=since)
        if there and live:
            _note(workspace, came_into_view=there)


def on_disk_not_in_tree(
    workspace: Workspace, paths: Iterable[bytes], tree: bytes | None
) -> list[bytes]:
    """Those of the paths that are on the disk and not in a tree."""
    found = [
        path
        for path in paths
        if path and (tree is None or find(tree, path, workspace.load) is None)
    ]
    root = workspace.project.root
    return [path for path in found if os.path.lexists(os.path.join(root, path))]


def _out_of_view(
    workspace: Workspace, paths: Iterable[bytes], new: Collection[bytes], tree: bytes | None
) -> list[bytes]:
    """Those that hold what a tree does not: a folder that is in it, and was not asked for until
    now, may."""
    found = on_disk_not_in_tree(workspace, paths, tree)
    if tree is None:
        return found
    entries = [(path, find(tree, path, workspace.load)) for path in paths if path in new]
    return found + [path for path, entry in entries if entry is not None and entry.is_directory]


def _note(
    workspace: Workspace, *, came_into_view: Collection[bytes] = (), acting: int | None = None
) -> bytes:
    """Puts what happened to the disk to account; gives the tree that it holds."""
    with observing(workspace, came_into_view=came_into_view, acting=acting) as now:
        now.commit()
        if now.standing.moved:
            with workspace.journal.writing() as db:
                now.note(db, now.safety(db, "Between two calls"))
        workspace.save_cache()
        return now.seen.tree


def take_safety_checkpoint(workspace: Workspace, message: str) -> None:
    """A checkpoint of what the disk holds, whoever's it is."""
    with observing(workspace) as now:
        now.commit()
        with workspace.journal.writing() as db:
            now.note(db, now.safety(db, message))
        workspace.save_cache()


def open_turns(workspace: Workspace) -> list[int]:
    """The sessions that have a turn going on, by number."""
    return [
        number for number, view in views.live(workspace.journal).items() if view.base is not None
    ]


def round_name(view: View) -> str:
    """A round as it is called on the wire."""
    return f"session_{view.round}"


def turn_index(workspace: Workspace, session: int, seq: int) -> int:
    """Which turn an entry belongs to, counting messages on the way to it from 0."""
    found = 0
    for branch, last in entries.path(workspace.journal, session, seq):
        found += workspace.journal.row(
            "SELECT count(*) FROM entries WHERE session = ? AND branch = ? AND number <= ? "
            "AND type = 'user_input'",
            session, branch, (session << 32) | last,
        )[0]  # fmt: skip
    return max(0, found - 1)


def shortened(message: str) -> str:
    return (
        message if len(message) <= MAX_TITLE_CHARACTERS else message[:MAX_TITLE_CHARACTERS] + "..."
    )


def named(changes: Iterable[Change]) -> Paths:
    """The files that differ, by what happened to them."""
    found: dict[str, list[str]] = {"added": [], "modified": [], "deleted": []}
    for path, before, after in changes:
        was = before is not None and not before.is_directory
        now = after is not None and not after.is_directory
        if was or now:
            kind = "modified" if was and now else "added" if now else "deleted"
            found[kind].append(decode_path(path))
    return {kind: tuple(paths) for kind, paths in found.items()}


def _work(now: Observation, view: View) -> list[Change]:
    """What the open turn has changed so far, folders included."""
    return now.trees.differences(view.base or now.seen.tree, now.seen.tree)


def _close(
    now: Observation,
    db: apsw.Connection,
    session: SessionRow,
    view: View,
    work: list[Change],
    *,
    interrupted: bool = False,
    goes_on: bool = False,
) -> Step:
    """Records a turn, in the caller's transaction: its checkpoint, its entry, its operation."""
    base = view.base or now.seen.tree
    begun = _begun(now, session)
    guarded = _guarded(now, begun)
    index = turn_index(now.workspace, session.number, session.leaf or 0) if session.leaf else 0
    paths = named(work)
    entry = row = None
    if not goes_on:
        append.end_open_calls(db, session.number)
    closed = quiet(view._replace(base=now.seen.tree if goes_on else None), now.seen.tree)
    if work:
        before = begun
        if before is None or before.tree != base:
            # Somebody else has changed something since.
            before = _without_the_turn(now, db, session, base)
        entry = new_id()
        row = now.checkpoint(
            db, kind="step", message=_words(paths), session=session.id, entry=entry
        )
        appender = appending(db, session.number)
        data = {
            "baselineTreeHash": base.hex() if base != EMPTY_ID else None,
            "snapshotTreeHash": now.seen.tree.hex(),
            "diff": {kind: list(names) for kind, names in paths.items()},
            "turnIndex": index,
        }
        if interrupted:
            data["interrupted"] = True
        appender.append(NewEntry(STEP_SNAPSHOT, "", data, id=entry, checkpoint=row.id))
        appender.finish()
    else:
        row = before = now.safety(db, "After a turn")
    number = now.record(
        db, kind="turn", after=row, session=session.id, changed=bool(work), before=before.id,
        changes={session.number: closed},
        summary={
            "turn": index, "round": view.round, "entry": entry,
            **{kind: len(names) for kind, names in paths.items()},
            "guarded": guarded,
        },
    )  # fmt: skip
    # Told once: whoever records more in this transaction has nothing left to put to account.
    now.standing = now.standing._replace(moved=False)
    return Step(
        session.id, round_name(view), index, number, entry, row.id if work else None, **paths,
        guarded=guarded,
    )  # fmt: skip


def _as_a_whole(now: Observation, session: SessionRow, step: Step, work: list[Change]) -> Step:
    """The last step of a turn, with all that is left of what the turn changed."""
    journal = now.workspace.journal
    found = operations.of_last_turn(journal, session.id)
    if len(found) < 3:
        return step
    first, *parts = found
    paths = {change.path for change in work}
    rows = {
        id: checkpoints.by_id(journal, id or "")
        for id in (first.after, *(id for part in parts for id in (part.before, part.after)))
    }
    for part in parts:
        before, after = rows[part.before], rows[part.after]
        if part.number != step.operation and part.changed and before and after:
            paths |= {each.path for each in now.trees.differences(before.tree, after.tree)}
    begun = rows[first.after]
    if begun is None or len(paths) == len(work):
        return step
    changes = now.trees.differences(begun.tree, now.seen.tree)
    left = named(change for change in changes if change.path in paths)
    return step._replace(added=left["added"], modified=left["modified"], deleted=left["deleted"])


def _begun(now: Observation, session: SessionRow) -> CheckpointRow | None:
    """The checkpoint from before the turn."""
    found = operations.of_last_turn(now.workspace.journal, session.id)
    return checkpoints.by_id(now.workspace.journal, found[-1].after or "") if found else None


def _guarded(now: Observation, begun: CheckpointRow | None) -> tuple[str, ...]:
    """The guarded files that hold something else than before the turn, by whomever."""
    if begun is None or begun.guarded == now.seen.guarded:
        return ()
    from mulligan.workspace.snapshot.diff import guarded_changes

    return guarded_changes(begun, now.seen, now.trees.load)


def _without_the_turn(
    now: Observation, db: apsw.Connection, session: SessionRow, base: bytes
) -> CheckpointRow:
    """A checkpoint of the disk without what the turn did, but with what others did meanwhile."""
    files, size = now.trees.load(base).totals
    seen = now.seen._replace(tree=base, files=files, bytes=size)
    return now.checkpoint(
        db, kind="step", message="Without the turn", session=session.id, seen=seen
    )


def _words(paths: Paths) -> str:
    parts = [f"{len(names)} {kind}" for kind, names in paths.items() if names]
    return "Turn: " + (", ".join(parts) or "folders only")
