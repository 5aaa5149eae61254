"""Where each name of a directory belongs: covered, guarded, gone into, left out, or odd."""

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
# `os.fsencode`, without the questions that it asks of every name.
ENCODING = (sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
UNSEEN: FileStat = (b"", 0, -1, -1, -1, -1, b"")
REGULAR_UNREAD: FileStat = (b"", 0, -3, -3, -3, -3, b"")
"""Never seen either, but the folder says that it is an ordinary file."""
NOT_KEPT: FileStat = (b"", 0, -2, -2, -2, -2, b"")


class Limits(NamedTuple):
    """How much is looked after; the user's settings."""

    file_bytes: int = 100 << 20
    guard: bool = True
    guard_bytes: int = 5 << 20
    guard_total: int = 200 << 20


class Classifier:
    """Keeps the nodes of the cache in order while a scan goes through them.

    `coverage_changed` tells whether anything came into view or went out of it.
    """

    def __init__(self, limits: Limits, wanted: Overrides, *, coverage_changed: bool) -> None:
        self.wanted = wanted
        self.coverage_changed = coverage_changed
        self._limits = limits

    def classify_all(
        self, fd: int, path: bytes, node: Node, scope: Scope, whole: bool, *, anew: bool = False
    ) -> None:
        """Sorts the names of a directory; `anew` also those of files that are known."""
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
        # By the same rules, a name that is what it was stays where it is.
        settled = node.rules == scope.key and not whole and not anew and self.wanted.nothing
        files, folders = (node.files, node.dirs) if settled else ({}, {})
        found = dict(zip(_names(entries), entries, strict=True))
        if not whole and self.wanted.nothing and node.is_empty:
            self._classify_new(fd, path, node, found, scope)
        else:
            for name in [name for name in found if name not in files]:
                is_directory = found[name].is_dir(follow_symlinks=False)
                if not is_directory or name not in folders:
                    self.classify(fd, path, node, name, is_directory, scope, whole)
        for known in (node.files, node.guards, node.dirs, node.excluded, node.unreadable):
            for name in [name for name in known if name not in found and name != b"."]:
                self.remove(node, name)
        node.repository = bool(path) and b".git" in found

    def _classify_new(
        self,
        fd: int,
        path: bytes,
        node: Node,
        found: Mapping[bytes, os.DirEntry[str]],
        scope: Scope,
    ) -> None:
        """`sort` for each name of a directory of which nothing is known."""
        for name, entry in found.items():
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
        """Puts a name where it belongs: files, guards, directories, or what is left out."""
        reason = scope.decide(name, is_directory)
        wanted = self.wanted
        partial = False
        if whole or not wanted.nothing:
            below = join(path, name)
            reason = wanted.overrule(below, reason, whole)
            partial = is_directory and bool(reason) and wanted.is_above(below, reason)
        if is_directory and (partial or not reason):
            home: object = node.dirs
            child = node.dirs.get(name)
            if child is None:
                child = node.dirs[name] = Node()
                node.changed(name)
            if child.partial != partial:
                child.partial = partial
                child.signature = None
                child.changed()
        elif is_directory or (reason and (reason != Reason.GITIGNORE or not self._limits.guard)):
            home = node.excluded
            left = self._count(fd, name, reason, is_directory, node.excluded.get(name))
            if node.excluded.get(name) != left:
                node.excluded[name] = left
                self.coverage_changed = node.unsaved = True
        else:
            known = node.guards if reason else node.files
            home = known
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

    def exclude(self, fd: int, node: Node, wanted: Collection[bytes], reason: Reason) -> None:
        """Notes what lies beside the wanted names in a directory that is itself left out."""
        try:
            with os.scandir(fd) as listing:
                entries = list(listing)
        except OSError as problem:
            if problem.errno in RESOURCE_ERRORS:
                raise
            entries = []
        left = {
            name: self._count(
                fd, name, reason, entry.is_dir(follow_symlinks=False), node.excluded.get(name)
            )
            for name, entry in zip(_names(entries), entries, strict=True)
            if name not in wanted and name != b".git"
        }
        if left != node.excluded:
            node.excluded = left
            self.coverage_changed = node.unsaved = True

    def remove(self, node: Node, name: bytes) -> None:
        for known in (node.files, node.guards, node.dirs):
            if name in known:
                del known[name]
                node.changed(name)
                self.coverage_changed = True
        for noted in (node.excluded, node.unreadable):
            if name in noted:
                del noted[name]
                self.coverage_changed = node.unsaved = True

    def keep(self, node: Node, name: bytes, seen: FileStat, guard: bool) -> None:
        known = node.guards if guard else node.files
        if known.get(name) != seen:
            known[name] = seen
            node.changed(name)
        self.clear_unreadable(node, name)

    def mark_unreadable(self, node: Node, name: bytes, reason: str, guard: bool = False) -> None:
        """A name that cannot be covered. What is only guarded is not missed, just not kept."""
        known = node.guards if guard else node.files
        if (guard or name in known) and known.get(name) != NOT_KEPT:
            # It stays among the names, so that the next look tries again.
            known[name] = NOT_KEPT
            node.changed(name)
        if not guard and node.unreadable.get(name) != reason:
            node.unreadable[name] = reason
            self.coverage_changed = node.unsaved = True

    def clear_unreadable(self, node: Node, name: bytes) -> None:
        if node.unreadable.pop(name, None) is not None:
            self.coverage_changed = node.unsaved = True

    def set_effect(self, node: Node, effect: Effect) -> None:
        """Notes what does not count of the `.mulliganignore` in a directory."""
        found = (effect.passed_over, effect.broken)
        if node.passed_over != found:
            node.passed_over = found
            self.coverage_changed = node.unsaved = True

    def _count(
        self, fd: int, name: bytes, reason: Reason, is_directory: bool, before: Excluded | None
    ) -> Excluded:
        """How much is left out; a folder is counted again when the folder itself changed."""
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
    """The names as bytes: together, for there are many and each is short."""
    together = "\0".join([entry.name for entry in entries]).encode(*ENCODING)
    return together.split(b"\0") if entries else []
