"""One look at the working tree: what is there now, as a tree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from mulligan.clock import now_s
from mulligan.core.coverage import Coverage
from mulligan.core.tree import Entry, Tree
from mulligan.journal import checkpoints
from mulligan.store.writer import Writer
from mulligan.workspace.imported import check_files_allowed
from mulligan.workspace.settings import PROJECT_FILE
from mulligan.workspace.snapshot.holding import Held, hold_more, what_to_hold
from mulligan.workspace.snapshot.trees import Trees
from mulligan.worktree.scan import stat_cache, tree_builder
from mulligan.worktree.scan.read_path import entry_at
from mulligan.worktree.scan.reader import Sink
from mulligan.worktree.scan.scanner import Scanner
from mulligan.worktree.scan.stat_cache import StatCache

if TYPE_CHECKING:
    from mulligan.workspace.snapshot.hash_workers import HashWorkers
    from mulligan.workspace.workspace import Workspace
    from mulligan.worktree.scan.classify import Limits
    from mulligan.worktree.watch.inotify import Changes, Watcher
    from mulligan.worktree.watch.remote import RemoteWatcher

FULL_EVERY_SECONDS = 600.0
MOUNT_POINTS = (b".codex", b".agents", b".aws")
KEPT_BYTES = 2 << 20
Id = bytes


class Snapshot(NamedTuple):
    """The project as it is now. `tree` and `guarded` are objects, and `covered` is the one that
    holds the coverage; `files` and `bytes` are totals."""

    tree: Id
    guarded: Id
    coverage: Coverage
    files: int
    bytes: int
    covered: Id
    max_file_size: int = 0


def take_snapshot(
    workspace: Workspace, writer: Writer, also: Iterable[bytes] = (), *, ahead: bool = False
) -> Snapshot:
    """Looks, and stores every content that is new. The caller holds the lock and commits.

    `also` are paths to take in this once, wherever they lie. `ahead` of any verb, it takes no
    news from those who wait for some.
    """
    if not ahead and workspace.ahead is not None:
        workspace.ahead.restart()
    # Until it is committed, the cache names contents that may never be stored.
    writer.on_rollback(workspace.drop_cache)
    try:
        cache = workspace.cache()
        _check_generation(workspace, cache)
        held = what_to_hold(workspace, cache)
        with workspace.watching() as watcher:
            seen = _scan(workspace, cache, writer, watcher, held, also, ahead=ahead)
            if not ahead and hold_more(workspace, cache, writer, held, seen):
                seen = _scan(workspace, cache, writer, watcher, held, also)
            if watcher is not None and watcher.broken:
                # A folder may have been listed without being watched: nothing follows from this.
                cache.token = None
        return seen
    except BaseException:
        # The cache may now name contents that were never stored.
        workspace.drop_cache()
        raise


def take_unstored(workspace: Workspace) -> tuple[Snapshot, dict[bytes, bytes]]:
    """Looks without storing anything, for when another process holds the project.

    Gives also the trees and small contents that were seen and may not be in the store.
    """
    cache = stat_cache.load(workspace.project.path("index"), workspace.project.root)
    sink = _Memory()
    return _scan(workspace, cache, sink, None, what_to_hold(workspace, cache)), sink.kept


def with_large_files(
    workspace: Workspace, writer: Writer, seen: Snapshot, paths: Iterable[bytes]
) -> Snapshot:
    """The look, with those of the paths that only today's size limit leaves out.

    Up to the largest limit that a checkpoint was taken with.
    """
    most = checkpoints.largest_size_limit(workspace.journal)
    skipped = [path for path in paths if seen.coverage.reason_for(path) is not None]
    if most <= seen.max_file_size or not skipped:
        return seen
    found: dict[bytes, Entry | None] = {}
    for path in skipped:
        with suppress(OSError):
            entry = entry_at(workspace.project.root, path, writer, limit=most)
            if entry is not None:
                found[path] = entry
    trees = Trees(workspace, writer)
    tree = trees.edit(seen.tree, found)
    covered = seen.coverage.without(found)
    files, size = trees.load(tree).totals
    return Snapshot(tree, seen.guarded, covered, files, size, writer.put(covered.encode()), most)


def always_included(workspace: Workspace) -> list[bytes]:
    return [row[0] for row in workspace.journal.rows("SELECT path FROM forced ORDER BY path")]


def _scan(
    workspace: Workspace,
    cache: StatCache,
    sink: Sink,
    watcher: Watcher | RemoteWatcher | None,
    held: Held,
    also: Iterable[bytes] = (),
    *,
    ahead: bool = False,
) -> Snapshot:
    check_files_allowed(workspace)
    project = workspace.project
    settings, _origins, accepted, passed_over = workspace.rule_files
    limits = settings.limits
    limits = limits._replace(file_bytes=max(limits.file_bytes, held.max_file_size))
    if cache.limits != tuple(limits):
        # What is kept depends on the settings: with other settings, nothing seen still holds.
        cache.root = None
        cache.limits = tuple(limits)
    scan = Scanner(
        project.root,
        cache,
        sink,
        limits=limits,
        accepted=accepted,
        forced=(*always_included(workspace), *cache.held, *also),
        hidden=_hidden(workspace),
        watch=watcher,
        progress=lambda files, size: workspace.progress("reading", files, None),
        hands=_hands(workspace, sink, limits) if isinstance(sink, Writer) else None,
    )
    asked = watcher.since if watcher is not None else None
    if ahead and workspace.watcher is not None:
        asked = workspace.watcher.peek
    if not _scan_changes(scan, cache, asked):
        token = asked(None).token if asked is not None else None
        if watcher is not None and cache.root is not None:
            # In one go: asking another process for each folder would take a round trip each.
            watcher.add_many([path for path, _node in cache.root.walk()])
        scan.scan_all()
        cache.token = token
        cache.full_at = now_s()
    root = cache.root
    assert root is not None

    def save(data: bytes, old: bytes | None, made: Tree) -> bytes:
        if old is not None:
            # It will be written as a difference from the old one, which is mostly at hand.
            workspace.seed_base(old)
        id = sink.put(data, base=old)
        # It is about to be compared with the one that it replaces, and will be replaced itself.
        workspace.cache_tree(id, made)
        workspace.store.cache_content(id, data)
        return id

    workspace.prefetch_trees(tree_builder.replaced(root))
    made = tree_builder.build(root, workspace.load, save, limits.guard_total)
    if (
        scan.coverage_changed
        or cache.coverage is None
        or (cache.coverage.guarded != made.guarded_files)
        or (passed_over is not None and passed_over not in cache.coverage.passed_over)
        or (passed_over is None and _tells_of_settings(cache.coverage))
    ):
        broken = () if passed_over is None else (passed_over,)
        cache.coverage = tree_builder.describe(root, made.guarded_files, broken)
        cache.covered = None
    if cache.covered is None:
        cache.covered = sink.put(cache.coverage.encode())
    return Snapshot(
        made.tree, made.guarded, cache.coverage, made.files, made.bytes, cache.covered,
        limits.file_bytes,
    )  # fmt: skip


def _tells_of_settings(coverage: Coverage) -> bool:
    return any(each.path == PROJECT_FILE for each in coverage.passed_over)


def _hands(workspace: Workspace, writer: Writer, limits: Limits) -> Callable[[], HashWorkers]:
    """Whom to call when there is much to read."""

    def call() -> HashWorkers:
        from mulligan.workspace.snapshot.hash_workers import HashWorkers

        return HashWorkers(writer, workspace.project.root, limit=limits.file_bytes)

    return call


def _scan_changes(
    scan: Scanner, cache: StatCache, asked: Callable[[str | None], Changes] | None
) -> bool:
    """Looks only where the watcher saw something, if that can be trusted to be all."""
    if asked is None or cache.token is None:
        return False
    # By the clock on the wall, for the last full look may have been another process's.
    if not 0 <= now_s() - cache.full_at <= FULL_EVERY_SECONDS:
        return False
    seen = asked(cache.token)
    if seen.lost or not scan.scan_paths(seen.paths):
        return False
    cache.token = seen.token
    return True


def _check_generation(workspace: Workspace, cache: StatCache) -> None:
    """After a garbage collection the cache may name objects that are gone: it forgets those."""
    generation = workspace.store.index.summary().generation
    if cache.generation == generation:
        return
    if cache.root is not None and cache.generation >= 0:
        for _path, node in cache.root.walk():
            node.changed()
            node.old = node.old_guards = None
            for known in (node.files, node.guards):
                for name, seen in known.items():
                    if not workspace.store.has(seen[6]):
                        known[name] = (*seen[:4], -1, seen[5], b"")
    elif cache.root is not None:
        cache.root = None
    cache.generation = generation
    cache.token = cache.covered = None


def _hidden(workspace: Workspace) -> tuple[bytes, ...]:
    """Mulligan's own data, should it lie inside the project; and what a sandbox puts there."""
    return (*_own(workspace), *_mount_points(workspace.project.root))


def _mount_points(root: bytes) -> Iterator[bytes]:
    """Codex's sandbox has empty folders in the project while a command runs: nobody's work."""
    for name in MOUNT_POINTS:
        path = os.path.join(root, name)
        try:
            # Mostly it is not there, and that is told the quickest without an exception.
            if os.access(path, os.F_OK) and not os.listdir(path):
                yield name
        except OSError:
            continue


def _own(workspace: Workspace) -> tuple[bytes, ...]:
    home = workspace.home_path
    if home == workspace.project.root:
        return (b"projects", b"config.toml")
    start = workspace.project.root.rstrip(b"/") + b"/"
    return (home[len(start) :],) if home.startswith(start) else ()


class _Memory:
    """A sink that keeps trees and small contents in memory, and of large ones only the hash."""

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}

    def put(self, content: bytes, *, base: bytes | None = None) -> bytes:
        id = sha256(content).digest()
        self.kept[id] = content
        return id

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[bytes, int]:
        digest, size, begin = sha256(), 0, b""
        while piece := read(1 << 20):
            digest.update(piece)
            size += len(piece)
            if size <= KEPT_BYTES:
                begin += piece
        if size <= KEPT_BYTES:
            self.kept[digest.digest()] = begin
        return digest.digest(), size
