"""Restore, undo and redo: moving the disk from what it is to what it should be.

All three are one thing: a wish becomes a move, and a move is carried out in this order:

1. the contents of the disk and the planned trees are in the store (objects);
2. a safety checkpoint and the planned operation are in the journal (operation, planned);
3. the files are changed, and read back (files);
4. the operation is marked, with a checkpoint of what it arrived at (operation, applied).

A kill before 3 leaves the old state; a kill after it is finished by the next who opens the
project (`recover`). Bytes that match neither side are somebody's, and stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mulligan.core.coverage import text
from mulligan.core.times import just_after
from mulligan.core.tree import Change
from mulligan.core.view import next_redo, next_undo
from mulligan.errors import Corrupt, MulliganError, NotFound, NothingToUndo
from mulligan.files import apply
from mulligan.files.freeing import Freeing
from mulligan.journal import checkpoints, operations
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.store.writer import Writer
from mulligan.workspace.checkpoints import add, coverage
from mulligan.workspace.look import Look, look
from mulligan.workspace.move import Editor, Move, listed, prepare
from mulligan.workspace.results import RestorePlan, RestoreResult, Skip
from mulligan.workspace.wish import Wish, out_of_view, to_checkpoint, to_take_back

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace


def plan(
    workspace: Workspace, name: str, paths: tuple[bytes, ...], *, keep_dirty: bool
) -> RestorePlan:
    done = restore(workspace, name, paths, keep_dirty=keep_dirty, preview=True)
    return RestorePlan(done.target, done.restored, done.deleted, done.skipped, done.dirty)


def restore(
    workspace: Workspace,
    name: str,
    paths: tuple[bytes, ...],
    *,
    keep_dirty: bool,
    preview: bool = False,
) -> RestoreResult:
    with workspace.locked():
        target = checkpoints.resolve(workspace.journal, name)
        return _perform(
            workspace,
            lambda seen: to_checkpoint(workspace, seen, target, paths),
            keep_dirty=keep_dirty,
            preview=preview,
        )


def undo(workspace: Workspace, *, keep_dirty: bool, preview: bool = False) -> RestoreResult:
    with workspace.locked():
        step = next_undo(lambda up_to: operations.newest_change(workspace.journal, up_to))
        if step is None:
            raise NothingToUndo("There is nothing (more) to undo.")
        return _take_back(workspace, "undo", step.number, keep_dirty=keep_dirty, preview=preview)


def redo(workspace: Workspace, *, keep_dirty: bool, preview: bool = False) -> RestoreResult:
    with workspace.locked():
        step = next_redo(lambda up_to: operations.newest_change(workspace.journal, up_to))
        if step is None:
            raise NothingToUndo("There is nothing to redo: the last change was not an undo.")
        return _take_back(workspace, "redo", step.number, keep_dirty=keep_dirty, preview=preview)


def complete(
    workspace: Workspace,
    number: int,
    *,
    kind: str,
    target: str | None,
    undoes: int | None,
    safety: CheckpointRow,
    move: Move,
    applied: apply.Applied,
) -> RestoreResult:
    """Reads everything back, and marks the operation with what it really arrived at."""
    wrong = apply.verify(workspace.project.root, applied.done)
    done = [change for change in applied.done if change.path not in wrong]
    spared = dict(move.spared or {}) | applied.skipped | dict.fromkeys(wrong, apply.MEANWHILE)
    new, kept = move.tree, move.guarded
    if len(done) < len(move.changes):
        paths = {change.path for change in done}
        with Writer(workspace.store) as writer:
            arrived = Editor(workspace, writer).move(
                (safety.tree, safety.guarded),
                {each.path: each.after for each in move.main_changes if each.path in paths},
                {each.path: each.after for each in move.guarded_changes if each.path in paths},
            )
            writer.commit()
        new, kept = arrived.tree, arrived.guarded
    arrived_at = Look(new, kept, coverage(workspace, safety), *workspace.load(new).totals)
    skipped = tuple(Skip(text(path), reason) for path, reason in sorted(spared.items()))
    result = RestoreResult(
        kind=kind,
        operation=number,
        safety_checkpoint=safety.id,
        new_checkpoint=None,
        target=target,
        undoes=undoes,
        restored=tuple(listed(done, deleted=False)),
        deleted=tuple(listed(done, deleted=True)),
        skipped=skipped,
        dirty=tuple(text(path) for path in move.dirty),
        rescued=tuple(text(path) for path in applied.rescued),
        verified=not wrong,
    )
    message = f"Restored to {target}" if undoes is None else f"{kind} of operation {undoes}"
    with workspace.journal.writing() as db:
        latest = checkpoints.latest(workspace.journal)
        row = add(
            db, latest, arrived_at, safety.coverage, kind="restored", message=message.capitalize()
        )
        content = result.as_json()
        names = ("restored", "deleted", "skipped", "dirty", "rescued")
        summary = {name: content[name] for name in names}
        changed = bool(done) or undoes is not None
        operations.finish(db, number, after=row.id, changed=changed, summary=summary)
    workspace.save_cache()
    return result._replace(new_checkpoint=row.id)


def _take_back(
    workspace: Workspace, kind: str, number: int, *, keep_dirty: bool, preview: bool
) -> RestoreResult:
    """Moves the paths that an operation changed back to what they were before it."""
    operation = operations.by_number(workspace.journal, number)
    before = after = None
    if operation is not None and operation.before and operation.after:
        before = checkpoints.by_id(workspace.journal, operation.before)
        after = checkpoints.by_id(workspace.journal, operation.after)
    if before is None or after is None:
        raise NotFound(f"Operation {number} cannot be taken back: its checkpoints were forgotten.")
    return _perform(
        workspace,
        lambda seen: to_take_back(workspace, seen, kind, number, before, after),
        keep_dirty=keep_dirty,
        preview=preview,
    )


def _perform(
    workspace: Workspace,
    wishing: Callable[[Look], Wish],
    *,
    keep_dirty: bool,
    preview: bool,
    mended: bool = False,
) -> RestoreResult:
    with Writer(workspace.store) as writer:
        seen = look(workspace, writer)
        covered = writer.put(seen.coverage.encode())
        # What the disk holds is stored for good before anything is decided about it.
        writer.commit()
        wish = wishing(seen)
        hidden = out_of_view(workspace, seen, wish)
        if hidden:
            # Ignored now, and to be overwritten: what they hold must be in the store first.
            seen = look(workspace, writer, hidden)
            covered = writer.put(seen.coverage.encode())
            writer.commit()
            wish = wishing(seen)
        move = prepare(workspace, writer, seen, wish, keep_dirty=keep_dirty)
        changes = move.changes
        # An undo counts as done even if somebody has put everything back already.
        if preview or not (changes or wish.undoes):
            workspace.save_cache()
            return _not_done(wish, move, preview=preview)
        writer.commit()
    if _mend(workspace, changes):
        if mended:
            raise Corrupt(
                "What is on the disk cannot be kept safe: the store gives back something else than "
                "was put in. Nothing was changed; the disk under the store may be failing."
            )
        return _perform(workspace, wishing, keep_dirty=keep_dirty, preview=preview, mended=True)
    latest = checkpoints.latest(workspace.journal)
    with workspace.journal.writing() as db:
        safety = latest
        if safety is None or (safety.tree, safety.guarded) != (seen.tree, seen.guarded):
            message = f"Before {wish.kind} to {wish.target.id}"
            safety = add(db, latest, seen, covered, kind="safety", message=message)
        number = operations.plan(
            db,
            kind=wish.kind,
            created_at=just_after(safety.created_at, time.time_ns()),
            before=safety.id,
            plan_tree=move.tree,
            plan_guarded=move.guarded,
            target=wish.target.id,
            undoes=wish.undoes,
        )
    with Freeing() as freeing:
        try:
            applied = apply.apply(
                workspace.project.root,
                str(number),
                changes,
                workspace.store.stream,
                lambda done, total: workspace.progress("restoring", done, total),
                freeing,
            )
        except MulliganError as problem:
            with workspace.journal.writing() as db:
                operations.abandon(db, number, str(problem))
            raise
        return complete(
            workspace,
            number,
            kind=wish.kind,
            target=wish.target.id,
            undoes=wish.undoes,
            safety=safety,
            move=move,
            applied=applied,
        )


def _mend(workspace: Workspace, changes: list[Change]) -> bool:
    """Whether a stored copy of what is about to go turned out damaged, and was struck out.

    Then the disk has the only good copy, and a further look stores it anew.
    """
    workspace.store.forget_kept()
    damaged = [
        id
        for change in changes
        if change.before is not None
        and not change.before.is_directory
        and not change.before.same_content(change.after)
        for id in workspace.store.damaged(change.before.id)
    ]
    if damaged:
        workspace.store.index.drop(damaged)
    return bool(damaged)


def _not_done(wish: Wish, move: Move, *, preview: bool) -> RestoreResult:
    spared = sorted((move.spared or {}).items())
    return RestoreResult(
        kind=wish.kind,
        operation=None,
        safety_checkpoint=None,
        new_checkpoint=None,
        target=wish.target.id,
        undoes=wish.undoes,
        restored=tuple(listed(move.changes, deleted=False)),
        deleted=tuple(listed(move.changes, deleted=True)),
        skipped=tuple(Skip(text(path), reason) for path, reason in spared),
        dirty=tuple(text(path) for path in move.dirty),
        preview=preview,
    )
