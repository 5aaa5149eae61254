"""Lock a project: one writer at a time, with a bounded wait."""

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
    """Hold the lock; raise `Busy` if another process holds it longer than `wait` seconds.

    The kernel releases the lock when the process dies. `waiting` is called now and then with the
    holder's name.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise write_failed(path, problem.errno, problem) from problem
    try:
        _acquire(fd, wait, waiting)
        # Other processes show the holder's name; it is written only if it changed.
        mine = b"%-20d" % os.getpid()
        if os.pread(fd, 20, 0) != mine:
            # On a full disk the name is missing from messages.
            with suppress(OSError):
                os.pwrite(fd, mine, 0)
        yield
    finally:
        # Unlock explicitly: a child forked meanwhile shares the open descriptor.
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
