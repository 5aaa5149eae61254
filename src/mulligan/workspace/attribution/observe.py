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
    """Scan now, and attribute changes while their author is known."""
    with project.locked():
        if views.live(project.journal):
            _note(project, acting=acting)


def include_paths(project: OpenProject, paths: Collection[bytes]) -> None:
    """Keep these paths from now on, whatever the ignore rules say.

    Content that was out of scope until now is attributed to no session.
    """
    with project.locked():
        forced = set(always_included.paths(project.journal))
        new = [path for path in paths if path and path not in forced]
        live = bool(views.live(project.journal))
        there = _out_of_view(project, paths, new, last_seen(project))
        if there and live:
            # First attribute what is new and in scope: that is the work of the open turn.
            there = _out_of_view(project, there, new, _note(project))
        latest = checkpoints.latest(project.journal)
        since = checkpoints.position(project.journal, latest.id) if latest is not None else 0
        always_include(project, new, since=since)
        if there and live:
            _note(project, came_into_view=there)


def on_disk_not_in_tree(
    project: OpenProject, paths: Iterable[bytes], tree: bytes | None
) -> list[bytes]:
    """Return the paths that are on the disk and not in a tree."""
    found = [
        path for path in paths if path and (tree is None or find(tree, path, project.load) is None)
    ]
    root = project.location.root
    return [path for path in found if os.path.lexists(os.path.join(root, path))]


def _out_of_view(
    project: OpenProject, paths: Iterable[bytes], new: Collection[bytes], tree: bytes | None
) -> list[bytes]:
    """Return paths that hold content which a tree lacks; a newly included folder may."""
    found = on_disk_not_in_tree(project, paths, tree)
    if tree is None:
        return found
    entries = [(path, find(tree, path, project.load)) for path in paths if path in new]
    return found + [path for path, entry in entries if entry is not None and entry.is_directory]


def _note(
    project: OpenProject, *, came_into_view: Collection[bytes] = (), acting: int | None = None
) -> bytes:
    """Attribute changes since the last scan; return the scanned tree."""
    with observing(project, came_into_view=came_into_view, acting=acting) as now:
        now.commit()
        if now.standing.moved:
            with project.journal.writing() as db:
                now.note(db, now.safety(db, "Between two calls"))
        project.save_cache()
        return now.seen.tree


def take_safety_checkpoint(project: OpenProject, message: str) -> None:
    """Take a checkpoint of the disk, whatever the author of its changes."""
    with observing(project) as now:
        now.commit()
        with project.journal.writing() as db:
            now.note(db, now.safety(db, message))
        project.save_cache()
