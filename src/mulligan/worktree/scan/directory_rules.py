"""Build the scope of a directory from its ignore files, read only if it has any."""

from __future__ import annotations

import os

from mulligan.worktree.fs.safe_paths import exists_unchecked, read_small
from mulligan.worktree.ignore import git_repo
from mulligan.worktree.ignore.git_repo import GitSources
from mulligan.worktree.ignore.scope import Scope, project_scope
from mulligan.worktree.scan.rule_files import MULLIGANIGNORE, Accepted, Effect, effect_of
from mulligan.worktree.scan.stat_cache import Node, signature

GITIGNORE = b".gitignore"
IGNORE_FILES = (GITIGNORE, MULLIGANIGNORE)


def scope_of_root(fd: int, sources: GitSources, accepted: Accepted) -> tuple[Scope, Effect]:
    """Return the scope of the project root, open as `fd`."""
    effect = effect_of(fd, b"", accepted)
    return project_scope(sources, read_small(fd, GITIGNORE), effect.rules), effect


def _is_known(node: Node, name: bytes) -> bool:
    return name in node.files or name in node.guards or name in node.excluded


def scope_of_child(
    fd: int,
    status: os.stat_result,
    root: bytes,
    path: bytes,
    node: Node,
    name: bytes,
    scope: Scope,
    accepted: Accepted,
) -> tuple[Scope, Effect]:
    """Return the scope of the directory at `path`, open as `fd`; `scope` is its parent's."""
    present: tuple[bytes, ...] = IGNORE_FILES
    repository = node.repository
    if node.signature == signature(status):
        # The directory has the same names as before, so only known ignore files are read.
        present = tuple([each for each in IGNORE_FILES if _is_known(node, each)])
        if not present and not repository:
            return scope.enter(name), Effect(None)
    else:
        repository = exists_unchecked(fd, b".git")
    gitignore = read_small(fd, GITIGNORE) if GITIGNORE in present else None
    effect = effect_of(fd, path, accepted) if MULLIGANIGNORE in present else Effect(None)
    exclude = git_repo.info_exclude(os.path.join(root, path)) if repository else None
    inner = scope.enter(
        name, gitignore=gitignore, mulliganignore=effect.rules, info_exclude=exclude
    )
    return inner, effect
