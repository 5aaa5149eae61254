"""Remove the folders out of scope that a move empties.

Below the excludes a tree names only the folders that lead to files which were asked for. Whether
such a folder was there when a checkpoint was taken, the checkpoint does not say. A folder goes with
the last of its files if the checkpoint does not hold it, and if nothing else is in it on the disk.
"""

from __future__ import annotations

import os

from mulligan.core.tree import Entry, parents
from mulligan.journal import checkpoints
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.target import RestoreTarget
from mulligan.worktree.fs.safe_paths import Directories
from mulligan.worktree.scan.stat_cache import Node


def with_emptied_folders(project: OpenProject, wish: RestoreTarget) -> RestoreTarget:
    """The wish, to which the removal of such folders is added."""
    gone = {path for path, entry in wish.main.items() if entry is None}
    found = _out_of_scope(project, gone)
    target = checkpoints.by_id(project.journal, wish.target) if found and wish.target else None
    if target is None:
        return wish
    held = project.finder(target.tree)
    emptied: dict[bytes, Entry | None] = {}
    with Directories(project.location.root) as directories:
        # The innermost first: a folder may be the last that another one holds.
        for folder in sorted(found, key=len, reverse=True):
            if held(folder) is None and _holds_only(directories, folder, gone):
                gone.add(folder)
                emptied[folder] = None
    if not emptied:
        return wish
    return wish._replace(exact_tree=None, main=dict(wish.main) | emptied)


def _out_of_scope(project: OpenProject, paths: set[bytes]) -> set[bytes]:
    """The folders above these paths that are in view only because of files asked for by name."""
    known = project.cache().root or Node()
    above = {folder for path in paths for folder in parents(path)} - paths
    return {folder for folder in above if (node := known.find(folder)) is not None and node.partial}


def _holds_only(directories: Directories, folder: bytes, gone: set[bytes]) -> bool:
    fd = directories.open_if_there(folder)
    if fd is None:
        return False
    try:
        names = os.listdir(fd)
    except OSError:
        return False
    return all(b"%b/%b" % (folder, os.fsencode(name)) in gone for name in names)
