"""Undo and redo: take back the last operation, or one that the caller names.

An open turn counts as an operation: what it has changed so far is recorded first.
"""

from __future__ import annotations

from mulligan.core.undo_order import Step, next_redo, next_undo
from mulligan.errors import NotFound, NothingToUndo, WouldLoseWork
from mulligan.journal import checkpoints, operations, sessions, views
from mulligan.journal.views import View
from mulligan.workspace.attribution.observation import Observation, observing
from mulligan.workspace.attribution.turns import open_turn_work, record_open_turns
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.finish import root_of
from mulligan.workspace.restore.run import RestoreRequest, check_options, perform
from mulligan.workspace.restore.taking_out import revert_session_work, taken_out
from mulligan.workspace.restore.target import RestoreTarget, revert_operation
from mulligan.workspace.results.files import RestoreResult


def undo(
    project: OpenProject,
    *,
    keep_dirty: bool = False,
    force: bool = False,
    preview: bool = False,
    past_idle_turn: bool = True,
    expect: int | None = None,
) -> RestoreResult:
    """Take back the last operation that changed something, be it an unfinished turn."""
    check_options(keep_dirty=keep_dirty, force=force)
    with project.locked():
        if expect is not None:
            _check_no_open_work(project, expect)
        if not preview:
            record_open_turns(project)
        elif expect is None and (worked := _open_work(project)):
            return _preview_of_open_turn(project, *worked[-1], force=force)
        step = next_undo(lambda up_to: operations.newest_change(project.journal, up_to))
        if expect is not None:
            _check_expected(project, expect, step)
        if step is None:
            raise NothingToUndo(
                "There is nothing (more) to undo. `mulligan restore @` goes back to the latest "
                "checkpoint."
            )
        if not past_idle_turn:
            _stop_at_an_idle_turn(project, step.number)
        return _take_back(
            project, "undo", step.number, keep_dirty=keep_dirty, force=force, preview=preview
        )


def redo(
    project: OpenProject,
    *,
    keep_dirty: bool = False,
    force: bool = False,
    preview: bool = False,
    expect: int | None = None,
) -> RestoreResult:
    """Take back the last undo, unless an agent has done something since."""
    check_options(keep_dirty=keep_dirty, force=force)
    with project.locked():
        if expect is not None:
            _check_no_open_work(project, expect)
        if not preview:
            record_open_turns(project)
        step = next_redo(lambda up_to: operations.newest_change(project.journal, up_to))
        if expect is not None:
            _check_expected(project, expect, step)
        if step is None:
            raise NothingToUndo("There is nothing to redo: the last change was not an undo.")
        return _take_back(
            project, "redo", step.number, keep_dirty=keep_dirty, force=force, preview=preview
        )


def _check_no_open_work(project: OpenProject, expect: int) -> None:
    """Raise if an open turn has changed files: an undo would take those back first."""
    for number, _view in _open_work(project):
        session = sessions.by_number(project.journal, number)
        raise WouldLoseWork(
            f"{(session and session.agent) or 'An agent'} has changed files since operation "
            f"{expect}; nothing was taken back. `mulligan undo` takes back the agent's work first."
        )


def _open_work(project: OpenProject) -> list[tuple[int, View]]:
    """The sessions whose open turn has changed files, with their views."""
    if not views.open_turns(project.journal):
        return []
    with observing(project) as now:
        now.commit()
        return [
            (number, view)
            for number, view in now.standing.views.items()
            if view.is_open and open_turn_work(now, view)
        ]


def _preview_of_open_turn(
    project: OpenProject, number: int, view: View, *, force: bool
) -> RestoreResult:
    """What an undo would do, without making an operation of what an open turn has done."""
    session = sessions.by_number(project.journal, number)
    base = view.base

    def target(now: Observation) -> RestoreTarget:
        between = (now.seen.tree, base or now.seen.tree)
        return taken_out(project, now, between, force=force)._replace(
            kind="undo", session=session.id if session else None
        )

    request = RestoreRequest(target, replace_open=force, preview=True)
    return perform(project, request).result


def _check_expected(project: OpenProject, expect: int, step: Step | None) -> None:
    """Raises unless `step`, which an undo or a redo is about to take back, is `expect`."""
    if step is not None and step.number == expect:
        return
    wanted = operations.by_number(project.journal, expect)
    if wanted is None:
        raise NotFound(f"There is no operation {expect}. `mulligan operations` lists them.")
    name = f"operation {expect} ({wanted.kind})"
    if not wanted.changed:
        raise NothingToUndo(f"Nothing was taken back: {name} changed nothing.")
    since = step or operations.newest_change(project.journal, None)
    if since is not None and since.number > expect and (step or not since.undoes):
        what = root_of(project, since.number)
        raise WouldLoseWork(
            f"Nothing was taken back: operation {since.number} ({what.kind}) was done since "
            f"{name}. `mulligan undo` takes back the latest."
        )
    raise NothingToUndo(f"Nothing was taken back: {name} is taken back already.")


def _stop_at_an_idle_turn(project: OpenProject, number: int) -> None:
    """Who undoes right after a turn means that turn, and not what came before it."""
    since = operations.since(project.journal, ("begin_turn",))
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
        f"it, the {root_of(project, number).kind}."
    )


def _take_back(
    project: OpenProject, kind: str, number: int, *, keep_dirty: bool, force: bool, preview: bool
) -> RestoreResult:
    """Moves the paths that an operation changed back to what they were before it."""
    operation = operations.by_number(project.journal, number)
    before = after = None
    if operation is not None and operation.before and operation.after:
        before = checkpoints.by_id(project.journal, operation.before)
        after = checkpoints.by_id(project.journal, operation.after)
    if operation is None or before is None or after is None:
        raise NotFound(f"Operation {number} cannot be taken back: its checkpoints were forgotten.")

    def target(now: Observation) -> RestoreTarget:
        if operation.session is None:
            return revert_operation(project, now.seen, kind, number, before, after)
        return revert_session_work(
            project, now, kind, operation, (after.tree, before.tree), force=force
        )

    request = RestoreRequest(target, keep_dirty=keep_dirty, replace_open=force, preview=preview)
    return perform(project, request).result
