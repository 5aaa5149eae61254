"""Write objects to packs.

1. Append records to a pack.
2. Sync the pack.
3. Add the objects to the index, in one transaction.

Objects do not exist before step 3; leaving the writer without `commit` truncates the packs again.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import closing
from hashlib import sha256
from itertools import accumulate, islice
from threading import Lock, local
from types import TracebackType

from mulligan.core.ids import ObjectId
from mulligan.errors import NO_SPACE_ERRNOS, Corrupt, OutOfSpace
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
MIN_CHUNK_BYTES, AVERAGE_CHUNK_BYTES, MAX_CHUNK_BYTES = 16 << 10, 64 << 10, 256 << 10


class Writer:
    """Appends objects; `commit` makes them exist. One writer at a time, under the project's lock.

    Methods may be called from several threads. `fresh` starts a new pack without repairs.
    """

    def __init__(self, store: Store, *, fresh: bool = False) -> None:
        self.store = store
        if not fresh:
            store.repair()
        self._fresh = fresh
        self._lock = Lock()
        self._packers = local()
        # Appended to a pack, and not yet indexed.
        self._pending: dict[bytes, Record] = {}
        # Contents with the id of their base, to be looked up and written in batches.
        self._waiting: dict[ObjectId, tuple[bytes, bytes]] = {}
        self._waiting_bytes = 0
        self._buffer: list[bytes] = []
        self._buffered_bytes = 0
        summary = store.index.summary()
        self._ends = dict(summary.packs)
        self._truncated = summary.truncated
        self._new_ends: dict[int, int] = {}
        self._store_is_empty = not self._ends
        self._number = summary.last_pack
        self._fd = -1
        self._position = 0
        self._sync_name = False
        # (pack, size to truncate to on rollback); 0 deletes the pack.
        self._rollback_ends: list[tuple[int, int]] = []
        self._epochs: dict[int, int] = {}
        self._on_rollback: list[Callable[[], None]] = []

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._rollback()

    def on_rollback(self, forget: Callable[[], None]) -> None:
        """Call `forget` on rollback, for caches that count put objects as stored."""
        self._on_rollback.append(forget)

    def has(self, id: bytes) -> bool:
        return (
            id in self._pending
            or id in self._waiting
            or (not self._store_is_empty and self.store.index.has(id))
        )

    def put(self, content: bytes, *, base: bytes | None = None) -> ObjectId:
        """Store content unless it exists; `base` is an earlier version, for a delta."""
        id = ObjectId(sha256(content).digest())
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
        """Store records that a worker process has encoded; `listed` describes each."""
        known = {} if self._store_is_empty else self.store.index.find_many(listed)
        with self._lock:
            existing = {id for id in listed if id in self._pending or id in known}
            if existing:
                listed, records = _without(existing, listed, records)
            self._rotate_if_full(len(records))
            offset = self._position
            for id, (encoding, size, stored) in listed.items():
                offset += RECORD.size
                self._pending[id] = Record(
                    ObjectId(id), self._number, offset, encoding, size, stored, None, 0
                )
                offset += stored
            self._add((records,), offset)

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[ObjectId, int]:
        """Store a large content in chunks; return its id and length."""
        from pyfastcdc import FastCDC

        from mulligan.store.stream_hash import HashingReader

        old = self._chunked(base)
        old_chunks = self._old_chunks(old)
        indexed = self.store.index.find_many({id for id, _length in old_chunks})
        base_at = _chunk_at(old_chunks)
        cutter = FastCDC(
            avg_size=AVERAGE_CHUNK_BYTES, min_size=MIN_CHUNK_BYTES, max_size=MAX_CHUNK_BYTES
        )
        chunk_list = bytearray()
        size = 0
        with closing(HashingReader(read)) as whole:
            for cut in cutter.cut_stream(whole):
                chunk = sha256(cut.data).digest()
                if chunk not in indexed:
                    self.put(bytes(cut.data), base=base_at(size))
                chunk_list += CHUNK.pack(chunk, len(cut.data))
                size += len(cut.data)
        id = ObjectId(whole.digest)
        if not self.has(id):
            old_list = self.store.chunk_list_id(old) if old is not None else None
            list_id = self.put(bytes(chunk_list), base=old_list)
            # Chunks come before the object, so that `repair` finds them when it reads the object.
            self._write_waiting()
            self._append(id, CHUNKS, size, list_id)
        return id, size

    def copy(self, record: Record, *, whole: bool = False) -> Record:
        """Copy an object to the current pack; `whole` rewrites a delta as a full object."""
        payload = self.store.payload(record)
        encoding, base = record.encoding, record.base
        if whole:
            encoding, payload = self._pack(self.store.get(record.id))
            base = None
        return self._append(record.id, encoding, record.size, payload, base, record.depth)

    def commit(self, *, replacing: bool = False) -> int:
        """Sync the packs, then index the new objects; return their number.

        `replacing` overwrites the rows of objects that are already indexed.
        """
        self._write_waiting()
        with self._lock:
            if not self._pending:
                self._on_rollback.clear()
                return 0
            self._sync_before_indexing()
            self.store.index.add(self._pending.values(), self._new_ends, replacing=replacing)
            return self._committed()

    def commit_moves(self, old: int) -> None:
        """Sync the copies of a pack's objects, then replace the pack by them."""
        with self._lock:
            self._sync_before_indexing()
            self.store.index.replace_pack(old, self._pending.values(), self._new_ends)
            self._committed()

    def _sync_before_indexing(self) -> None:
        """Sync the packs; from here on nothing is rolled back.

        After an interrupt the index may or may not have the rows. The next writer adds them.
        """
        self._sync()
        self._rollback_ends = []

    def _committed(self) -> int:
        """Reset the state after a commit; return the number of objects."""
        count = len(self._pending)
        for record in islice(reversed(self._pending.values()), MAX_RECORDS):
            self.store.verified.add(record, self._epochs[record.pack])
        self._epochs.clear()
        self._store_is_empty = False
        self._ends.update(self._new_ends)
        self._pending.clear()
        self._new_ends = {}
        self._rollback_ends = [(self._number, self._position)] if self._fd >= 0 else []
        self._on_rollback.clear()
        return count

    def _write_waiting(self) -> None:
        """Write the waiting contents, after one lookup of all their ids and bases."""
        with self._lock:
            waiting, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        if not waiting:
            return
        known = self.store.index.find_many(
            {*waiting, *(base for _content, base in waiting.values())}
        )
        for id, (content, base) in waiting.items():
            if id not in known:
                # It will be the delta base of the next version.
                self.store.cache_content(id, content)
                self._write(id, content, known.get(base))

    def _write(self, id: ObjectId, content: bytes, base: Record | None = None) -> None:
        """Append an object in its smallest encoding."""
        delta = None
        if base is not None and MIN_DELTA_BYTES <= len(content) <= MAX_DELTA_BYTES:
            delta = self._delta(content, base)
        if delta is not None and len(delta[0]) <= len(content) // 10:
            self._append(id, DELTA, len(content), *delta)
            return
        encoding, payload = self._pack(content)
        # A delta costs more to read, so it must save 30 %.
        if delta is not None and len(delta[0]) < 0.7 * len(payload):
            self._append(id, DELTA, len(content), *delta)
        else:
            self._append(id, encoding, len(content), payload)

    def _pack(self, content: bytes) -> tuple[int, bytes]:
        packer: Packer | None = getattr(self._packers, "one", None)
        if packer is None:
            packer = self._packers.one = Packer()
        return packer.pack(content)

    def _delta(self, content: bytes, base: Record) -> tuple[bytes, ObjectId, int] | None:
        """Return payload, base and depth of a delta; None if `base` does not allow one."""
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

    def _chunked(self, id: bytes | None) -> Record | None:
        """Return the record of an object that is chunked and indexed."""
        record = self.store.index.find(id) if id is not None else None
        return record if record is not None and record.encoding == CHUNKS else None

    def _old_chunks(self, record: Record | None) -> list[tuple[ObjectId, int]]:
        try:
            return self.store.chunks(record) if record is not None else []
        except Corrupt:
            return []

    def _append(
        self,
        id: ObjectId,
        encoding: int,
        size: int,
        payload: bytes,
        base: ObjectId | None = None,
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
        self._buffered_bytes += end - self._position
        self._position = end
        self._new_ends[self._number] = end
        if self._buffered_bytes >= WRITE_BUFFER_BYTES:
            self._flush()

    def _next_pack(self) -> None:
        """Finish the current pack, and open the last one or a new one."""
        if self._fd >= 0:
            self._sync()
            os.close(self._fd)
            self._fd = -1
        elif self._continue_last_pack():
            return
        self._number += 1
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(self._path(self._number), flags, 0o600)
        self._rollback_ends.append((self._number, 0))
        self._sync_name = True
        self._buffer.append(MAGIC)
        self._position = len(MAGIC)

    def _continue_last_pack(self) -> bool:
        """Open the last pack if it has room and ends with a whole, indexed record."""
        path = self._path(self._number)
        end = self._ends.get(self._number, 0)
        if self._fresh or not 0 < end < MAX_PACK_BYTES or self._number in self._truncated:
            return False
        try:
            if os.path.getsize(path) != end:
                return False
        except FileNotFoundError:
            return False
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._position = end
        self._rollback_ends.append((self._number, end))
        return True

    def _path(self, number: int) -> str:
        return os.path.join(self.store.directory, pack_name(number))

    def _flush(self) -> None:
        """Write the buffer to the pack."""
        if self._number not in self._epochs:
            # Taken right before our first write, so that foreign changes begin a new epoch.
            self._epochs[self._number] = self.store.verified.epoch(self._number, self._fd)
        view = memoryview(b"".join(self._buffer))
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as problem:
            if problem.errno in NO_SPACE_ERRNOS:
                raise OutOfSpace(
                    f"No space left for the store at {self.store.directory}; nothing was changed. "
                    "Free some space, or try `mulligan gc`."
                ) from problem
            raise
        self._buffer.clear()
        self._buffered_bytes = 0

    def _sync(self) -> None:
        if self._fd < 0:
            return
        self._flush()
        os.fsync(self._fd)
        self.store.verified.extend(self._number, self._fd, self._epochs[self._number])
        if self._sync_name:
            sync_directory(self.store.directory)
            self._sync_name = False

    def _rollback(self) -> None:
        """Remove from the packs what was appended since the last commit."""
        while self._on_rollback:
            self._on_rollback.pop()()
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
            if self._pending or self._buffer:
                for number, end in self._rollback_ends:
                    if end:
                        os.truncate(self._path(number), end)
                    else:
                        os.unlink(self._path(number))
            self._pending.clear()
            self._waiting.clear()
            self._buffer.clear()
            self._buffered_bytes = 0
            self._rollback_ends = []


def _without(
    dropped: Container[bytes], listed: Mapping[bytes, Framed], records: bytes
) -> tuple[dict[bytes, Framed], bytes]:
    """Return the listing and the records without the dropped objects."""
    kept: dict[bytes, Framed] = {}
    pieces: list[bytes] = []
    start = 0
    for id, framed in listed.items():
        end = start + RECORD.size + framed[2]
        if id not in dropped:
            kept[id] = framed
            pieces.append(records[start:end])
        start = end
    return kept, b"".join(pieces)


def _chunk_at(chunks: list[tuple[ObjectId, int]]) -> Callable[[int], ObjectId | None]:
    """Return a function from an offset to the old chunk there."""
    starts = [0, *accumulate(length for _id, length in chunks)][:-1]
    return lambda offset: chunks[bisect_right(starts, offset) - 1][0] if chunks else None
