"""Scan the working tree and build its tree object."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from mulligan.clock import now_s
from mulligan.core.coverage import Coverage, PassedOver
from mulligan.core.ids import ObjectId
from mulligan.core.tree import Entry, Tree
from mulligan.journal import always_included, checkpoints
from mulligan.store.writer import Writer
from mulligan.workspace.imported import check_files_allowed
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.settings.settings import PROJECT_FILE
from mulligan.workspace.snapshot.holding import Held, hold_more, what_to_hold
from mulligan.workspace.snapshot.snapshot import Snapshot
from mulligan.workspace.snapshot.trees import Trees
from mulligan.worktree.scan import stat_cache, tree_builder
from mulligan.worktree.scan.read_path import entry_at
from mulligan.worktree.scan.reader import Sink
from mulligan.worktree.scan.scanner import Scanner
from mulligan.worktree.scan.stat_cache import Node, StatCache

if TYPE_CHECKING:
    from mulligan.workspace.snapshot.hash_workers import HashWorkers
    from mulligan.worktree.scan.classify import Limits
    from mulligan.worktree.watch.inotify import Changes, Watcher
    from mulligan.worktree.watch.remote import RemoteWatcher

FULL_EVERY_SECONDS = 600.0
MOUNT_POINTS = (b".codex", b".agents", b".aws")
MAX_MEMORY_FILE_BYTES = 2 << 20
Id = bytes
Ask = Callable[[str | None], "Changes"]
"""Asks the watcher what changed since a token."""


def take_snapshot(
    project: OpenProject, writer: Writer, also: Iterable[bytes] = (), *, prefetch: bool = False
) -> Snapshot:
    """Scan, and store new contents. The caller holds the lock and commits.

    `also` are paths to include this once, even if they are excluded. `prefetch=True` peeks at
    watcher events without consuming them.
    """
    prefetcher = project.prefetcher
    if not prefetch and prefetcher is not None:
        prefetcher.restart()
    # Until the commit, the cache names contents that may never be stored.
    writer.on_rollback(project.drop_cache)
    try:
        cache = project.cache()
        _check_generation(project, cache)
        held = what_to_hold(project, cache)
        with project.watching() as watcher:
            seen = _scan(project, cache, writer, watcher, held, also, prefetch=prefetch)
            if not prefetch and hold_more(project, cache, writer, held, seen):
                seen = _scan(project, cache, writer, watcher, held, also)
            if watcher is not None and watcher.broken:
                # A folder may have been listed unwatched, so the next scan must be full.
                cache.token = None
        return seen
    except BaseException:
        # The cache may name contents that were never stored.
        project.drop_cache()
        raise


def take_unstored(project: OpenProject) -> tuple[Snapshot, dict[bytes, bytes]]:
    """Scan without storing anything, while another process holds the lock.

    Returns also the trees and small contents that may not be in the store.
    """
    cache = stat_cache.load(project.location.path("index"), project.location.root)
    sink = _MemorySink()
    return _scan(project, cache, sink, None, what_to_hold(project, cache)), sink.kept


def with_large_files(
    project: OpenProject, writer: Writer, seen: Snapshot, paths: Iterable[bytes]
) -> Snapshot:
    """Add files to a snapshot that only today's size limit excludes.

    The limit is the largest one that any checkpoint was taken with.
    """
    most = checkpoints.largest_size_limit(project.journal)
    skipped = [path for path in paths if seen.coverage.reason_for(path) is not None]
    if most <= seen.max_file_size or not skipped:
        return seen
    large: dict[bytes, Entry | None] = {}
    for path in skipped:
        with suppress(OSError):
            entry = entry_at(project.location.root, path, writer, limit=most)
            if entry is not None:
                large[path] = entry
    trees = Trees(project, writer)
    tree = trees.edit(seen.tree, large)
    covered = seen.coverage.without(large)
    files, size = trees.load(tree).totals
    return Snapshot(tree, seen.guarded, covered, files, size, writer.put(covered.encode()), most)


def _scan(
    project: OpenProject,
    cache: StatCache,
    sink: Sink,
    watcher: Watcher | RemoteWatcher | None,
    held: Held,
    also: Iterable[bytes] = (),
    *,
    prefetch: bool = False,
) -> Snapshot:
    check_files_allowed(project)
    settings, _origins, accepted, passed_over = project.rule_files
    limits = settings.limits
    limits = limits._replace(file_bytes=max(limits.file_bytes, held.max_file_size))
    if cache.limits != tuple(limits):
        # Other settings include other files, so nothing in the cache holds.
        cache.root = None
        cache.limits = tuple(limits)
    scan = Scanner(
        project.location.root,
        cache,
        sink,
        limits=limits,
        accepted=accepted,
        always_included=(*always_included.paths(project.journal), *cache.held, *also),
        hidden=_hidden(project),
        watch=watcher,
        progress=lambda files, size: project.progress("reading", files, None),
        workers=_worker_pool(project, sink, limits) if isinstance(sink, Writer) else None,
    )
    ask = watcher.since if watcher is not None else None
    if prefetch and project.watcher is not None:
        ask = project.watcher.peek
    if not _scan_changes(scan, cache, ask):
        _scan_everything(scan, cache, watcher, ask)
    root = cache.root
    assert root is not None
    built = _build_trees(project, sink, root, limits)
    _describe(scan, cache, root, built, passed_over)
    assert cache.coverage is not None
    if cache.covered is None:
        cache.covered = sink.put(cache.coverage.encode())
    return Snapshot(
        built.tree, built.guarded, cache.coverage, built.files, built.bytes, cache.covered,
        limits.file_bytes,
    )  # fmt: skip


def _scan_everything(
    scan: Scanner, cache: StatCache, watcher: Watcher | RemoteWatcher | None, ask: Ask | None
) -> None:
    """Scan the whole project, and watch every directory of it."""
    token = ask(None).token if ask is not None else None
    if watcher is not None and cache.root is not None:
        # In one query: the watcher's process would need a round trip per folder.
        watcher.add_many([path for path, _node in cache.root.walk()])
    scan.scan_all()
    cache.token = token
    cache.full_at = now_s()


def _build_trees(
    project: OpenProject, sink: Sink, root: Node, limits: Limits
) -> tree_builder.Snapshot:
    """Build and store the trees of changed directories."""

    def save(data: bytes, old: bytes | None, made: Tree) -> ObjectId:
        if old is not None:
            # The new tree is stored as a delta of the old one.
            project.seed_base(old)
        id = sink.put(data, base=old)
        # The next comparison reads this tree.
        project.cache_tree(id, made)
        project.store.cache_content(id, data)
        return id

    project.prefetch_trees(tree_builder.replaced(root))
    return tree_builder.build(root, project.load, save, limits.guard_total)


def _describe(
    scan: Scanner,
    cache: StatCache,
    root: Node,
    built: tree_builder.Snapshot,
    passed_over: PassedOver | None,
) -> None:
    """Renew the cached coverage if the scan, the guarded files or the settings changed it."""
    coverage = cache.coverage
    if (
        scan.coverage_changed
        or coverage is None
        or coverage.guarded != built.guarded_files
        or (passed_over is not None and passed_over not in coverage.passed_over)
        or (passed_over is None and _names_settings(coverage))
    ):
        broken = () if passed_over is None else (passed_over,)
        cache.coverage = tree_builder.describe(root, built.guarded_files, broken)
        cache.covered = None


def _names_settings(coverage: Coverage) -> bool:
    return any(each.path == PROJECT_FILE for each in coverage.passed_over)


def _worker_pool(project: OpenProject, writer: Writer, limits: Limits) -> Callable[[], HashWorkers]:
    """Return the worker pool for large reads."""

    def call() -> HashWorkers:
        from mulligan.workspace.snapshot.hash_workers import HashWorkers

        return HashWorkers(writer, project.location.root, limit=limits.file_bytes)

    return call


def _scan_changes(scan: Scanner, cache: StatCache, ask: Ask | None) -> bool:
    """Scan only the paths that the watcher reported, if its report is complete."""
    if ask is None or cache.token is None:
        return False
    # Wall clock: another process may have made the last full scan.
    if not 0 <= now_s() - cache.full_at <= FULL_EVERY_SECONDS:
        return False
    seen = ask(cache.token)
    if seen.lost or not scan.scan_paths(seen.paths):
        return False
    cache.token = seen.token
    return True


def _check_generation(project: OpenProject, cache: StatCache) -> None:
    """After a gc, drop objects from the cache that may have been deleted."""
    generation = project.store.index.summary().generation
    if cache.generation == generation:
        return
    if cache.root is not None and cache.generation >= 0:
        for _path, node in cache.root.walk():
            node.changed()
            node.old = node.old_guards = None
            for known in (node.files, node.guards):
                for name, seen in known.items():
                    if not project.store.has(seen[6]):
                        known[name] = (*seen[:4], -1, seen[5], b"")
    elif cache.root is not None:
        cache.root = None
    cache.generation = generation
    cache.token = cache.covered = None


def _hidden(project: OpenProject) -> tuple[bytes, ...]:
    """Return Mulligan's own data inside the project, and mount points of sandboxes."""
    return (*_own_data(project), *_mount_points(project.location.root))


def _mount_points(root: bytes) -> Iterator[bytes]:
    """Yield the empty folders that Codex's sandbox mounts while a command runs."""
    for name in MOUNT_POINTS:
        path = os.path.join(root, name)
        try:
            # Mostly missing, and a test is faster than an exception.
            if os.access(path, os.F_OK) and not os.listdir(path):
                yield name
        except OSError:
            continue


def _own_data(project: OpenProject) -> tuple[bytes, ...]:
    home = project.home_path
    if home == project.location.root:
        return (b"projects", b"config.toml")
    start = project.location.root.rstrip(b"/") + b"/"
    return (home[len(start) :],) if home.startswith(start) else ()


class _MemorySink:
    """A sink that keeps trees and small contents in memory, and hashes of large ones."""

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}

    def put(self, content: bytes, *, base: bytes | None = None) -> ObjectId:
        id = ObjectId(sha256(content).digest())
        self.kept[id] = content
        return id

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[ObjectId, int]:
        digest, size, begin = sha256(), 0, b""
        while piece := read(1 << 20):
            digest.update(piece)
            size += len(piece)
            if size <= MAX_MEMORY_FILE_BYTES:
                begin += piece
        if size <= MAX_MEMORY_FILE_BYTES:
            self.kept[digest.digest()] = begin
        return ObjectId(digest.digest()), size
