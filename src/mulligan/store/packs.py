"""The pack file: a header, then records one after another, each complete in itself.

    pack   = "MULLIGAN PACK 1\\n" record*
    record = "MulO" ENCODING 3×0 SIZE STORED ID [BASE] PAYLOAD

SIZE is the length of the object's content, STORED that of the payload, both as little-endian
64-bit numbers; ID is the SHA-256 of the content. BASE, another object's identity, is there for
the delta encoding only. Four encodings:

    0 raw      the payload is the content
    1 zstd     the payload is the content, compressed
    2 delta    the same, with the content of BASE as zstd prefix
    3 chunks   the payload is the identity of a list: 36 bytes for each chunk, its identity and
               its length as a little-endian 32-bit number; the content is the chunks joined

A record that a crash cut short can only be the last of its pack, and nothing refers to it: the
next writer leaves it where it is and starts another pack.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = b"MULLIGAN PACK 1\n"
RECORD = struct.Struct("<4sB3xQQ32s")
RECORD_MAGIC = b"MulO"
RAW, ZSTD, DELTA, CHUNKS = range(4)
CHUNK = struct.Struct("<32sI")

Framed = tuple[int, int, int]
"""What the head of a record says but for its identity: encoding, size, stored."""


class Record(NamedTuple):
    """Where an object lies and how it is written; `offset` is that of its payload."""

    id: bytes
    pack: int
    offset: int
    encoding: int
    size: int
    stored: int
    base: bytes | None
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
    """The bytes of a record before its payload."""
    head = RECORD.pack(RECORD_MAGIC, encoding, size, stored, id)
    return head + base if base is not None else head


def records(fd: int, pack: int, start: int, end: int) -> Iterator[Record]:
    """The whole records between two offsets; stops silently at the first that is not whole."""
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
            base = os.pread(fd, 32, payload)
            payload += 32
        if payload + stored > end:
            return
        yield Record(id, pack, payload, encoding, size, stored, base, 0)
        offset = payload + stored


def split_chunks(listing: bytes) -> list[tuple[bytes, int]]:
    """The chunks of a list object."""
    return list(CHUNK.iter_unpack(listing))
