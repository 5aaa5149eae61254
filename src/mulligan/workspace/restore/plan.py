"""Plan a restore: the resulting trees, and the changes that lead to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mulligan.core import tree
from mulligan.core.coverage import decode_path
from mulligan.core.tree import Change, Entry
from mulligan.journal import checkpoints
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.target import RestoreTarget, Wanted, drop_blocked_paths
from mulligan.workspace.snapshot.snapshot import Snapshot
from mulligan.workspace.snapshot.trees import Trees
from mulligan.worktree.scan.overrides import directories_above

Id = bytes


class RestorePlan(NamedTuple):
    """The resulting trees, the changes to reach them, and what is skipped."""

    tree: Id
    guarded: Id
    main_changes: tuple[Change, ...]
    guarded_changes: tuple[Change, ...]
    dirty: tuple[bytes, ...] = ()
    skipped: Mapping[bytes, str] | None = None

    @property
    def changes(self) -> list[Change]:
        """All changes, a folder before its content.

        A file that becomes ignored, or ceases to be, changes in both trees: on the disk that is
        one change.
        """
        found = {change.path: change for change in self.main_changes}
        for path, before, after in self.guarded_changes:
            main = found.get(path, Change(path, None, None))
            found[path] = Change(path, main.before or before, main.after or after)
        return sorted(found.values(), key=lambda change: change.path.split(b"/"))


def plan_restore(
    project: OpenProject, trees: Trees, seen: Snapshot, target: RestoreTarget, *, keep_dirty: bool
) -> RestorePlan:
    """Plan the changes from the scanned disk to a target; the caller commits the new trees."""
    before = (seen.tree, seen.guarded)
    if target.exact_tree is None:
        plan = plan_edits(trees, before, target.main, target.guarded)
    else:
        goal, changes = target.exact_tree
        plan = plan_edits(trees, before, {}, target.guarded)._replace(
            tree=goal, main_changes=changes
        )
    dirty = find_dirty(project, before, plan.changes, deliberate_only=keep_dirty)
    if keep_dirty and dirty:
        reason = "it is in no checkpoint yet, and was to be kept"
        target = drop_blocked_paths(project, seen, target.without(dict.fromkeys(dirty, reason)))
        plan = plan_edits(trees, before, target.main, target.guarded)
    return RestorePlan(
        plan.tree,
        plan.guarded,
        plan.main_changes,
        plan.guarded_changes,
        tuple(dirty),
        target.skipped,
    )


def plan_between(project: OpenProject, before: tuple[Id, Id], after: tuple[Id, Id]) -> RestorePlan:
    """Plan the changes between two states, as recovery finds them in the journal."""
    main = project.differences(before[0], after[0])
    guarded = project.differences(before[1], after[1])
    return RestorePlan(*after, tuple(main), _files(guarded))


def plan_edits(trees: Trees, before: tuple[Id, Id], main: Wanted, guarded: Wanted) -> RestorePlan:
    """Plan setting these paths, and no others."""
    new, kept = trees.edit(before[0], main), trees.edit(before[1], guarded)
    return RestorePlan(
        new,
        kept,
        tuple(trees.differences(before[0], new)),
        _files(trees.differences(before[1], kept)),
    )


def find_dirty(
    project: OpenProject, before: tuple[Id, Id], changes: Iterable[Change], *, deliberate_only: bool
) -> list[bytes]:
    """Return paths about to lose content that no checkpoint has at that path.

    With `deliberate_only`, safety checkpoints do not count: a file that was kept for being dirty
    must not be lost to the next restore for being in one of them.
    """
    wanted = {
        change.path: change.before
        for change in changes
        if change.before is not None
        and not change.before.is_directory
        and not change.before.same_content(change.after)
    }
    visited: set[tuple[bytes, bytes]] = set()
    for row in checkpoints.each_newest_first(project.journal) if wanted else ():
        if deliberate_only and row.kind in checkpoints.MADE_BY_RESTORE:
            continue
        if not visited:
            # Mostly little has changed since the latest: only that can be missing in it.
            since = {
                change.path
                for old, new in zip((row.tree, row.guarded), before, strict=True)
                for change in project.differences(old, new)
            }
            wanted = {path: entry for path, entry in wanted.items() if path in since}
        below = directories_above(wanted)
        for root in (row.tree, row.guarded):
            _strike_out(project, root, b"", wanted, below, visited)
        if not wanted:
            break
    return sorted(wanted)


def listed(changes: Iterable[Change], *, deleted: bool) -> list[str]:
    """List paths for a report: files, and empty folders with a slash."""
    found = []
    for path, before, after in changes:
        entry, other = (before, after) if deleted else (after, before)
        if entry is None or entry == other:
            continue
        if deleted and other is not None and other.is_directory == entry.is_directory:
            continue
        if not entry.is_directory:
            found.append(decode_path(path))
        elif entry.id == tree.EMPTY_ID or (other is not None and other.is_directory):
            found.append(decode_path(path) + "/")
    return found


def _strike_out(
    project: OpenProject,
    id: bytes,
    directory: bytes,
    wanted: dict[bytes, Entry],
    below: Mapping[bytes, frozenset[bytes]],
    visited: set[tuple[bytes, bytes]],
) -> None:
    """Remove from `wanted` what this tree holds; visit each version of a folder once."""
    if (directory, id) in visited:
        return
    visited.add((directory, id))
    for name in below.get(directory, ()):
        path = tree.join(directory, name)
        if path not in wanted and path not in below:
            continue
        entry = project.load(id).get(name)
        if entry is None:
            continue
        if entry.is_directory:
            _strike_out(project, entry.id, path, wanted, below, visited)
        elif path in wanted and wanted[path].same_content(entry):
            del wanted[path]


def _files(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Drop folders: those of guarded files belong to the project's own tree."""
    return tuple(
        change
        for change in changes
        if not any(each is not None and each.is_directory for each in (change.before, change.after))
    )
