"""An open project: journal, store, caches and lock, shared by every subsystem."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from threading import Lock, RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from mulligan.core import tree
from mulligan.core.coverage import decode_path, encode_path
from mulligan.core.tree import EMPTY, EMPTY_ID, Change, Finder, Load, Tree
from mulligan.errors import Busy, Corrupt, NotWritable, OutOfSpace, UsageError
from mulligan.journal import operations
from mulligan.journal.db import Database
from mulligan.journal.migrations import JOURNAL
from mulligan.store.objects import Store
from mulligan.workspace.project.location import ProjectLocation, is_imported, register
from mulligan.workspace.project.lock import WAIT_SECONDS, locked
from mulligan.workspace.settings.settings import Effective, InForce, Settings, change_settings
from mulligan.worktree.fs import deferred_unlink
from mulligan.worktree.fs.safe_paths import open_root
from mulligan.worktree.ignore import git_repo
from mulligan.worktree.scan import stat_cache
from mulligan.worktree.scan.rule_files import MULLIGANIGNORE, effect_of
from mulligan.worktree.scan.stat_cache import StatCache

if TYPE_CHECKING:
    # Only for annotations: the project passes these objects between callers.
    from mulligan.workspace.results.files import Operation, Progress
    from mulligan.workspace.results.review import PendingStats
    from mulligan.worktree.scan.classify import Limits
    from mulligan.worktree.watch.inotify import Watcher
    from mulligan.worktree.watch.remote import RemoteWatcher

MAX_TREE_CACHE_BYTES = 16 << 20
MAX_FINDERS = 4
MAX_TREE_PAIRS, MAX_PAIR_CHANGES = 8, 5_000
SAVE_INTERVAL_SECONDS = 5.0
CANNOT_WRITE_NOW = (Busy, NotWritable, OutOfSpace)
"""Errors that leave the project readable."""

Recover = Callable[["OpenProject"], "tuple[Operation, ...]"]


class BackgroundScan(Protocol):
    """Scans changed files before a command asks for them (`snapshot.prefetch`)."""

    def restart(self) -> None: ...
    def close(self) -> None: ...


class OpenProject:
    """One project: its location, journal, store, caches and lock. Threads may share it."""

    def __init__(
        self,
        location: ProjectLocation,
        home: str,
        *,
        recover: Recover,
        wait: float = WAIT_SECONDS,
        progress: Progress | None = None,
    ) -> None:
        """Open the journal and the store, creating both for a new project.

        `recover` finishes interrupted operations; it runs under the lock. A folder that only
        imported logs name stays marked as imported until it has a checkpoint of its own.
        """
        self.location = location
        self.home = home
        self.wait = wait
        self.progress: Progress = progress or _silent
        self._recover = recover
        self._settings = InForce(home, location.root, location.directory)
        self.imported = is_imported(location)
        register(location, imported=self.imported)
        self.journal, self.store = _open_files(location, wait)
        self.recovered: tuple[Operation, ...] = ()
        self.watcher: Watcher | None = None
        self.prefetcher: BackgroundScan | None = None
        self.search_tools: list[Any] = []
        self.pending_stats_cache: tuple[object, dict[str, PendingStats]] | None = None
        self._process = os.getpid()
        self._guard = RLock()
        self._stop_watching_lock = Lock()
        self._cache: StatCache | None = None
        self._trees: dict[bytes, Tree] = {EMPTY_ID: tree.decode(EMPTY)}
        self._trees_bytes = 0
        self._finders: dict[bytes, Finder] = {}
        self._differences: dict[tuple[bytes, bytes], list[Change]] = {}
        self._depth = 0
        self._saved_at = 0.0

    def index_new_packs(self) -> None:
        """Index pack records that the index lacks, unless another process holds the lock."""
        if self.store.has_unindexed():
            with suppress(*CANNOT_WRITE_NOW), self.locked(wait=0, recovering=True):
                self.store.repair()

    @cached_property
    def home_path(self) -> bytes:
        """The directory of Mulligan's data, without links."""
        return os.path.realpath(os.fsencode(self.home))

    @property
    def root(self) -> str:
        """The project's directory."""
        return os.fsdecode(self.location.root)

    def close(self) -> None:
        """Save the stat cache, stop background work, and close all files."""
        self.stop_watching()
        with self._guard:
            self._save_on_close()
            while self.search_tools:
                self.search_tools.pop().close()
            self.store.close()
            self.journal.close()
            deferred_unlink.finish()

    def stop_watching(self) -> None:
        """Close the watcher and the background scan; later scans compare every file.

        A scan may be running: a closed watcher tells it that its events are lost. The caller must
        not hold the project's lock, which the background scan may be waiting for.
        """
        with self._stop_watching_lock:
            if self.prefetcher is not None:
                # First, for its thread polls the watcher's descriptor.
                self.prefetcher.close()
                self.prefetcher = None
            if self.watcher is not None:
                self.watcher.close()
                self.watcher = None

    def __enter__(self) -> OpenProject:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        """The settings in effect now, including later changes."""
        return self._settings.read().settings

    @property
    def rule_files(self) -> Effective:
        """The settings in effect, with the accepted and the ignored rule files."""
        return self._settings.read()

    def broken_rule_files(self) -> Iterator[tuple[str, str]]:
        """Return the rule files at the project's top that have no effect, and why."""
        passed_over = self.rule_files.passed_over
        if passed_over is not None and passed_over.broken:
            yield decode_path(passed_over.path), passed_over.reason
        with suppress(OSError), open_root(self.location.root) as fd:
            effect = effect_of(fd, b"", frozenset())
            if effect.broken:
                yield decode_path(MULLIGANIGNORE), effect.passed_over

    @property
    def limits(self) -> Limits:
        """The size limits by the present settings."""
        return self.settings.limits

    def change_settings(self, values: Mapping[str, Mapping[str, Any]]) -> Settings:
        """Set settings of the project, by section and name; `.mulligan.toml` still wins."""
        change_settings(self.location.directory, values)
        return self.settings

    def path(self, given: str) -> bytes:
        """Return a path relative to the project; raise `UsageError` if it is outside."""
        if not given or "\0" in given:
            raise UsageError("A path is empty, or holds a NUL; nothing was done.")
        full = os.path.normpath(os.path.join(self.location.root, encode_path(given)))
        if full == self.location.root:
            return b""
        start = self.location.root.rstrip(b"/") + b"/"
        if not full.startswith(start):
            # The parent may lead into the project through a link.
            folder, name = os.path.split(full)
            full = os.path.join(os.path.realpath(folder), name)
            if full == self.location.root:
                return b""
            if not full.startswith(start):
                raise UsageError(f"{given} is outside of the project {self.root}.")
        return full[len(start) :]

    def head(self) -> str | None:
        """Return the HEAD commit of the project's git repository, if any."""
        return git_repo.head(self.location.root)

    def paths(self, given: Sequence[str]) -> tuple[bytes, ...]:
        """Return `path` for each of several."""
        return tuple(self.path(each) for each in given)

    @contextmanager
    def locked(self, *, wait: float | None = None, recovering: bool = False) -> Iterator[None]:
        """Hold the project's lock, after recovering interrupted operations."""
        if self._process != os.getpid():
            raise UsageError(
                "This project was opened before a fork, and writing from the child could lose "
                "data. Open it again in this process."
            )
        with self._guard:
            if self._depth:
                yield
                return
            with locked(
                self.location.path("lock"),
                wait=self.wait if wait is None else wait,
                waiting=lambda holder: self.progress(f"waiting for process {holder}", 0, None),
            ):
                self._depth = 1
                try:
                    if not recovering and operations.unfinished(self.journal):
                        self.recovered += self._recover(self)
                    yield
                finally:
                    self._depth = 0

    def load(self, id: bytes) -> Tree:
        """Return a tree of the store; the last ones are cached."""
        loaded = self._trees.get(id)
        if loaded is None:
            loaded = tree.decode(self.store.get(id))
            self.cache_tree(id, loaded)
        return loaded

    def prefetch_trees(self, ids: Iterable[bytes]) -> None:
        """Look up the locations of trees in one query, before they are loaded."""
        wanted = [id for id in ids if id not in self._trees]
        if len(wanted) > 1:
            self.store.prefetch(wanted)

    def finder(self, root: bytes) -> Finder:
        """Return a function that finds paths in a tree; the last ones are cached."""
        finder = self._finders.get(root)
        if finder is None:
            if len(self._finders) >= MAX_FINDERS:
                self._finders.clear()
            finder = self._finders[root] = Finder(root, self.load)
        return finder

    def differences(self, before: bytes, after: bytes, load: Load | None = None) -> list[Change]:
        """Return the differences of two trees; the last pairs are cached."""
        if before == after:
            return []
        changes = self._differences.get((before, after))
        if changes is None:
            turned = self._differences.get((after, before))
            if turned is not None:
                changes = [Change(path, now, was) for path, was, now in turned]
            else:
                changes = tree.differences(before, after, load or self.load)
            if len(self._differences) >= MAX_TREE_PAIRS:
                self._differences.clear()
            if len(changes) <= MAX_PAIR_CHANGES:
                self._differences[before, after] = changes
        return list(changes)

    def cache_tree(self, id: bytes, made: Tree) -> None:
        """Cache a tree that will be needed soon."""
        if self._trees_bytes > MAX_TREE_CACHE_BYTES:
            self._trees = {EMPTY_ID: self._trees[EMPTY_ID]}
            self._trees_bytes = 0
        self._trees[id] = made
        self._trees_bytes += made.footprint

    def drop_memory(self) -> None:
        """Free caches that only save reading."""
        self._trees = {EMPTY_ID: self._trees[EMPTY_ID]}
        self._trees_bytes = 0
        self._finders.clear()
        self._differences.clear()
        self.store.clear_cache()

    def seed_base(self, id: bytes) -> None:
        """Give the store a cached tree as a delta base, to save reading it."""
        known = self._trees.get(id)
        if known is not None:
            self.store.cache_content(id, known.data)

    def cache(self) -> StatCache:
        """Return the stat cache, read again if another process has saved it."""
        path = self.location.path("index")
        if self._cache is None or (
            self._cache.stamp is not None and stat_cache.stamp(path) != self._cache.stamp
        ):
            self._cache = stat_cache.load(path, self.location.root)
        return self._cache

    def save_cache(self, *, now: bool = False) -> None:
        """Save the stat cache; not every time, as the process that stays has it in memory."""
        moment = time.monotonic()
        if self._cache is None:
            return
        if now or moment - self._saved_at > SAVE_INTERVAL_SECONDS:
            # The cache can be lost at any time, so a full disk must not fail the operation.
            with suppress(OSError):
                stat_cache.save(self.location.path("index"), self.location.root, self._cache)
            self._saved_at = moment

    def _save_on_close(self) -> None:
        """Save the stat cache at the end, unless another process has a newer one."""
        if self._cache is None or self._depth or self._process != os.getpid():
            return
        with suppress(*CANNOT_WRITE_NOW, OSError), self.locked(wait=0, recovering=True):
            if self._cache.stamp == stat_cache.stamp(self.location.path("index")):
                self.save_cache(now=True)

    def drop_cache(self) -> None:
        """Drop the stat cache: it may name objects that were never stored."""
        self._cache = None

    @contextmanager
    def watching(self) -> Iterator[Watcher | RemoteWatcher | None]:
        """Yield our own watcher, that of a `mulligan watch` process, or None."""
        watcher = self.watcher
        if watcher is not None:
            yield watcher
            return
        path = self.location.path("watch.sock")
        if not os.path.exists(path):
            yield None
            return
        from mulligan.worktree.watch.remote import connect

        remote = connect(path)
        try:
            yield remote
        finally:
            if remote is not None:
                remote.close()


def _open_files(location: ProjectLocation, wait: float) -> tuple[Database, Store]:
    """Open the journal and the store; create them under the lock."""
    journal, objects = location.path("journal.sqlite"), location.path("objects")
    if _has_content(journal) and os.path.exists(os.path.join(objects, "index.sqlite")):
        return Database(journal, JOURNAL), Store(objects)
    with locked(location.path("lock"), wait=wait):
        packs = os.listdir(objects) if os.path.isdir(objects) else []
        if not _has_content(journal) and any(name.endswith(".pack") for name in packs):
            raise Corrupt(
                f"{journal} is missing or empty, though there are objects beside it. Nothing was "
                f"changed: put the journal back from a backup, or move {location.directory} away "
                "to begin anew."
            )
        return Database(journal, JOURNAL), Store(objects)


def _has_content(path: str) -> bool:
    return any(os.path.exists(each) and os.path.getsize(each) for each in (path, path + "-wal"))


def _silent(stage: str, done: int, total: int | None) -> None:
    return
