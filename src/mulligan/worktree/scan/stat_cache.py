"""The stat cache: what every directory looked like when it was last looked at.

Derived, and safe to lose: each remembered file stands for itself. A file is taken as unchanged
only if its size, change time and inode are those remembered, and it was
not changed so shortly before it was read that a further change could carry the same time ("racily
clean"): such a file is remembered with a change time of -1, which nothing matches.

On disk it is a log, one checksummed record a save, each with the directories that changed, and of
their files those that did; the last word on each counts. A record that is torn or damaged ends
the log: what came before still fits together, and what is missing is looked at again.
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
"""kind, mode, size, modified (ns), changed (ns), inode, identity of the content."""

Excluded = tuple[int, bool, int, int]
"""reason, whether a directory, how many files, its modification time (ns)."""

BuiltTree = tuple[ObjectId, int, int]
"""A built tree: its identity, and the files and bytes below it."""

HEADER = b"MULLIGAN INDEX 3 %d.%d.%d\n" % (*sys.version_info[:2], marshal.version)
RECORD = struct.Struct("<II")
COMPACT_ABOVE = 4 << 20


class Node:
    """One directory as it was last looked at."""

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
        """Whether no name is known here."""
        return not (self.files or self.guards or self.dirs or self.excluded or self.unreadable)

    def changed(self, name: bytes | None = None) -> None:
        """What lies here under a name, or below it, differs from what was built, and saved.

        `dirty_names` and `unsaved_names` collect those names; `None` if there may be others.
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
    """The root node and what it depends on. `generation` is that of the store it refers to."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.generation = -1
        self.sources: tuple[object, ...] = ()
        self.wanted: frozenset[bytes] = frozenset()
        self.held: frozenset[bytes] = frozenset()
        self.held_by: object = None
        self.token: str | None = None
        self.limits: tuple[int, ...] = ()
        self.stamp: tuple[int, ...] | None = None
        self.coverage: Coverage | None = None
        self.covered: bytes | None = None
        self.judged_by: object = None
        self.full_at = 0.0


def signature(status: os.stat_result) -> tuple[int, int, int, int]:
    """Of a directory: while it is this one, it has the names it had."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)


def stamp(path: str) -> tuple[int, ...] | None:
    """Tells whether another process has saved since."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def load(path: str, root: bytes) -> StatCache:
    """What was saved; an empty cache if it is lost, damaged, or of another root."""
    cache = StatCache()
    mark = stamp(path)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return cache
    if not data.startswith(HEADER):
        return cache
    found: dict[bytes, Node] = {}
    offset = len(HEADER)
    while offset + RECORD.size <= len(data):
        length, check = RECORD.unpack_from(data, offset)
        offset += RECORD.size
        payload = data[offset : offset + length]
        if len(payload) != length or crc32(payload) != check:
            break
        offset += length
        try:
            head, nodes = marshal.loads(payload)
            (
                of, cache.generation, cache.sources, cache.wanted, cache.token, cache.limits,
                cache.full_at, cache.held, cache.held_by,
            ) = head  # fmt: skip
            if of != root:
                return StatCache()
            for value in nodes:
                _take(found, value)
        except (ValueError, EOFError, TypeError, KeyError):
            return StatCache()
    cache.root = _assemble(found)
    # A log that does not end with a whole record must not be appended to.
    cache.stamp = mark if offset == len(data) else None
    return cache


def save(path: str, root: bytes, cache: StatCache) -> None:
    """Writes what changed since it was last saved; all of it when the log has grown too long."""
    if cache.root is None:
        return
    touched = [(at, node) for at, node in cache.root.walk() if node.unsaved]
    mark = stamp(path)
    if mark is not None and mark == cache.stamp and not touched:
        return
    whole = mark is None or mark != cache.stamp or _is_mostly_history(cache.root, mark[1])
    nodes = list(cache.root.walk()) if whole else touched
    head = (
        root, cache.generation, cache.sources, cache.wanted, cache.token, cache.limits,
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


def _is_mostly_history(root: Node, size: int) -> bool:
    if size < COMPACT_ABOVE:
        return False
    alive = sum(len(node.files) + len(node.dirs) + 2 for _at, node in root.walk())
    return size > 3 * 130 * alive


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


def _take(found: dict[bytes, Node], value: tuple[Any, ...]) -> None:
    node = Node()
    (
        at, node.signature, node.mode, node.rules, node.partial, node.repository, whole,
        node.files, node.guards, node.unreadable, node.excluded,
        names, node.built, node.built_guards,
        node.passed_over,
    ) = value  # fmt: skip
    if not whole:
        before = found[at]
        node.files = _merged(before.files, node.files)
        node.guards = _merged(before.guards, node.guards)
    node.dirs = dict.fromkeys(names, node)
    node.unsaved = False
    node.unsaved_names = set()
    found[at] = node


def _merged(
    known: dict[bytes, FileStat], news: Mapping[bytes, FileStat | None]
) -> dict[bytes, FileStat]:
    """What was known, with what is new under some names; `None` where nothing is."""
    for name, seen in news.items():
        if seen is not None:
            known[name] = seen
        else:
            known.pop(name, None)
    return known


def _assemble(found: dict[bytes, Node]) -> Node | None:
    root = found.get(b"")
    if root is None:
        return None
    pending = [(b"", root)]
    while pending:
        path, node = pending.pop()
        for name in list(node.dirs):
            below = path + b"/" + name if path else name
            child = found.get(below)
            if child is None:
                # Its record is lost: forget the name too, and have the directory listed again.
                del node.dirs[name]
                node.signature = None
                node.changed(name)
            else:
                node.dirs[name] = child
                pending.append((below, child))
    return root
