"""One writer a project at a time: short waits, and a clear word when it takes too long."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mulligan.errors import Busy, write_failed

WAIT_SECONDS = 60.0


@contextmanager
def locked(
    path: str, *, wait: float = WAIT_SECONDS, waiting: Callable[[str], None] = lambda holder: None
) -> Iterator[None]:
    """Holds the lock; raises `Busy` if another holds it for longer than `wait` seconds.

    The lock goes with the process: one that was killed leaves nothing behind. `waiting` is told
    now and then who has it.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise write_failed(path, problem.errno, problem) from problem
    try:
        _acquire(fd, wait, waiting)
        # Who holds it, for the others' messages; written only when it is another than last time.
        mine = b"%-20d" % os.getpid()
        if os.pread(fd, 20, 0) != mine:
            # On a full disk nobody learns who it is.
            with suppress(OSError):
                os.pwrite(fd, mine, 0)
        yield
    finally:
        # A child that somebody forked meanwhile has it open, too: to close it would not do.
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def _acquire(fd: int, wait: float, waiting: Callable[[str], None]) -> None:
    end = time.monotonic() + wait
    pause = 0.002
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
            if time.monotonic() >= end:
                raise Busy(
                    f"Process {holder} is at work on this project; try again when it is done."
                ) from None
            waiting(holder)
            time.sleep(pause)
            pause = min(0.05, pause * 1.5)
        else:
            return
