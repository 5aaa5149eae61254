"""How a content is written when it is no delta: compressed, unless that makes it no smaller."""

from __future__ import annotations

from mulligan.store import zstd
from mulligan.store.packs import RAW, ZSTD

COMPRESSION_LEVEL = 1


class Packer:
    """Packs one content after another; for one thread at a time.

    Making a compressor costs as much as compressing a small file.
    """

    def __init__(self) -> None:
        self._compressor = zstd.Compressor(COMPRESSION_LEVEL)

    def pack(self, content: bytes) -> tuple[int, bytes]:
        """The encoding, and the payload."""
        payload = self._compressor.compress(content)
        return (ZSTD, payload) if len(payload) < len(content) else (RAW, content)
