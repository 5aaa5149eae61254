"""Read the system clock, whatever it says.

Python raises `OverflowError` for clocks beyond the year 2262, which 64 bits of nanoseconds do not
reach. Such a clock is wrong; it reads as the last moment that they do.
"""

# Annotations are not postponed here: hooks import this module at every start.

import time

LAST_NS = (1 << 63) - 1


def now_ns() -> int:
    """Nanoseconds since the epoch."""
    try:
        return time.time_ns()
    except OverflowError:
        return LAST_NS


def now_s() -> float:
    """Seconds since the epoch."""
    return now_ns() / 1e9
