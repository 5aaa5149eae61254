"""Include paths against the ignore rules.

Two kinds: `always_included` (an agent's tool wrote the path, or the user named it), and paths
`tracked` by the project's git index, which git does not ignore either.
"""

from __future__ import annotations

from collections.abc import Iterable

from mulligan.worktree.ignore.scope import Reason
from mulligan.worktree.scan.rule_files import MULLIGANIGNORE
from mulligan.worktree.scan.stat_cache import Node

IGNORE_FILES = frozenset({b".gitignore", MULLIGANIGNORE})


class Overrides:
    """`above` maps each directory above an included path to the names that lead to it."""

    def __init__(
        self, always_included: Iterable[bytes], tracked: Iterable[bytes], hidden: Iterable[bytes]
    ) -> None:
        self.always_included = frozenset(
            path for path in always_included if b".git" not in path.split(b"/")
        )
        self.tracked = frozenset(tracked)
        self.hidden = frozenset(hidden)
        self.above = directories_above(self.always_included | self.tracked)
        self._above_always_included = directories_above(self.always_included)
        self.nothing = not (self.always_included or self.tracked or self.hidden)

    def is_above(self, directory: bytes, reason: Reason) -> bool:
        """Return whether an excluded directory contains an included path."""
        if reason == Reason.ALWAYS:
            return False
        if reason == Reason.MULLIGANIGNORE:
            return directory in self._above_always_included
        return directory in self.above

    def names_in(self, directory: bytes) -> frozenset[bytes]:
        """Return the included names of an excluded directory, and its ignore files.

        With these, an undo also reverts the rule that excludes the path.
        """
        names = self.above.get(directory)
        return frozenset() if names is None else names | IGNORE_FILES

    def overrule(self, path: bytes, reason: Reason, whole: bool) -> Reason:
        """Return the final reason for a path; `whole` includes everything in its directory."""
        if path in self.hidden or reason == Reason.ALWAYS:
            return Reason.ALWAYS
        if whole or path in self.always_included:
            return Reason.IN_SCOPE
        if path in self.tracked and reason != Reason.MULLIGANIGNORE:
            return Reason.IN_SCOPE
        return reason


def directories_above(paths: Iterable[bytes]) -> dict[bytes, frozenset[bytes]]:
    """Map each directory above one of the paths to the names that lead to it."""
    above: dict[bytes, set[bytes]] = {}
    for path in paths:
        while path:
            directory, _slash, name = path.rpartition(b"/")
            names = above.setdefault(directory, set())
            if name in names:
                break  # and so are its parents
            names.add(name)
            path = directory
    return {directory: frozenset(names) for directory, names in above.items()}


def tracked_but_ignored(
    root: Node, tracked: Iterable[bytes], prefix: bytes, known: frozenset[bytes]
) -> frozenset[bytes]:
    """Return the paths of git's index that the rules exclude.

    `prefix` is the project's path in the index. `known` is the previous result: the scan included
    these paths, so the nodes do not show them as excluded.
    """
    start = prefix + b"/" if prefix else b""
    nodes: dict[bytes, Node | None] = {b"": root}
    ignored = set()
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
            ignored.add(path)
    return frozenset(ignored)
