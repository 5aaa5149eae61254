"""Undo and redo: take back the last operation, or one that the caller names.

An open turn counts as an operation: what it has changed so far is recorded first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mulligan.core.undo_order import Step, next_redo, next_undo
from mulligan.errors import NotFound, NothingToUndo, WouldLoseWork
from mulligan.journal import checkpoints, operations, sessions, views
from mulligan.journal.views import View
from mulligan.workspace.attribution.observation import Observation, observing
from mulligan.workspace.attribution.turns import open_turn_work, record_open_turns
from mulligan.workspace.restore.finish import root_of
from mulligan.workspace.restore.run import perform
from mulligan.workspace.restore.taking_out import revert_session_work, taken_out
from mulligan.workspace.restore.target import RestoreTarget, revert_operation
from mulligan.workspace.results.files import RestoreResult

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace


def undo(
    workspace: Workspace,
    *,
    keep_dirty: bool = False,
    force: bool = False,
    preview: bool = False,
    past_idle_turn: bool = True,
    expect: int | None = None,
) -> RestoreResult:
    """Take back the last operation that changed something, be it an unfinished turn."""
    with workspace.locked():
        if expect is not None:
            _check_no_open_work(workspace, expect)
        if not preview:
            record_open_turns(workspace)
        elif expect is None and (worked := _open_work(workspace)):
            return _preview_of_open_turn(workspace, *worked[-1], force=force)
        step = next_undo(lambda up_to: operations.newest_change(workspace.journal, up_to))
        if expect is not None:
            _check_expected(workspace, expect, step)
        if step is None:
            raise NothingToUndo(
                "There is nothing (more) to undo. `mulligan restore @` goes back to the latest "
                "checkpoint."
            )
        if not past_idle_turn:
            _stop_at_an_idle_turn(workspace, step.number)
        return _take_back(
            workspace, "undo", step.number, keep_dirty=keep_dirty, force=force, preview=preview
        )


def redo(
    workspace: Workspace,
    *,
    keep_dirty: bool = False,
    force: bool = False,
    preview: bool = False,
    expect: int | None = None,
) -> RestoreResult:
    """Take back the last undo, unless an agent has done something since."""
    with workspace.locked():
        if expect is not None:
            _check_no_open_work(workspace, expect)
        if not preview:
            record_open_turns(workspace)
        step = next_redo(lambda up_to: operations.newest_change(workspace.journal, up_to))
        if expect is not None:
            _check_expected(workspace, expect, step)
        if step is None:
            raise NothingToUndo("There is nothing to redo: the last change was not an undo.")
        return _take_back(
            workspace, "redo", step.number, keep_dirty=keep_dirty, force=force, preview=preview
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
            if view.base is not None and open_turn_work(now, view)
        ]


def _preview_of_open_turn(
    workspace: Workspace, number: int, view: View, *, force: bool
) -> RestoreResult:
    """What an undo would do, without making an operation of what an open turn has done."""
    session = sessions.by_number(workspace.journal, number)
    base = view.base

    def wishing(now: Observation) -> RestoreTarget:
        between = (now.seen.tree, base or now.seen.tree)
        return taken_out(workspace, now, between, force=force)._replace(
            kind="undo", session=session.id if session else None
        )

    return perform(workspace, wishing, replace_open=force, preview=True)


def _check_expected(workspace: Workspace, expect: int, step: Step | None) -> None:
    """Raises unless `step`, which an undo or a redo is about to take back, is `expect`."""
    if step is not None and step.number == expect:
        return
    wanted = operations.by_number(workspace.journal, expect)
    if wanted is None:
        raise NotFound(f"There is no operation {expect}. `mulligan operations` lists them.")
    name = f"operation {expect} ({wanted.kind})"
    if not wanted.changed:
        raise NothingToUndo(f"Nothing was taken back: {name} changed nothing.")
    since = step or operations.newest_change(workspace.journal, None)
    if since is not None and since.number > expect and (step or not since.undoes):
        what = root_of(workspace, since.number)
        raise WouldLoseWork(
            f"Nothing was taken back: operation {since.number} ({what.kind}) was done since "
            f"{name}. `mulligan undo` takes back the latest."
        )
    raise NothingToUndo(f"Nothing was taken back: {name} is taken back already.")


def _stop_at_an_idle_turn(workspace: Workspace, number: int) -> None:
    """Who undoes right after a turn means that turn, and not what came before it."""
    since = operations.since(workspace.journal, ("begin_turn",))
    if not since or any(each.changed for each in since):
        return
    last = "last turn changed nothing"
    ended = [each for each in since if each.kind == "turn"]
    if not ended:
        last = "turn that is going on has changed nothing yet"
    elif ended[-1].summary.get("guarded"):
        last += f" but guarded files ({', '.join(ended[-1].summary['guarded'][:3])})"
    raise NothingToUndo(
        f"The {last}; nothing was undone. `mulligan undo --further` takes back what came before "
        f"it, the {root_of(workspace, number).kind}."
    )


def _take_back(
    workspace: Workspace, kind: str, number: int, *, keep_dirty: bool, force: bool, preview: bool
) -> RestoreResult:
    """Moves the paths that an operation changed back to what they were before it."""
    operation = operations.by_number(workspace.journal, number)
    before = after = None
    if operation is not None and operation.before and operation.after:
        before = checkpoints.by_id(workspace.journal, operation.before)
        after = checkpoints.by_id(workspace.journal, operation.after)
    if operation is None or before is None or after is None:
        raise NotFound(f"Operation {number} cannot be taken back: its checkpoints were forgotten.")

    def wishing(now: Observation) -> RestoreTarget:
        if operation.session is None:
            return revert_operation(workspace, now.seen, kind, number, before, after)
        return revert_session_work(
            workspace, now, kind, operation, (after.tree, before.tree), force=force
        )

    return perform(workspace, wishing, keep_dirty=keep_dirty, replace_open=force, preview=preview)
