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
"""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from operator import itemgetter
from typing import NamedTuple

from mulligan.errors import Corrupt

FILE = b"f"
LINK = b"l"
DIRECTORY = b"d"
IMPOSSIBLE = (b".", b"..", b".git")
_CANONICAL = re.compile(
    rb"(?:[fld] (?:0|[1-7][0-7]{0,3}) (?:0|[1-9][0-9]*) (?:0|[1-9][0-9]*) [0-9a-f]{64} [^/\0]+\0)*+"
)


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


Tree = tuple[Entry, ...]
Load = Callable[[bytes], Tree]
Save = Callable[[bytes, bytes | None, Tree], bytes]
"""Stores a directory: its bytes, the identity of the one that it replaces, and its entries."""


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
    return b"".join(
        [
            b"%b %o %d %d %b %b\0" % (kind, mode, files, size, id.hex().encode(), name)
            for kind, mode, files, size, id, name in sorted(entries, key=itemgetter(5))
        ]
    )


def decode(data: bytes) -> Tree:
    """The entries of a directory; raises `Corrupt` for anything but canonical bytes."""
    if not _CANONICAL.fullmatch(data):
        raise Corrupt("A tree is not written as a tree must be.")
    new = tuple.__new__
    # Without calling the class: this is where large projects spend their time.
    entries = tuple(
        [
            new(Entry, (kind, int(mode, 8), int(files), int(size), unhexlify(id), name))
            for kind, mode, files, size, id, name in [
                record.split(b" ", 5) for record in data.split(b"\0")[:-1]
            ]
        ]
    )
    last = b""
    for entry in entries:
        if entry[5] <= last or entry[5] in IMPOSSIBLE:
            raise Corrupt(f"A tree holds the impossible name {entry[5]!r}.")
        last = entry[5]
    return entries


EMPTY = encode(())
EMPTY_ID = sha256(EMPTY).digest()


def join(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name


def differences(
    before: bytes, after: bytes, load: Load, directory: bytes = b""
) -> Iterator[Change]:
    """Every path that differs, directories included, in the order of their paths' components.

    A directory is listed before what lies in it, and only if it appears, vanishes, turns into
    something else or changes its mode. Directories with equal identity are not looked into.
    """
    if before == after:
        return
    old_entries, new_entries = load(before), load(after)
    same = set(old_entries).intersection(new_entries)
    old = {entry[5]: entry for entry in old_entries if entry not in same}
    new = {entry[5]: entry for entry in new_entries if entry not in same}
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        path = join(directory, name)
        was_directory = was is not None and was.is_directory
        now_directory = now is not None and now.is_directory
        if not (was and now and was_directory and now_directory and was.mode == now.mode):
            yield Change(path, was, now)
        if was_directory or now_directory:
            yield from differences(
                was.id if was is not None and was_directory else EMPTY_ID,
                now.id if now is not None and now_directory else EMPTY_ID,
                load,
                path,
            )


def walk(root: bytes, load: Load, directory: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
    """Every path of a tree with its entry; a directory comes before what lies in it."""
    for entry in load(root):
        path = join(directory, entry.name)
        yield path, entry
        if entry.is_directory:
            yield from walk(entry.id, load, path)


def find(root: bytes, path: bytes, load: Load) -> Entry | None:
    """The entry at a path, or `None`."""
    entry: Entry | None = None
    here = root
    for name in path.split(b"/"):
        if entry is not None:
            if not entry.is_directory:
                return None
            here = entry.id
        entry = next((each for each in load(here) if each.name == name), None)
        if entry is None:
            return None
    return entry


def edit(root: bytes, changes: Mapping[bytes, Entry | None], load: Load, save: Save) -> bytes:
    """The tree with these paths set to these entries, or removed where the entry is `None`.

    Missing parents are made with mode 755. A directory that is removed stays if anything is left
    in it: what the caller did not name is not the caller's to drop.
    """
    entries = {entry.name: entry for entry in load(root)}
    direct: dict[bytes, Entry | None] = {}
    nested: dict[bytes, dict[bytes, Entry | None]] = {}
    for path, entry in changes.items():
        head, slash, rest = path.partition(b"/")
        if slash:
            nested.setdefault(head, {})[rest] = entry
        else:
            direct[head] = entry
    for name, wanted in direct.items():
        present = entries.get(name)
        if wanted is None:
            if present is not None and present.is_directory and present.id != EMPTY_ID:
                nested.setdefault(name, {})
            else:
                entries.pop(name, None)
        elif wanted.is_directory:
            keep = present.id if present is not None and present.is_directory else EMPTY_ID
            entries[name] = _directory(name, wanted.mode, keep, load)
        else:
            entries[name] = wanted._replace(name=name)
    for name, below in nested.items():
        present = entries.get(name)
        if present is not None and present.is_directory:
            old, mode = present.id, present.mode
        elif any(entry is not None for entry in below.values()):
            old, mode = EMPTY_ID, 0o755
        else:
            continue
        new = edit(old, below, load, save) if below else old
        if new == EMPTY_ID and name in direct and direct[name] is None:
            entries.pop(name, None)
        else:
            entries[name] = _directory(name, mode, new, load)
    ordered = tuple(sorted(entries.values(), key=itemgetter(5)))
    data = encode(ordered)
    id = sha256(data).digest()
    return root if id == root else save(data, root, ordered)


def _directory(name: bytes, mode: int, id: bytes, load: Load) -> Entry:
    return directory_entry(name, mode, id, load(id))
