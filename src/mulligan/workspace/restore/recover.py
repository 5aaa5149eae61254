"""Finishing what a killed process left half done, before anything else happens.

An operation that is planned, while nobody holds the project's lock, was interrupted. If none of
its paths has arrived yet, it is abandoned: the disk is as it was. Otherwise it is finished. Paths
that match neither side are the user's: they stay as they are, and what was there before is in the
operation's safety checkpoint. One whose trees are damaged in the store is abandoned, too: nobody
can tell any more what it was about, and everything else must go on.
"""

from __future__ import annotations

import os

from mulligan.core.tree import LINK, Change, Entry
from mulligan.errors import Corrupt, MulliganError
from mulligan.journal import checkpoints, operations
from mulligan.journal.operations import OperationRow
from mulligan.store.writer import Writer
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.finish import finish_operation
from mulligan.workspace.restore.plan import plan_between
from mulligan.workspace.restore.run import NOT_SAFE, NOTHING_YET, loses_content, staging_tag
from mulligan.workspace.results.files import Operation
from mulligan.workspace.snapshot.checkpoints import operation
from mulligan.worktree.fs.safe_paths import (
    Directories,
    content_matches,
    content_matches_or_false,
    could_match,
    status_of,
)
from mulligan.worktree.restore import apply, staging_recovery
from mulligan.worktree.scan.read_path import entry_at

UNREADABLE = "what it was about cannot be read any more"


def if_needed(project: OpenProject) -> tuple[Operation, ...]:
    """On opening: finishes what was interrupted; leaves alone what another is working on.

    What cannot be finished now keeps nobody from reading: the first verb that would change
    something says why.
    """
    if not operations.unfinished(project.journal):
        return ()
    try:
        with project.locked(wait=0, recovering=True):
            return unfinished(project)
    except MulliganError:
        return ()


def unfinished(project: OpenProject) -> tuple[Operation, ...]:
    """Finishes or abandons every planned operation. The caller holds the lock."""
    ended = []
    for row in operations.unfinished(project.journal):
        try:
            _end(project, row)
        except OSError as problem:
            raise MulliganError(
                f"A {row.kind} was interrupted, and cannot be finished: {problem}. See to that and "
                "try again; until then, what is stored can be read, and nothing is changed."
            ) from problem
        now = operations.by_number(project.journal, row.number)
        if now is not None:
            ended.append(operation(now))
    return tuple(ended)


def _end(project: OpenProject, row: OperationRow) -> None:
    safety = checkpoints.by_id(project.journal, row.before) if row.before else None
    if safety is None or row.plan_tree is None or row.plan_guarded is None:
        _abandon(project, row, "what it was about is not in the journal any more")
        return
    before = (safety.tree, safety.guarded)
    try:
        plan = plan_between(project, before, (row.plan_tree, row.plan_guarded))
    except Corrupt as problem:
        # Nothing can be done about it, and nothing else must be kept waiting for it.
        _abandon(project, row, f"{UNREADABLE}: {problem}")
        return
    root, tag, changes = project.location.root, staging_tag(row), plan.changes
    rescued = staging_recovery.rescue(root, tag, changes, project.store.stream)
    if not rescued and not _has_begun(root, changes):
        _abandon(project, row, NOTHING_YET)
        return
    _keep_safe(project, changes)
    applied = apply.apply(root, tag, changes, project.store.stream)
    applied.rescued += rescued
    try:
        finish_operation(project, row, safety=safety, plan=plan, applied=applied)
    finally:
        applied.wait_durable()


def _keep_safe(project: OpenProject, changes: list[Change]) -> None:
    """Has what is still to go readable in the store, from the disk if need be.

    Whoever was interrupted may not have got as far as reading it back.
    """
    root, store = project.location.root, project.store
    store.clear_cache()
    damaged = {
        change: found
        for change in changes
        if change.before is not None
        and loses_content(change)
        and (found := store.damaged(change.before.id))
    }
    if not damaged:
        return
    with Directories(root) as directories:
        here = [change for change in damaged if _is_there(directories, change)]
    store.index.drop({id for change in here for id in damaged[change]})
    with Writer(store) as writer:
        for change in here:
            entry_at(root, change.path, writer)
        writer.commit()
    store.clear_cache()
    for change in here:
        if change.before is not None and store.damaged(change.before.id):
            raise Corrupt(NOT_SAFE)


def _abandon(project: OpenProject, row: OperationRow, reason: str) -> None:
    with project.journal.writing() as db:
        operations.abandon(db, row.number, reason)


def _has_begun(root: bytes, changes: list[Change]) -> bool:
    """Whether any path has arrived at what it should be, or is on the way there: gone. One that is
    neither as before nor as it should be was changed by somebody else since."""
    with Directories(root) as directories:
        for path, before, after in changes:
            directory, _slash, name = path.rpartition(b"/")
            parent = directories.open_if_there(directory)
            status = status_of(parent, name) if parent is not None else None
            if status is None or parent is None:
                if before is not None:
                    return True
            elif after is not None and _is_as(parent, name, after, status):
                return True
    return False


def _is_there(directories: Directories, change: Change) -> bool:
    directory, _slash, name = change.path.rpartition(b"/")
    parent = directories.open_if_there(directory)
    before = change.before
    return parent is not None and before is not None and content_matches(parent, name, before)


def _is_as(parent: int, name: bytes, entry: Entry, status: os.stat_result) -> bool:
    if not could_match(status, entry) or not content_matches_or_false(parent, name, entry):
        return False
    return entry.kind == LINK or status.st_mode & 0o7777 == entry.mode
