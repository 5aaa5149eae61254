"""Identify processes, and test whether they still run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from mulligan.clock import now_ns
from mulligan.core.entries import STATUSES
from mulligan.core.times import nanoseconds

if TYPE_CHECKING:
    from mulligan.journal.sessions import SessionRow

CLIENT: Final = "client"
CLIENT_SILENT_SECONDS = 300


def identity(pid: int | None = None) -> str | None:
    """Return a process's pid and start time, which no later process shares."""
    pid = os.getpid() if pid is None else pid
    started = _start_time(pid)
    return None if started is None else f"{pid} {started}"


def client_identity(pid: int) -> str | None:
    """Return the identity of an HTTP client, which may use several processes per session."""
    own = identity(pid)
    return None if own is None else f"{own} {CLIENT}"


def is_client(identity: str) -> bool:
    """True if the identity was made by `client_identity`."""
    return identity.endswith(f" {CLIENT}")


def is_gone(identity: str) -> bool:
    """True if a process has ended; False if that is unknown."""
    number, _space, started = identity.removesuffix(f" {CLIENT}").partition(" ")
    if not number.isascii() or not number.isdigit():
        return False
    now = _start_time(int(number))
    return now is not None and (now != started or not started)


def runs(process: str | int | None) -> dict[str, str | None]:
    """Return the columns that name a session's process.

    `process` is an identity, a pid, or None for this process. 0 changes nothing.
    """
    if process == 0:
        return {}
    return {"process": process if isinstance(process, str) else identity(process)}


def is_dead(row: SessionRow) -> bool:
    """True if the process that runs a session is gone.

    An HTTP client may use one process per request, so its session must also have been silent.
    """
    if row.process is None or row.status == STATUSES[-1] or not is_gone(row.process):
        return False
    silent = now_ns() - nanoseconds(row.updated_at)
    return not is_client(row.process) or silent > CLIENT_SILENT_SECONDS * 1_000_000_000


def current_status(row: SessionRow) -> str:
    """Return a session's status; `stopped` if its process is gone."""
    return STATUSES[-1] if is_dead(row) else row.status


def _start_time(pid: int) -> str | None:
    """Return a process's start time; empty if it has ended, None if unknown."""
    if not sys.platform.startswith("linux"):
        return _start_time_without_proc(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            # A zombie: ended, but not reaped by its parent.
            return ""
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return f"{file.read(8).decode()}-{int(fields[19])}"
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, IndexError):
        return None


def _start_time_without_proc(pid: int) -> str | None:
    """Without `/proc`, test the pid alone."""
    if os.name == "nt":
        # On Windows, signal 0 would end the process.
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except (OSError, OverflowError):
        return "unknown"
    return "unknown"
