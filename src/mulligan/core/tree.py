"""The picture of all files of a project at one moment, addressed by its content.

A tree is one directory: its entries sorted by name, each written as

    KIND SP MODE SP FILES SP BYTES SP ID SP NAME NUL

KIND is `f` (file), `l` (symbolic link) or `d` (directory); MODE is octal; FILES and BYTES are
totals of what lies below (1 and the length for a file); ID is the SHA-256 of the content in hex:
of the file's bytes, of the link's target, or of the subdirectory's own tree. The identity of a
tree is the SHA-256 of these bytes, so the same files have the same identity on any machine, and
comparing two trees touches only the directories that differ.

What is always true of a decoded tree: names are unique, sorted as bytes, never empty, never `.`,
`..` or `.git`, and contain no slash. A tree that says otherwise is corrupt and is refused whole.

A tree stays bytes for as long as it can: two are compared record by record, and one that differs
from another in a name or two is made of the other's bytes.
"""

from __future__ import annotations

import re
from binascii import hexlify, unhexlify
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from operator import itemgetter
from typing import NamedTuple

from mulligan.errors import Corrupt

FILE = b"f"
LINK = b"l"
DIRECTORY = b"d"
IMPOSSIBLE = frozenset((b".", b"..", b".git"))
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
    id: bytes
    name: bytes

    @property
    def is_directory(self) -> bool:
        return self.kind == DIRECTORY

    def same_content(self, other: Entry | None) -> bool:
        """Whether both hold the same bytes; a different mode does not count."""
        return other is not None and self.kind == other.kind and self.id == other.id


class Change(NamedTuple):
    """One path that differs between two trees; `None` is absence."""

    path: bytes
    before: Entry | None
    after: Entry | None


class Tree:
    """One directory: its canonical bytes, which are taken apart only where somebody asks."""

    __slots__ = ("_before", "_totals", "data")

    def __init__(self, data: bytes, totals: tuple[int, int] | None = None) -> None:
        """Trusts the bytes; `decode` is for those that came from elsewhere."""
        self.data = data
        self._totals = totals
        self._before: tuple[bytes, list[Change]] | None = None

    @classmethod
    def of(cls, entries: Collection[Entry]) -> Tree:
        """The directory with these entries, in any order."""
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
        """How many files lie below, and their bytes."""
        if self._totals is None:
            found = _TOTALS.findall(self.data)
            self._totals = (
                sum(int(files) for files, _size in found),
                sum(int(size) for _files, size in found),
            )
        return self._totals

    @property
    def footprint(self) -> int:
        """Bytes of memory that this holds, at most: often it shares them with its predecessor."""
        before = 0 if self._before is None else len(self._before[0])
        return TREE_OVERHEAD_BYTES + len(self.data) + before

    def get(self, name: bytes) -> Entry | None:
        if len(self.data) < SMALL_TREE_BYTES and b" " + name + b"\0" not in self.data:
            return None
        start, end = self._search(name)
        return _entry(self.data[start : end - 1]) if end > start else None

    def replaced(self, changes: Mapping[bytes, Entry | None]) -> Tree:
        """The same directory with other entries under these names, or none."""
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
        made = Tree(b"".join(pieces), (files, size))
        made._before = (data, differing)
        return made

    def since(self, before: Tree) -> list[Change]:
        """What differs from another directory, name by name, and in that order."""
        if self._before is not None and self._before[0] == before.data:
            return self._before[1]
        old_records, new_records = _unequal(before.records(), self.records())
        old = {entry[5]: entry for entry in map(_entry, old_records)}
        new = {entry[5]: entry for entry in map(_entry, new_records)}
        names = sorted(old.keys() | new.keys())
        return [Change(name, old.get(name), new.get(name)) for name in names]

    def _search(self, name: bytes) -> tuple[int, int]:
        """Where the record of a name begins and ends; if there is none, where it would begin."""
        data = self.data
        low, high = 0, len(data)
        if high < SMALL_TREE_BYTES:
            # Most directories are searched through sooner than one finds the middle of them.
            at = data.find(b" " + name + b"\0")
            start, end = data.rfind(b"\0", 0, max(at, 0)) + 1, at + len(name) + 2
            if at >= 0 and data[start : end - 1].split(b" ", 5)[5] == name:
                return start, end
        while low < high:
            start = data.rfind(b"\0", low, (low + high) // 2) + 1 or low
            end = data.index(b"\0", start) + 1
            found = data[start : end - 1].split(b" ", 5)[5]
            if found == name:
                return start, end
            if found < name:
                low = end
            else:
                high = start
        return low, low


Load = Callable[[bytes], Tree]
Save = Callable[[bytes, bytes | None, Tree], bytes]
"""Stores a directory: its bytes, the identity of the one that it replaces, and its tree."""


def file_entry(name: bytes, mode: int, size: int, id: bytes) -> Entry:
    return Entry(FILE, mode, 1, size, id, name)


def link_entry(name: bytes, size: int, id: bytes) -> Entry:
    """A link has no mode of its own: systems disagree about it and none uses it."""
    return Entry(LINK, 0, 1, size, id, name)


def directory_entry(name: bytes, mode: int, id: bytes, children: Iterable[Entry]) -> Entry:
    files = size = 0
    for child in children:
        files += child[2]
        size += child[3]
    return Entry(DIRECTORY, mode, files, size, id, name)


def encode(entries: Iterable[Entry]) -> bytes:
    """The canonical bytes of a directory with these entries, in any order."""
    return b"".join([_record(entry) for entry in sorted(entries, key=itemgetter(5))])


def decode(data: bytes) -> Tree:
    """The directory that is written so; raises `Corrupt` for anything but canonical bytes."""
    if not _CANONICAL.fullmatch(data):
        raise Corrupt("A tree is not written as a tree must be.")
    names = [record.split(b" ", 5)[5] for record in data.split(b"\0")[:-1]]
    if names != sorted(set(names)) or not IMPOSSIBLE.isdisjoint(names):
        raise Corrupt("A tree holds a name twice, out of order, or one that cannot be.")
    return Tree(data)


def _record(entry: Entry) -> bytes:
    kind, mode, files, size, id, name = entry
    return b"%b %o %d %d %b %b\0" % (kind, mode, files, size, hexlify(id), name)


def _entry(record: bytes) -> Entry:
    kind, mode, files, size, id, name = record.split(b" ", 5)
    # Without calling the class: this is where large projects spend their time.
    return tuple.__new__(Entry, (kind, int(mode, 8), int(files), int(size), unhexlify(id), name))


EMPTY = encode(())
EMPTY_ID = sha256(EMPTY).digest()


def join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name


def differences(before: bytes, after: bytes, load: Load) -> list[Change]:
    """Every path that differs, directories included, in the order of their paths' components.

    A directory is listed before what lies in it, and only if it appears, vanishes, turns into
    something else or changes its mode. Directories with equal identity are not looked into.
    """
    found: list[Change] = []
    _compare(before, after, load, b"", found)
    return found


def _compare(
    before: bytes, after: bytes, load: Load, directory: bytes, found: list[Change]
) -> None:
    if before == after:
        return
    for name, was, now in load(after).since(load(before)):
        path = join(directory, name)
        below = (_below(was), _below(now))
        if below == (None, None):
            found.append(Change(path, was, now))
            continue
        if None in below or was is None or now is None or was.mode != now.mode:
            found.append(Change(path, was, now))
        _compare(below[0] or EMPTY_ID, below[1] or EMPTY_ID, load, path, found)


def _unequal(old: list[bytes], new: list[bytes]) -> tuple[set[bytes], set[bytes]]:
    """The records that are not the same in both."""
    if len(old) == len(new):
        # Mostly some have changed where they are.
        pairs = [(was, now) for was, now in zip(old, new, strict=True) if was != now]
        old, new = [was for was, _now in pairs], [now for _was, now in pairs]
    olds, news = set(old), set(new)
    return olds - news, news - olds


def _below(entry: Entry | None) -> bytes | None:
    """The tree of what lies below an entry, if it is a directory."""
    return entry.id if entry is not None and entry.kind == DIRECTORY else None


def walk(root: bytes, load: Load, directory: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
    """Every path of a tree with its entry; a directory comes before what lies in it."""
    for entry in load(root):
        path = join(directory, entry.name)
        yield path, entry
        if entry.is_directory:
            yield from walk(entry.id, load, path)


def parents(path: bytes) -> Iterator[bytes]:
    """The folders above a path, nearest first."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


def find(root: bytes, path: bytes, load: Load) -> Entry | None:
    """The entry at a path, or `None`."""
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
    """`find` for many paths of one tree, each folder on their way being looked up once."""

    def __init__(self, root: bytes, load: Load) -> None:
        self._load = load
        self._root = Entry(DIRECTORY, 0, 0, 0, root, b"")
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
        found = None
        if above is not None and above.is_directory:
            found = self._load(above.id).get(name)
        known[path] = found
        return found

    def learn(self, entries: Iterable[tuple[bytes, Entry | None]]) -> None:
        """What somebody has found out already."""
        self._known.update(entries)


def edit(root: bytes, changes: Mapping[bytes, Entry | None], load: Load, save: Save) -> bytes:
    """The tree with these paths set to these entries, or removed where the entry is `None`.

    Missing parents are made with mode 755. A directory that is removed stays if anything is left
    in it: what the caller did not name is not the caller's to drop.
    """
    present_tree = load(root)
    entries: dict[bytes, Entry | None] = {}
    direct: dict[bytes, Entry | None] = {}
    nested: dict[bytes, dict[bytes, Entry | None]] = {}
    for path, entry in changes.items():
        head, slash, rest = path.partition(b"/")
        if slash:
            nested.setdefault(head, {})[rest] = entry
        else:
            direct[head] = entry
    for name, wanted in direct.items():
        present = present_tree.get(name)
        if wanted is None:
            if present is not None and present.is_directory and present.id != EMPTY_ID:
                nested.setdefault(name, {})
            else:
                entries[name] = None
        elif wanted.is_directory:
            keep = present.id if present is not None and present.is_directory else EMPTY_ID
            entries[name] = _directory(name, wanted.mode, keep, load)
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
    made = present_tree.replaced(entries)
    return root if made.data == present_tree.data else save(made.data, root, made)


def _directory(name: bytes, mode: int, id: bytes, load: Load) -> Entry:
    files, size = load(id).totals
    return Entry(DIRECTORY, mode, files, size, id, name)
