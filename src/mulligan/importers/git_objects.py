"""Git objects: commits, trees and files of a repository that another program keeps.

Read by our own code, for a repository is not only data: its settings can have git run programs,
and this one may have come with a folder that somebody sent. Nothing but objects and the names of
branches is looked at, in loose files and in packs; no other repository is followed. Whatever is
read has the hash by which it was asked for, or is refused.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha1
from typing import BinaryIO, Final, NamedTuple

from mulligan.core.coverage import decode_path
from mulligan.importers.folders import files_below, files_in
from mulligan.importers.lines import LINE_LIMIT, open_log
from mulligan.importers.records import Held
from mulligan.importers.shapes import Untakeable

READ_BYTES: Final = 1 << 18
MAX_FILES: Final = 1_000_000
MAX_DEPTH: Final = 200
NAME: Final = re.compile(r"[0-9a-f]{40}")

_KINDS: Final = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_BY_OFFSET, _BY_NAME = 6, 7  # differences from another object
_LINK, _EXECUTABLE, _FILES = "120000", "100755", ("100644", "100664", "100755", "120000")
_COMMITTER: Final = re.compile(rb"^committer .*> (\d{1,12}) [+-]\d{4}$", re.MULTILINE)


class Commit(NamedTuple):
    """A commit. `time` counts seconds since the epoch."""

    name: str
    tree: str
    parents: tuple[str, ...]
    time: int
    message: str


class Object(NamedTuple):
    kind: bytes
    size: int
    pieces: Iterator[bytes]


class Repository:
    """The objects below a `.git`. What is not there, or is damaged, raises `Untakeable`."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._trees: dict[str, tuple[tuple[str, bytes, str], ...]] = {}

    def heads(self) -> list[str]:
        """Where the branches stand, and HEAD."""
        found = _lines(os.path.join(self._directory, "HEAD"))
        for path in sorted(files_below(os.path.join(self._directory, "refs", "heads"), "")):
            found += _lines(path)
        for line in _lines(os.path.join(self._directory, "packed-refs")):
            name, _space, branch = line.partition(" ")
            found += [name] if branch.startswith("refs/heads/") else []
        return [name for name in dict.fromkeys(found) if NAME.fullmatch(name)]

    def commit(self, name: str) -> Commit:
        head, _blank, message = self._whole(name, b"commit").partition(b"\n\n")
        lines = [line.partition(b" ") for line in head.split(b"\n")]
        committer = _COMMITTER.search(head)
        trees = [value.decode("ascii", "replace") for key, _, value in lines if key == b"tree"]
        parents = [value.decode("ascii", "replace") for key, _, value in lines if key == b"parent"]
        if not trees or committer is None or not all(map(NAME.fullmatch, (*trees, *parents))):
            raise Untakeable(f"Commit {name} is not written as a commit must be.")
        said = message.decode(errors="replace").strip("\n")
        return Commit(name, trees[0], tuple(parents), int(committer[1]), said)

    def files(self, tree: str) -> Iterator[Held | str]:
        """Every file of a tree; the path alone of what is neither a file nor a link."""
        count = 0
        pending = [(b"", tree)]
        while pending:
            folder, name = pending.pop()
            if folder.count(b"/") > MAX_DEPTH:
                raise Untakeable(f"Tree {tree} is deeper than {MAX_DEPTH} folders.")
            for mode, own, id in self._tree(name):
                path = folder + own
                count += 1
                if count > MAX_FILES:
                    raise Untakeable(f"Tree {tree} holds more than {MAX_FILES:,} files.")
                if mode == "40000":
                    pending.append((path + b"/", id))
                elif mode in _FILES:
                    bits = 0o755 if mode == _EXECUTABLE else 0o644
                    yield Held(decode_path(path), id, bits, mode == _LINK)
                else:
                    yield decode_path(path)

    def blob(self, name: str) -> Iterator[bytes]:
        """The content of a file, in pieces."""
        if not NAME.fullmatch(name):
            raise Untakeable("Its content has no name.")
        return self._checked(name, b"blob")

    def _tree(self, name: str) -> tuple[tuple[str, bytes, str], ...]:
        """The entries of one folder: mode, name, object. Most are the same in the next commit."""
        known = self._trees.get(name)
        if known is None:
            known = self._trees[name] = tuple(_entries(name, self._whole(name, b"tree")))
        return known

    def _whole(self, name: str, kind: bytes) -> bytes:
        return _joined(name, self._checked(name, kind))

    def _checked(self, name: str, kind: bytes) -> Iterator[bytes]:
        try:
            found = self._find(name)
            if found.kind != kind:
                raise Untakeable(f"Object {name} is a {found.kind.decode()}.")
            hash = sha1(b"%b %d\0" % (found.kind, found.size), usedforsecurity=False)
            left = found.size
            for piece in found.pieces:
                left -= len(piece)
                if left < 0:
                    break
                hash.update(piece)
                yield piece
            if left or hash.hexdigest() != name:
                raise Untakeable(f"Object {name} is damaged.")
        except (zlib.error, struct.error, IndexError) as problem:
            raise Untakeable(f"Object {name} is damaged.") from problem

    def _find(self, name: str, deep: int = 0) -> Object:
        loose = os.path.join(self._directory, "objects", name[:2], name[2:])
        if os.path.exists(loose):
            return _loose(name, loose)
        for index in self._indexes:
            offset = index.offset(name)
            if offset is not None:
                return self._packed(name, index.pack, offset, deep)
        raise Untakeable(f"Object {name} is not there.")

    @cached_property
    def _indexes(self) -> list[_Index]:
        return [_Index(path) for path in files_in(self._packs, ".idx")]

    @property
    def _packs(self) -> str:
        return os.path.join(self._directory, "objects", "pack")

    def _packed(self, name: str, pack: str, offset: int, deep: int) -> Object:
        """An object of a pack, put together if it is a difference from another one.

        `deep` is how many were on the way here that name their base, which may be anywhere.
        """
        differences: list[bytes] = []
        while True:
            kind, size, base, start = _head(pack, offset)
            if kind in _KINDS:
                found = Object(_KINDS[kind], size, _inflated(pack, start))
                break
            differences.append(_joined(name, _inflated(pack, start)))
            if deep >= MAX_DEPTH or sum(map(len, differences)) > LINE_LIMIT:
                raise Untakeable(f"Object {name} is too many differences deep.")
            if isinstance(base, int):
                offset -= base
            else:
                found = self._find(base.hex(), deep + 1)
                break
        if not differences:
            return found
        content = _joined(name, found.pieces)
        for difference in reversed(differences):
            content = _patched(name, content, difference)
        return Object(found.kind, len(content), iter((content,)))


class _Index:
    """Where the objects of a pack are: the second version of git's `.idx`, the only one in use."""

    def __init__(self, path: str) -> None:
        self.pack = path.removesuffix(".idx") + ".pack"
        with open_log(path) as file:
            self._data = file.read()
        self._is_known = self._data.startswith(b"\xfftOc\0\0\0\2")
        self._count = self._fan(255) if self._is_known else 0

    def offset(self, name: str) -> int | None:
        wanted = bytes.fromhex(name)
        if not self._count:
            return None
        low, high = self._fan(wanted[0] - 1) if wanted[0] else 0, self._fan(wanted[0])
        names = 8 + 1024
        while low < high:
            middle = (low + high) // 2
            found = self._data[names + 20 * middle : names + 20 * middle + 20]
            if found == wanted:
                return self._place(middle)
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        return None

    def _fan(self, byte: int) -> int:
        return int(struct.unpack_from(">I", self._data, 8 + 4 * byte)[0])

    def _place(self, number: int) -> int:
        offsets = 8 + 1024 + 24 * self._count
        (place,) = struct.unpack_from(">I", self._data, offsets + 4 * number)
        if place >> 31:
            large = offsets + 4 * self._count + 8 * (place & 0x7FFFFFFF)
            (place,) = struct.unpack_from(">Q", self._data, large)
        return int(place)


def _loose(name: str, path: str) -> Object:
    pieces = _inflated(path, 0)
    start = next(pieces, b"")
    head, end, rest = start.partition(b"\0")
    kind, _space, size = head.partition(b" ")
    if not end or kind not in _KINDS.values() or not size.isdigit() or len(size) > 18:
        raise Untakeable(f"Object {name} is damaged.")
    return Object(kind, int(size), _chained(rest, pieces))


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _head(pack: str, offset: int) -> tuple[int, int, int | bytes, int]:
    """The kind and size of a record, what it is a difference from, and where its bytes begin."""
    with open_log(pack) as file:
        file.seek(offset)
        head = file.read(64)
    size, shift, at = head[0] & 15, 4, 1
    kind = head[0] >> 4 & 7
    while head[at - 1] & 128:
        size |= (head[at] & 127) << shift
        shift, at = shift + 7, at + 1
    base: int | bytes = b""
    if kind == _BY_NAME:
        base, at = head[at : at + 20], at + 20
    elif kind == _BY_OFFSET:
        base, at = head[at] & 127, at + 1
        while head[at - 1] & 128:
            base, at = (base + 1 << 7) | head[at] & 127, at + 1
        if not 0 < base <= offset:
            raise IndexError
    elif kind not in _KINDS:
        raise IndexError
    return kind, size, base, offset + at


def _inflated(path: str, start: int) -> Iterator[bytes]:
    with open_log(path) as file:
        file.seek(start)
        yield from _inflating(file)


def _inflating(file: BinaryIO) -> Iterator[bytes]:
    """What was compressed, piece by piece, however much it may grow."""
    stream = zlib.decompressobj()
    given = b""
    while not stream.eof:
        given = stream.unconsumed_tail or file.read(READ_BYTES)
        if not given:
            raise zlib.error("ends early")
        yield stream.decompress(given, READ_BYTES)


def _joined(name: str, pieces: Iterable[bytes]) -> bytes:
    """The pieces as a whole, for what is put together in memory."""
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) > LINE_LIMIT:
            raise Untakeable(f"Object {name} is larger than {LINE_LIMIT >> 20} MiB.")
    return bytes(found)


def _patched(name: str, base: bytes, difference: bytes) -> bytes:
    """The object that a difference makes of its base: pieces of the base, and new bytes."""
    _size, at = _number(difference, 0)
    size, at = _number(difference, at)
    found = bytearray()
    while at < len(difference):
        code, at = difference[at], at + 1
        if not code & 128:
            found += difference[at : at + code]
            at += code
            continue
        numbers = [0, 0]
        for bit in range(7):
            if code >> bit & 1:
                numbers[bit // 4] |= difference[at] << 8 * (bit % 4)
                at += 1
        start, length = numbers[0], numbers[1] or 0x10000
        found += base[start : start + length]
        if len(found) > LINE_LIMIT:
            raise Untakeable(f"Object {name} is larger than {LINE_LIMIT >> 20} MiB.")
    if len(found) != size:
        raise Untakeable(f"Object {name} is damaged.")
    return bytes(found)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    found = shift = 0
    while True:
        byte, at = data[at], at + 1
        found |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            return found, at


def _entries(name: str, data: bytes) -> Iterator[tuple[str, bytes, str]]:
    at = 0
    while at < len(data):
        end = data.find(b"\0", at)
        mode, space, own = data[at:end].partition(b" ")
        at = end + 21
        if end < 0 or not space or not own or at > len(data):
            raise Untakeable(f"Tree {name} is not written as a tree must be.")
        yield mode.decode("ascii", "replace"), own, data[end + 1 : at].hex()


def _lines(path: str) -> list[str]:
    try:
        with open_log(path) as file:
            return file.read(LINE_LIMIT).decode(errors="replace").splitlines()
    except OSError:
        return []
