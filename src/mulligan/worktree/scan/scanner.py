"""Looking at the working tree: what changed since the last look.

A full scan goes through every directory in scope: one whose own times are unchanged is not
listed again, and a file whose times are unchanged costs one `lstat`. With the names of what may
have changed, from a watcher, only those are looked at. Both leave the cache in the same state.

Nothing here fails because of one file: what cannot be read, is special, too large or vanishes is
remembered under `odd`, with the reason.
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
from mulligan.worktree.scan.overrides import Overrides, tracked_but_left_out
from mulligan.worktree.scan.racy import is_racy, racy_cutoff
from mulligan.worktree.scan.reader import FileReader, HashWorkers, Sink
from mulligan.worktree.scan.rule_files import Accepted
from mulligan.worktree.scan.stat_cache import Node, StatCache, signature


class Watch(Protocol):
    """The part of a watcher that the scan needs: to be told of a directory before it is listed."""

    def add(self, directory: bytes) -> bool: ...


class Scanner:
    """One look at a project. Afterwards `cache.root` says what is there."""

    def __init__(
        self,
        root: bytes,
        cache: StatCache,
        sink: Sink,
        *,
        limits: Limits,
        accepted: Accepted = frozenset(),
        forced: Iterable[bytes] = (),
        hidden: Iterable[bytes] = (),
        watch: Watch | None = None,
        progress: Callable[[int, int], None] | None = None,
        hands: Callable[[], HashWorkers] | None = None,
    ) -> None:
        self._root = root
        self._cache = cache
        self._accepted = accepted
        self._names = Classifier(
            limits, Overrides(forced, cache.wanted, hidden), coverage_changed=cache.root is None
        )
        self._watch = watch
        self._contents = FileReader(
            root, sink, limit=limits.file_bytes, progress=progress, hands=hands
        )
        self._files = FileComparison(self._names, self._contents, sink, limits)
        self._sources = git_repo.git_sources(root)
        self._rules_changed = cache.root is None
        self._why: dict[bytes, Reason] = {}

    @property
    def coverage_changed(self) -> bool:
        """Whether what is covered, and what is left out, may be other than before."""
        return self._names.coverage_changed

    def scan_all(self) -> None:
        """Looks at everything in scope."""
        root = self._cache.root or Node()
        self._cache.root = root
        stamp: tuple[Any, ...] = self._stamp()
        before: tuple[Any, ...] = self._cache.sources
        if stamp[1:2] != before[1:2]:
            # What was asked for has changed: every name must be sorted again.
            self._list_again(root)
        elif stamp[2:3] != before[2:3]:
            self._list_around(root, self._names.wanted.hidden.union(*before[2:3]))
        self._scan_tree(root)
        wanted = self._tracked_but_ignored(root)
        if wanted != self._cache.wanted:
            self._cache.wanted = wanted
            known = self._names.wanted
            self._names.wanted = Overrides(known.forced, wanted, known.hidden)
            self._list_again(root)
            self._scan_tree(root)
        self._cache.judged_by = self._sources

    def scan_paths(self, paths: Iterable[bytes]) -> bool:
        """Looks at these paths only; `False`, and nothing done, if a full scan is needed."""
        root = self._cache.root
        paths = sorted(set(paths))
        if root is None or self._stamp() != self._cache.sources:
            return False
        if not paths and self._sources == self._cache.judged_by:
            # The rules above the project are those that it was last looked at with, too.
            return True
        if any(path == b"" or path.rpartition(b"/")[2] in IGNORE_FILES for path in paths):
            return False
        with open_root(self._root) as fd:
            scope = self._scope_of_root(fd, root)
            if scope.key != root.rules:
                return False
            way = OpenPath(OpenDir(fd, b"", root, scope))
            try:
                for path in paths:
                    self._scan_path(way, path)
            except _RulesChanged:
                return False
            finally:
                way.back_to([])
            self._files.collect()
        self._cache.judged_by = self._sources
        return True

    def _list_again(self, root: Node) -> None:
        for _path, node in root.walk():
            node.signature = None
            node.rules = b""

    def _list_around(self, root: Node, paths: Iterable[bytes]) -> None:
        for path in paths:
            node = root.find(path.rpartition(b"/")[0])
            if node is not None:
                node.signature = None
                node.rules = b""

    def _scan_tree(self, root: Node) -> None:
        is_new = not (root.files or root.guards or root.dirs)
        with open_root(self._root) as fd, self._contents.prepared(for_much=is_new):
            scope = self._scope_of_root(fd, root)
            self._scan_directory(fd, os.fstat(fd), b"", root, scope, depth=0, whole=False)
            self._files.collect()

    def _scope_of_root(self, fd: int, root: Node) -> Scope:
        scope, effect = scope_of_root(fd, self._sources, self._accepted)
        self._names.set_effect(root, effect)
        return scope

    def _scope_of_child(
        self, fd: int, status: os.stat_result, path: bytes, node: Node, name: bytes, above: Scope
    ) -> Scope:
        scope, effect = scope_of_child(
            fd, status, self._root, path, node, name, above, self._accepted
        )
        self._names.set_effect(node, effect)
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
        """One directory and all below it. `whole`: everything in it was asked for by name."""
        if self._watch is not None:
            self._watch.add(path)
            # What changed between the first look at it and its being watched is told by nobody.
            status = os.fstat(fd)
        self._set_mode(node, status)
        if node.signature != signature(status) or node.rules != scope.key:
            before = racy_cutoff(status.st_dev)
            self._names.classify_all(fd, path, node, scope, whole)
            if node.rules != scope.key:
                node.rules = scope.key
                node.unsaved = self._rules_changed = True
            racy = is_racy(max(status.st_ctime_ns, status.st_mtime_ns), before)
            found = None if racy else signature(status)
            if node.signature != found:
                node.signature = found
                node.unsaved = True
        if self._files.compare(fd, path, node):
            # A file turned into a directory after the listing: classify the names again.
            self._names.classify_all(fd, path, node, scope, whole, anew=True)
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
        """A directory below; what changed in it has changed here."""
        child = node.dirs[name]
        below = join(path, name)
        mode = child.mode
        try:
            if depth >= MAX_DEPTH:
                raise OSError(errno.ELOOP, f"more than {MAX_DEPTH} directories deep")
            fd = os.open(name, OPEN_DIRECTORY, dir_fd=above)
        except OSError as problem:
            if problem.errno in RESOURCE_ERRORS:
                raise
            self._names.remove(node, name)
            node.signature = None
            if not isinstance(problem, FileNotFoundError | NotADirectoryError):
                self._names.mark_unreadable(node, name, f"cannot be opened: {problem.strerror}")
            return
        try:
            self._scan_opened(fd, below, child, name, scope, depth=depth + 1, whole=whole)
        finally:
            os.close(fd)
        self._names.clear_unreadable(node, name)
        if child.built is None or child.built_guards is None or mode != child.mode:
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
        """A directory that was just opened; `scope` is that of the one above."""
        if node.partial:
            reason = self._why.pop(path, None) or scope.decide(name, True)
            self._scan_overrides(fd, path, node, reason, depth=depth)
            return
        status = os.fstat(fd)
        inner = self._scope_of_child(fd, status, path, node, name, scope)
        whole = whole or path in self._names.wanted.forced
        self._scan_directory(fd, status, path, node, inner, depth=depth, whole=whole)

    def _scan_overrides(
        self, fd: int, path: bytes, node: Node, reason: Reason, *, depth: int
    ) -> None:
        """A directory that is out of scope for a reason, but for some names in it."""
        if self._watch is not None:
            self._watch.add(path)
        status = os.fstat(fd)
        self._set_mode(node, status)
        nothing = root_scope(defaults=False)
        names = self._names.wanted.names_in(path)
        for name in names:
            try:
                is_directory = stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
            except OSError:
                self._names.remove(node, name)
                continue
            below = join(path, name)
            if is_directory and below not in self._names.wanted.forced:
                node.dirs.setdefault(name, Node()).partial = True
                self._why[below] = reason
            else:
                self._names.classify(fd, path, node, name, is_directory, nothing, whole=True)
        for known in (node.files, node.guards, node.dirs):
            for name in [name for name in known if name not in names]:
                self._names.remove(node, name)
        if node.signature != signature(status):
            before = racy_cutoff(status.st_dev)
            self._names.exclude(fd, node, names, reason)
            racy = is_racy(max(status.st_ctime_ns, status.st_mtime_ns), before)
            node.signature = None if racy else signature(status)
            node.unsaved = True
        self._files.compare(fd, path, node)
        for name in list(node.dirs):
            self._descend(fd, path, node, name, nothing, depth=depth, whole=False)

    def _scan_path(self, way: OpenPath, path: bytes) -> None:
        """One path that a watcher named, and what lies above it."""
        *parents, name = path.split(b"/")
        way.back_to(parents)
        try:
            for parent in parents[len(way.names) :]:
                here = way.here
                child = here.node.dirs.get(parent)
                if child is None:
                    # Out of scope, or new: then its own name is among the paths too.
                    return
                if child.partial:
                    name = parent
                    break
                fd = os.open(parent, OPEN_DIRECTORY, dir_fd=here.fd)
                at = join(here.path, parent)
                scope = self._scope_of_child(fd, os.fstat(fd), at, child, parent, here.scope)
                way.down(parent, OpenDir(fd, at, child, scope))
                if scope.key != child.rules:
                    raise _RulesChanged
            here = way.here
            depth = len(way.names)
            self._scan_name(here.fd, here.path, here.node, name, here.scope, depth=depth)
        except (FileNotFoundError, NotADirectoryError):
            # A directory above has gone: its own name is among the paths too.
            return
        finally:
            way.mark()

    def _scan_name(
        self, fd: int, path: bytes, node: Node, name: bytes, scope: Scope, *, depth: int
    ) -> None:
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            self._names.remove(node, name)
            return
        whole = any(
            path == each or path.startswith(each + b"/") for each in self._names.wanted.forced
        )
        self._names.classify(fd, path, node, name, stat.S_ISDIR(status.st_mode), scope, whole)
        if name in node.dirs:
            self._descend(fd, path, node, name, scope, depth=depth, whole=whole)
        for known, guard in ((node.files, False), (node.guards, True)):
            if name in known:
                self._files.changed(fd, path, node, name, known[name], status, guard)

    def _tracked_but_ignored(self, root: Node) -> frozenset[bytes]:
        """What git tracks and the rules left out; looked for only when either has changed."""
        stamp = self._stamp()
        if stamp == self._cache.sources and not self._rules_changed:
            return self._cache.wanted
        self._cache.sources = stamp
        root.unsaved = True
        index = self._sources.index_path
        if index is None:
            return frozenset()
        tracked = git_repo.tracked_paths(index)
        return tracked_but_left_out(root, tracked, self._sources.prefix, self._cache.wanted)

    def _stamp(self) -> tuple[object, ...]:
        """Changes when git's index, the forced, the hidden or the accepted paths do."""
        index = self._sources.index_path
        try:
            status = os.stat(index) if index is not None else None
        except OSError:
            status = None
        git = (status.st_mtime_ns, status.st_size, status.st_ino) if status is not None else None
        wanted = self._names.wanted
        forced, hidden = tuple(sorted(wanted.forced)), tuple(sorted(wanted.hidden))
        return (git, forced, hidden, tuple(sorted(self._accepted)))


class _RulesChanged(Exception):
    """Other rules hold in a directory than when it was listed."""
