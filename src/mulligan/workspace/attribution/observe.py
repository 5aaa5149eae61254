"""Attribute changes between commands, and bring paths into scope."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from mulligan.core.tree import find
from mulligan.journal import always_included, checkpoints, views
from mulligan.workspace.attribution.observation import observing
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.snapshot.checkpoints import always_include
from mulligan.workspace.snapshot.holding import last_seen


def observe(project: OpenProject, *, acting: int | None = None) -> None:
    """Puts what happened to the disk to account now, while it is known whose doing it is."""
    with project.locked():
        if views.live(project.journal):
            _note(project, acting=acting)


def include_paths(project: OpenProject, paths: Collection[bytes]) -> None:
    """From now on these paths are kept wherever they lie.

    What one holds that was out of scope until now is nobody's new work.
    """
    with project.locked():
        forced = set(always_included.paths(project.journal))
        new = [path for path in paths if path and path not in forced]
        live = bool(views.live(project.journal))
        there = _out_of_view(project, paths, new, last_seen(project))
        if there and live:
            # First what is new and in scope: that is the work of whoever is at work.
            there = _out_of_view(project, there, new, _note(project))
        latest = checkpoints.latest(project.journal)
        since = checkpoints.position(project.journal, latest.id) if latest is not None else 0
        always_include(project, new, since=since)
        if there and live:
            _note(project, came_into_view=there)


def on_disk_not_in_tree(
    project: OpenProject, paths: Iterable[bytes], tree: bytes | None
) -> list[bytes]:
    """Those of the paths that are on the disk and not in a tree."""
    found = [
        path for path in paths if path and (tree is None or find(tree, path, project.load) is None)
    ]
    root = project.location.root
    return [path for path in found if os.path.lexists(os.path.join(root, path))]


def _out_of_view(
    project: OpenProject, paths: Iterable[bytes], new: Collection[bytes], tree: bytes | None
) -> list[bytes]:
    """Those that hold what a tree does not: a folder that is in it, and was not asked for until
    now, may."""
    found = on_disk_not_in_tree(project, paths, tree)
    if tree is None:
        return found
    entries = [(path, find(tree, path, project.load)) for path in paths if path in new]
    return found + [path for path, entry in entries if entry is not None and entry.is_directory]


def _note(
    project: OpenProject, *, came_into_view: Collection[bytes] = (), acting: int | None = None
) -> bytes:
    """Puts what happened to the disk to account; gives the tree that it holds."""
    with observing(project, came_into_view=came_into_view, acting=acting) as now:
        now.commit()
        if now.standing.moved:
            with project.journal.writing() as db:
                now.note(db, now.safety(db, "Between two calls"))
        project.save_cache()
        return now.seen.tree


def take_safety_checkpoint(project: OpenProject, message: str) -> None:
    """A checkpoint of what the disk holds, whoever's it is."""
    with observing(project) as now:
        now.commit()
        with project.journal.writing() as db:
            now.note(db, now.safety(db, message))
        project.save_cache()
