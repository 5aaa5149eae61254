"""Making many files durable at once.

Syncing a hundred small files one by one takes a hundred commits of the file system's journal.
Where the system can sync a whole file system, that takes one. It also waits for what others have
written there; for a handful of files each is synced by itself instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache

FEW = 8


def sync_file_system(fd: int) -> bool:
    """Syncs all that was written to the file system of an open file; `False` if that cannot be."""
    call = _call()
    return call is not None and call(fd) == 0


@cache
def _call() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    found: Callable[[int], int] | None
    found = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return found
