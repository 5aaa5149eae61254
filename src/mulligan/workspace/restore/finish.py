"""What an operation arrived at: the checkpoint of it, where the sessions stand then, and its mark.

The last step of every operation that moves files, whether it went through in one go or was
completed by a later process.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from mulligan.workspace.restore.plan import RestorePlan, listed, moved
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
    move: RestorePlan,
    applied: apply.Applied,
) -> RestoreResult:
    """Marks the operation with what it really arrived at, once that is there for good."""
    wrong = applied.wrong
    done = [change for change in applied.done if change.path not in wrong]
    spared = dict(move.skipped or {}) | applied.skipped | dict.fromkeys(wrong, CHANGED_CONCURRENTLY)
    new, kept = move.tree, move.guarded
    with Writer(project.store) as writer:
        trees = Trees(project, writer)
        if len(done) < len(move.changes):
            paths = {change.path for change in done}
            arrived = moved(
                trees,
                (safety.tree, safety.guarded),
                {each.path: each.after for each in move.main_changes if each.path in paths},
                {each.path: each.after for each in move.guarded_changes if each.path in paths},
            )
            new, kept = arrived.tree, arrived.guarded
        new = _without_emptied(project, trees, new, done)
        stand = _standing_after(project, trees, operation, safety.tree, new)
        writer.commit()
    covered = coverage(project, safety)
    arrived_at = Snapshot(
        new, kept, covered, *project.load(new).totals, safety.coverage, safety.max_file_size
    )
    skipped = tuple(Skip(decode_path(path), reason) for path, reason in sorted(spared.items()))
    result = RestoreResult(
        kind=operation.kind,
        operation=operation.number,
        safety_checkpoint=safety.id,
        new_checkpoint=None,
        target=operation.target,
        undoes=operation.undoes,
        restored=tuple(listed(done, deleted=False)),
        deleted=tuple(listed(done, deleted=True)),
        skipped=skipped,
        dirty=tuple(decode_path(path) for path in move.dirty),
        rescued=tuple(decode_path(path) for path in applied.rescued),
        verified=not (wrong or applied.failed or is_obstructed(move, covered)),
    )
    # While the disk was still busy with the files, all else was made ready: now they must be there.
    applied.wait_durable()
    with project.journal.writing() as db:
        latest = checkpoints.latest(project.journal)
        row = add(
            db, latest, arrived_at, kind="restored", message=_words(operation),
            session=operation.session,
        )  # fmt: skip
        content = result.as_json()
        names = ("restored", "deleted", "skipped", "dirty", "rescued")
        summary = {name: content[name] for name in names} | operation.intent.get("summary", {})
        means_more = "round" in operation.intent or "leaf" in operation.intent
        changed = bool(done) or operation.undoes is not None or means_more
        head = project.head() if stand else None
        operations.finish(
            db, operation.number, after=row.id, changed=changed, summary=summary, head=head
        )
        for session, view in stand.items():
            views.insert(db, operation.number, session, view)
        _stand_elsewhere(db, operation)
    project.save_cache()
    return named(project, result._replace(new_checkpoint=row.id))


def is_obstructed(move: RestorePlan, covered: Coverage) -> bool:
    """Whether a path was left alone because what lies there now could not be stored first."""
    spared = (move.skipped or {}).items()
    return any(covered.reason_for(path) == reason for path, reason in spared)


def named(project: OpenProject, result: RestoreResult) -> RestoreResult:
    """The result with what people call the thing that is taken back, or done again."""
    if result.undoes is None:
        return result
    root = root_of(project, result.undoes)
    return result._replace(undoes_kind=root.kind, undoes_at=root.created_at)


def root_of(project: OpenProject, number: int) -> OperationRow:
    """What an undo or a redo is about in the end: the operation that is neither."""
    while True:
        found = operations.by_number(project.journal, number)
        assert found is not None
        if found.undoes is None:
            return found
        number = found.undoes


def _words(operation: OperationRow) -> str:
    if operation.undoes is not None:
        return f"{operation.kind.capitalize()} of operation {operation.undoes}"
    if operation.kind == "restore":
        return f"Restored to {operation.target}"
    return f"After {operation.kind}"


def _without_emptied(
    project: OpenProject, trees: Trees, root: bytes, done: Sequence[Change]
) -> bytes:
    """Without folders out of scope that held what was asked for, and hold nothing of it any more:
    the next look does not name them either."""
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
    """The views once the disk is where the operation has brought it."""
    known = views.live(project.journal)
    row = sessions.by_id(project.journal, operation.session) if operation.session else None
    owner = row.number if row is not None else None
    if owner is not None and owner not in known:
        # Whatever this brings is the session's work, to be approved or not.
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


def _stand_elsewhere(db: apsw.Connection, operation: OperationRow) -> None:
    """Moves a session's leaf along with its files, as the operation means it."""
    if "leaf" in operation.intent:
        db.execute(
            "UPDATE sessions SET leaf = ? WHERE id = ?",
            (operation.intent["leaf"], operation.session),
        )
