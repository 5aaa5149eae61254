"""The stat cache: the state of every directory at its last scan.

Derived, and safe to delete. A file counts as unchanged only if size, ctime and inode are equal. A
racily clean file (see `racy`) is stored with a ctime of -1, which no file has.

On disk it is a log with one checksummed record per save, which holds the changed directories and
their changed files; the last record of a directory wins. A truncated or damaged record ends the
log: the records before it are consistent, and the rest is scanned again.
"""

from __future__ import annotations

import marshal
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import get_ident
from typing import Any
from zlib import crc32

from mulligan.core.coverage import Coverage
from mulligan.core.ids import ObjectId

FileStat = tuple[bytes, int, int, int, int, int, bytes]
"""kind, mode, size, mtime (ns), ctime (ns), inode, content id."""

Excluded = tuple[int, bool, int, int]
"""reason, is a directory, number of files, mtime (ns)."""

BuiltTree = tuple[ObjectId, int, int]
"""A tree's id, and the number of files and bytes below it."""

HEADER = b"MULLIGAN INDEX 3 %d.%d.%d\n" % (*sys.version_info[:2], marshal.version)
RECORD = struct.Struct("<II")
MIN_COMPACTED_BYTES = 4 << 20
BYTES_PER_NAME = 130
MAX_GARBAGE_FACTOR = 3


class Node:
    """The state of one directory at its last scan."""

    __slots__ = (
        "built", "built_guards", "dirs", "dirty_names", "excluded", "files", "guards", "mode",
        "old", "old_guards", "partial", "passed_over", "repository", "rules", "signature",
        "unreadable", "unsaved", "unsaved_names",
    )  # fmt: skip

    def __init__(self) -> None:
        self.signature: tuple[int, int, int, int] | None = None
        self.mode = 0o755
        self.rules = b""
        self.partial = False
        self.repository = False
        self.passed_over = ("", False)
        self.files: dict[bytes, FileStat] = {}
        self.guards: dict[bytes, FileStat] = {}
        self.unreadable: dict[bytes, str] = {}
        self.excluded: dict[bytes, Excluded] = {}
        self.dirs: dict[bytes, Node] = {}
        self.built: BuiltTree | None = None
        self.built_guards: BuiltTree | None = None
        self.old: BuiltTree | None = None
        self.old_guards: bytes | None = None
        self.dirty_names: set[bytes] | None = None
        self.unsaved_names: set[bytes] | None = None
        self.unsaved = True

    @property
    def is_empty(self) -> bool:
        """Return whether the node has no names."""
        return not (self.files or self.guards or self.dirs or self.excluded or self.unreadable)

    def changed(self, name: bytes | None = None) -> None:
        """Mark a name, or all names, as different from the built tree and the saved cache.

        `dirty_names` and `unsaved_names` collect the names; `None` stands for all.
        """
        if self.built is not None:
            self.old = self.built
            self.built = None
            self.dirty_names = set()
        if name is None:
            self.dirty_names = self.unsaved_names = None
        else:
            if self.dirty_names is not None:
                self.dirty_names.add(name)
            if self.unsaved_names is not None:
                self.unsaved_names.add(name)
        if self.built_guards is not None:
            self.old_guards = self.built_guards[0]
            self.built_guards = None
        self.unsaved = True

    def find(self, path: bytes) -> Node | None:
        node: Node | None = self
        if path:
            for name in path.split(b"/"):
                node = node.dirs.get(name) if node is not None else None
        return node

    def walk(self, path: bytes = b"") -> Iterator[tuple[bytes, Node]]:
        pending = [(path, self)]
        while pending:
            at, node = pending.pop()
            yield at, node
            if node.dirs:
                start = at + b"/" if at else b""
                pending += [(start + name, node.dirs[name]) for name in reversed(node.dirs)]


class StatCache:
    """The root node and what it depends on. `generation` is the store's."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.generation = -1
        self.sources: tuple[object, ...] = ()
        self.tracked: frozenset[bytes] = frozenset()
        self.held: frozenset[bytes] = frozenset()
        self.held_by: object = None
        self.token: str | None = None
        self.limits: tuple[int, ...] = ()
        self.stamp: tuple[int, ...] | None = None
        self.coverage: Coverage | None = None
        self.covered: bytes | None = None
        self.git_sources: object = None
        self.full_at = 0.0


def signature(status: os.stat_result) -> tuple[int, int, int, int]:
    """Return a directory's signature: while it is equal, its names are the same."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)


def stamp(path: str) -> tuple[int, ...] | None:
    """Return what changes when another process saves the cache."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def load(path: str, root: bytes) -> StatCache:
    """Load the cache; empty if it is missing, damaged, or of another root."""
    cache = StatCache()
    mark = stamp(path)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return cache
    if not data.startswith(HEADER):
        return cache
    nodes: dict[bytes, Node] = {}
    offset = len(HEADER)
    while offset + RECORD.size <= len(data):
        length, check = RECORD.unpack_from(data, offset)
        offset += RECORD.size
        payload = data[offset : offset + length]
        if len(payload) != length or crc32(payload) != check:
            break
        offset += length
        try:
            head, records = marshal.loads(payload)
            (
                saved_root, cache.generation, cache.sources, cache.tracked, cache.token,
                cache.limits, cache.full_at, cache.held, cache.held_by,
            ) = head  # fmt: skip
            if saved_root != root:
                return StatCache()
            for record in records:
                _load_node(nodes, record)
        except (ValueError, EOFError, TypeError, KeyError):
            return StatCache()
    cache.root = _assemble(nodes)
    # Only a log that ends with a whole record may be appended to.
    cache.stamp = mark if offset == len(data) else None
    return cache


def save(path: str, root: bytes, cache: StatCache) -> None:
    """Append the changed directories to the log; rewrite it when it is mostly garbage."""
    if cache.root is None:
        return
    unsaved = [(at, node) for at, node in cache.root.walk() if node.unsaved]
    mark = stamp(path)
    if mark is not None and mark == cache.stamp and not unsaved:
        return
    whole = mark is None or mark != cache.stamp or _is_mostly_garbage(cache.root, mark[1])
    nodes = list(cache.root.walk()) if whole else unsaved
    head = (
        root, cache.generation, cache.sources, cache.tracked, cache.token, cache.limits,
        cache.full_at, cache.held, cache.held_by,
    )  # fmt: skip
    content: Any = (head, [_dump(at, node, whole=whole) for at, node in nodes])
    payload = marshal.dumps(content)
    record = RECORD.pack(len(payload), crc32(payload)) + payload
    if whole:
        temporary = f"{path}.{os.getpid()}.{get_ident()}.tmp"
        try:
            with open(temporary, "wb") as file:
                file.write(HEADER + record)
            os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    else:
        with open(path, "ab") as file:
            file.write(record)
    cache.stamp = stamp(path)
    for _at, node in nodes:
        node.unsaved = False
        node.unsaved_names = set()


def _is_mostly_garbage(root: Node, size: int) -> bool:
    if size < MIN_COMPACTED_BYTES:
        return False
    names = sum(len(node.files) + len(node.dirs) + 2 for _at, node in root.walk())
    return size > MAX_GARBAGE_FACTOR * BYTES_PER_NAME * names


def _dump(at: bytes, node: Node, *, whole: bool) -> tuple[object, ...]:
    names = None if whole else node.unsaved_names
    files, guards = (
        known if names is None else {name: known.get(name) for name in names}
        for known in (node.files, node.guards)
    )
    return (
        at, node.signature, node.mode, node.rules, node.partial, node.repository, names is None,
        files, guards, node.unreadable, node.excluded,
        list(node.dirs), node.built, node.built_guards,
        node.passed_over,
    )  # fmt: skip


def _load_node(nodes: dict[bytes, Node], record: tuple[Any, ...]) -> None:
    node = Node()
    (
        at, node.signature, node.mode, node.rules, node.partial, node.repository, whole,
        node.files, node.guards, node.unreadable, node.excluded,
        names, node.built, node.built_guards,
        node.passed_over,
    ) = record  # fmt: skip
    if not whole:
        before = nodes[at]
        node.files = _merged(before.files, node.files)
        node.guards = _merged(before.guards, node.guards)
    node.dirs = dict.fromkeys(names, node)
    node.unsaved = False
    node.unsaved_names = set()
    nodes[at] = node


def _merged(
    known: dict[bytes, FileStat], changes: Mapping[bytes, FileStat | None]
) -> dict[bytes, FileStat]:
    """Update `known` in place; `None` removes a name."""
    for name, seen in changes.items():
        if seen is not None:
            known[name] = seen
        else:
            known.pop(name, None)
    return known


def _assemble(nodes: dict[bytes, Node]) -> Node | None:
    """Link the nodes into a tree and return its root."""
    root = nodes.get(b"")
    if root is None:
        return None
    pending = [(b"", root)]
    while pending:
        path, node = pending.pop()
        for name in list(node.dirs):
            below = path + b"/" + name if path else name
            child = nodes.get(below)
            if child is None:
                # Its record is lost: drop the name and make the scanner list the directory.
                del node.dirs[name]
                node.signature = None
                node.changed(name)
            else:
                node.dirs[name] = child
                pending.append((below, child))
    return root
