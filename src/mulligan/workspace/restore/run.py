"""Restore files: a pipeline from a request to a marked operation.

    RestoreRequest → observe (one scan) → RestoreTarget → RestorePlan
        → journal: planned → stage, sync, swap, read back → journal: applied

1. Objects: the contents of the disk and the planned trees are in the store.
2. Operation, planned: a safety checkpoint and the plan are in the journal.
3. Files: the store's copies are read back; then the files change, and are read back.
4. Operation, applied: marked, with a checkpoint of the state that was reached.

A preview ends after the plan. A kill before 3 leaves the old state; after it, the next opening of
the project finishes the operation (`recover`). Bytes that match neither side are the user's and
stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import apsw

from mulligan.clock import now_ns
from mulligan.core.coverage import Coverage, decode_path
from mulligan.core.times import stamp_after
from mulligan.core.tree import FILE, Change
from mulligan.errors import (
    Corrupt,
    MulliganError,
    OutOfSpace,
    UsageError,
)
from mulligan.journal import checkpoints, operations, sessions
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.journal.operations import OperationRow
from mulligan.store.packs import Record
from mulligan.store.writer import Writer
from mulligan.workspace.attribution.observation import Observation, observed
from mulligan.workspace.attribution.turns import record_open_turns
from mulligan.workspace.import_previews import check_preview
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.emptied import with_emptied_folders
from mulligan.workspace.restore.finish import finish_operation, is_obstructed, named, skips
from mulligan.workspace.restore.plan import RestorePlan, listed, plan_restore
from mulligan.workspace.restore.taking_out import (
    without_the_users,
    would_be_forced,
)
from mulligan.workspace.restore.target import (
    RestoreTarget,
    drop_blocked_paths,
    out_of_view,
    to_checkpoint,
)
from mulligan.workspace.restore.unrevert import append_unrevert_point
from mulligan.workspace.results.files import RestoreResult
from mulligan.workspace.snapshot.take import take_snapshot, with_large_files
from mulligan.worktree.fs.deferred_unlink import DeferredUnlink
from mulligan.worktree.fs.leases import open_for_writing
from mulligan.worktree.restore import apply
from mulligan.worktree.scan.overrides import directories_above

NOT_SAFE = (
    "What is on the disk cannot be kept safe: the store gives back something else than was put "
    "in. Nothing was overwritten; the disk under the store may be failing."
)
NOTHING_YET = "it was interrupted before it changed anything"
OnPlan = Callable[[apsw.Connection, Observation, RestorePlan], dict[str, Any]]


class RestoreRequest(NamedTuple):
    """What to restore, and which files to skip.

    `target` derives the wanted files from the observed disk. Without `force`, files that the user
    changed since the last turn are skipped; without `replace_open`, files that a program has open
    for writing; with `keep_dirty`, files whose content is in no checkpoint. `counts` decides
    whether the operation is recorded even if no file has to change. `on_plan` writes rows of its
    own in the plan's transaction, and returns more effects on the session.
    """

    target: Callable[[Observation], RestoreTarget]
    keep_dirty: bool = False
    force: bool = True
    replace_open: bool = False
    preview: bool = False
    counts: Callable[[RestorePlan], bool] | None = None
    on_plan: OnPlan | None = None


class RestoreOutcome(NamedTuple):
    """The result, the target it came from, and what the operation means for its session."""

    result: RestoreResult
    target: RestoreTarget
    session_effects: Mapping[str, Any]


class PlannedRestore(NamedTuple):
    """A plan that the journal holds, and that no file has seen yet."""

    operation: OperationRow
    safety: CheckpointRow
    plan: RestorePlan
    trees: tuple[bytes, ...]
    """The roots of the trees before and after, guarded files included."""


def restore(
    project: OpenProject,
    name: str,
    paths: tuple[bytes, ...],
    *,
    keep_dirty: bool = False,
    force: bool = False,
    preview: bool = False,
    session: str | None = None,
) -> RestoreResult:
    """Restore a checkpoint. A `session` that asks for it gets an unrevert-point, and stays."""
    check_options(keep_dirty=keep_dirty, force=force)
    with project.locked():
        target = checkpoints.resolve(project.journal, name)
        owner = sessions.resolve(project.journal, session) if session is not None else None
        if owner is not None:
            target = target._replace(session=owner.id)
        check_preview(project, target, paths, force=force, preview=preview)
        if not preview:
            record_open_turns(project)

        def add_unrevert_point(
            db: apsw.Connection, now: Observation, plan: RestorePlan
        ) -> dict[str, Any]:
            if owner is not None:
                leaf = sessions.resolve(project.journal, owner.id).leaf_id
                append_unrevert_point(db, owner.number, now.seen.tree, plan, leaf)
            return {}

        request = RestoreRequest(
            lambda now: to_checkpoint(project, now.seen, target, paths),
            keep_dirty=keep_dirty,
            force=force,
            replace_open=force,
            preview=preview,
            on_plan=add_unrevert_point,
        )
        return perform(project, request).result


def perform(project: OpenProject, request: RestoreRequest) -> RestoreOutcome:
    """Carry out a request. The caller holds the lock.

    If the store turns out to have lost what the plan would overwrite, the disk has the only good
    copies: a second observation stores them again, and the request is carried out from there.
    """
    try:
        return _perform(project, request)
    except _Damaged:
        try:
            return _perform(project, request)
        except _Damaged as problem:
            raise Corrupt(NOT_SAFE) from problem


def _perform(project: OpenProject, request: RestoreRequest) -> RestoreOutcome:
    with Writer(project.store) as writer:
        now, target = _observe(project, writer, request)
        target, plan = _plan(project, now, target, request)
        if request.preview or not (plan.changes or _counts(request, target, plan)):
            project.save_cache()
            result = _not_done(target, plan, now.seen.coverage, preview=request.preview)
            result = named(project, result._replace(root=project.root if request.preview else None))
            return RestoreOutcome(result, target, target.session_effects)
        now.commit()
        planned = _record_plan(project, now, target, plan, request)
    with DeferredUnlink() as unlinker:
        applied = _apply(project, planned, unlinker, replace_open=request.replace_open)
        result = _finish(project, planned, applied)
    return RestoreOutcome(result, target, planned.operation.intent)


def _observe(
    project: OpenProject, writer: Writer, request: RestoreRequest
) -> tuple[Observation, RestoreTarget]:
    """Store what the disk holds, and derive the target from it.

    The target may name files that today's rules exclude: a second scan stores those too, before
    anything is decided about them.
    """
    now = observed(project, writer, take_snapshot(project, writer))
    now.commit()
    target = request.target(now)
    excluded = out_of_view(project, now.seen, target)
    if excluded:
        seen = take_snapshot(project, writer, excluded)
        now = observed(project, writer, with_large_files(project, writer, seen, excluded))
        now.commit()
        target = request.target(now)
    return now, target


def _plan(
    project: OpenProject, now: Observation, target: RestoreTarget, request: RestoreRequest
) -> tuple[RestoreTarget, RestorePlan]:
    """Plan the changes, without the files that the request skips."""
    if not request.force:
        target = without_the_users(project, now.seen, target)
    target = with_emptied_folders(project, target)
    plan = plan_restore(project, now.trees, now.seen, target, keep_dirty=request.keep_dirty)
    in_use = {} if request.replace_open else _in_use(project, plan.changes)
    if in_use:
        # Before the plan is recorded: recovery carries out a recorded plan as it is.
        target = drop_blocked_paths(project, now.seen, target.without(in_use))
        plan = plan_restore(project, now.trees, now.seen, target, keep_dirty=request.keep_dirty)
    return target, plan


def _counts(request: RestoreRequest, target: RestoreTarget, plan: RestorePlan) -> bool:
    """True if the operation is recorded even if no file has to change.

    An undo counts even if the user has put everything back already.
    """
    if request.counts is not None:
        return request.counts(plan)
    return target.undoes is not None and not _refused(target, plan)


def _record_plan(
    project: OpenProject,
    now: Observation,
    target: RestoreTarget,
    plan: RestorePlan,
    request: RestoreRequest,
) -> PlannedRestore:
    """Record the safety checkpoint and the planned operation, in one transaction."""
    with project.journal.writing() as db:
        safety = now.safety(db, f"Before {target.kind} to {target.target or 'an earlier state'}")
        now.note(db, safety)
        effects = dict(target.session_effects)
        if request.on_plan is not None:
            effects |= request.on_plan(db, now, plan)
        number = operations.plan(
            db,
            kind=target.kind,
            created_at=stamp_after(safety.created_at, now_ns()),
            before=safety.id,
            plan_tree=plan.tree,
            plan_guarded=plan.guarded,
            target=target.target,
            undoes=target.undoes,
            session=target.session,
            intent=effects,
        )
    operation = operations.by_number(project.journal, number)
    assert operation is not None
    return PlannedRestore(operation, safety, plan, (*now.seen[:2], plan.tree, plan.guarded))


def _apply(
    project: OpenProject, planned: PlannedRestore, unlinker: DeferredUnlink, *, replace_open: bool
) -> apply.Applied:
    """Read back what the store holds of the plan, then change the files."""
    changes = planned.plan.changes
    ids = {each.id for change in changes for each in change[1:] if each}
    contents = project.store.prefetch(ids)

    def abandon(problem: BaseException) -> None:
        # If even that cannot be recorded, the next opening finds that nothing was begun.
        with suppress(MulliganError), project.journal.writing() as db:
            operations.abandon(db, planned.operation.number, str(problem) or NOTHING_YET)

    return apply.apply(
        project.location.root,
        staging_tag(planned.operation),
        changes,
        project.store.stream,
        lambda done, total: project.progress("restoring", done, total),
        unlinker,
        check=lambda: _read_back(project, changes, planned.trees, contents),
        on_abandon=abandon,
        replace_open=replace_open,
    )


def _finish(project: OpenProject, planned: PlannedRestore, applied: apply.Applied) -> RestoreResult:
    """Mark the operation as applied, once its files are on the disk for good."""
    try:
        return finish_operation(
            project, planned.operation, safety=planned.safety, plan=planned.plan, applied=applied
        )
    except OutOfSpace as problem:
        raise OutOfSpace(
            f"The files are changed, but {project.location.directory} has no space left to record "
            "that. Free some space; the next command records it."
        ) from problem
    except OSError as problem:
        raise MulliganError(
            f"The files are changed, but the disk did not take all of it ({problem}). The "
            "operation is not marked as done: the next command finishes it."
        ) from problem
    finally:
        applied.wait_durable()


def check_options(*, keep_dirty: bool, force: bool) -> None:
    if force and keep_dirty:
        raise UsageError("keep_dirty and force are mutually exclusive; nothing was changed.")


def staging_tag(operation: OperationRow) -> str:
    """Name the staging folder after the operation and its safety checkpoint.

    An operation with the same number in another home must not take the folder for its own.
    """
    return f"{operation.number}-{operation.before}"


def _in_use(project: OpenProject, changes: Sequence[Change]) -> dict[bytes, str]:
    """Return files to be replaced or deleted that are open for writing, each with a reason."""
    files = [
        each.path
        for each in changes
        if loses_content(each) and each.before and each.before.kind == FILE
    ]
    return open_for_writing(project.location.root, files)


def loses_content(change: Change) -> bool:
    """True if the change removes bytes from the disk."""
    before = change.before
    if before is None or before.is_directory:
        return False
    return not before.same_content(change.after)


class _Damaged(Exception):
    """The store cannot return what the plan would overwrite."""


def _trees_about(project: OpenProject, changes: list[Change], roots: Sequence[bytes]) -> set[bytes]:
    """Return the trees that describe the changed paths before and after."""
    above = [path for path in directories_above(change.path for change in changes) if path]
    trees = set(roots)
    for root in roots:
        found = map(project.finder(root), above)
        trees |= {entry.id for entry in found if entry is not None and entry.is_directory}
    return trees


def _read_back(
    project: OpenProject,
    changes: list[Change],
    roots: Sequence[bytes],
    contents: Mapping[bytes, Record],
) -> None:
    """Raise `_Damaged` if the store cannot return what the plan would overwrite.

    Checks the trees under `roots` too. Damaged records are dropped from the index; damaged trees
    that are still in memory are stored again.
    """
    store = project.store
    trees = _trees_about(project, changes, roots)
    records = {**contents, **store.prefetch(trees)}
    going = {each.before.id for each in changes if each.before and loses_content(each)}
    damaged = store.damaged_among(going | trees, records)
    if not damaged:
        return
    if not trees.issuperset(damaged):
        store.index.drop(damaged)
        raise _Damaged("what it was to overwrite was damaged in the store")
    known = [project.load(id).data for id in damaged]
    store.index.drop(damaged)
    with Writer(store) as writer:
        for data in known:
            writer.put(data)
        writer.commit()
    store.clear_cache()
    if any(store.damaged(id) for id in damaged):
        raise Corrupt(NOT_SAFE)


def _refused(target: RestoreTarget, plan: RestorePlan) -> bool:
    """True if an undo skipped files that `force` would restore, and has no other effect."""
    reasons = (plan.skipped or {}).values()
    return not target.session_effects and any(would_be_forced(reason) for reason in reasons)


def _not_done(
    target: RestoreTarget, plan: RestorePlan, covered: Coverage, *, preview: bool
) -> RestoreResult:
    """Describe a plan that was not carried out."""
    return RestoreResult(
        kind=target.kind,
        operation=None,
        safety_checkpoint=None,
        new_checkpoint=None,
        target=target.target,
        undoes=target.undoes,
        restored=tuple(listed(plan.changes, deleted=False)),
        deleted=tuple(listed(plan.changes, deleted=True)),
        skipped=skips(plan.skipped or {}),
        dirty=tuple(decode_path(path) for path in plan.dirty),
        verified=preview or not is_obstructed(plan, covered),
        preview=preview,
    )
