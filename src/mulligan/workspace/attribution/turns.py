"""Turns: from a user's message to the agent's stop.

Before anything may happen there is a checkpoint, the entry of the message and an operation, in
this order and in one transaction; at the end one more tree, and what the turn changed if it
changed anything. A turn whose end never came is ended by the next one that begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from mulligan.core.coverage import decode_path, storable
from mulligan.core.entries import STATUSES, STEP_SNAPSHOT, USER_INPUT, NewEntry
from mulligan.core.ids import SessionNumber
from mulligan.core.tree import EMPTY_ID, Change
from mulligan.errors import UsageError
from mulligan.journal import append, checkpoints, entries, operations, sessions, views
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.journal.sessions import SessionRow
from mulligan.journal.views import View
from mulligan.workspace.appending import appending
from mulligan.workspace.attribution.observation import Observation, observing
from mulligan.workspace.attribution.observe import include_paths
from mulligan.workspace.attribution.view import quiet
from mulligan.workspace.new_id import new_id
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.project.process import runs
from mulligan.workspace.results.turns import Step, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable


MAX_TITLE_CHARACTERS = 50
Paths = dict[str, tuple[str, ...]]


def begin(
    project: OpenProject,
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
    with project.locked():
        session = sessions.resolve(project.journal, name)
        include_paths(project, tuple(include))
        entry = storable(id) if id else new_id()
        with observing(project) as now:
            view = now.view(session.number)
            left = open_turn_work(now, view) if view.is_open else None
            present = now.seen.tree
            opened = view._replace(
                approved=view.approved or present, written=view.written or present, base=present
            )
            now.commit()
            with project.journal.writing() as db:
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
        project.save_cache()
        index = turn_index(project, session.number, place.seq)
    ended = left is not None
    return Turn(session.id, round_name(view), entry, row.id, number, index, ended)


def end(
    project: OpenProject,
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
    with project.locked():
        session = sessions.resolve(project.journal, name)
        with observing(project, acting=session.number) as now:
            view = now.view(session.number)
            if not view.is_open:
                raise UsageError(f"Session {session.id} has no turn that could end.")
            work = open_turn_work(now, view)
            now.commit()
            with project.journal.writing() as db:
                step = _close(now, db, session, view, work, interrupted=interrupted)
                sessions.update(db, session.number, {"status": status})
            step = _as_a_whole(now, session, step, work)
        project.save_cache()
    return step


def record_open_turns(project: OpenProject) -> None:
    """Makes an operation of what open turns have done so far, so that it can be taken back.

    Before any decision: what was done before it is then taken back after it, in that order.
    """
    with project.locked():
        for number in views.open_turns(project.journal):
            session = sessions.by_number(project.journal, number)
            if session is None:
                continue
            with observing(project) as now:
                view = now.view(number)
                work = open_turn_work(now, view)
                if not work:
                    continue
                now.commit()
                with project.journal.writing() as db:
                    _close(now, db, session, view, work, goes_on=True)


def round_name(view: View) -> str:
    """A round as it is called on the wire."""
    return f"session_{view.round}"


def turn_index(project: OpenProject, session: SessionNumber, seq: int) -> int:
    """Which turn an entry belongs to, counting messages on the way to it from 0."""
    return max(0, entries.count_prompts(project.journal, session, seq) - 1)


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


def open_turn_work(now: Observation, view: View) -> list[Change]:
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
    index = turn_index(now.project, session.number, session.leaf or 0) if session.leaf else 0
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
    journal = now.project.journal
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
    found = operations.of_last_turn(now.project.journal, session.id)
    return checkpoints.by_id(now.project.journal, found[-1].after or "") if found else None


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
