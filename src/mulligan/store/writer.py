"""Writing objects.

The order: records are appended to a pack; the pack is synced; only then are its objects listed in
the index. Until `commit` nothing counts, and leaving without it gives the space back.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from hashlib import sha256
from itertools import accumulate, islice
from threading import Lock, local
from types import TracebackType

from mulligan.errors import FULL, Corrupt, OutOfSpace
from mulligan.store import zstd
from mulligan.store.fsync import sync_directory
from mulligan.store.objects import DELTA_DEPTH, Store
from mulligan.store.packing import COMPRESSION_LEVEL, Packer
from mulligan.store.packs import (
    CHUNK,
    CHUNKS,
    DELTA,
    MAGIC,
    RECORD,
    Framed,
    Record,
    frame_head,
    pack_name,
)
from mulligan.store.verified_cache import MAX_RECORDS

MAX_PACK_BYTES = 64 << 20
WRITE_BUFFER_BYTES = 1 << 20
MAX_WAITING_BYTES = 4 << 20
MIN_DELTA_BYTES, MAX_DELTA_BYTES = 64, 512 << 10


class Writer:
    """Appends objects; nothing counts until `commit`. One at a time, under the project's lock.

    Its methods may be called from several threads. Leaving the `with` block without a commit
    gives the space back.
    """

    def __init__(self, store: Store, *, fresh: bool = False) -> None:
        self.store = store
        if not fresh:
            store.repair()
        self._fresh = fresh
        self._lock = Lock()
        self._packers = local()
        self._pending: dict[bytes, Record] = {}
        self._waiting: dict[bytes, tuple[bytes, bytes]] = {}
        self._waiting_bytes = 0
        self._buffer: list[bytes] = []
        self._buffered = 0
        glance = store.index.summary()
        self._ends = dict(glance.packs)
        self._torn = glance.truncated
        self._changed: dict[int, int] = {}
        self._is_first = not self._ends
        self._number = glance.last_pack
        self._fd = -1
        self._position = 0
        self._is_new_name = False
        self._begun: list[tuple[int, int]] = []
        self._eras: dict[int, int] = {}
        self._on_rollback: list[Callable[[], None]] = []

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._abandon()

    def on_rollback(self, forget: Callable[[], None]) -> None:
        """Somebody remembers what was put as stored; `forget` is called if it never will be."""
        self._on_rollback.append(forget)

    def has(self, id: bytes) -> bool:
        return (
            id in self._pending
            or id in self._waiting
            or (not self._is_first and self.store.index.has(id))
        )

    def put(self, content: bytes, *, base: bytes | None = None) -> bytes:
        """Stores bytes unless they are there; `base` is an earlier version, for a delta."""
        id = sha256(content).digest()
        if base is None:
            if not self.has(id):
                self._write(id, content)
            return id
        with self._lock:
            if id not in self._waiting:
                self._waiting[id] = (content, base)
                self._waiting_bytes += len(content)
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self._write_waiting()
        return id

    def put_framed(self, listed: Mapping[bytes, Framed], records: bytes) -> None:
        """Stores contents that were packed elsewhere, as records one after another."""
        known = {} if self._is_first else self.store.index.find_many(listed)
        with self._lock:
            there = [id for id in listed if id in self._pending or id in known]
            if there:
                listed, records = _without(there, listed, records)
            self._rotate_if_full(len(records))
            offset = self._position
            for id, (encoding, size, stored) in listed.items():
                offset += RECORD.size
                self._pending[id] = Record(
                    id, self._number, offset, encoding, size, stored, None, 0
                )
                offset += stored
            self._add((records,), offset)

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[bytes, int]:
        """Stores a large content cut into chunks; gives its identity and length."""
        from pyfastcdc import FastCDC

        from mulligan.store.stream_hash import HashingReader

        chunks = self._earlier_chunks(base)
        listed = self.store.index.find_many({id for id, _length in chunks})
        earlier = _chunk_at(chunks)
        cutter = FastCDC(avg_size=64 << 10, min_size=16 << 10, max_size=256 << 10)
        listing = bytearray()
        size = 0
        with closing(HashingReader(read)) as whole:
            for cut in cutter.cut_stream(whole):
                id = sha256(cut.data).digest()
                if id not in listed:
                    self.put(bytes(cut.data), base=earlier(size))
                listing += CHUNK.pack(id, len(cut.data))
                size += len(cut.data)
        id = whole.digest
        if not self.has(id):
            before = self._find(base) if base is not None else None
            old = None
            if before is not None and before.encoding == CHUNKS:
                old = self.store.chunk_list_id(before) if self.store.has(before.id) else None
            content = self.put(bytes(listing), base=old)
            # The chunks come first: whoever finds this in a pack finds them there, too.
            self._write_waiting()
            self._append(id, CHUNKS, size, content)
        return id, size

    def copy(self, record: Record, *, whole: bool = False) -> Record:
        """Writes an object of the store again, for the garbage collector."""
        payload = self.store.payload(record)
        encoding, base = record.encoding, record.base
        if whole:
            encoding, payload = self._pack(self.store.get(record.id))
            base = None
        return self._append(record.id, encoding, record.size, payload, base, record.depth)

    def commit(self, *, replacing: bool = False) -> int:
        """Syncs the packs, then lists the new objects; gives how many there were.

        `replacing` lets them take the place of objects that are listed already.
        """
        self._write_waiting()
        with self._lock:
            if not self._pending:
                self._on_rollback.clear()
                return 0
            self._sync_before_listing()
            self.store.index.add(self._pending.values(), self._changed, replacing=replacing)
            return self._done()

    def commit_moves(self, old: int) -> None:
        """Syncs what was copied out of a pack, then lets it take the old one's place."""
        with self._lock:
            self._sync_before_listing()
            self.store.index.replace_pack(old, self._pending.values(), self._changed)
            self._done()

    def _sync_before_listing(self) -> None:
        """From here on nothing is given back: an interrupt while it is being listed cannot tell
        whether it is. What is not will be listed by the next writer, as any stray record is."""
        self._sync()
        self._begun = []

    def _done(self) -> int:
        count = len(self._pending)
        for record in islice(reversed(self._pending.values()), MAX_RECORDS):
            self.store.verified.add(record, self._eras[record.pack])
        self._eras.clear()
        self._is_first = False
        self._ends.update(self._changed)
        self._pending.clear()
        self._changed = {}
        self._begun = [(self._number, self._position)] if self._fd >= 0 else []
        self._on_rollback.clear()
        return count

    def _write_waiting(self) -> None:
        """Writes what has an earlier version. The index is asked about all of them at once."""
        with self._lock:
            waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        if not waiting:
            return
        known = self.store.index.find_many(
            {*waiting, *(base for _content, base in waiting.values())}
        )
        for id, (content, base) in waiting.items():
            if id not in known:
                # The next version will be written as a difference from this one.
                self.store.cache_content(id, content)
                self._write(id, content, known.get(base))

    def _write(self, id: bytes, content: bytes, base: Record | None = None) -> None:
        """Appends an object in the way that takes the least space."""
        delta = None
        if base is not None and MIN_DELTA_BYTES <= len(content) <= MAX_DELTA_BYTES:
            delta = self._delta(content, base)
        if delta is not None and len(delta[0]) <= len(content) // 10:
            self._append(id, DELTA, len(content), *delta)
            return
        encoding, payload = self._pack(content)
        if delta is not None and len(delta[0]) < 0.7 * len(payload):
            self._append(id, DELTA, len(content), *delta)
        else:
            self._append(id, encoding, len(content), payload)

    def _pack(self, content: bytes) -> tuple[int, bytes]:
        packer: Packer | None = getattr(self._packers, "one", None)
        if packer is None:
            packer = self._packers.one = Packer()
        return packer.pack(content)

    def _delta(self, content: bytes, base: Record) -> tuple[bytes, bytes, int] | None:
        if (
            base.depth >= DELTA_DEPTH
            or base.encoding == CHUNKS
            or not MIN_DELTA_BYTES <= base.size <= MAX_DELTA_BYTES
        ):
            return None
        try:
            compressor = zstd.Compressor(COMPRESSION_LEVEL, self.store.content(base))
        except Corrupt:
            return None
        return compressor.compress(content), base.id, base.depth + 1

    def _earlier_chunks(self, base: bytes | None) -> list[tuple[bytes, int]]:
        record = self._find(base) if base is not None else None
        if record is None or record.encoding != CHUNKS or not self.store.has(record.id):
            return []
        try:
            return self.store.chunks(record)
        except Corrupt:
            return []

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
        head = frame_head(encoding, size, id, base, len(payload))
        with self._lock:
            present = self._pending.get(id)
            if present is not None:
                return present
            self._rotate_if_full(len(head) + len(payload))
            offset = self._position + len(head)
            record = Record(
                id, self._number, offset, encoding, size, len(payload), base, depth if base else 0
            )
            self._pending[id] = record
            self._add((head, payload), record.end)
            return record

    def _rotate_if_full(self, length: int) -> None:
        if self._fd < 0 or self._position + length > MAX_PACK_BYTES:
            self._next_pack()

    def _add(self, pieces: Iterable[bytes], end: int) -> None:
        self._buffer += pieces
        self._buffered += end - self._position
        self._position = end
        self._changed[self._number] = end
        if self._buffered >= WRITE_BUFFER_BYTES:
            self._flush()

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
            if not self._fresh and 0 < end < MAX_PACK_BYTES and self._ends_with_a_record(path, end):
                self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
                self._position = end
                self._begun.append((self._number, end))
                return
            self._number += 1
        path = os.path.join(self.store.directory, pack_name(self._number))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        self._begun.append((self._number, 0))
        self._is_new_name = True
        self._buffer.append(MAGIC)
        self._position = len(MAGIC)

    def _ends_with_a_record(self, path: str, end: int) -> bool:
        try:
            return self._number not in self._torn and os.path.getsize(path) == end
        except FileNotFoundError:
            return False

    def _flush(self) -> None:
        if self._number not in self._eras:
            # Right before the first write: what others did to the pack until now is not ours.
            self._eras[self._number] = self.store.verified.epoch(self._number, self._fd)
        view = memoryview(b"".join(self._buffer))
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as problem:
            if problem.errno in FULL:
                raise OutOfSpace(
                    f"No space left for the store at {self.store.directory}; nothing was changed. "
                    "Free some space, or try `mulligan gc`."
                ) from problem
            raise
        self._buffer.clear()
        self._buffered = 0

    def _sync(self) -> None:
        if self._fd < 0:
            return
        self._flush()
        os.fsync(self._fd)
        self.store.verified.extend(self._number, self._fd, self._eras[self._number])
        if self._is_new_name:
            sync_directory(self.store.directory)
            self._is_new_name = False

    def _abandon(self) -> None:
        while self._on_rollback:
            self._on_rollback.pop()()
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
            self._waiting.clear()
            self._buffer.clear()
            self._buffered = 0
            self._begun = []


def _without(
    some: Iterable[bytes], listed: Mapping[bytes, Framed], records: bytes
) -> tuple[dict[bytes, Framed], bytes]:
    """Records without those of some objects."""
    dropped = set(some)
    left: dict[bytes, Framed] = {}
    pieces: list[bytes] = []
    start = 0
    for id, each in listed.items():
        end = start + RECORD.size + each[2]
        if id not in dropped:
            left[id] = each
            pieces.append(records[start:end])
        start = end
    return left, b"".join(pieces)


def _chunk_at(chunks: list[tuple[bytes, int]]) -> Callable[[int], bytes | None]:
    """The chunk that holds a place: it makes a good base for the one that holds it next."""
    starts = [0, *accumulate(length for _id, length in chunks)][:-1]
    return lambda offset: chunks[bisect_right(starts, offset) - 1][0] if chunks else None
