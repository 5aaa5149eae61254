"""The way from the root to a path, kept open while paths that share most of it are looked at."""

from __future__ import annotations

import os
from typing import NamedTuple

from mulligan.worktree.ignore.scope import Scope
from mulligan.worktree.scan.stat_cache import Node


class OpenDir(NamedTuple):
    """An open directory on the way to a path."""

    fd: int
    path: bytes
    node: Node
    scope: Scope


class OpenPath:
    """The directories from the root to where we are; paths in order share most of the way."""

    def __init__(self, root: OpenDir) -> None:
        self.names: list[bytes] = []
        self._places = [root]

    @property
    def here(self) -> OpenDir:
        return self._places[-1]

    def down(self, name: bytes, place: OpenDir) -> None:
        self.names.append(name)
        self._places.append(place)

    def back_to(self, names: list[bytes]) -> None:
        """Goes up to the last directory that the way to `names` has in common with this one."""
        while self.names != names[: len(self.names)]:
            self.names.pop()
            os.close(self._places.pop().fd)

    def mark(self) -> None:
        """What changed below has changed here."""
        below = [*self.names, None]
        changed = False
        for place, name in zip(reversed(self._places), reversed(below), strict=True):
            if changed and name is not None:
                place.node.changed(name)
            changed = changed or place.node.built is None or place.node.built_guards is None
