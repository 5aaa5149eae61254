"""Scan the working tree for changes since the last scan.

A full scan visits every directory in scope: one with unchanged times is not listed again, and a
file with an unchanged stat costs one `lstat`. With a watcher, only the paths that it names are
scanned. Both leave the stat cache in the same state.

No single file makes a scan fail: one that is unreadable, special, too large or vanishes is recorded
in `Node.unreadable` with the reason.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from mulligan.core.tree import join
from mulligan.worktree.fs.safe_paths import OPEN_DIRECTORY, RESOURCE_ERRORS, open_root
from mulligan.worktree.ignore import git_repo
from mulligan.worktree.ignore.scope import Reason, Scope, root_scope
from mulligan.worktree.scan.classify import MAX_DEPTH, Classifier, Limits
from mulligan.worktree.scan.compare import FileComparison
from mulligan.worktree.scan.directory_rules import IGNORE_FILES, scope_of_child, scope_of_root
from mulligan.worktree.scan.open_path import OpenDir, OpenPath
from mulligan.worktree.scan.overrides import Overrides, tracked_but_ignored
from mulligan.worktree.scan.racy import is_racy, racy_cutoff
from mulligan.worktree.scan.reader import FileReader, HashWorkers, Sink
from mulligan.worktree.scan.rule_files import Accepted
from mulligan.worktree.scan.stat_cache import Node, StatCache, signature


class Watch(Protocol):
    """The part of a watcher that the scanner needs: `add`, called before each listing."""

    def add(self, directory: bytes) -> bool: ...


class Scanner:
    """One scan of a project; it updates `cache.root`."""

    def __init__(
        self,
        root: bytes,
        cache: StatCache,
        sink: Sink,
        *,
        limits: Limits,
        accepted: Accepted = frozenset(),
        always_included: Iterable[bytes] = (),
        hidden: Iterable[bytes] = (),
        watch: Watch | None = None,
        progress: Callable[[int, int], None] | None = None,
        workers: Callable[[], HashWorkers] | None = None,
    ) -> None:
        self._root = root
        self._cache = cache
        self._accepted = accepted
        overrides = Overrides(always_included, cache.tracked, hidden)
        self._classifier = Classifier(limits, overrides, coverage_changed=cache.root is None)
        self._watch = watch
        self._reader = FileReader(
            root, sink, limit=limits.file_bytes, progress=progress, workers=workers
        )
        self._files = FileComparison(self._classifier, self._reader, sink, limits)
        self._sources = git_repo.git_sources(root)
        self._rules_changed = cache.root is None
        self._partial_reasons: dict[bytes, Reason] = {}

    @property
    def coverage_changed(self) -> bool:
        """Return whether paths may have come into scope or left it."""
        return self._classifier.coverage_changed

    def scan_all(self) -> None:
        """Scan everything in scope."""
        root = self._cache.root or Node()
        self._cache.root = root
        stamp: tuple[Any, ...] = self._stamp()
        before: tuple[Any, ...] = self._cache.sources
        if stamp[1:2] != before[1:2]:
            # The always included paths have changed: classify every name again.
            self._list_again(root)
        elif stamp[2:3] != before[2:3]:
            self._list_around(root, self._classifier.overrides.hidden.union(*before[2:3]))
        self._scan_tree(root)
        tracked = self._tracked_but_ignored(root)
        if tracked != self._cache.tracked:
            self._cache.tracked = tracked
            old = self._classifier.overrides
            self._classifier.overrides = Overrides(old.always_included, tracked, old.hidden)
            self._list_again(root)
            self._scan_tree(root)
        self._cache.git_sources = self._sources

    def scan_paths(self, paths: Iterable[bytes]) -> bool:
        """Scan these paths only; `False`, and nothing done, if a full scan is needed."""
        root = self._cache.root
        paths = sorted(set(paths))
        if root is None or self._stamp() != self._cache.sources:
            return False
        if not paths and self._sources == self._cache.git_sources:
            return True  # git's rules above the project are unchanged, too
        if any(path == b"" or path.rpartition(b"/")[2] in IGNORE_FILES for path in paths):
            return False
        with open_root(self._root) as fd:
            scope = self._scope_of_root(fd, root)
            if scope.key != root.rules:
                return False
            open_path = OpenPath(OpenDir(fd, b"", root, scope))
            try:
                for path in paths:
                    self._scan_path(open_path, path)
            except _RulesChanged:
                return False
            finally:
                open_path.back_to([])
            self._files.collect()
        self._cache.git_sources = self._sources
        return True

    def _list_again(self, root: Node) -> None:
        """Make the next scan list every directory."""
        for _path, node in root.walk():
            node.signature = None
            node.rules = b""

    def _list_around(self, root: Node, paths: Iterable[bytes]) -> None:
        """Make the next scan list the directories of these paths."""
        for path in paths:
            node = root.find(path.rpartition(b"/")[0])
            if node is not None:
                node.signature = None
                node.rules = b""

    def _scan_tree(self, root: Node) -> None:
        is_new = not (root.files or root.guards or root.dirs)
        with open_root(self._root) as fd, self._reader.forked_workers(is_new=is_new):
            scope = self._scope_of_root(fd, root)
            self._scan_directory(fd, os.fstat(fd), b"", root, scope, depth=0, whole=False)
            self._files.collect()

    def _scope_of_root(self, fd: int, root: Node) -> Scope:
        scope, effect = scope_of_root(fd, self._sources, self._accepted)
        self._classifier.set_effect(root, effect)
        return scope

    def _scope_of_child(
        self, fd: int, status: os.stat_result, path: bytes, node: Node, name: bytes, above: Scope
    ) -> Scope:
        scope, effect = scope_of_child(
            fd, status, self._root, path, node, name, above, self._accepted
        )
        self._classifier.set_effect(node, effect)
        return scope

    def _scan_directory(
        self,
        fd: int,
        status: os.stat_result,
        path: bytes,
        node: Node,
        scope: Scope,
        *,
        depth: int,
        whole: bool,
    ) -> None:
        """Scan a directory and all below it; `whole` includes everything in it."""
        if self._watch is not None:
            self._watch.add(path)
            # No event reports a change between the first fstat and the watch.
            status = os.fstat(fd)
        self._set_mode(node, status)
        if node.signature != signature(status) or node.rules != scope.key:
            cutoff = racy_cutoff(status.st_dev)
            self._classifier.classify_all(fd, path, node, scope, whole)
            if node.rules != scope.key:
                node.rules = scope.key
                node.unsaved = self._rules_changed = True
            new_signature = None if _is_racy_directory(status, cutoff) else signature(status)
            if node.signature != new_signature:
                node.signature = new_signature
                node.unsaved = True
        if self._files.compare(fd, path, node):
            # A file turned into a directory after the listing: classify the names again.
            self._classifier.classify_all(fd, path, node, scope, whole, anew=True)
        for name in list(node.dirs):
            self._descend(fd, path, node, name, scope, depth=depth, whole=whole)

    def _set_mode(self, node: Node, status: os.stat_result) -> None:
        mode = status.st_mode & 0o7777
        if node.mode != mode:
            node.mode = mode
            node.unsaved = True

    def _descend(
        self,
        above: int,
        path: bytes,
        node: Node,
        name: bytes,
        scope: Scope,
        *,
        depth: int,
        whole: bool,
    ) -> None:
        """Scan a subdirectory; mark `node` as changed if the subdirectory is."""
        child = node.dirs[name]
        child_path = join(path, name)
        old_mode = child.mode
        try:
            if depth >= MAX_DEPTH:
                raise OSError(errno.ELOOP, f"more than {MAX_DEPTH} directories deep")
            fd = os.open(name, OPEN_DIRECTORY, dir_fd=above)
        except OSError as problem:
            if problem.errno in RESOURCE_ERRORS:
                raise
            self._classifier.remove(node, name)
            node.signature = None
            if not isinstance(problem, FileNotFoundError | NotADirectoryError):
                self._classifier.mark_unreadable(
                    node, name, f"cannot be opened: {problem.strerror}"
                )
            return
        try:
            self._scan_opened(fd, child_path, child, name, scope, depth=depth + 1, whole=whole)
        finally:
            os.close(fd)
        self._classifier.clear_unreadable(node, name)
        if child.built is None or child.built_guards is None or old_mode != child.mode:
            node.changed(name)

    def _scan_opened(
        self,
        fd: int,
        path: bytes,
        node: Node,
        name: bytes,
        scope: Scope,
        *,
        depth: int,
        whole: bool,
    ) -> None:
        """Scan a directory that was just opened; `scope` is its parent's."""
        if node.partial:
            reason = self._partial_reasons.pop(path, None) or scope.decide(name, True)
            self._scan_overrides(fd, path, node, reason, depth=depth)
            return
        status = os.fstat(fd)
        inner = self._scope_of_child(fd, status, path, node, name, scope)
        whole = whole or path in self._classifier.overrides.always_included
        self._scan_directory(fd, status, path, node, inner, depth=depth, whole=whole)

    def _scan_overrides(
        self, fd: int, path: bytes, node: Node, reason: Reason, *, depth: int
    ) -> None:
        """Scan an excluded directory for the included names in it."""
        if self._watch is not None:
            self._watch.add(path)
        status = os.fstat(fd)
        self._set_mode(node, status)
        no_rules = root_scope(defaults=False)
        names = self._classifier.overrides.names_in(path)
        for name in names:
            try:
                is_directory = stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
            except OSError:
                self._classifier.remove(node, name)
                continue
            child_path = join(path, name)
            if is_directory and child_path not in self._classifier.overrides.always_included:
                node.dirs.setdefault(name, Node()).partial = True
                self._partial_reasons[child_path] = reason
            else:
                self._classifier.classify(fd, path, node, name, is_directory, no_rules, whole=True)
        for known in (node.files, node.guards, node.dirs):
            for name in [name for name in known if name not in names]:
                self._classifier.remove(node, name)
        if node.signature != signature(status):
            cutoff = racy_cutoff(status.st_dev)
            self._classifier.exclude(fd, node, names, reason)
            node.signature = None if _is_racy_directory(status, cutoff) else signature(status)
            node.unsaved = True
        self._files.compare(fd, path, node)
        for name in list(node.dirs):
            self._descend(fd, path, node, name, no_rules, depth=depth, whole=False)

    def _scan_path(self, open_path: OpenPath, path: bytes) -> None:
        """Scan one path that a watcher named, from the last open directory on."""
        *parents, name = path.split(b"/")
        open_path.back_to(parents)
        try:
            for parent in parents[len(open_path.names) :]:
                here = open_path.here
                child = here.node.dirs.get(parent)
                if child is None:
                    return  # excluded, or new: then the watcher named the directory, too
                if child.partial:
                    name = parent
                    break
                fd = os.open(parent, OPEN_DIRECTORY, dir_fd=here.fd)
                at = join(here.path, parent)
                scope = self._scope_of_child(fd, os.fstat(fd), at, child, parent, here.scope)
                open_path.down(parent, OpenDir(fd, at, child, scope))
                if scope.key != child.rules:
                    raise _RulesChanged
            here = open_path.here
            depth = len(open_path.names)
            self._scan_name(here.fd, here.path, here.node, name, here.scope, depth=depth)
        except (FileNotFoundError, NotADirectoryError):
            return  # a parent was removed: the watcher named it, too
        finally:
            open_path.mark_changed()

    def _scan_name(
        self, fd: int, path: bytes, node: Node, name: bytes, scope: Scope, *, depth: int
    ) -> None:
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            self._classifier.remove(node, name)
            return
        whole = any(
            path == each or path.startswith(each + b"/")
            for each in self._classifier.overrides.always_included
        )
        self._classifier.classify(fd, path, node, name, stat.S_ISDIR(status.st_mode), scope, whole)
        if name in node.dirs:
            self._descend(fd, path, node, name, scope, depth=depth, whole=whole)
        for known, guard in ((node.files, False), (node.guards, True)):
            if name in known:
                self._files.changed(fd, path, node, name, known[name], status, guard)

    def _tracked_but_ignored(self, root: Node) -> frozenset[bytes]:
        """Return git's tracked paths that the rules exclude; cached while neither changes."""
        stamp = self._stamp()
        if stamp == self._cache.sources and not self._rules_changed:
            return self._cache.tracked
        self._cache.sources = stamp
        root.unsaved = True
        index = self._sources.index_path
        if index is None:
            return frozenset()
        tracked = git_repo.tracked_paths(index)
        return tracked_but_ignored(root, tracked, self._sources.prefix, self._cache.tracked)

    def _stamp(self) -> tuple[object, ...]:
        """Return a value that changes with git's index and with the paths given to the scanner."""
        index = self._sources.index_path
        try:
            status = os.stat(index) if index is not None else None
        except OSError:
            status = None
        git = (status.st_mtime_ns, status.st_size, status.st_ino) if status is not None else None
        overrides = self._classifier.overrides
        paths = (overrides.always_included, overrides.hidden, self._accepted)
        return (git, *(tuple(sorted(each)) for each in paths))


def _is_racy_directory(status: os.stat_result, cutoff: int) -> bool:
    return is_racy(max(status.st_ctime_ns, status.st_mtime_ns), cutoff)


class _RulesChanged(Exception):
    """The rules of a directory have changed since it was listed."""
