"""Paths that are in scope whatever the ignore rules say.

Two kinds: those that were asked for by name (`forced`: an agent's tool wrote them, or the user
said so), and those that the project's git index tracks, because git does not ignore them either.
"""

from __future__ import annotations

from collections.abc import Iterable

from mulligan.worktree.ignore.scope import Reason
from mulligan.worktree.scan.rule_files import MULLIGANIGNORE
from mulligan.worktree.scan.stat_cache import Node

IGNORE_FILES = frozenset({b".gitignore", MULLIGANIGNORE})


class Overrides:
    """`above` gives, for each directory above such a path, the names in it that lead there."""

    def __init__(
        self, forced: Iterable[bytes], tracked: Iterable[bytes], hidden: Iterable[bytes]
    ) -> None:
        self.forced = frozenset(path for path in forced if b".git" not in path.split(b"/"))
        self.tracked = frozenset(tracked)
        self.hidden = frozenset(hidden)
        self.above = directories_above(self.forced | self.tracked)
        self._above_forced = directories_above(self.forced)
        self.nothing = not (self.forced or self.tracked or self.hidden)

    def is_above(self, directory: bytes, reason: Reason) -> bool:
        """Whether a directory that the rules leave out must be entered for what lies in it."""
        if reason == Reason.ALWAYS:
            return False
        if reason == Reason.MULLIGANIGNORE:
            return directory in self._above_forced
        return directory in self.above

    def names_in(self, directory: bytes) -> frozenset[bytes]:
        """The names that count in a directory that is out of scope itself.

        Above a wanted path these are the ignore files too: what hides it must not stay behind.
        """
        names = self.above.get(directory)
        return frozenset() if names is None else names | IGNORE_FILES

    def overrule(self, path: bytes, reason: Reason, whole: bool) -> Reason:
        """What counts for a path of which the ignore rules say this; `whole`: all of its folder."""
        if path in self.hidden or reason == Reason.ALWAYS:
            return Reason.ALWAYS
        if whole or path in self.forced:
            return Reason.IN_SCOPE
        if path in self.tracked and reason != Reason.MULLIGANIGNORE:
            return Reason.IN_SCOPE
        return reason


def directories_above(paths: Iterable[bytes]) -> dict[bytes, frozenset[bytes]]:
    """For each directory above one of the paths, the names in it that lead there."""
    above: dict[bytes, set[bytes]] = {}
    for path in paths:
        while path:
            directory, _slash, name = path.rpartition(b"/")
            names = above.setdefault(directory, set())
            if name in names:
                # And so is all that leads there.
                break
            names.add(name)
            path = directory
    return {directory: frozenset(names) for directory, names in above.items()}


def tracked_but_left_out(
    root: Node, tracked: Iterable[bytes], prefix: bytes, known: frozenset[bytes]
) -> frozenset[bytes]:
    """The paths of git's index that the rules leave out; `prefix` is the project's place in it.

    `known` are those found before, with which the scan was made: it did not leave them out.
    """
    start = prefix + b"/" if prefix else b""
    nodes: dict[bytes, Node | None] = {b"": root}
    wanted = set()
    for path in tracked:
        if not path.startswith(start):
            continue
        path = path[len(start) :]
        directory, _slash, name = path.rpartition(b"/")
        if directory not in nodes:
            nodes[directory] = root.find(directory)
        node = nodes[directory]
        if (
            path in known
            or node is None
            or node.partial
            or name in node.excluded
            or name in node.guards
        ):
            wanted.add(path)
    return frozenset(wanted)
