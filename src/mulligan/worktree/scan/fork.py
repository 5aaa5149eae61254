"""Children of this process, each with a copy of all that it knows, to do a part of its work.

Python runs one thread at a time; a child has a time of its own, and is there at once where a new
process would first have to begin. It only looks, and says what it saw: without one, or whatever
becomes of it, whoever wanted it does all by itself.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

MAX_STANDARD_FD = 2
SPARE_DESCRIPTORS = 128  # descriptors that are left to whoever forks


def can_fork() -> bool:
    """Whether there is a processor for it, descriptors enough to speak with it, and no other
    thread: a fork would leave those behind, with whatever they hold."""
    if not sys.platform.startswith("linux") or len(os.sched_getaffinity(0)) < 2:
        return False
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        is_alone = len(os.listdir("/proc/self/task")) == 1
        return is_alone and not 0 <= allowed < len(os.listdir("/proc/self/fd")) + SPARE_DESCRIPTORS
    except OSError:
        return False


@contextmanager
def child(work: Callable[[], None], keep: Collection[int]) -> Iterator[int | None]:
    """A child at work, until the block ends; `None` if the system has no room for one.

    It has only the descriptors in `keep`: a lock is not held by it when this process is gone.
    """
    pid = None
    # Nothing of what this process does on a signal is for the child to do.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        try:
            # One that came before may be raised by this very call.
            signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
            pid = _fork(work, keep)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        yield pid
    finally:
        if pid is not None:
            _end(pid)


def has_ended(pid: int) -> bool:
    """Whether a child of this process is no more, as far as that can be told."""
    if not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        # Somebody else has seen to its end.
        return True


def _fork(work: Callable[[], None], keep: Collection[int]) -> int | None:
    try:
        pid = os.fork()
    except OSError:
        return None
    if pid == 0:
        _do(work, keep)
    return pid


def _end(pid: int) -> None:
    """An interrupt meanwhile is raised when it has ended, and nothing of it is left."""
    problem = None
    while True:
        try:
            # Where somebody else has seen to its end, the number may be another's by now.
            if not has_ended(pid):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            break
        except OSError:
            break
        except BaseException as each:
            problem = each
    if problem is not None:
        raise problem


def _do(work: Callable[[], None], keep: Collection[int]) -> None:
    """All that the child does. It never returns, and ends nothing that is the parent's."""
    try:
        gc.disable()
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > MAX_STANDARD_FD and fd not in keep:
                with suppress(OSError):
                    os.close(fd)
        _say_nothing()
        work()
    finally:
        os._exit(0)


def _say_nothing() -> None:
    """Whoever reads what the parent says is not to wait for the child's end, too."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in range(MAX_STANDARD_FD + 1):
        os.dup2(nothing, fd)
    os.close(nothing)
