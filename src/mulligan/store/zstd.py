"""Compress and decompress with Zstandard.

A failed allocation raises `MemoryError` here; the library's `ZstdError` could be mistaken for
damaged data.
"""

from __future__ import annotations

import sys
from typing import NoReturn

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDecompressor, ZstdDict, ZstdError
else:
    from backports.zstd import ZstdCompressor, ZstdDecompressor, ZstdDict, ZstdError

__all__ = ["Compressor", "ZstdError", "decompress"]

NO_MEMORY = "Allocation error"
"""Part of the library's message for a failed allocation."""


class Compressor:
    """Compresses contents one after another, from one thread at a time."""

    def __init__(self, level: int, base: bytes | None = None) -> None:
        try:
            self._compressor = ZstdCompressor(level, zstd_dict=_prefix(base))
        except ZstdError as problem:
            _fail(problem)

    def compress(self, content: bytes) -> bytes:
        """Return one complete frame."""
        try:
            frame: bytes = self._compressor.compress(content, ZstdCompressor.FLUSH_FRAME)
        except ZstdError as problem:
            _fail(problem)
        return frame


def decompress(frame: bytes, base: bytes | None = None) -> bytes:
    """Return the content; raise `ZstdError` if the frame is damaged."""
    try:
        content: bytes = ZstdDecompressor(zstd_dict=_prefix(base)).decompress(frame)
    except ZstdError as problem:
        _fail(problem)
    return content


def _prefix(base: bytes | None) -> tuple[ZstdDict, int] | None:
    return None if base is None else ZstdDict(base, is_raw=True).as_prefix


def _fail(problem: ZstdError) -> NoReturn:
    if NO_MEMORY in str(problem):
        raise MemoryError(str(problem)) from problem
    raise problem
