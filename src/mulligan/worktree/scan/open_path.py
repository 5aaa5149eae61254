"""Keep the directories from the root to a path open while sorted paths are scanned."""

from __future__ import annotations

import os
from typing import NamedTuple

from mulligan.worktree.ignore.scope import Scope
from mulligan.worktree.scan.stat_cache import Node


class OpenDir(NamedTuple):
    """An open directory with its node and scope."""

    fd: int
    path: bytes
    node: Node
    scope: Scope


class OpenPath:
    """The open directories from the root to the current one; sorted paths share most of them."""

    def __init__(self, root: OpenDir) -> None:
        self.names: list[bytes] = []
        self._dirs = [root]

    @property
    def here(self) -> OpenDir:
        return self._dirs[-1]

    def down(self, name: bytes, directory: OpenDir) -> None:
        self.names.append(name)
        self._dirs.append(directory)

    def back_to(self, names: list[bytes]) -> None:
        """Close directories up to the last one shared with the path `names`."""
        while self.names != names[: len(self.names)]:
            self.names.pop()
            os.close(self._dirs.pop().fd)

    def mark_changed(self) -> None:
        """Mark every directory above a changed one as changed."""
        child_names = [*self.names, None]
        changed = False
        for directory, name in zip(reversed(self._dirs), reversed(child_names), strict=True):
            node = directory.node
            if changed and name is not None:
                node.changed(name)
            changed = changed or node.built is None or node.built_guards is None
