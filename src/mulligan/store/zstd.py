"""Zstandard, from the standard library where it is there."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDict, ZstdError, decompress
else:
    from backports.zstd import ZstdCompressor, ZstdDict, ZstdError, decompress

__all__ = ["ZstdCompressor", "ZstdDict", "ZstdError", "decompress"]
