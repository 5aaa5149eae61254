"""Detect racily clean files: changed so recently that a later change could keep the ctime.

A cached file counts as unchanged while its ctime is equal. That is safe only if every change after
the read gets a later ctime.

Linux stamps files on local disks with CLOCK_REALTIME_COARSE, which advances once per tick and can
be read: a later change cannot get an earlier time. One tick is subtracted, because the copy that
programs read may be ahead of the kernel's. Network and memory file systems and other kernels stamp
files with a clock that cannot be read; there a fixed margin is subtracted.
"""

from __future__ import annotations

import os
import sys
import time

from mulligan.clock import LAST_NS, now_ns

UNKNOWN_CLOCK_MARGIN_NS = 50_000_000
WHOLE_SECONDS_MARGIN_NS = 2_000_000_000
"""For file systems that store times in units of one or two seconds."""

_CLOCK_REALTIME_COARSE = 5


def _tick_ns() -> int:
    """Return the tick of the coarse clock; 0 if it cannot be read."""
    try:
        return (
            round(time.clock_getres(_CLOCK_REALTIME_COARSE) * 1e9) if sys.platform == "linux" else 0
        )
    except OSError:
        return 0


_TICK_NS = _tick_ns()


def racy_cutoff(device: int) -> int:
    """Return a time (ns): files with an earlier ctime, read from now on, are not racy."""
    if _TICK_NS and os.major(device):
        try:
            return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE) - _TICK_NS
        except OverflowError:  # a clock beyond the year 2262
            return LAST_NS
    return now_ns() - UNKNOWN_CLOCK_MARGIN_NS


def is_racy(changed: int, cutoff: int) -> bool:
    """Return whether a file with this ctime, read after `cutoff` was taken, is racily clean.

    A ctime of whole milliseconds may come from a file system that stores seconds.
    """
    return changed >= (cutoff - WHOLE_SECONDS_MARGIN_NS if changed % 1_000_000 == 0 else cutoff)
