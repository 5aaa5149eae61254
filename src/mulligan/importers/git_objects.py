"""Read commits, trees and blobs of another program's git repository.

Git itself is not run, since a repository's config can make it execute programs. Only objects and
branch refs are read, from loose files and packs; alternates are not followed. Every object is
checked against the id by which it was requested.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import sha1
from itertools import chain
from typing import Final, NamedTuple

from mulligan.core.coverage import decode_path
from mulligan.importers.folders import files_below, files_in
from mulligan.importers.json_log import MAX_RECORD_BYTES, open_log
from mulligan.importers.records import InvalidRecord, SnapshotFile

READ_BYTES: Final = 1 << 18
MAX_FILES: Final = 1_000_000
MAX_DEPTH: Final = 200  # of folders in a tree, and of deltas that name their base
OBJECT_ID: Final = re.compile(r"[0-9a-f]{40}")

_TYPES: Final = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_OFFSET_DELTA, _REF_DELTA = 6, 7
_LINK, _EXECUTABLE, _FILE_MODES = "120000", "100755", ("100644", "100664", "100755", "120000")
_COMMITTER: Final = re.compile(rb"^committer .*> (\d{1,12}) [+-]\d{4}$", re.MULTILINE)


class Commit(NamedTuple):
    """A commit. `time` counts seconds since the epoch."""

    id: str
    tree: str
    parents: tuple[str, ...]
    time: int
    message: str


class _Object(NamedTuple):
    type: bytes
    size: int
    pieces: Iterator[bytes]


class _TreeEntry(NamedTuple):
    mode: str
    name: bytes
    id: str


class Repository:
    """The objects in a `.git` folder. Missing or damaged ones raise `InvalidRecord`."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._trees: dict[str, tuple[_TreeEntry, ...]] = {}

    def heads(self) -> list[str]:
        """Return the commit ids of HEAD and all branches."""
        ids = _read_lines(os.path.join(self._directory, "HEAD"))
        for path in sorted(files_below(os.path.join(self._directory, "refs", "heads"), "")):
            ids += _read_lines(path)
        for line in _read_lines(os.path.join(self._directory, "packed-refs")):
            id, _space, ref = line.partition(" ")
            ids += [id] if ref.startswith("refs/heads/") else []
        return [id for id in dict.fromkeys(ids) if OBJECT_ID.fullmatch(id)]

    def commit(self, id: str) -> Commit:
        """Read and parse a commit."""
        header, _blank, message = self._read_all(id, b"commit").partition(b"\n\n")
        fields = [line.partition(b" ") for line in header.split(b"\n")]
        committer = _COMMITTER.search(header)
        trees = [value.decode("ascii", "replace") for key, _, value in fields if key == b"tree"]
        parents = [value.decode("ascii", "replace") for key, _, value in fields if key == b"parent"]
        if not trees or committer is None or not all(map(OBJECT_ID.fullmatch, (*trees, *parents))):
            raise InvalidRecord(f"Commit {id} is malformed.")
        text = message.decode(errors="replace").strip("\n")
        return Commit(id, trees[0], tuple(parents), int(committer[1]), text)

    def files(self, tree: str) -> Iterator[SnapshotFile | str]:
        """Yield every file and symlink of a tree; only the path of a submodule."""
        count = 0
        pending = [(b"", tree)]
        while pending:
            folder, tree_id = pending.pop()
            if folder.count(b"/") > MAX_DEPTH:
                raise InvalidRecord(f"Tree {tree} is deeper than {MAX_DEPTH} folders.")
            for entry in self._read_tree(tree_id):
                path = folder + entry.name
                count += 1
                if count > MAX_FILES:
                    raise InvalidRecord(f"Tree {tree} holds more than {MAX_FILES:,} files.")
                if entry.mode == "40000":
                    pending.append((path + b"/", entry.id))
                elif entry.mode in _FILE_MODES:
                    mode = 0o755 if entry.mode == _EXECUTABLE else 0o644
                    yield SnapshotFile(decode_path(path), entry.id, mode, entry.mode == _LINK)
                else:
                    yield decode_path(path)

    def blob(self, id: str) -> Iterator[bytes]:
        """Read the content of a file in pieces."""
        if not OBJECT_ID.fullmatch(id):
            raise InvalidRecord("Its content has no object id.")
        return self._read_verified(id, b"blob")

    def _read_tree(self, id: str) -> tuple[_TreeEntry, ...]:
        """Read the entries of one folder, cached: most stay the same between commits."""
        entries = self._trees.get(id)
        if entries is None:
            entries = self._trees[id] = tuple(_parse_tree(id, self._read_all(id, b"tree")))
        return entries

    def _read_all(self, id: str, type: bytes) -> bytes:
        return _join(id, self._read_verified(id, type))

    def _read_verified(self, id: str, type: bytes) -> Iterator[bytes]:
        """Yield an object's content, and raise at the end if its hash is not `id`."""
        try:
            object = self._open(id)
            if object.type != type:
                raise InvalidRecord(f"Object {id} is a {object.type.decode()}.")
            hash = sha1(b"%b %d\0" % (object.type, object.size), usedforsecurity=False)
            bytes_left = object.size
            for piece in object.pieces:
                bytes_left -= len(piece)
                if bytes_left < 0:
                    break
                hash.update(piece)
                yield piece
            if bytes_left or hash.hexdigest() != id:
                raise InvalidRecord(f"Object {id} is damaged.")
        except (zlib.error, struct.error, IndexError) as problem:
            raise InvalidRecord(f"Object {id} is damaged.") from problem

    def _open(self, id: str, ref_deltas: int = 0) -> _Object:
        loose = os.path.join(self._directory, "objects", id[:2], id[2:])
        if os.path.exists(loose):
            return _open_loose(id, loose)
        for index in self._pack_indexes:
            offset = index.offset(id)
            if offset is not None:
                return self._open_packed(id, index.pack, offset, ref_deltas)
        raise InvalidRecord(f"Object {id} is missing.")

    @cached_property
    def _pack_indexes(self) -> list[_PackIndex]:
        folder = os.path.join(self._directory, "objects", "pack")
        return [_PackIndex(path) for path in files_in(folder, ".idx")]

    def _open_packed(self, id: str, pack: str, offset: int, ref_deltas: int) -> _Object:
        """Open an object in a pack, and apply its chain of deltas.

        `ref_deltas` counts the deltas on the way here that name their base by id; such a base may
        be anywhere, so the chain could be a cycle.
        """
        deltas: list[bytes] = []
        while True:
            type, size, base, start = _read_pack_header(pack, offset)
            if type in _TYPES:
                object = _Object(_TYPES[type], size, _inflate(pack, start))
                break
            deltas.append(_join(id, _inflate(pack, start)))
            if ref_deltas >= MAX_DEPTH or sum(map(len, deltas)) > MAX_RECORD_BYTES:
                raise InvalidRecord(f"Object {id} has too long a chain of deltas.")
            if isinstance(base, int):
                offset -= base
            else:
                object = self._open(base.hex(), ref_deltas + 1)
                break
        if not deltas:
            return object
        content = _join(id, object.pieces)
        for delta in reversed(deltas):
            content = _apply_delta(id, content, delta)
        return _Object(object.type, len(content), iter((content,)))


class _PackIndex:
    """A pack's `.idx` file of version 2, the only one in use."""

    _IDS_START: Final = 8 + 1024  # after the magic number and the fanout table

    def __init__(self, path: str) -> None:
        self.pack = path.removesuffix(".idx") + ".pack"
        with open_log(path) as file:
            self._data = file.read()
        is_version_2 = self._data.startswith(b"\xfftOc\0\0\0\2")
        self._count = self._fanout(255) if is_version_2 else 0

    def offset(self, id: str) -> int | None:
        """Return the offset of an object in the pack, by binary search."""
        wanted = bytes.fromhex(id)
        if not self._count:
            return None
        low, high = self._fanout(wanted[0] - 1) if wanted[0] else 0, self._fanout(wanted[0])
        while low < high:
            middle = (low + high) // 2
            start = self._IDS_START + 20 * middle
            candidate = self._data[start : start + 20]
            if candidate == wanted:
                return self._offset_at(middle)
            low, high = (middle + 1, high) if candidate < wanted else (low, middle)
        return None

    def _fanout(self, byte: int) -> int:
        """Return the number of objects whose id begins with at most `byte`."""
        return int(struct.unpack_from(">I", self._data, 8 + 4 * byte)[0])

    def _offset_at(self, position: int) -> int:
        offsets = self._IDS_START + 24 * self._count  # after the ids and their checksums
        (offset,) = struct.unpack_from(">I", self._data, offsets + 4 * position)
        if offset >> 31:  # refers to the table of 8-byte offsets
            large = offsets + 4 * self._count + 8 * (offset & 0x7FFFFFFF)
            (offset,) = struct.unpack_from(">Q", self._data, large)
        return int(offset)


def _open_loose(id: str, path: str) -> _Object:
    pieces = _inflate(path, 0)
    header, end, rest = next(pieces, b"").partition(b"\0")
    type, _space, size = header.partition(b" ")
    if not end or type not in _TYPES.values() or not size.isdigit() or len(size) > 18:
        raise InvalidRecord(f"Object {id} is damaged.")
    return _Object(type, int(size), chain((rest,), pieces))


def _read_pack_header(pack: str, offset: int) -> tuple[int, int, int | bytes, int]:
    """Return an object's type and size, its delta base, and the offset of its data.

    The base is a distance within the pack, or an id. Raises IndexError for an invalid header.
    """
    with open_log(pack) as file:
        file.seek(offset)
        header = file.read(64)
    size, shift, at = header[0] & 15, 4, 1
    type = header[0] >> 4 & 7
    while header[at - 1] & 128:
        size |= (header[at] & 127) << shift
        shift, at = shift + 7, at + 1
    base: int | bytes = b""
    if type == _REF_DELTA:
        base, at = header[at : at + 20], at + 20
    elif type == _OFFSET_DELTA:
        base, at = header[at] & 127, at + 1
        while header[at - 1] & 128:
            base, at = (base + 1 << 7) | header[at] & 127, at + 1
        if not 0 < base <= offset:
            raise IndexError
    elif type not in _TYPES:
        raise IndexError
    return type, size, base, offset + at


def _inflate(path: str, start: int) -> Iterator[bytes]:
    """Decompress in pieces of bounded size, however large the result."""
    with open_log(path) as file:
        file.seek(start)
        stream = zlib.decompressobj()
        while not stream.eof:
            compressed = stream.unconsumed_tail or file.read(READ_BYTES)
            if not compressed:
                raise zlib.error("ends early")
            yield stream.decompress(compressed, READ_BYTES)


def _join(id: str, pieces: Iterable[bytes]) -> bytes:
    """Join the pieces of an object that must fit into memory."""
    content = bytearray()
    for piece in pieces:
        content += piece
        _check_size(id, content)
    return bytes(content)


def _check_size(id: str, content: bytearray) -> None:
    if len(content) > MAX_RECORD_BYTES:
        raise InvalidRecord(f"Object {id} is larger than {MAX_RECORD_BYTES >> 20} MiB.")


def _apply_delta(id: str, base: bytes, delta: bytes) -> bytes:
    """Build an object from copied ranges of its base and inserted bytes."""
    _base_size, at = _read_varint(delta, 0)
    size, at = _read_varint(delta, at)
    content = bytearray()
    while at < len(delta):
        code, at = delta[at], at + 1
        if not code & 128:
            content += delta[at : at + code]
            at += code
            continue
        copy = [0, 0]  # offset and length; bits 0–3 and 4–6 say which of their bytes follow
        for bit in range(7):
            if code >> bit & 1:
                copy[bit // 4] |= delta[at] << 8 * (bit % 4)
                at += 1
        start, length = copy[0], copy[1] or 0x10000
        content += base[start : start + length]
        _check_size(id, content)
    if len(content) != size:
        raise InvalidRecord(f"Object {id} is damaged.")
    return bytes(content)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a little-endian base-128 number; return it and where it ends."""
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            return value, at


def _parse_tree(id: str, data: bytes) -> Iterator[_TreeEntry]:
    at = 0
    while at < len(data):
        end = data.find(b"\0", at)
        mode, space, name = data[at:end].partition(b" ")
        at = end + 21
        if end < 0 or not space or not name or at > len(data):
            raise InvalidRecord(f"Tree {id} is malformed.")
        yield _TreeEntry(mode.decode("ascii", "replace"), name, data[end + 1 : at].hex())


def _read_lines(path: str) -> list[str]:
    try:
        with open_log(path) as file:
            return file.read(MAX_RECORD_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []
