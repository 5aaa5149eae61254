"""Whether a file that was read can still change without a trace.

A file counts as unchanged while its time of change is the one remembered. That is safe only if
whatever changes it after it was read must carry a later time. A file that was changed too shortly
before for that is "racily clean", and is not trusted.

How shortly is told best by the very clock that files are stamped with. Linux stamps what lies on a
disk of its own with a clock that moves on with each tick, and lets that clock be read: a change to
come cannot carry a time from before it. One tick is left to spare, because what is read is a copy
of that clock, which may move on a moment before it does. On anything else, be it another machine's
disk, a memory file system or another system, files are stamped by a clock that cannot be asked.
"""

from __future__ import annotations

import os
import sys
import time

from mulligan.clock import LAST_NS, now_ns

UNKNOWN_CLOCK = 50_000_000
"""Nanoseconds that a clock which cannot be asked may be behind."""
WHOLE_SECONDS = 2_000_000_000
"""The same, where times are kept in seconds, or two."""

_STAMPING = 5  # CLOCK_REALTIME_COARSE


def _tick() -> int:
    """How long that clock stands still, in nanoseconds; 0 if it cannot be read here."""
    try:
        return round(time.clock_getres(_STAMPING) * 1e9) if sys.platform == "linux" else 0
    except OSError:
        return 0


_TICK = _tick()


def racy_cutoff(device: int) -> int:
    """A moment. What changed before it, and is read from now on, cannot change again and carry
    the same time."""
    if _TICK and os.major(device):
        try:
            return time.clock_gettime_ns(_STAMPING) - _TICK
        except OverflowError:  # a clock beyond the year 2262
            return LAST_NS
    return now_ns() - UNKNOWN_CLOCK


def is_racy(changed: int, before: int) -> bool:
    """Whether what changed at a time is not to be trusted, if it was read when things were
    `settled` before another.

    Times of whole milliseconds come from file systems that count in those, or in seconds.
    """
    return changed >= (before - WHOLE_SECONDS if changed % 1_000_000 == 0 else before)
