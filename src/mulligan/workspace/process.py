"""Which process somebody is, and whether it is still there."""

from __future__ import annotations

import os
import sys


def identity(pid: int | None = None) -> str | None:
    """A process by its number and the time of its start, which no later process shares."""
    pid = os.getpid() if pid is None else pid
    started = _started(pid)
    return None if started is None else f"{pid} {started}"


def is_gone(identity: str) -> bool:
    """Whether a process has ended; one that cannot be judged is not gone."""
    number, _space, started = identity.partition(" ")
    if not number.isascii() or not number.isdigit():
        return False
    now = _started(int(number))
    return now is not None and (now != started or not started)


def _started(pid: int) -> str | None:
    """When a process began, as the system counts it; empty if there is none, `None` if unknown."""
    if not sys.platform.startswith("linux"):
        return _started_elsewhere(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            # Dead, and only waiting for somebody to take notice.
            return ""
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return f"{file.read(8).decode()}-{int(fields[19])}"
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, IndexError):
        return None


def _started_elsewhere(pid: int) -> str | None:
    """Without a start time, a number is all there is: good enough to see that it is gone."""
    if os.name == "nt":
        # There, asking with a signal would be acting.
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except (OSError, OverflowError):
        return "unknown"
    return "unknown"
