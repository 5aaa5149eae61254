"""Reading objects.

An object that is listed in the index is on the disk; one that is not listed does not exist,
whatever lies in the packs. What is read is compared with its identity before it is given out.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from hashlib import sha256
from threading import RLock

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
            yield self.content(record)
            return
        whole = sha256()
        for chunk, _length in self._chunks_now(record):
            piece = self.content(self._record(chunk))
            whole.update(piece)
            yield piece
        if whole.digest() != id:
            raise Corrupt(f"Object {id.hex()} is damaged; `mulligan verify` tells what it affects.")

    def chunks(self, record: Record) -> list[tuple[bytes, int]]:
        """The chunks of a large object."""
        return split_chunks(self.content(self._record(self.payload(record))))

    def _chunks_now(self, record: Record) -> list[tuple[bytes, int]]:
        try:
            return self.chunks(record)
        except Corrupt:
            # It may have been stored anew since it was looked up.
            now = self.index.find(record.id)
            if now is None or now == record:
                raise
            return self.chunks(now)

    def locate(self, id: bytes) -> Record:
        return self._record(id)

    def chunk_list_id(self, record: Record) -> bytes:
        """The identity of the list object of a large object."""
        return self.payload(record)

    def prefetch(self, ids: Collection[bytes]) -> Mapping[bytes, Record]:
        """These are about to be read: where they lie, and what they build on, is asked for all at
        once, and given."""
        # Where the garbage collector moves one of them, it will not be found, and asked for again.
        self._prefetched = self._with_bases(ids)
        return self._prefetched

    def damaged_among(self, ids: Collection[bytes], records: Mapping[bytes, Record]) -> list[bytes]:
        """Which objects are in the way of reading these: where there is doubt, they are read.

        `records` are those of all of them, as `expect` gives them. Only for the holder of the
        project's lock, who knows that they are still true.
        """
        doubtful = self._unverified(ids, records)
        if doubtful:
            self.clear_cache()
            self._prefetched = dict(records)
        return [bad for id in doubtful for bad in self.damaged(id)]

    def _unverified(self, ids: Collection[bytes], records: Mapping[bytes, Record]) -> list[bytes]:
        """Those of the objects of which only reading them can tell whether they can be read."""
        packs = {record.pack for record in records.values()}
        try:
            eras = {pack: self.verified.epoch(pack, self._pack(pack)) for pack in packs}
        except FileNotFoundError:
            return list(ids)

        @cache
        def is_sound(id: bytes) -> bool:
            record = records.get(id)
            # Of what is in chunks, the record itself says nothing about the chunks.
            if record is None or record.encoding == CHUNKS:
                return False
            if not self.verified.contains(record, eras[record.pack]):
                return False
            return record.base is None or is_sound(record.base)

        return [id for id in ids if not is_sound(id)]

    def _with_bases(self, ids: Collection[bytes]) -> dict[bytes, Record]:
        """Where some objects lie, and all that they build on."""
        found: dict[bytes, Record] = {}
        wanted = set(ids)
        while wanted:
            more = self.index.find_many(wanted)
            found |= more
            bases = {record.base for record in more.values() if record.base is not None}
            wanted = bases - found.keys()
        return found

    def _record(self, id: bytes) -> Record:
        record = self._prefetched.get(id) or self.index.find(id)
        if record is not None:
            return record
        for stray in self._unindexed.get(id, ()):
            if self._is_intact(stray):
                return stray
        raise MissingObject(f"Object {id.hex()} is not in the store.")

    def content(self, record: Record, depth: int = 0) -> bytes:
        """The content of an object that is not in chunks, checked."""
        kept = self._cached.get(record.id)
        if kept is not None:
            return kept
        try:
            return self._content(record, depth)
        except Corrupt:
            # The garbage collector may have written it out anew since it was looked up.
            now = self.index.find(record.id)
            if now is None or now == record:
                raise
            return self._content(now, depth)

    def _content(self, record: Record, depth: int) -> bytes:
        era = self._epoch_before_reading(record)
        payload = self.payload(record)
        try:
            if record.encoding == ZSTD:
                content = zstd.decompress(payload)
            elif record.encoding == DELTA:
                if record.base is None or depth > 4 * DELTA_DEPTH:
                    raise Corrupt(f"Object {record.id.hex()} has no end to its deltas.")
                base = self.content(self._record(record.base), depth + 1)
                content = zstd.decompress(payload, base)
            else:
                content = payload
        except zstd.ZstdError as problem:
            raise Corrupt(f"Object {record.id.hex()} cannot be decompressed.") from problem
        if sha256(content).digest() != record.id:
            raise Corrupt(
                f"Object {record.id.hex()} is damaged; `mulligan verify` tells what it affects."
            )
        self.cache_content(record.id, content)
        if era is not None:
            self.verified.add(record, era)
        return content

    def _epoch_before_reading(self, record: Record) -> int | None:
        try:
            return self.verified.epoch(record.pack, self._pack(record.pack))
        except FileNotFoundError:
            return None

    def cache_content(self, id: bytes, content: bytes) -> None:
        """Remembers a small content for a while: what was written is soon the base of a delta."""
        if len(content) > MAX_CACHED_OBJECT_BYTES or id in self._cached:
            return
        with self._lock:
            if self._cached_bytes > MAX_CACHE_BYTES:
                self.clear_cache()
            self._cached[id] = content
            self._cached_bytes += len(content) + OBJECT_OVERHEAD_BYTES

    def clear_cache(self) -> None:
        """From now on everything is read from the disk again."""
        with self._lock:
            self._cached.clear()
            self._cached_bytes = 0
            self._prefetched = {}

    def payload(self, record: Record) -> bytes:
        """The bytes of an object as they lie in its pack."""
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
            try:
                payload = os.pread(fd, record.stored, record.offset)
            except OSError as problem:
                if problem.errno != errno.EBADF or attempt == 2:
                    raise
                # Another thread has let go of it meanwhile.
                continue
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

    def repair(self) -> None:
        """Clears up after an interrupted writer. Only for the holder of the project's lock.

        Deletes the packs that the garbage collector had emptied, and lists whole records that lie
        in the packs and not in the index: an unfinished writer's, or, after the index was lost,
        everything. Each is read first, for what was never synced may not be what it says it is.
        """
        self.index.reopen_if_replaced()
        try:
            glance = self.index.summary()
        except Corrupt:
            self.index.rebuild()
            glance = self.index.summary()
        known = glance.packs
        if glance.pending_delete:
            self.index.purge()
        self._retire(known)
        ends: dict[int, int] = {}
        torn: set[int] = set()
        for number, start, end in list(self.index.unindexed(known)):
            fd = self._pack(number)
            # The unfinished writer may not have got as far as this.
            os.fsync(fd)
            if end < len(MAGIC) and number not in known:
                # Not even the beginning of a pack: it never held anything.
                self.release(number)
                os.unlink(os.path.join(self.directory, pack_name(number)))
                continue
            found = list(records(fd, number, max(start, len(MAGIC)), end))
            for record in found:
                if not self.index.has(record.id):
                    self._unindexed.setdefault(record.id, []).append(record)
            ends[number] = end
            if (found[-1].end if found else max(start, len(MAGIC))) != end:
                torn.add(number)
        if not ends:
            return
        sync_directory(self.directory)
        try:
            sound = [self._intact_copy(copies) for copies in self._unindexed.values()]
            self.index.add([each for each in sound if each is not None], ends, torn=torn)
        finally:
            self._unindexed = {}

    def _retire(self, known: Collection[int]) -> None:
        """Lets go of packs that another's garbage collector has deleted, so that their blocks are
        freed: not before the next time, for somebody may just be reading there."""
        with self._lock:
            for fd in self._retired:
                os.close(fd)
            gone = [number for number in self._packs if number not in known]
            self._retired = [self._packs.pop(number) for number in gone]

    def has_unindexed(self) -> bool:
        """Whether packs hold more than the index says: it was lost, or its end was."""
        if self.index.is_unreadable():
            return True
        return any(True for _stray in self.index.unindexed(self.index.summary().packs))

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
                return [id, self.chunk_list_id(record)]
            return [id, *(chunk for chunk in parts if self.damaged(chunk))]
        return []

    def _is_intact(self, record: Record) -> bool:
        try:
            if record.encoding != CHUNKS:
                return len(self.content(record)) == record.size
            return sum(length for chunk, length in self.chunks(record) if self._record(chunk)) == (
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
        """The depth of a delta is not written in the pack: it follows from that of its base."""
        if record.base is None:
            return 0
        base = self._record(record.base)
        return 1 + (base.depth if self.index.has(base.id) else self._depth(base))

    def head_of(self, record: Record) -> tuple[object, ...]:
        """What the pack itself says about an object."""
        try:
            head = os.pread(self._pack(record.pack), RECORD.size, record.start)
        except FileNotFoundError:
            raise MissingObject(f"Pack {pack_name(record.pack)} is not there.") from None
        if len(head) < RECORD.size:
            raise Corrupt(f"Pack {pack_name(record.pack)} is cut short.")
        return RECORD.unpack(head)

    def release(self, number: int) -> None:
        """Closes a pack that is about to be deleted, so that its blocks are freed."""
        with self._lock:
            fd = self._packs.pop(number, None)
            if fd is not None:
                os.close(fd)
