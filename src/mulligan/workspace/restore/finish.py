"""Finish an operation: its checkpoint, the sessions' state, and its mark.

The last phase of every restore, in the process that began it or in one that recovers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw

from mulligan.core.coverage import Coverage, decode_path
from mulligan.core.tree import Change, parents
from mulligan.journal import checkpoints, operations, sessions, views
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.journal.operations import OperationRow
from mulligan.journal.views import View
from mulligan.store.writer import Writer
from mulligan.workspace.attribution.carrying import carried_on
from mulligan.workspace.attribution.looking_back import brought_back, taken_back
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.plan import RestorePlan, listed, plan_edits
from mulligan.workspace.results.files import RestoreResult, Skip
from mulligan.workspace.snapshot.checkpoints import add, coverage
from mulligan.workspace.snapshot.snapshot import Snapshot
from mulligan.workspace.snapshot.trees import Trees
from mulligan.worktree.restore import apply
from mulligan.worktree.restore.displaced import CHANGED_CONCURRENTLY
from mulligan.worktree.scan.stat_cache import Node


def finish_operation(
    project: OpenProject,
    operation: OperationRow,
    *,
    safety: CheckpointRow,
    plan: RestorePlan,
    applied: apply.Applied,
) -> RestoreResult:
    """Mark an operation with the state that it reached, once that is on the disk for good."""
    done = [change for change in applied.done if change.path not in applied.wrong]
    with Writer(project.store) as writer:
        trees = Trees(project, writer)
        tree, guarded = _reached(trees, safety, plan, done)
        tree = _without_emptied(project, trees, tree, done)
        stand = _standing_after(project, trees, operation, safety.tree, tree)
        writer.commit()
    covered = coverage(project, safety)
    reached = Snapshot(
        tree, guarded, covered, *project.load(tree).totals, safety.coverage, safety.max_file_size
    )
    result = _result(operation, safety, plan, applied, done, covered)
    # The disk was still writing the files while all else was prepared; now they must be there.
    applied.wait_durable()
    checkpoint = _mark(project, operation, reached, result, stand, has_changed=bool(done))
    project.save_cache()
    return named(project, result._replace(new_checkpoint=checkpoint))


def _reached(
    trees: Trees, safety: CheckpointRow, plan: RestorePlan, done: Sequence[Change]
) -> tuple[bytes, bytes]:
    """Return the trees that the disk holds if only some of the plan was done."""
    if len(done) == len(plan.changes):
        return plan.tree, plan.guarded
    paths = {change.path for change in done}
    partial = plan_edits(
        trees,
        (safety.tree, safety.guarded),
        {each.path: each.after for each in plan.main_changes if each.path in paths},
        {each.path: each.after for each in plan.guarded_changes if each.path in paths},
    )
    return partial.tree, partial.guarded


def _result(
    operation: OperationRow,
    safety: CheckpointRow,
    plan: RestorePlan,
    applied: apply.Applied,
    done: Sequence[Change],
    covered: Coverage,
) -> RestoreResult:
    wrong = dict.fromkeys(applied.wrong, CHANGED_CONCURRENTLY)
    return RestoreResult(
        kind=operation.kind,
        operation=operation.number,
        safety_checkpoint=safety.id,
        new_checkpoint=None,
        target=operation.target,
        undoes=operation.undoes,
        restored=tuple(listed(done, deleted=False)),
        deleted=tuple(listed(done, deleted=True)),
        skipped=skips(dict(plan.skipped or {}) | applied.skipped | wrong),
        dirty=tuple(decode_path(path) for path in plan.dirty),
        rescued=tuple(decode_path(path) for path in applied.rescued),
        verified=not (wrong or applied.failed or is_obstructed(plan, covered)),
    )


def _mark(
    project: OpenProject,
    operation: OperationRow,
    reached: Snapshot,
    result: RestoreResult,
    stand: Mapping[int, View],
    *,
    has_changed: bool,
) -> str:
    """Record the checkpoint, the mark and the sessions' state in one transaction."""
    with project.journal.writing() as db:
        row = add(
            db, checkpoints.latest(project.journal), reached, kind="restored",
            message=_message(operation), session=operation.session,
        )  # fmt: skip
        content = result.as_json()
        names = ("restored", "deleted", "skipped", "dirty", "rescued")
        summary = {name: content[name] for name in names} | operation.intent.get("summary", {})
        has_effects = "round" in operation.intent or "leaf" in operation.intent
        changed = has_changed or has_effects or operation.undoes is not None
        operations.finish(
            db, operation.number, after=row.id, changed=changed, summary=summary,
            head=project.head() if stand else None,
        )  # fmt: skip
        for session, view in stand.items():
            views.insert(db, operation.number, session, view)
        _move_leaf(db, operation)
    return row.id


def skips(reasons: Mapping[bytes, str]) -> tuple[Skip, ...]:
    """Return skipped paths with their reasons, sorted."""
    return tuple(Skip(decode_path(path), reason) for path, reason in sorted(reasons.items()))


def is_obstructed(plan: RestorePlan, covered: Coverage) -> bool:
    """True if a path was skipped because its present content cannot be stored."""
    skipped = (plan.skipped or {}).items()
    return any(covered.reason_for(path) == reason for path, reason in skipped)


def named(project: OpenProject, result: RestoreResult) -> RestoreResult:
    """Add the kind and time of the operation that is undone or redone."""
    if result.undoes is None:
        return result
    root = root_of(project, result.undoes)
    return result._replace(undoes_kind=root.kind, undoes_at=root.created_at)


def root_of(project: OpenProject, number: int) -> OperationRow:
    """Follow undo and redo to the operation that is neither."""
    while True:
        found = operations.by_number(project.journal, number)
        assert found is not None
        if found.undoes is None:
            return found
        number = found.undoes


def _message(operation: OperationRow) -> str:
    if operation.undoes is not None:
        return f"{operation.kind.capitalize()} of operation {operation.undoes}"
    if operation.kind == "restore":
        return f"Restored to {operation.target}"
    return f"After {operation.kind}"


def _without_emptied(
    project: OpenProject, trees: Trees, root: bytes, done: Sequence[Change]
) -> bytes:
    """Remove excluded folders that were in the tree only for files that are gone now.

    The next scan does not list them either.
    """
    known = project.cache().root or Node()
    emptied: dict[bytes, None] = {}
    for change in done:
        for above in sorted(parents(change.path)) if change.after is None else ():
            node = known.find(above)
            entry = trees.find(root, above) if node is not None and node.partial else None
            if entry is not None and not entry.files:
                emptied[above] = None
                break
    return trees.edit(root, emptied)


def _standing_after(
    project: OpenProject, trees: Trees, operation: OperationRow, before: bytes, after: bytes
) -> dict[int, View]:
    """Return the sessions' views for the state that the operation reached."""
    known = views.live(project.journal)
    row = sessions.by_id(project.journal, operation.session) if operation.session else None
    owner = row.number if row is not None else None
    if owner is not None and owner not in known:
        # What this restores is the session's work, pending until it is approved.
        view = views.of_session(project.journal, owner) or View()
        known[owner] = view._replace(approved=before, written=before)
    stand = carried_on(trees, known, before, after, lambda path: owner, by_us=True)
    stand = brought_back(project, trees, stand, owner, before, after, operation.undoes)
    if operation.undoes is not None:
        stand = taken_back(project, trees, stand, operation.undoes, after)
    if owner is not None and "round" in operation.intent:
        view = stand.get(owner) or views.of_session(project.journal, owner) or View()
        stand[owner] = view._replace(round=operation.intent["round"])
    return stand


def _move_leaf(db: apsw.Connection, operation: OperationRow) -> None:
    """Move the session's leaf along with its files, if the operation says so."""
    if "leaf" in operation.intent:
        sessions.set_leaf(db, operation.session, operation.intent["leaf"])
