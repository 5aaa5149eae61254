"""Sort the names of a directory into files, guards, subdirectories, excluded and unreadable."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from typing import NamedTuple

from mulligan.core.tree import join
from mulligan.worktree.fs.safe_paths import RESOURCE_ERRORS, count_files
from mulligan.worktree.ignore.scope import Reason, Scope
from mulligan.worktree.scan.overrides import Overrides
from mulligan.worktree.scan.rule_files import Effect
from mulligan.worktree.scan.stat_cache import Excluded, FileStat, Node

MAX_DEPTH = 256
# As in `os.fsencode`, whose checks are too slow for every name.
ENCODING = (sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
UNSEEN: FileStat = (b"", 0, -1, -1, -1, -1, b"")
REGULAR_UNREAD: FileStat = (b"", 0, -3, -3, -3, -3, b"")
"""Not read yet; the directory listing says that it is a regular file."""
NOT_KEPT: FileStat = (b"", 0, -2, -2, -2, -2, b"")


class Limits(NamedTuple):
    """Size limits from the user's settings."""

    file_bytes: int = 100 << 20
    guard: bool = True
    guard_bytes: int = 5 << 20
    guard_total: int = 200 << 20


class Classifier:
    """Updates the nodes of the stat cache during a scan.

    `coverage_changed` is true once a path came into scope or left it.
    """

    def __init__(self, limits: Limits, overrides: Overrides, *, coverage_changed: bool) -> None:
        self.overrides = overrides
        self.coverage_changed = coverage_changed
        self._limits = limits

    def classify_all(
        self, fd: int, path: bytes, node: Node, scope: Scope, whole: bool, *, anew: bool = False
    ) -> None:
        """Classify the names of a directory; `anew` also the known files."""
        try:
            with os.scandir(fd) as listing:
                entries = list(listing)
        except OSError as problem:
            if problem.errno in RESOURCE_ERRORS:
                raise
            self.mark_unreadable(node, b".", f"cannot be listed: {problem.strerror}")
            entries = []
        else:
            self.clear_unreadable(node, b".")
        # Under the same rules, known names keep their class.
        same_rules = node.rules == scope.key and not whole and not anew and self.overrides.nothing
        known_files, known_dirs = (node.files, node.dirs) if same_rules else ({}, {})
        listed = dict(zip(_names(entries), entries, strict=True))
        if not whole and self.overrides.nothing and node.is_empty:
            self._classify_new(fd, path, node, listed, scope)
        else:
            for name in [name for name in listed if name not in known_files]:
                is_directory = listed[name].is_dir(follow_symlinks=False)
                if not is_directory or name not in known_dirs:
                    self.classify(fd, path, node, name, is_directory, scope, whole)
        for known in (node.files, node.guards, node.dirs, node.excluded, node.unreadable):
            for name in [name for name in known if name not in listed and name != b"."]:
                self.remove(node, name)
        node.repository = bool(path) and b".git" in listed

    def _classify_new(
        self,
        fd: int,
        path: bytes,
        node: Node,
        listed: Mapping[bytes, os.DirEntry[str]],
        scope: Scope,
    ) -> None:
        """Classify the names of a directory that is not in the cache."""
        for name, entry in listed.items():
            if entry.is_file(follow_symlinks=False) and not scope.decide(name, False):
                node.files[name] = REGULAR_UNREAD
            else:
                is_directory = entry.is_dir(follow_symlinks=False)
                self.classify(fd, path, node, name, is_directory, scope, whole=False)
        node.changed()

    def classify(
        self,
        fd: int,
        path: bytes,
        node: Node,
        name: bytes,
        is_directory: bool,
        scope: Scope,
        whole: bool,
    ) -> None:
        """Put a name into the node's files, guards, dirs or excluded, and only there."""
        reason = scope.decide(name, is_directory)
        partial = False
        if whole or not self.overrides.nothing:
            below = join(path, name)
            reason = self.overrides.overrule(below, reason, whole)
            partial = is_directory and bool(reason) and self.overrides.is_above(below, reason)
        if is_directory and (partial or not reason):
            home: object = node.dirs
            self._include_directory(node, name, partial)
        elif is_directory or (reason and (reason != Reason.GITIGNORE or not self._limits.guard)):
            home = node.excluded
            excluded = self._count(fd, name, reason, is_directory, node.excluded.get(name))
            if node.excluded.get(name) != excluded:
                node.excluded[name] = excluded
                self.coverage_changed = node.unsaved = True
        else:
            home = known = node.guards if reason else node.files
            if name not in known:
                known[name] = UNSEEN
                node.changed(name)
                self.coverage_changed |= bool(reason)
        for other in (node.files, node.guards, node.dirs):
            if other is not home and name in other:
                del other[name]
                node.changed(name)
                self.coverage_changed = True
        if home is node.excluded or home is node.guards:
            self.clear_unreadable(node, name)
        if home is not node.excluded and node.excluded.pop(name, None) is not None:
            self.coverage_changed = node.unsaved = True

    def _include_directory(self, node: Node, name: bytes, partial: bool) -> None:
        child = node.dirs.get(name)
        if child is None:
            child = node.dirs[name] = Node()
            node.changed(name)
        if child.partial != partial:
            child.partial = partial
            child.signature = None
            child.changed()

    def exclude(self, fd: int, node: Node, included: Collection[bytes], reason: Reason) -> None:
        """Record as excluded all names but the `included` of an excluded directory."""
        try:
            with os.scandir(fd) as listing:
                entries = list(listing)
        except OSError as problem:
            if problem.errno in RESOURCE_ERRORS:
                raise
            entries = []
        excluded = {
            name: self._count(
                fd, name, reason, entry.is_dir(follow_symlinks=False), node.excluded.get(name)
            )
            for name, entry in zip(_names(entries), entries, strict=True)
            if name not in included and name != b".git"
        }
        if excluded != node.excluded:
            node.excluded = excluded
            self.coverage_changed = node.unsaved = True

    def remove(self, node: Node, name: bytes) -> None:
        """Remove a name that is no longer on the disk."""
        for known in (node.files, node.guards, node.dirs):
            if name in known:
                del known[name]
                node.changed(name)
                self.coverage_changed = True
        for names in (node.excluded, node.unreadable):
            if name in names:
                del names[name]
                self.coverage_changed = node.unsaved = True

    def keep(self, node: Node, name: bytes, seen: FileStat, guard: bool) -> None:
        """Store the state of a file that was read."""
        known = node.guards if guard else node.files
        if known.get(name) != seen:
            known[name] = seen
            node.changed(name)
        self.clear_unreadable(node, name)

    def mark_unreadable(self, node: Node, name: bytes, reason: str, guard: bool = False) -> None:
        """Record why a file cannot be read; an unreadable guarded file is dropped silently."""
        known = node.guards if guard else node.files
        if (guard or name in known) and known.get(name) != NOT_KEPT:
            # The name stays in the node, so that the next scan tries again.
            known[name] = NOT_KEPT
            node.changed(name)
        if not guard and node.unreadable.get(name) != reason:
            node.unreadable[name] = reason
            self.coverage_changed = node.unsaved = True

    def clear_unreadable(self, node: Node, name: bytes) -> None:
        if node.unreadable.pop(name, None) is not None:
            self.coverage_changed = node.unsaved = True

    def set_effect(self, node: Node, effect: Effect) -> None:
        """Record which rules of a directory's `.mulliganignore` are not in effect."""
        passed_over = (effect.passed_over, effect.broken)
        if node.passed_over != passed_over:
            node.passed_over = passed_over
            self.coverage_changed = node.unsaved = True

    def _count(
        self, fd: int, name: bytes, reason: Reason, is_directory: bool, before: Excluded | None
    ) -> Excluded:
        """Count the excluded files; a directory is counted again when its mtime changed."""
        if not is_directory or reason == Reason.ALWAYS:
            return (int(reason), is_directory, int(not is_directory), 0)
        try:
            modified = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mtime_ns
        except OSError:
            modified = 0
        if before is not None and before[1] and modified and before[3] == modified:
            return (int(reason), True, before[2], modified)
        return (int(reason), True, count_files(fd, name, MAX_DEPTH), modified)


def _names(entries: list[os.DirEntry[str]]) -> list[bytes]:
    """Return the names as bytes; encoding them in one call is faster."""
    joined = "\0".join([entry.name for entry in entries]).encode(*ENCODING)
    return joined.split(b"\0") if entries else []
