"""Encode contents that are stored whole: compressed, unless that is not smaller."""

from __future__ import annotations

from mulligan.store import zstd
from mulligan.store.packs import RAW, ZSTD

COMPRESSION_LEVEL = 1


class Packer:
    """Encodes contents with one compressor, from one thread at a time.

    To create a compressor costs as much as to compress a small file.
    """

    def __init__(self) -> None:
        self._compressor = zstd.Compressor(COMPRESSION_LEVEL)

    def pack(self, content: bytes) -> tuple[int, bytes]:
        """Return the encoding and the payload."""
        payload = self._compressor.compress(content)
        return (ZSTD, payload) if len(payload) < len(content) else (RAW, content)
