"""The target of a restore, an undo or a redo: which paths should hold what.

A target leaves all other paths alone. It lists paths that it skips, each with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mulligan.core import tree
from mulligan.core.coverage import decode_path
from mulligan.core.tree import Change, Entry
from mulligan.errors import NotFound
from mulligan.journal import checkpoints
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.past_scope import ScopeAtCheckpoint
from mulligan.workspace.snapshot.diff import is_held, is_partial, within
from mulligan.workspace.snapshot.snapshot import Snapshot
from mulligan.worktree.fs.safe_paths import Directories, is_file

Wanted = Mapping[bytes, Entry | None]
Find = Callable[[bytes], Entry | None]


class HunkDecision(NamedTuple):
    """The pending hunks that a target undoes or leaves, and the file of each."""

    undone: tuple[str, ...]
    conflicts: tuple[str, ...]
    path_of: Mapping[str, str]


class RestoreTarget(NamedTuple):
    """What `main` (the project's tree) and `guarded` (ignored files) should hold.

    `session` is the session that restores, `None` for the user; `session_effects` is what the
    operation means for it: a new round, another leaf, a summary.
    """

    kind: str
    target: str | None
    main: Wanted
    guarded: Wanted
    skipped: Mapping[bytes, str]
    undoes: int | None = None
    session: str | None = None
    session_effects: Mapping[str, Any] = MappingProxyType({})
    hunks: HunkDecision | None = None
    exact_tree: tuple[bytes, tuple[Change, ...]] | None = None
    """The resulting tree and the changes to it, if `main` is all that differs."""

    def without(self, spared: Mapping[bytes, str]) -> RestoreTarget:
        """Skip some paths, each for a reason."""
        return self._replace(
            exact_tree=None,
            main={path: entry for path, entry in self.main.items() if path not in spared},
            guarded={path: entry for path, entry in self.guarded.items() if path not in spared},
            skipped=dict(self.skipped) | dict(spared),
        )


def to_checkpoint(
    project: OpenProject, seen: Snapshot, row: CheckpointRow, paths: tuple[bytes, ...]
) -> RestoreTarget:
    """Target the project, or some paths of it, as in a checkpoint.

    Guarded files come back where they are missing or named. A partial checkpoint speaks only of
    the files that it holds.
    """
    return _CheckpointTarget(project, seen, row, paths).build()


class _CheckpointTarget:
    """Builds the target of a restore, one kind of file after the other."""

    def __init__(
        self, project: OpenProject, seen: Snapshot, row: CheckpointRow, paths: tuple[bytes, ...]
    ) -> None:
        self.project, self.seen, self.row, self.paths = project, seen, row, paths
        self.scope = ScopeAtCheckpoint(project, row, seen)
        self.partial = is_partial(project, row)
        self.in_tree, self.in_guarded = _finders(project, seen)
        self.main: dict[bytes, Entry | None] = {}
        self.guarded: dict[bytes, Entry | None] = {}
        self.skipped: dict[bytes, str] = {}
        self.is_exact = False  # True while `main` is all that differs from the checkpoint's tree

    def build(self) -> RestoreTarget:
        differences = self.project.differences(self.seen.tree, self.row.tree)
        self.project.finder(self.seen.tree).learn((path, was) for path, was, _now in differences)
        for change in differences:
            self._add_difference(change)
        afters = [change.after for change in differences]
        self.is_exact = not self.partial and [*self.main.values()] == afters
        self._add_guarded()
        if not self.partial:
            self._add_seen_later()
        self._add_named()
        target = RestoreTarget(
            "restore", self.row.id, self.main, self.guarded, self.skipped,
            session=self.row.session,
            exact_tree=(self.row.tree, tuple(differences)) if self.is_exact else None,
        )  # fmt: skip
        return drop_blocked_paths(self.project, self.seen, target)

    def _add_difference(self, change: Change) -> None:
        """Add one path that differs, unless the request or the rules exclude it."""
        path, before, after = change
        is_named_removal = bool(self.paths) and after is None
        if self.partial and not is_held(after, before) and not is_named_removal:
            return
        if self.paths and not _concerns(change, self.paths):
            return
        reason = None
        if after is None:
            is_directory = before is not None and before.is_directory
            reason = self.scope.reason_to_keep(path, is_directory)
            after = self.scope.out_of_scope(path) if reason is None else None
            if after is not None and _is_same(before, after):
                return
        elif not after.is_directory:
            reason = self.seen.coverage.reason_for(path)
        if reason is None:
            self.main[path] = after
        elif before is None or not before.is_directory:
            self.skipped[path] = reason

    def _add_guarded(self) -> None:
        """Add guarded files of the checkpoint that are missing now, or named."""
        for path, entry in tree.walk(self.row.guarded, self.project.load):
            if entry.is_directory or path in self.main or self.in_tree(path) is not None:
                continue
            if not self._is_wanted(path):
                continue
            if path not in self.paths and self.in_guarded(path) is not None:
                continue
            if self.scope.is_asked_for_now(path):
                self._add(path, entry)
            else:
                self.guarded[path] = entry

    def _add_seen_later(self) -> None:
        """Add files that came into scope after the checkpoint, and have gone since."""
        for path, entry in self.scope.first_views():
            if (
                self.in_tree(path) is None
                and path not in self.main
                and path not in self.guarded
                and self._is_wanted(path)
                and self.scope.out_of_scope(path) == entry
            ):
                self._add(path, entry)

    def _add_named(self) -> None:
        """Check the named paths; add those that were guarded then and are tracked now."""
        for path in self.paths:
            if path not in self.main:
                _check_named(self.project, self.seen, self.row, path)
            kept = self.scope.guarded(path) if path else None
            if kept is not None and not kept.is_directory and self.in_tree(path) is not None:
                self._add(path, kept)
                self.skipped.pop(path, None)

    def _add(self, path: bytes, entry: Entry) -> None:
        self.main[path], self.is_exact = entry, False

    def _is_wanted(self, path: bytes) -> bool:
        return not self.paths or any(within(path, each) for each in self.paths)


def revert_operation(
    project: OpenProject,
    seen: Snapshot,
    kind: str,
    number: int,
    before: CheckpointRow,
    after: CheckpointRow,
) -> RestoreTarget:
    """Target what an operation changed as it was before; later changes elsewhere stay.

    Guarded files that it overwrote come back; none is removed.
    """
    main: dict[bytes, Entry | None] = {}
    skipped: dict[bytes, str] = {}
    differences = project.differences(after.tree, before.tree)
    for change in differences:
        reason = seen.coverage.reason_for(change.path)
        if reason is None:
            main[change.path] = change.after
        else:
            skipped[change.path] = reason
    guarded: dict[bytes, Entry | None] = {
        change.path: change.after
        for change in project.differences(after.guarded, before.guarded)
        if change.after is not None and not change.after.is_directory
    }
    whole = seen.tree == after.tree and not skipped
    target = RestoreTarget(
        kind, before.id, main, guarded, skipped, undoes=number,
        exact_tree=(before.tree, tuple(differences)) if whole else None,
    )  # fmt: skip
    return drop_blocked_paths(project, seen, target)


def out_of_view(project: OpenProject, seen: Snapshot, target: RestoreTarget) -> list[bytes]:
    """Return files on the disk that the target names and the scan excluded.

    What a checkpoint covered stays in scope for a restore, whatever today's rules exclude.
    """
    in_tree, in_guarded = _finders(project, seen)
    had_larger = checkpoints.largest_size_limit(project.journal) > seen.max_file_size
    with Directories(project.location.root) as disk:
        return [
            path
            for path in dict.fromkeys((*target.main, *target.skipped))
            if in_tree(path) is None
            and (in_guarded(path) is None or target.main.get(path) is None)
            and (had_larger or seen.coverage.reason_for(path) is None)
            and is_file(disk, path)
        ]


def drop_blocked_paths(
    project: OpenProject, seen: Snapshot, target: RestoreTarget
) -> RestoreTarget:
    """Skip paths that could only be restored at the cost of files that stay.

    A file cannot replace a folder that keeps files, and nothing can be put below a file that
    stays. A guarded file that the target tracks leaves the guarded files.
    """
    in_tree, in_guarded = _finders(project, seen)
    leaving = {
        path: None
        for path, entry in target.main.items()
        if entry is not None and in_guarded(path) is not None
    }
    target = target._replace(guarded=dict(target.guarded) | leaving)
    in_the_way: dict[bytes, str] = {}
    for path, entry in target.main.items():
        if entry is None:
            continue
        present = in_tree(path)
        if present is not None and present.is_directory and not entry.is_directory:
            below = tree.walk(present.id, project.load, path)
            if any(target.main.get(each, present) is not None for each, _entry in below):
                in_the_way[path] = "a folder with something to keep is in its place"
        above = path.rpartition(b"/")[0]
        while above:
            present = in_tree(above)
            if present is not None and present.is_directory:
                break
            if present is not None and target.main.get(above) is None:
                in_the_way[path] = "a file to keep is in the place of a folder above it"
            above = above.rpartition(b"/")[0]
    if not in_the_way:
        return target
    folders = list(in_the_way)
    skipped = {
        path: in_the_way.get(path, "it is in a folder that stays")
        for path in target.main
        if any(within(path, folder) for folder in folders)
    }
    return drop_blocked_paths(project, seen, target.without(skipped))


def _finders(project: OpenProject, seen: Snapshot) -> tuple[Find, Find]:
    """Return lookups in the scanned tree, and in its guarded files."""
    return project.finder(seen.tree), project.finder(seen.guarded)


def _concerns(change: Change, paths: tuple[bytes, ...]) -> bool:
    """True if a change is at or below a named path, or creates a folder that one needs."""
    if any(within(change.path, path) for path in paths):
        return True
    makes_folder = (
        change.after is not None
        and change.after.is_directory
        and (change.before is None or not change.before.is_directory)
    )
    return makes_folder and any(within(path, change.path) for path in paths)


def _check_named(project: OpenProject, seen: Snapshot, target: CheckpointRow, path: bytes) -> None:
    """Raise `NotFound` for a named path that neither the checkpoint nor the disk has."""
    if not path:
        return
    for root in (target.tree, target.guarded, seen.tree, seen.guarded):
        if tree.find(root, path, project.load) is not None:
            return
    raise NotFound(
        f"{decode_path(path)} is not in checkpoint {target.id}, and not among what is covered on "
        "disk."
    )


def _is_same(one: Entry | None, other: Entry | None) -> bool:
    """True if both are folders, or equal."""
    if one is not None and other is not None and one.is_directory and other.is_directory:
        return True
    return one == other
