"""Taking one session's work out of the disk, and leaving everybody else's in it, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mulligan.core import tree
from mulligan.core.merge import merge_edits
from mulligan.core.tree import Change, Entry
from mulligan.journal import checkpoints, operations, views
from mulligan.journal.operations import OperationRow
from mulligan.workspace.attribution.carrying import as_lines, same
from mulligan.workspace.attribution.observation import Observation
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.target import RestoreTarget, drop_blocked_paths
from mulligan.workspace.snapshot.trees import Trees
from mulligan.worktree.fs.leases import OPEN_FOR_WRITING

if TYPE_CHECKING:
    from mulligan.workspace.snapshot.snapshot import Snapshot

Id = bytes
THE_USERS = "you changed it since the last turn; --force overwrites it"
SOME_LINES = "some of its lines were changed since: those stay; --force overwrites them"
CHANGED_SINCE = "it was changed since; --force overwrites it"
BOUNDARIES = ("turn", "begin_turn", "new_session", "approve", "checkpoint")
"""What is on the disk at one of these is in a checkpoint that somebody meant to have."""
DELETED_SINCE = "it was deleted since; --force brings it back"
FORCE_WOULD = frozenset({THE_USERS, SOME_LINES, CHANGED_SINCE, DELETED_SINCE})
"""Reasons to leave a path alone that do not hold with `force`; so are those of open files."""


def would_be_forced(reason: str) -> bool:
    """True if a path that was left alone for this reason is not with `force`."""
    return reason in FORCE_WOULD or reason.startswith(OPEN_FOR_WRITING)


def revert_session_work(
    project: OpenProject,
    now: Observation,
    kind: str,
    operation: OperationRow,
    between: tuple[Id, Id],
    *,
    force: bool,
) -> RestoreTarget:
    """To have what led to the first tree as in the second, without what others did since.

    With `force` their work goes too; it is in the safety checkpoint.
    """
    wish = taken_out(project, now, between, force=force)
    intent = {}
    if "leaf" in operation.intent:
        # It moved the session along with the files: both return.
        intent = {"leaf": operation.intent["leaf_before"], "leaf_before": operation.intent["leaf"]}
    return wish._replace(
        kind=kind, target=operation.before, undoes=operation.number, session=operation.session,
        session_effects=intent,
    )  # fmt: skip


def taken_out(
    project: OpenProject, now: Observation, between: tuple[Id, Id], *, force: bool
) -> RestoreTarget:
    """To have what led to the first tree as in the second, but for what others did since."""
    main: dict[bytes, Entry | None] = {}
    spared: dict[bytes, str] = {}
    for change in now.trees.differences(*between):
        not_covered = now.seen.coverage.reason_for(change.path)
        if not_covered is not None:
            spared[change.path] = not_covered
            continue
        wanted, reason = revert_change(
            now.trees, change, now.trees.find(now.seen.tree, change.path)
        )
        main[change.path] = change.after if force else wanted
        if reason is not None and not force:
            spared[change.path] = reason
    return drop_blocked_paths(project, now.seen, RestoreTarget("undo", None, main, {}, spared))


def revert_change(
    trees: Trees, change: Change, present: Entry | None
) -> tuple[Entry | None, str | None]:
    """What should be at a path once a change is taken back, and why not all of it could be.

    The change leads from what somebody made of the path to what it was before.
    """
    _path, after, before = change
    if same(present, after) or same(present, before):
        return before, None
    if present is None:
        return None, DELETED_SINCE
    lines, made, old = (as_lines(each, trees) for each in (present, after, before))
    if before is None or after is None or lines is None or made is None or old is None:
        return present, CHANGED_SINCE
    folded = merge_edits(lines, made, old)
    mode = before.mode if present.mode == after.mode else present.mode
    entry = trees.with_content(present, folded.content)._replace(mode=mode)
    return entry, SOME_LINES if folded.unplaced else None


def without_the_users(project: OpenProject, seen: Snapshot, wish: RestoreTarget) -> RestoreTarget:
    """The wish, but for files that the user has changed since the last turn.

    Where nobody can tell the user's bytes from an agent's, it stays as it is.
    """
    if views.open_turns(project.journal):
        return wish
    # What they deleted is not there to be overwritten: to bring it back loses nothing.
    theirs = {
        path: THE_USERS
        for path in _changed_by_the_user(project, seen) & wish.main.keys()
        if tree.find(seen.tree, path, project.load) is not None
    }
    return drop_blocked_paths(project, seen, wish.without(theirs)) if theirs else wish


def _changed_by_the_user(project: OpenProject, seen: Snapshot) -> set[bytes]:
    """The files that nobody but the user has changed since an agent was last at work.

    Between two operations it is the user who works. What a restore writes is its own, whoever had
    it before, until it is undone; other operations leave the user's lines in a file as they are.
    """
    since = operations.since(project.journal, BOUNDARIES)
    if not since or since[0].session is None or since[0].kind == "checkpoint":
        return set()
    trees: list[tuple[Id | None, Id | None]] = [
        (_tree(project, each.before), _tree(project, each.after)) for each in since
    ]
    at = trees[0][1]
    found: set[bytes] = set()
    found_before: dict[int, set[bytes]] = {}
    for operation, (before, after) in zip(since[1:], trees[1:], strict=True):
        if operation.kind == "observed":
            found |= _files(project, at, after)
        else:
            found |= _files(project, at, before)
            found_before[operation.number] = found
            wrote = _files(project, before, after)
            if operation.kind in ("restore", "goto"):
                found = found - wrote
            elif operation.undoes in found_before:
                found = (found - wrote) | (found_before[operation.undoes] & wrote)
        at = after or at
    return found | _files(project, at, seen.tree)


def _files(project: OpenProject, before: Id | None, after: Id | None) -> set[bytes]:
    if before is None or after is None:
        return set()
    return {
        path
        for path, was, now in project.differences(before, after)
        if not any(each is not None and each.is_directory for each in (was, now))
    }


def _tree(project: OpenProject, checkpoint: str | None) -> Id | None:
    row = checkpoints.by_id(project.journal, checkpoint) if checkpoint else None
    return row.tree if row is not None else None
