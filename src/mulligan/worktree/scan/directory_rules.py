"""The rules in force in a directory: its ignore files are read only where there are any."""

from __future__ import annotations

import os
from collections.abc import Iterable

from mulligan.worktree.fs.safe_paths import can_see, read_small
from mulligan.worktree.ignore import git_repo
from mulligan.worktree.ignore.git_repo import GitSources
from mulligan.worktree.ignore.scope import Scope, project_scope
from mulligan.worktree.scan.stat_cache import Node, signature

IGNORE_FILES = (b".gitignore", b".mulliganignore")


def scope_of_root(fd: int, sources: GitSources) -> Scope:
    gitignore, mulliganignore = (read_small(fd, name) for name in IGNORE_FILES)
    return project_scope(sources, gitignore, mulliganignore)


def _is_known(node: Node, name: bytes) -> bool:
    return name in node.files or name in node.guards or name in node.left


def scope_of_child(
    fd: int, status: os.stat_result, path: Iterable[bytes], node: Node, name: bytes, scope: Scope
) -> Scope:
    """The rules in a directory that is open as `fd` and known as `node`; `scope` is that of the
    directory above, `path` its whole path, in parts."""
    present: tuple[bytes, ...] = IGNORE_FILES
    repository = node.repository
    if node.signature == signature(status):
        # The directory has the names it had: only those ignore files need reading.
        present = tuple([each for each in IGNORE_FILES if _is_known(node, each)])
        if not present and not repository:
            return scope.enter(name)
    else:
        repository = can_see(fd, b".git")
    gitignore, mulliganignore = (
        read_small(fd, each) if each in present else None for each in IGNORE_FILES
    )
    exclude = git_repo.info_exclude(os.path.join(*path)) if repository else None
    return scope.enter(
        name, gitignore=gitignore, mulliganignore=mulliganignore, info_exclude=exclude
    )
