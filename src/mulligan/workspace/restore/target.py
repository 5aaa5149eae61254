"""What should be where: the wish behind a restore, an undo or a redo.

A wish names paths and what should be there, and leaves all other paths alone. It also says which
paths it would have named but for a reason to spare them.
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


class RestoreTarget(NamedTuple):
    """`main` speaks of the project's tree, `guarded` of the ignored files that are kept.

    `session` is whose doing it is, `None` for the user's; `intent` what it means for views.
    """

    kind: str
    target: str | None
    main: Wanted
    guarded: Wanted
    skipped: Mapping[bytes, str]
    undoes: int | None = None
    session: str | None = None
    session_effects: Mapping[str, Any] = MappingProxyType({})
    exact_tree: tuple[bytes, tuple[Change, ...]] | None = None
    """The tree that `main` leads to and the changes that lead there, where it names them all."""

    def without(self, spared: Mapping[bytes, str]) -> RestoreTarget:
        """The wish but for some paths, which are to stay as they are, each for a reason."""
        return self._replace(
            exact_tree=None,
            main={path: entry for path, entry in self.main.items() if path not in spared},
            guarded={path: entry for path, entry in self.guarded.items() if path not in spared},
            skipped=dict(self.skipped) | dict(spared),
        )


def to_checkpoint(
    project: OpenProject, seen: Snapshot, target: CheckpointRow, paths: tuple[bytes, ...]
) -> RestoreTarget:
    """To have the project, or some paths of it, as in a checkpoint.

    Guarded files are brought back where they are missing or named, and otherwise left alone. A
    partial checkpoint speaks of the files that it holds, and of nothing else.
    """
    main: dict[bytes, Entry | None] = {}
    spared: dict[bytes, str] = {}
    then = ScopeAtCheckpoint(project, target, seen)
    differences = project.differences(seen.tree, target.tree)
    project.finder(seen.tree).learn((path, was) for path, was, _now in differences)
    partial = is_partial(project, target)
    for change in differences:
        is_asked_for = bool(paths) and change.after is None
        if partial and not is_held(change.after, change.before) and not is_asked_for:
            continue
        if paths and not _concerns(change, paths):
            continue
        reason, after = None, change.after
        if after is None:
            is_directory = change.before is not None and change.before.is_directory
            reason = then.reason_to_keep(change.path, is_directory)
            after = then.out_of_scope(change.path) if reason is None else None
            if after is not None and _is_same(change.before, after):
                continue
        elif not after.is_directory:
            reason = seen.coverage.reason_for(change.path)
        if reason is None:
            main[change.path] = after
        elif change.before is None or not change.before.is_directory:
            spared[change.path] = reason
    whole = not partial and [*main.values()] == [change.after for change in differences]
    in_tree, in_guarded = _finders(project, seen)
    guarded: dict[bytes, Entry | None] = {}
    for path, entry in tree.walk(target.guarded, project.load):
        if entry.is_directory or path in main or in_tree(path) is not None:
            continue
        if paths and not any(within(path, each) for each in paths):
            continue
        if path not in paths and in_guarded(path) is not None:
            continue
        if then.is_asked_for_now(path):
            main[path], whole = entry, False
        else:
            guarded[path] = entry
    for path, entry in then.first_views() if not partial else ():
        if (
            in_tree(path) is None
            and path not in main
            and path not in guarded
            and (not paths or any(within(path, each) for each in paths))
            and then.out_of_scope(path) == entry
        ):
            # It came into view later, and has gone since.
            main[path], whole = entry, False
    for path in paths:
        if path not in main:
            _check_named(project, seen, target, path)
        kept = then.guarded(path) if path else None
        if kept is not None and not kept.is_directory and in_tree(path) is not None:
            # It is not ignored any more, and so one of the project's own files now.
            main[path], whole = kept, False
            spared.pop(path, None)
    wish = RestoreTarget(
        "restore", target.id, main, guarded, spared, session=target.session,
        exact_tree=(target.tree, tuple(differences)) if whole else None,
    )  # fmt: skip
    return drop_blocked_paths(project, seen, wish)


def revert_operation(
    project: OpenProject,
    seen: Snapshot,
    kind: str,
    number: int,
    before: CheckpointRow,
    after: CheckpointRow,
) -> RestoreTarget:
    """To have what an operation changed as it was before it; whatever else was done stays.

    Guarded files that it overwrote come back; none is removed.
    """
    main: dict[bytes, Entry | None] = {}
    spared: dict[bytes, str] = {}
    differences = project.differences(after.tree, before.tree)
    for change in differences:
        reason = seen.coverage.reason_for(change.path)
        if reason is None:
            main[change.path] = change.after
        else:
            spared[change.path] = reason
    guarded: dict[bytes, Entry | None] = {
        change.path: change.after
        for change in project.differences(after.guarded, before.guarded)
        if change.after is not None and not change.after.is_directory
    }
    whole = seen.tree == after.tree and not spared
    wish = RestoreTarget(
        kind, before.id, main, guarded, spared, undoes=number,
        exact_tree=(before.tree, tuple(differences)) if whole else None,
    )  # fmt: skip
    return drop_blocked_paths(project, seen, wish)


def out_of_view(project: OpenProject, seen: Snapshot, wish: RestoreTarget) -> list[bytes]:
    """Files on the disk that the wish is about and that the look did not cover.

    What a checkpoint covered stays in scope for a move: today's rules leave out none of it.
    """
    in_tree, in_guarded = _finders(project, seen)
    had_larger = checkpoints.largest_size_limit(project.journal) > seen.max_file_size
    with Directories(project.location.root) as disk:
        return [
            path
            for path in dict.fromkeys((*wish.main, *wish.skipped))
            if in_tree(path) is None
            and (in_guarded(path) is None or wish.main.get(path) is None)
            and (had_larger or seen.coverage.reason_for(path) is None)
            and is_file(disk, path)
        ]


def drop_blocked_paths(project: OpenProject, seen: Snapshot, wish: RestoreTarget) -> RestoreTarget:
    """The wish without what could only come true at the cost of something that is to stay.

    A file cannot take the place of a folder in which something stays, nor can anything be put
    below a file that stays. What is guarded now, and belongs to the project by this wish, leaves
    the guarded files for it.
    """
    in_tree, in_guarded = _finders(project, seen)
    leaving = {
        path: None
        for path, entry in wish.main.items()
        if entry is not None and in_guarded(path) is not None
    }
    wish = wish._replace(guarded=dict(wish.guarded) | leaving)
    in_the_way: dict[bytes, str] = {}
    for path, entry in wish.main.items():
        if entry is None:
            continue
        present = in_tree(path)
        if present is not None and present.is_directory and not entry.is_directory:
            below = tree.walk(present.id, project.load, path)
            if any(wish.main.get(each, present) is not None for each, _entry in below):
                in_the_way[path] = "a folder with something to keep is in its place"
        above = path.rpartition(b"/")[0]
        while above:
            present = in_tree(above)
            if present is not None and present.is_directory:
                break
            if present is not None and wish.main.get(above) is None:
                in_the_way[path] = "a file to keep is in the place of a folder above it"
            above = above.rpartition(b"/")[0]
    if not in_the_way:
        return wish
    folders = list(in_the_way)
    spared = {
        path: in_the_way.get(path, "it is in a folder that stays")
        for path in wish.main
        if any(within(path, folder) for folder in folders)
    }
    return drop_blocked_paths(project, seen, wish.without(spared))


def _finders(project: OpenProject, seen: Snapshot) -> tuple[Find, Find]:
    """Looks paths up in what was seen: the project's tree, and the guarded files."""
    return project.finder(seen.tree), project.finder(seen.guarded)


def _concerns(change: Change, paths: tuple[bytes, ...]) -> bool:
    """Whether a change is at or below a named path, or makes a folder that one needs."""
    if any(within(change.path, path) for path in paths):
        return True
    makes_folder = (
        change.after is not None
        and change.after.is_directory
        and (change.before is None or not change.before.is_directory)
    )
    return makes_folder and any(within(path, change.path) for path in paths)


def _check_named(project: OpenProject, seen: Snapshot, target: CheckpointRow, path: bytes) -> None:
    """A name that is known to neither side is a mistake, and silence would hide it."""
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
    """Whether both are folders, whatever those hold, or the same."""
    if one is not None and other is not None and one.is_directory and other.is_directory:
        return True
    return one == other
