"""Read the system clock without failing.

`time.time_ns` raises `OverflowError` after the year 2262, the last that 64 bits of nanoseconds can
hold. Such a clock is wrong; it reads as that last moment.
"""

# Annotations are not postponed here: hooks import this module at every start.

import time

LAST_NS = (1 << 63) - 1


def now_ns() -> int:
    """Return nanoseconds since the epoch."""
    try:
        return time.time_ns()
    except OverflowError:
        return LAST_NS


def now_s() -> float:
    """Return seconds since the epoch."""
    return now_ns() / 1e9
