"""Reading and writing objects.

Order of a write: records are appended to a pack; the pack is synced; only then are its objects
listed in the index. An object that is listed is therefore on the disk, and an object that is not
listed does not exist, whatever lies in the packs.
"""

from __future__ import annotations

import errno
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from hashlib import sha256
from threading import Lock, RLock
from types import TracebackType

from mulligan.errors import Corrupt, MissingObject, OutOfSpace
from mulligan.store import zstd
from mulligan.store.index import PackIndex
from mulligan.store.packs import (
    CHUNK,
    CHUNKS,
    DELTA,
    MAGIC,
    RAW,
    RECORD,
    ZSTD,
    Record,
    frame,
    pack_name,
    records,
    split_chunks,
)

PACK_LIMIT = 64 << 20
BUFFER = 4 << 20
CHUNKED_FROM = 1 << 20
DELTA_FROM, DELTA_UP_TO = 64, 512 << 10
DELTA_DEPTH = 8
LEVEL = 1


class Store:
    """The objects of one project. Reading is safe from several threads and processes."""

    def __init__(self, directory: str) -> None:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        self.directory = directory
        self.index = PackIndex(directory)
        self._packs: dict[int, int] = {}
        self._lock = RLock()
        self._strays: dict[bytes, Record] = {}
        self._stray_ends: dict[int, tuple[int, bool]] = {}

    def close(self) -> None:
        with self._lock:
            for fd in self._packs.values():
                os.close(fd)
            self._packs.clear()
        self.index.close()

    def has(self, id: bytes) -> bool:
        return self.index.has(id)

    def size(self, id: bytes) -> int:
        return self._record(id).size

    def get(self, id: bytes) -> bytes:
        """The content of an object, checked against its identity."""
        return b"".join(self.stream(id))

    def stream(self, id: bytes) -> Iterator[bytes]:
        """The content in pieces, so that a large file need not fit into memory.

        Each piece is checked by itself before it is given out, and the whole at the end.
        """
        record = self._record(id)
        if record.encoding != CHUNKS:
            yield self._content(record)
            return
        whole = sha256()
        for chunk, _length in self.chunks(record):
            piece = self._content(self._record(chunk))
            whole.update(piece)
            yield piece
        if whole.digest() != id:
            raise Corrupt(f"Object {id.hex()} is damaged; `mulligan verify` tells what it affects.")

    def chunks(self, record: Record) -> list[tuple[bytes, int]]:
        """The chunks of a large object."""
        return split_chunks(self._content(self._record(self._payload(record))))

    def locate(self, id: bytes) -> Record:
        return self._record(id)

    def list_of(self, record: Record) -> bytes:
        """The identity of the list object of a large object."""
        return self._payload(record)

    def _record(self, id: bytes) -> Record:
        record = self.index.find(id) or self._strays.get(id)
        if record is None:
            raise MissingObject(f"Object {id.hex()} is not in the store.")
        return record

    def _content(self, record: Record, depth: int = 0) -> bytes:
        payload = self._payload(record)
        try:
            if record.encoding == ZSTD:
                content = zstd.decompress(payload)
            elif record.encoding == DELTA:
                if record.base is None or depth > 4 * DELTA_DEPTH:
                    raise Corrupt(f"Object {record.id.hex()} has no end to its deltas.")
                base = self._content(self._record(record.base), depth + 1)
                prefix = zstd.ZstdDict(base, is_raw=True).as_prefix
                content = zstd.decompress(payload, zstd_dict=prefix)
            else:
                content = payload
        except zstd.ZstdError as problem:
            raise Corrupt(f"Object {record.id.hex()} cannot be decompressed.") from problem
        if sha256(content).digest() != record.id:
            raise Corrupt(
                f"Object {record.id.hex()} is damaged; `mulligan verify` tells what it affects."
            )
        return content

    def _payload(self, record: Record) -> bytes:
        for attempt in range(3):
            try:
                fd = self._pack(record.pack)
            except FileNotFoundError:
                # The garbage collector has just moved it: the index knows where.
                moved = self.index.find(record.id)
                if moved is None or attempt == 2:
                    break
                record = moved
                continue
            payload = os.pread(fd, record.stored, record.offset)
            if len(payload) == record.stored:
                return payload
            raise Corrupt(f"Pack {pack_name(record.pack)} is cut short.")
        raise MissingObject(f"Pack {pack_name(record.pack)} is not there.")

    def _pack(self, number: int) -> int:
        with self._lock:
            fd = self._packs.get(number)
            if fd is None:
                path = os.path.join(self.directory, pack_name(number))
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                self._packs[number] = fd
            return fd

    def tidy(self) -> None:
        """Clears up after an interrupted writer. Only for the holder of the project's lock.

        Deletes the packs that the garbage collector had emptied, and lists whole records that lie
        in the packs and not in the index: an unfinished writer's, or, after the index was lost,
        everything. Each is read first, for what was never synced may not be what it says it is.
        """
        self.index.bury()
        for number, start, end in list(self.index.strays()):
            fd = self._pack(number)
            os.fsync(fd)
            found: list[Record] = []
            if os.pread(fd, len(MAGIC), 0) == MAGIC:
                found = list(records(fd, number, max(start, len(MAGIC)), end))
            self._strays |= {record.id: record for record in found if not self.index.has(record.id)}
            whole = (found[-1].end if found else max(start, len(MAGIC))) == end
            self._stray_ends[number] = (end, whole)
        if self._stray_ends:
            sound = [
                self._with_depth(each) for each in self._strays.values() if self._is_sound(each)
            ]
            for number, (end, whole) in self._stray_ends.items():
                mine = [record for record in sound if record.pack == number]
                self.index.add(mine, {number: end}, whole=whole)
        self._strays, self._stray_ends = {}, {}

    def damaged(self, id: bytes) -> list[bytes]:
        """Which objects are in the way of reading this one; none if it can be read."""
        try:
            for _piece in self.stream(id):
                pass
        except Corrupt:
            record = self.index.find(id)
            if record is None or record.encoding != CHUNKS:
                return [id]
            try:
                parts = [chunk for chunk, _length in self.chunks(record)]
            except Corrupt:
                return [id, self.list_of(record)]
            return [id, *(chunk for chunk in parts if self.damaged(chunk))]
        return []

    def _is_sound(self, record: Record) -> bool:
        try:
            if record.encoding != CHUNKS:
                return len(self._content(record)) == record.size
            return sum(length for chunk, length in self.chunks(record) if self._record(chunk)) == (
                record.size
            )
        except Corrupt:
            return False

    def _with_depth(self, record: Record) -> Record:
        """The depth of a delta is not written in the pack: it follows from that of its base."""
        depth, base = 0, record.base
        while base is not None and depth <= 4 * DELTA_DEPTH:
            found = self._strays.get(base)
            if found is None:
                depth += 1 + self._record(base).depth
                break
            depth, base = depth + 1, found.base
        return record._replace(depth=depth)

    def release(self, number: int) -> None:
        """Closes a pack that is about to be deleted, so that its blocks are freed."""
        with self._lock:
            fd = self._packs.pop(number, None)
            if fd is not None:
                os.close(fd)


class Writer:
    """Appends objects; nothing counts until `commit`. One at a time, under the project's lock.

    Its methods may be called from several threads. Leaving the `with` block without a commit
    gives the space back.
    """

    def __init__(self, store: Store, *, fresh: bool = False) -> None:
        self.store = store
        if not fresh:
            store.tidy()
        self._fresh = fresh
        self._lock = Lock()
        self._pending: dict[bytes, Record] = {}
        self._buffer = bytearray()
        self._ends = store.index.packs()
        self._changed: dict[int, int] = {}
        self._number = max(self._ends, default=0)
        self._fd = -1
        self._position = 0
        self._begun: list[tuple[int, int]] = []

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._abandon()

    def has(self, id: bytes) -> bool:
        return id in self._pending or self.store.index.has(id)

    def put(self, content: bytes, *, base: bytes | None = None, id: bytes | None = None) -> bytes:
        """Stores bytes unless they are there; `base` is an earlier version, for a delta."""
        if id is None:
            id = sha256(content).digest()
        if self.has(id):
            return id
        delta = None
        if base is not None and DELTA_FROM <= len(content) <= DELTA_UP_TO:
            delta = self._delta(content, base)
        if delta is not None and len(delta[0]) <= len(content) // 10:
            self._append(id, DELTA, len(content), *delta)
            return id
        payload = zstd.compress(content, LEVEL)
        if delta is not None and len(delta[0]) < 0.7 * len(payload):
            self._append(id, DELTA, len(content), *delta)
        elif len(payload) < len(content):
            self._append(id, ZSTD, len(content), payload)
        else:
            self._append(id, RAW, len(content), content)
        return id

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[bytes, int]:
        """Stores a large content cut into chunks; gives its identity and length."""
        from pyfastcdc import FastCDC

        whole = sha256()
        listing = bytearray()
        size = 0
        earlier = self._earlier_chunks(base)
        cutter = FastCDC(avg_size=64 << 10, min_size=16 << 10, max_size=256 << 10)
        for cut in cutter.cut_stream(_Reader(read)):
            piece = bytes(cut.data)
            whole.update(piece)
            listing += CHUNK.pack(self.put(piece, base=earlier(size)), len(piece))
            size += len(piece)
        id = whole.digest()
        if not self.has(id):
            before = self._find(base) if base is not None else None
            old = None
            if before is not None and before.encoding == CHUNKS:
                old = self.store.list_of(before) if self.store.has(before.id) else None
            chunks = self.put(bytes(listing), base=old)
            self._append(id, CHUNKS, size, chunks)
        return id, size

    def copy(self, record: Record, *, whole: bool = False) -> Record:
        """Writes an object of the store again, for the garbage collector."""
        payload = self.store._payload(record)
        encoding, base = record.encoding, record.base
        if whole:
            content = self.store._content(record)
            payload, encoding, base = zstd.compress(content, LEVEL), ZSTD, None
        return self._append(record.id, encoding, record.size, payload, base, record.depth)

    def commit(self, *, replacing: bool = False) -> int:
        """Syncs the packs, then lists the new objects; gives how many there were.

        `replacing` lets them take the place of objects that are listed already.
        """
        with self._lock:
            if not self._pending:
                return 0
            self._sync()
            self.store.index.add(self._pending.values(), self._changed, replacing=replacing)
            return self._done()

    def commit_moves(self, old: int, dead: list[bytes]) -> None:
        """Syncs what was copied out of a pack, then lets it take the old one's place."""
        with self._lock:
            self._sync()
            self.store.index.replace_pack(old, self._pending.values(), dead, self._changed)
            self._done()

    def _done(self) -> int:
        count = len(self._pending)
        self._ends.update(self._changed)
        self._pending.clear()
        self._changed = {}
        self._begun = [(self._number, self._position)] if self._fd >= 0 else []
        return count

    def _delta(self, content: bytes, base: bytes) -> tuple[bytes, bytes, int] | None:
        record = self._find(base)
        if (
            record is None
            or record.depth >= DELTA_DEPTH
            or record.encoding == CHUNKS
            or not DELTA_FROM <= record.size <= DELTA_UP_TO
            or not self.store.has(base)
        ):
            return None
        try:
            prefix = zstd.ZstdDict(self.store.get(base), is_raw=True).as_prefix
        except Corrupt:
            return None
        return zstd.compress(content, LEVEL, zstd_dict=prefix), base, record.depth + 1

    def _earlier_chunks(self, base: bytes | None) -> Callable[[int], bytes | None]:
        # The chunk that held the same place before makes a good base for the one that is new.
        record = self._find(base) if base is not None else None
        if record is None or record.encoding != CHUNKS or not self.store.has(record.id):
            return lambda offset: None
        try:
            chunks = self.store.chunks(record)
        except Corrupt:
            return lambda offset: None
        starts = []
        position = 0
        for _id, length in chunks:
            starts.append(position)
            position += length
        return lambda offset: chunks[max(0, bisect_right(starts, offset) - 1)][0]

    def _find(self, id: bytes) -> Record | None:
        return self._pending.get(id) or self.store.index.find(id)

    def _append(
        self,
        id: bytes,
        encoding: int,
        size: int,
        payload: bytes,
        base: bytes | None = None,
        depth: int = 0,
    ) -> Record:
        data = frame(encoding, size, id, base, payload)
        with self._lock:
            present = self._pending.get(id)
            if present is not None:
                return present
            if self._fd < 0 or self._position + len(data) > PACK_LIMIT:
                self._next_pack()
            offset = self._position + RECORD.size + (32 if base is not None else 0)
            record = Record(
                id, self._number, offset, encoding, size, len(payload), base, depth if base else 0
            )
            self._pending[id] = record
            self._buffer += data
            self._position += len(data)
            self._changed[self._number] = self._position
            if len(self._buffer) >= BUFFER:
                self._flush()
            return record

    def _next_pack(self) -> None:
        if self._fd >= 0:
            self._sync()
            os.close(self._fd)
            self._fd = -1
            self._number += 1
        else:
            path = os.path.join(self.store.directory, pack_name(self._number))
            end = self._ends.get(self._number, 0)
            # A pack is gone on with only where its end is known to be the end of a whole record.
            if not self._fresh and 0 < end < PACK_LIMIT and self._is_whole(path, end):
                self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
                self._position = end
                self._begun.append((self._number, end))
                return
            self._number += 1
        path = os.path.join(self.store.directory, pack_name(self._number))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        self._begun.append((self._number, 0))
        self._buffer += MAGIC
        self._position = len(MAGIC)

    def _is_whole(self, path: str, end: int) -> bool:
        try:
            if os.path.getsize(path) != end:
                return False
        except FileNotFoundError:
            return False
        return self.store.index.is_whole(self._number)

    def _flush(self) -> None:
        view = memoryview(self._buffer)
        done = 0
        try:
            while done < len(view):
                done += os.write(self._fd, view[done:])
        except OSError as problem:
            view.release()
            if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise OutOfSpace(
                    f"No space left for the store at {self.store.directory}; nothing was changed. "
                    "Free some space, or try `mulligan gc`."
                ) from problem
            raise
        view.release()
        self._buffer.clear()

    def _sync(self) -> None:
        if self._fd < 0:
            return
        self._flush()
        os.fsync(self._fd)
        sync_directory(self.store.directory)

    def _abandon(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
            # What was appended since the last commit is in no index: give its space back.
            if self._pending or self._buffer:
                for number, end in self._begun:
                    path = os.path.join(self.store.directory, pack_name(number))
                    if end:
                        os.truncate(path, end)
                    else:
                        os.unlink(path)
            self._pending.clear()
            self._buffer.clear()
            self._begun = []


class _Reader:
    """Gives a `read` function the shape that the cutter asks for."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.read = read


def sync_directory(path: str) -> None:
    """Makes names that were created or removed in a directory durable."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
