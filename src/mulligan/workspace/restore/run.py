"""Restore, undo and redo: moving the disk from what it is to what it should be.

All three are one thing: a wish becomes a move, and a move is carried out in this order:

1. the contents of the disk and the planned trees are in the store (objects);
2. a safety checkpoint and the planned operation are in the journal (operation, planned);
3. what the store has of them is read back, then the files are changed, and read back (files);
4. the operation is marked, with a checkpoint of what it arrived at (operation, applied).

A kill before 3 leaves the old state; a kill after it is finished by the next who opens the
project (`recover`). Bytes that match neither side are somebody's, and stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

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
from mulligan.journal.operations import OperationRow
from mulligan.store.packs import Record
from mulligan.store.writer import Writer
from mulligan.workspace.attribution.observation import Observation, observed
from mulligan.workspace.attribution.turns import record_open_turns
from mulligan.workspace.import_previews import check_preview
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.emptied import with_emptied_folders
from mulligan.workspace.restore.finish import finish_operation, is_obstructed, named
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
from mulligan.workspace.results.files import RestoreResult, Skip
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
Planned = Callable[[apsw.Connection, Observation, RestorePlan], dict[str, Any]]


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

        def planned(db: apsw.Connection, now: Observation, move: RestorePlan) -> dict[str, Any]:
            if owner is not None:
                leaf = sessions.resolve(project.journal, owner.id).leaf_id
                append_unrevert_point(db, owner.number, now.seen.tree, move, leaf)
            return {}

        return perform(
            project,
            lambda now: to_checkpoint(project, now.seen, target, paths),
            keep_dirty=keep_dirty,
            force=force,
            replace_open=force,
            preview=preview,
            planned=planned,
        )


def perform(
    project: OpenProject,
    wishing: Callable[[Observation], RestoreTarget],
    *,
    keep_dirty: bool = False,
    force: bool = True,
    replace_open: bool = False,
    preview: bool = False,
    always: Callable[[RestorePlan], bool] | None = None,
    planned: Planned | None = None,
    mended: bool = False,
) -> RestoreResult:
    """Makes a wish come true. The caller holds the lock.

    Without `force`, files that the user changed since the last turn are left alone; without
    `replace_open`, files that a program has open for writing. `always` says whether it counts as
    done even if no file has to change. `planned` writes what belongs to the plan, in its
    transaction, and gives what more the operation means for the session.
    """
    with Writer(project.store) as writer:
        now = observed(project, writer, take_snapshot(project, writer))
        # What the disk holds is stored for good before anything is decided about it.
        now.commit()
        wish = wishing(now)
        hidden = out_of_view(project, now.seen, wish)
        if hidden:
            # Left out by today's rules: what they hold must be in the store first.
            seen = with_large_files(project, writer, take_snapshot(project, writer, hidden), hidden)
            now = observed(project, writer, seen)
            now.commit()
            wish = wishing(now)
        if not force:
            wish = without_the_users(project, now.seen, wish)
        wish = with_emptied_folders(project, wish)
        move = plan_restore(project, now.trees, now.seen, wish, keep_dirty=keep_dirty)
        in_use = {} if replace_open else _in_use(project, move.changes)
        if in_use:
            # Before the plan is written down: what recovery finds there, it carries out.
            wish = drop_blocked_paths(project, now.seen, wish.without(in_use))
            move = plan_restore(project, now.trees, now.seen, wish, keep_dirty=keep_dirty)
        changes = move.changes
        # An undo counts as done even if somebody has put everything back already.
        counts = always(move) if always else wish.undoes and not _refused(wish, move)
        if preview or not (changes or counts):
            project.save_cache()
            done = _not_done(wish, move, now.seen.coverage, preview=preview)
            return named(project, done._replace(root=project.root if preview else None))
        now.commit()
        with project.journal.writing() as db:
            safety = now.safety(db, f"Before {wish.kind} to {wish.target or 'an earlier state'}")
            now.note(db, safety)
            intent = dict(wish.session_effects) | (planned(db, now, move) if planned else {})
            number = operations.plan(
                db,
                kind=wish.kind,
                created_at=stamp_after(safety.created_at, now_ns()),
                before=safety.id,
                plan_tree=move.tree,
                plan_guarded=move.guarded,
                target=wish.target,
                undoes=wish.undoes,
                session=wish.session,
                intent=intent,
            )
    contents = {each.id for change in changes for each in change[1:] if each}
    roots = (*now.seen[:2], move.tree, move.guarded)
    records = project.store.prefetch(contents)
    operation = operations.by_number(project.journal, number)
    assert operation is not None

    def given_up(problem: BaseException) -> None:
        # If even that cannot be written down, the next who opens the project finds nothing begun.
        with suppress(MulliganError), project.journal.writing() as db:
            operations.abandon(db, number, str(problem) or NOTHING_YET)

    with DeferredUnlink() as freeing:
        try:
            applied = apply.apply(
                project.location.root,
                staging_tag(operation),
                changes,
                project.store.stream,
                lambda done, total: project.progress("restoring", done, total),
                freeing,
                check=lambda: _read_back(project, changes, roots, records),
                on_abandon=given_up,
                replace_open=replace_open,
            )
        except _Damaged as problem:
            if mended:
                raise Corrupt(NOT_SAFE) from problem
            # The disk has the only good copies: the look that now follows stores them anew.
            return perform(
                project, wishing, keep_dirty=keep_dirty, force=force, replace_open=replace_open,
                preview=preview, always=always, planned=planned, mended=True,
            )  # fmt: skip
        try:
            return finish_operation(project, operation, safety=safety, move=move, applied=applied)
        except OutOfSpace as problem:
            raise OutOfSpace(
                "The files are changed, and no space is left to write that down, in "
                f"{project.location.directory}. Free some space; the next command then does."
            ) from problem
        except OSError as problem:
            raise MulliganError(
                f"The files are changed, but the disk did not take all of it ({problem}). This is "
                "not called done: the next command goes over it again."
            ) from problem
        finally:
            applied.wait_durable()


def check_options(*, keep_dirty: bool, force: bool) -> None:
    if force and keep_dirty:
        raise UsageError("keep_dirty and force are mutually exclusive; nothing was changed.")


def staging_tag(operation: OperationRow) -> str:
    """What the folder is named after in which its new contents wait: nobody else's operation, be it
    one that has the same number in another home, may take it for its own."""
    return f"{operation.number}-{operation.before}"


def _in_use(project: OpenProject, changes: Sequence[Change]) -> dict[bytes, str]:
    """The files to be replaced or deleted that are open for writing, with the reason to skip."""
    files = [
        each.path
        for each in changes
        if loses_content(each) and each.before and each.before.kind == FILE
    ]
    return open_for_writing(project.location.root, files)


def loses_content(change: Change) -> bool:
    """Whether bytes that are on the disk will not be there any more."""
    before = change.before
    if before is None or before.is_directory:
        return False
    return not before.same_content(change.after)


class _Damaged(Exception):
    """What was about to go cannot be had back from the store."""


def _trees_about(project: OpenProject, changes: list[Change], roots: Sequence[bytes]) -> set[bytes]:
    """The trees that say what was where, and what will be."""
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
    """Raises if what is about to go cannot be had back from the store, and strikes that out.

    So for the trees, under these roots, that say what was where and what will be; those that are
    still in memory are stored anew.
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


def _refused(wish: RestoreTarget, move: RestorePlan) -> bool:
    """Whether all that an undo is about was left to others, so that `force` can still have it."""
    spared = (move.skipped or {}).values()
    return not wish.session_effects and any(would_be_forced(reason) for reason in spared)


def _not_done(
    wish: RestoreTarget, move: RestorePlan, covered: Coverage, *, preview: bool
) -> RestoreResult:
    spared = sorted((move.skipped or {}).items())
    return RestoreResult(
        kind=wish.kind,
        operation=None,
        safety_checkpoint=None,
        new_checkpoint=None,
        target=wish.target,
        undoes=wish.undoes,
        restored=tuple(listed(move.changes, deleted=False)),
        deleted=tuple(listed(move.changes, deleted=True)),
        skipped=tuple(Skip(decode_path(path), reason) for path, reason in spared),
        dirty=tuple(decode_path(path) for path in move.dirty),
        verified=preview or not is_obstructed(move, covered),
        preview=preview,
    )
