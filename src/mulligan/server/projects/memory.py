"""What the C library does with memory in a server that runs for days."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

M_ARENA_MAX = -8


def use_one_arena() -> None:
    """Have all threads allocate from one arena, so that one reuses what another has freed."""
    if sys.platform.startswith("linux"):
        # musl has no arenas, and no mallopt.
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def return_freed_memory() -> None:
    """Give freed memory back to the system."""
    if sys.platform.startswith("linux"):
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
