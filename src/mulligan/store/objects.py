"""Read objects.

An indexed object is on the disk; one that is not indexed does not exist, even if a pack holds its
bytes. Content is checked against its id before it is returned.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from hashlib import sha256
from threading import RLock

from mulligan.core.ids import ObjectId
from mulligan.errors import Corrupt, MissingObject
from mulligan.store import zstd
from mulligan.store.fsync import make_directories, sync_directory
from mulligan.store.index import PackIndex
from mulligan.store.packs import (
    CHUNKS,
    DELTA,
    MAGIC,
    RECORD,
    ZSTD,
    Record,
    pack_name,
    records,
    split_chunks,
)
from mulligan.store.verified_cache import VerifiedCache

DELTA_DEPTH = 8
MAX_READ_ATTEMPTS = 3
MAX_CACHED_OBJECT_BYTES, MAX_CACHE_BYTES = 64 << 10, 8 << 20
OBJECT_OVERHEAD_BYTES = 200


class Store:
    """The objects of one project. Reading is safe from several threads and processes."""

    def __init__(self, directory: str) -> None:
        make_directories(directory)
        self.directory = directory
        self.index = PackIndex(directory)
        self._packs: dict[int, int] = {}
        self._retired: list[int] = []
        self._lock = RLock()
        self._unindexed: dict[bytes, list[Record]] = {}
        self._prefetched: dict[bytes, Record] = {}
        self._cached: dict[bytes, bytes] = {}
        self._cached_bytes = 0
        self.verified = VerifiedCache()

    def close(self) -> None:
        with self._lock:
            for fd in (*self._packs.values(), *self._retired):
                os.close(fd)
            self._packs.clear()
            self._retired.clear()
        self.index.close()

    def has(self, id: bytes) -> bool:
        return self.index.has(id)

    def size(self, id: bytes) -> int:
        return self.locate(id).size

    def get(self, id: bytes) -> bytes:
        """Return the content of an object, checked against its id."""
        return b"".join(self.stream(id))

    def stream(self, id: bytes) -> Iterator[bytes]:
        """Yield the content in pieces, so that large files need not fit into memory.

        Each piece is checked before it is yielded, and the whole at the end.
        """
        record = self.locate(id)
        if record.encoding != CHUNKS:
            yield self.content(record)
            return
        whole = sha256()
        for chunk, _length in self._chunks_now(record):
            piece = self.content(self.locate(chunk))
            whole.update(piece)
            yield piece
        if whole.digest() != id:
            raise Corrupt(f"Object {id.hex()} is damaged; `mulligan verify` lists what it affects.")

    def chunks(self, record: Record) -> list[tuple[ObjectId, int]]:
        """Return ids and lengths of a chunked object's chunks."""
        return split_chunks(self.content(self.locate(self.payload(record))))

    def _chunks_now(self, record: Record) -> list[tuple[ObjectId, int]]:
        try:
            return self.chunks(record)
        except Corrupt:
            # The object may have been stored again since the lookup.
            now = self.index.find(record.id)
            if now is None or now == record:
                raise
            return self.chunks(now)

    def locate(self, id: bytes) -> Record:
        """Return an object's record; raise `MissingObject` if there is none."""
        record = self._prefetched.get(id) or self.index.find(id)
        if record is not None:
            return record
        for copy in self._unindexed.get(id, ()):
            if self._is_intact(copy):
                return copy
        raise MissingObject(f"Object {id.hex()} is not in the store.")

    def chunk_list_id(self, record: Record) -> ObjectId:
        """Return the id of a chunked object's chunk list."""
        return ObjectId(self.payload(record))

    def prefetch(self, ids: Collection[bytes]) -> Mapping[bytes, Record]:
        """Look up objects and their delta bases in few queries, for the reads to come."""
        # A record that the garbage collector makes stale is looked up again on the read.
        self._prefetched = self._with_bases(ids)
        return self._prefetched

    def damaged_among(self, ids: Collection[bytes], records: Mapping[bytes, Record]) -> list[bytes]:
        """Return the damaged objects among `ids` and their chunks; read unverified ones.

        `records` is the result of `prefetch`. The caller holds the project's lock, so that the
        records are still true.
        """
        unverified = self._unverified(ids, records)
        if unverified:
            self.clear_cache()
            self._prefetched = dict(records)
        return [bad for id in unverified for bad in self.damaged(id)]

    def _unverified(self, ids: Collection[bytes], records: Mapping[bytes, Record]) -> list[bytes]:
        """Return the objects not yet verified in the current epoch of their pack."""
        packs = {record.pack for record in records.values()}
        try:
            epochs = {pack: self.verified.epoch(pack, self._pack(pack)) for pack in packs}
        except FileNotFoundError:
            return list(ids)

        @cache
        def is_verified(id: bytes) -> bool:
            record = records.get(id)
            # The record of a chunked object says nothing about its chunks.
            if record is None or record.encoding == CHUNKS:
                return False
            if not self.verified.contains(record, epochs[record.pack]):
                return False
            return record.base is None or is_verified(record.base)

        return [id for id in ids if not is_verified(id)]

    def _with_bases(self, ids: Collection[bytes]) -> dict[bytes, Record]:
        """Return the records of objects and of all their delta bases."""
        records: dict[bytes, Record] = {}
        wanted = set(ids)
        while wanted:
            more = self.index.find_many(wanted)
            records |= more
            bases = {record.base for record in more.values() if record.base is not None}
            wanted = {base for base in bases if base not in records}
        return records

    def content(self, record: Record, depth: int = 0) -> bytes:
        """Return the content of an object that is not chunked, checked."""
        cached = self._cached.get(record.id)
        if cached is not None:
            return cached
        try:
            return self._content(record, depth)
        except Corrupt:
            # The garbage collector may have rewritten it since the lookup.
            now = self.index.find(record.id)
            if now is None or now == record:
                raise
            return self._content(now, depth)

    def _content(self, record: Record, depth: int) -> bytes:
        """Decode an object, check its hash, and cache it."""
        epoch = self._epoch_before_reading(record)
        payload = self.payload(record)
        try:
            if record.encoding == ZSTD:
                content = zstd.decompress(payload)
            elif record.encoding == DELTA:
                if record.base is None or depth > 4 * DELTA_DEPTH:
                    raise Corrupt(f"Object {record.id.hex()} has an endless chain of deltas.")
                base = self.content(self.locate(record.base), depth + 1)
                content = zstd.decompress(payload, base)
            else:
                content = payload
        except zstd.ZstdError as problem:
            raise Corrupt(f"Object {record.id.hex()} cannot be decompressed.") from problem
        if sha256(content).digest() != record.id:
            raise Corrupt(
                f"Object {record.id.hex()} is damaged; `mulligan verify` lists what it affects."
            )
        self.cache_content(record.id, content)
        if epoch is not None:
            self.verified.add(record, epoch)
        return content

    def _epoch_before_reading(self, record: Record) -> int | None:
        try:
            return self.verified.epoch(record.pack, self._pack(record.pack))
        except FileNotFoundError:
            return None

    def cache_content(self, id: bytes, content: bytes) -> None:
        """Cache a small content: new objects soon become delta bases."""
        if len(content) > MAX_CACHED_OBJECT_BYTES or id in self._cached:
            return
        with self._lock:
            if self._cached_bytes > MAX_CACHE_BYTES:
                self.clear_cache()
            self._cached[id] = content
            self._cached_bytes += len(content) + OBJECT_OVERHEAD_BYTES

    def clear_cache(self) -> None:
        """Drop all cached contents and records."""
        with self._lock:
            self._cached.clear()
            self._cached_bytes = 0
            self._prefetched = {}

    def payload(self, record: Record) -> bytes:
        """Return the stored bytes of an object."""
        for attempt in range(1, MAX_READ_ATTEMPTS + 1):
            try:
                fd = self._pack(record.pack)
            except FileNotFoundError:
                # The garbage collector has moved it; look up its new place.
                moved = self.index.find(record.id)
                if moved is None or attempt == MAX_READ_ATTEMPTS:
                    break
                record = moved
                continue
            try:
                payload = os.pread(fd, record.stored, record.offset)
            except OSError as problem:
                if problem.errno != errno.EBADF or attempt == MAX_READ_ATTEMPTS:
                    raise
                # Another thread has just closed the pack.
                continue
            if len(payload) == record.stored:
                return payload
            raise Corrupt(f"Pack {pack_name(record.pack)} is truncated.")
        raise MissingObject(f"Pack {pack_name(record.pack)} is missing.")

    def _pack(self, number: int) -> int:
        """Return the open file descriptor of a pack."""
        with self._lock:
            fd = self._packs.get(number)
            if fd is None:
                path = os.path.join(self.directory, pack_name(number))
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                self._packs[number] = fd
            return fd

    def repair(self) -> None:
        """Clean up after an interrupted writer; the caller holds the project's lock.

        1. Rebuild the index if it is damaged.
        2. Delete the packs that the garbage collector had emptied.
        3. Sync packs with unindexed records, left by a writer or a lost index.
        4. Index those records that can be read: unsynced bytes may be anything.
        """
        self.index.reopen_if_replaced()
        try:
            summary = self.index.summary()
        except Corrupt:
            self.index.rebuild()
            summary = self.index.summary()
        if summary.pending_delete:
            self.index.purge()
        self._retire(summary.packs)
        try:
            ends, truncated = self._find_unindexed(summary.packs)
            if ends:
                sync_directory(self.directory)
                copies = [self._intact_copy(copies) for copies in self._unindexed.values()]
                intact = [record for record in copies if record is not None]
                self.index.add(intact, ends, truncated=truncated)
        finally:
            self._unindexed = {}

    def _find_unindexed(self, known: Mapping[int, int]) -> tuple[dict[int, int], set[int]]:
        """Sync unindexed pack data and collect its records.

        Returns the ends of these packs, and the packs that end in a partial record.
        """
        ends: dict[int, int] = {}
        truncated: set[int] = set()
        for number, start, end in list(self.index.unindexed(known)):
            fd = self._pack(number)
            os.fsync(fd)
            if end < len(MAGIC) and number not in known:
                # Not even a header: the pack never held an object.
                self.release(number)
                os.unlink(os.path.join(self.directory, pack_name(number)))
                continue
            start = max(start, len(MAGIC))
            whole = list(records(fd, number, start, end))
            for record in whole:
                if not self.index.has(record.id):
                    self._unindexed.setdefault(record.id, []).append(record)
            ends[number] = end
            if (whole[-1].end if whole else start) != end:
                truncated.add(number)
        return ends, truncated

    def _retire(self, known: Collection[int]) -> None:
        """Close packs that another process has deleted, to free their blocks.

        A pack is closed one call later, because another thread may still be reading it.
        """
        with self._lock:
            for fd in self._retired:
                os.close(fd)
            deleted = [number for number in self._packs if number not in known]
            self._retired = [self._packs.pop(number) for number in deleted]

    def has_unindexed(self) -> bool:
        """True if packs hold more than the index, or the index cannot be read."""
        if self.index.is_unreadable():
            return True
        return any(True for _range in self.index.unindexed(self.index.summary().packs))

    def damaged(self, id: bytes) -> list[bytes]:
        """Read an object; return it and its chunks as far as they are damaged."""
        try:
            for _piece in self.stream(id):
                pass
        except Corrupt:
            record = self.index.find(id)
            if record is None or record.encoding != CHUNKS:
                return [id]
            try:
                chunks = [chunk for chunk, _length in self.chunks(record)]
            except Corrupt:
                return [id, self.chunk_list_id(record)]
            return [id, *(chunk for chunk in chunks if self.damaged(chunk))]
        return []

    def _is_intact(self, record: Record) -> bool:
        try:
            if record.encoding != CHUNKS:
                return len(self.content(record)) == record.size
            return sum(length for chunk, length in self.chunks(record) if self.locate(chunk)) == (
                record.size
            )
        except Corrupt:
            return False

    def _intact_copy(self, copies: list[Record]) -> Record | None:
        for record in copies:
            if self._is_intact(record):
                return record._replace(depth=self._depth(record))
        return None

    def _depth(self, record: Record) -> int:
        """Compute the depth of a delta from its base; packs do not store it."""
        if record.base is None:
            return 0
        base = self.locate(record.base)
        return 1 + (base.depth if self.index.has(base.id) else self._depth(base))

    def head_of(self, record: Record) -> tuple[object, ...]:
        """Read the header of an object's record from its pack."""
        try:
            head = os.pread(self._pack(record.pack), RECORD.size, record.start)
        except FileNotFoundError:
            raise MissingObject(f"Pack {pack_name(record.pack)} is missing.") from None
        if len(head) < RECORD.size:
            raise Corrupt(f"Pack {pack_name(record.pack)} is truncated.")
        return RECORD.unpack(head)

    def release(self, number: int) -> None:
        """Close a pack before it is deleted, so that its blocks are freed."""
        with self._lock:
            fd = self._packs.pop(number, None)
            if fd is not None:
                os.close(fd)
