"""Encode, compare and edit trees: the files of a project, addressed by content.

A tree is one directory: its entries sorted by name, each written as

    KIND SP MODE SP FILES SP BYTES SP ID SP NAME NUL

KIND is `f` (file), `l` (symbolic link) or `d` (directory); MODE is octal; FILES and BYTES are
totals of everything below (1 and the length for a file); ID is the SHA-256 in hex of the file's
bytes, of the link's target, or of the subdirectory's own tree. The id of a tree is the SHA-256 of
these bytes: equal files have equal ids on any machine, and a comparison reads only directories
that differ.

Always true of a decoded tree: names are unique, sorted as bytes, never empty, never `.`, `..` or
`.git`, and contain no slash. Any other tree is refused as corrupt.

Trees stay bytes as long as possible: they are compared record by record, and an edited tree reuses
the bytes of the old one.
"""

from __future__ import annotations

import re
from binascii import hexlify, unhexlify
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from operator import itemgetter
from typing import NamedTuple

from mulligan.core.ids import ObjectId, TreeId
from mulligan.errors import Corrupt

FILE = b"f"
LINK = b"l"
DIRECTORY = b"d"
FORBIDDEN_NAMES = frozenset((b".", b"..", b".git"))
_CANONICAL = re.compile(
    rb"(?:[fld] (?:0|[1-7][0-7]{0,3}) (?:0|[1-9][0-9]*) (?:0|[1-9][0-9]*) [0-9a-f]{64} [^/\0]+\0)*+"
)
SMALL_TREE_BYTES = 1 << 16
TREE_OVERHEAD_BYTES = 500
_TOTALS = re.compile(rb"[fld] [0-7]+ ([0-9]+) ([0-9]+) [^\0]+\0")


class Entry(NamedTuple):
    """One name in a directory."""

    kind: bytes
    mode: int
    files: int
    size: int
    id: ObjectId
    name: bytes

    @property
    def is_directory(self) -> bool:
        return self.kind == DIRECTORY

    def same_content(self, other: Entry | None) -> bool:
        """True if kind and content are equal; the mode may differ."""
        return other is not None and self.kind == other.kind and self.id == other.id


class Change(NamedTuple):
    """A path that differs between two trees; `None` is absence."""

    path: bytes
    before: Entry | None
    after: Entry | None


class Tree:
    """One directory as canonical bytes, parsed on demand."""

    __slots__ = ("_before", "_totals", "data")

    def __init__(self, data: bytes, totals: tuple[int, int] | None = None) -> None:
        """Trust the bytes; use `decode` for bytes from the store."""
        self.data = data
        self._totals = totals
        self._before: tuple[bytes, list[Change]] | None = None

    @classmethod
    def of(cls, entries: Collection[Entry]) -> Tree:
        """Build a directory of these entries, in any order."""
        totals = (sum([entry[2] for entry in entries]), sum([entry[3] for entry in entries]))
        return cls(encode(entries), totals)

    def __iter__(self) -> Iterator[Entry]:
        return map(_entry, self.records())

    def __len__(self) -> int:
        return self.data.count(b"\0")

    def records(self) -> list[bytes]:
        return self.data.split(b"\0")[:-1]

    @property
    def totals(self) -> tuple[int, int]:
        """Return the files below and their bytes."""
        if self._totals is None:
            per_entry = _TOTALS.findall(self.data)
            self._totals = (
                sum(int(files) for files, _size in per_entry),
                sum(int(size) for _files, size in per_entry),
            )
        return self._totals

    @property
    def footprint(self) -> int:
        """Return the bytes of memory that this holds, at most."""
        before = 0 if self._before is None else len(self._before[0])
        return TREE_OVERHEAD_BYTES + len(self.data) + before

    def get(self, name: bytes) -> Entry | None:
        if len(self.data) < SMALL_TREE_BYTES and b" " + name + b"\0" not in self.data:
            return None
        start, end = self._search(name)
        return _entry(self.data[start : end - 1]) if end > start else None

    def replaced(self, changes: Mapping[bytes, Entry | None]) -> Tree:
        """Return the directory with these names set, or removed for `None`."""
        data = self.data
        files, size = self.totals
        pieces = []
        differing: list[Change] = []
        done = 0
        for name, entry in sorted(changes.items()):
            start, end = self._search(name)
            pieces.append(data[done:start])
            done = end
            old = None
            if end > start:
                old = _entry(data[start : end - 1])
                files -= old.files
                size -= old.size
            if entry is not None:
                pieces.append(_record(entry))
                files += entry.files
                size += entry.size
            if old != entry:
                differing.append(Change(name, old, entry))
        pieces.append(data[done:])
        edited = Tree(b"".join(pieces), (files, size))
        edited._before = (data, differing)
        return edited

    def since(self, before: Tree) -> list[Change]:
        """Return the names that differ from another directory, sorted."""
        if self._before is not None and self._before[0] == before.data:
            return self._before[1]
        old_records, new_records = _unequal(before.records(), self.records())
        old = {entry[5]: entry for entry in map(_entry, old_records)}
        new = {entry[5]: entry for entry in map(_entry, new_records)}
        names = sorted(old.keys() | new.keys())
        return [Change(name, old.get(name), new.get(name)) for name in names]

    def _search(self, name: bytes) -> tuple[int, int]:
        """Return start and end of a name's record; both its insertion point if absent."""
        data = self.data
        low, high = 0, len(data)
        if high < SMALL_TREE_BYTES:
            # In a small directory, `find` is faster than bisection.
            at = data.find(b" " + name + b"\0")
            start, end = data.rfind(b"\0", 0, max(at, 0)) + 1, at + len(name) + 2
            if at >= 0 and data[start : end - 1].split(b" ", 5)[5] == name:
                return start, end
        while low < high:
            start = data.rfind(b"\0", low, (low + high) // 2) + 1 or low
            end = data.index(b"\0", start) + 1
            name_here = data[start : end - 1].split(b" ", 5)[5]
            if name_here == name:
                return start, end
            if name_here < name:
                low = end
            else:
                high = start
        return low, low


Load = Callable[[bytes], Tree]
Save = Callable[[bytes, bytes | None, Tree], ObjectId]
"""Stores a directory: its bytes, the id of the tree that it replaces, and the tree itself."""


def file_entry(name: bytes, mode: int, size: int, id: ObjectId) -> Entry:
    return Entry(FILE, mode, 1, size, id, name)


def link_entry(name: bytes, size: int, id: ObjectId) -> Entry:
    """Make a link's entry; its mode is 0, because systems disagree about it."""
    return Entry(LINK, 0, 1, size, id, name)


def encode(entries: Iterable[Entry]) -> bytes:
    """Return the canonical bytes of these entries, given in any order."""
    return b"".join([_record(entry) for entry in sorted(entries, key=itemgetter(5))])


def decode(data: bytes) -> Tree:
    """Parse a directory; raise `Corrupt` for anything but canonical bytes."""
    if not _CANONICAL.fullmatch(data):
        raise Corrupt("A tree is malformed.")
    names = [record.split(b" ", 5)[5] for record in data.split(b"\0")[:-1]]
    if names != sorted(set(names)) or not FORBIDDEN_NAMES.isdisjoint(names):
        raise Corrupt("A tree holds a duplicate, unsorted or forbidden name.")
    return Tree(data)


def _record(entry: Entry) -> bytes:
    kind, mode, files, size, id, name = entry
    return b"%b %o %d %d %b %b\0" % (kind, mode, files, size, hexlify(id), name)


def _entry(record: bytes) -> Entry:
    kind, mode, files, size, id, name = record.split(b" ", 5)
    # Faster than calling the class; scans of large projects spend their time here.
    return tuple.__new__(Entry, (kind, int(mode, 8), int(files), int(size), unhexlify(id), name))


EMPTY = encode(())
EMPTY_ID = TreeId(ObjectId(sha256(EMPTY).digest()))


def join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name


def differences(before: bytes, after: bytes, load: Load) -> list[Change]:
    """Return every path that differs, directories before their content.

    A directory is listed only if it appears, vanishes, changes its kind or its mode. Directories
    with equal ids are not loaded.
    """
    changes: list[Change] = []
    _compare(before, after, load, b"", changes)
    return changes


def _compare(
    before: bytes, after: bytes, load: Load, directory: bytes, changes: list[Change]
) -> None:
    if before == after:
        return
    for name, was, now in load(after).since(load(before)):
        path = join(directory, name)
        below = (_subtree(was), _subtree(now))
        if below == (None, None):
            changes.append(Change(path, was, now))
            continue
        if None in below or was is None or now is None or was.mode != now.mode:
            changes.append(Change(path, was, now))
        _compare(below[0] or EMPTY_ID, below[1] or EMPTY_ID, load, path, changes)


def _unequal(old: list[bytes], new: list[bytes]) -> tuple[set[bytes], set[bytes]]:
    """Return the records that are only in `old`, and only in `new`."""
    if len(old) == len(new):
        # Mostly entries changed in place: drop equal pairs before the sets are built.
        pairs = [(was, now) for was, now in zip(old, new, strict=True) if was != now]
        old, new = [was for was, _now in pairs], [now for _was, now in pairs]
    olds, news = set(old), set(new)
    return olds - news, news - olds


def _subtree(entry: Entry | None) -> ObjectId | None:
    """Return the id of a directory's tree; None for anything else."""
    return entry.id if entry is not None and entry.kind == DIRECTORY else None


def walk(root: bytes, load: Load, directory: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
    """Yield every path of a tree and its entry, directories before their content."""
    for entry in load(root):
        path = join(directory, entry.name)
        yield path, entry
        if entry.is_directory:
            yield from walk(entry.id, load, path)


def parents(path: bytes) -> Iterator[bytes]:
    """Yield the directories above a path, nearest first."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


def find(root: bytes, path: bytes, load: Load) -> Entry | None:
    """Return the entry at a path, or `None`."""
    entry: Entry | None = None
    here = root
    for name in path.split(b"/"):
        if entry is not None:
            if not entry.is_directory:
                return None
            here = entry.id
        entry = load(here).get(name)
        if entry is None:
            return None
    return entry


class Finder:
    """Finds many paths of one tree, loading each directory once."""

    def __init__(self, root: bytes, load: Load) -> None:
        self._load = load
        self._root = Entry(DIRECTORY, 0, 0, 0, ObjectId(root), b"")
        self._is_empty = root == EMPTY_ID
        self._known: dict[bytes, Entry | None] = {}

    def __call__(self, path: bytes) -> Entry | None:
        if self._is_empty:
            return None
        known = self._known
        if path in known:
            return known[path]
        directory, slash, name = path.rpartition(b"/")
        above = self(directory) if slash else self._root
        entry = None
        if above is not None and above.is_directory:
            entry = self._load(above.id).get(name)
        known[path] = entry
        return entry

    def learn(self, entries: Iterable[tuple[bytes, Entry | None]]) -> None:
        """Add entries that the caller knows already."""
        self._known.update(entries)


def edit(root: ObjectId, changes: Mapping[bytes, Entry | None], load: Load, save: Save) -> ObjectId:
    """Return the tree with these paths set, or removed for `None`.

    Missing parents get mode 755. A removed directory stays if it holds paths that `changes` does
    not name.
    """
    present_tree = load(root)
    entries: dict[bytes, Entry | None] = {}
    direct, nested = _by_depth(changes)
    for name, wanted in direct.items():
        present = present_tree.get(name)
        if wanted is None:
            if present is not None and present.is_directory and present.id != EMPTY_ID:
                nested.setdefault(name, {})
            else:
                entries[name] = None
        elif wanted.is_directory:
            entries[name] = _directory(name, wanted.mode, _subtree(present) or EMPTY_ID, load)
        else:
            entries[name] = wanted._replace(name=name)
    for name, below in nested.items():
        present = entries[name] if name in entries else present_tree.get(name)
        if present is not None and present.is_directory:
            old, mode = present.id, present.mode
        elif any(entry is not None for entry in below.values()):
            old, mode = EMPTY_ID, 0o755
        else:
            continue
        new = edit(old, below, load, save) if below else old
        if new == EMPTY_ID and name in direct and direct[name] is None:
            entries[name] = None
        else:
            entries[name] = _directory(name, mode, new, load)
    edited = present_tree.replaced(entries)
    return root if edited.data == present_tree.data else save(edited.data, root, edited)


def _by_depth(
    changes: Mapping[bytes, Entry | None],
) -> tuple[dict[bytes, Entry | None], dict[bytes, dict[bytes, Entry | None]]]:
    """Split changes into names of this directory, and paths below each name."""
    direct: dict[bytes, Entry | None] = {}
    nested: dict[bytes, dict[bytes, Entry | None]] = {}
    for path, entry in changes.items():
        head, slash, rest = path.partition(b"/")
        if slash:
            nested.setdefault(head, {})[rest] = entry
        else:
            direct[head] = entry
    return direct, nested


def _directory(name: bytes, mode: int, id: ObjectId, load: Load) -> Entry:
    files, size = load(id).totals
    return Entry(DIRECTORY, mode, files, size, id, name)
