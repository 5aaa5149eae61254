"""Define the pack file: a header, then self-contained records.

    pack   = "MULLIGAN PACK 1\\n" record*
    record = "MulO" ENCODING 3×0 SIZE STORED ID [BASE] PAYLOAD

SIZE is the length of the object's content, STORED that of the payload, both little-endian 64-bit
numbers; ID is the SHA-256 of the content. Only deltas have BASE, the id of another object. Four
encodings:

    0 raw      the payload is the content
    1 zstd     the payload is the compressed content
    2 delta    as zstd, with the content of BASE as prefix
    3 chunks   the payload is the id of a chunk list: 36 bytes for each chunk, its id and its
               length as a little-endian 32-bit number; the content is the chunks joined

Only the last record of a pack can be truncated by a crash, and nothing refers to it: the next
writer leaves it there and starts another pack.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from mulligan.core.ids import ObjectId

MAGIC = b"MULLIGAN PACK 1\n"
RECORD = struct.Struct("<4sB3xQQ32s")
RECORD_MAGIC = b"MulO"
RAW, ZSTD, DELTA, CHUNKS = range(4)
CHUNK = struct.Struct("<32sI")

Framed = tuple[int, int, int]
"""Encoding, size and stored length, from a record's header."""


class Record(NamedTuple):
    """An index row: location and encoding of an object; `offset` is its payload's."""

    id: ObjectId
    pack: int
    offset: int
    encoding: int
    size: int
    stored: int
    base: ObjectId | None
    depth: int

    @property
    def start(self) -> int:
        return self.offset - RECORD.size - (32 if self.encoding == DELTA else 0)

    @property
    def end(self) -> int:
        return self.offset + self.stored

    @property
    def length(self) -> int:
        return self.end - self.start


def pack_name(number: int) -> str:
    return f"{number:08x}.pack"


def pack_number(name: str) -> int | None:
    stem, dot, ending = name.partition(".")
    if dot and ending == "pack" and len(stem) == 8:
        try:
            return int(stem, 16)
        except ValueError:
            return None
    return None


def frame_head(encoding: int, size: int, id: bytes, base: bytes | None, stored: int) -> bytes:
    """Return the bytes of a record before its payload."""
    head = RECORD.pack(RECORD_MAGIC, encoding, size, stored, id)
    return head + base if base is not None else head


def records(fd: int, pack: int, start: int, end: int) -> Iterator[Record]:
    """Yield records between two offsets, up to the first that is not whole."""
    offset = start
    while offset + RECORD.size <= end:
        head = os.pread(fd, RECORD.size, offset)
        if len(head) < RECORD.size:
            return
        magic, encoding, size, stored, id = RECORD.unpack(head)
        if magic != RECORD_MAGIC or encoding > CHUNKS:
            return
        payload = offset + RECORD.size
        base = None
        if encoding == DELTA:
            base = ObjectId(os.pread(fd, 32, payload))
            payload += 32
        if payload + stored > end:
            return
        yield Record(id, pack, payload, encoding, size, stored, base, 0)
        offset = payload + stored


def split_chunks(listing: bytes) -> list[tuple[ObjectId, int]]:
    """Parse a chunk list into ids and lengths."""
    return list(CHUNK.iter_unpack(listing))
