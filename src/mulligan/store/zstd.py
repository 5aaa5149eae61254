"""Zstandard, from the standard library where it is there."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDecompressor, ZstdDict, ZstdError
else:
    from backports.zstd import ZstdCompressor, ZstdDecompressor, ZstdDict, ZstdError

__all__ = ["ZstdCompressor", "ZstdDecompressor", "ZstdDict", "ZstdError"]
