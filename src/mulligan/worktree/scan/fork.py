"""Fork children that do read-only work in parallel.

A child has its own interpreter lock and needs no start-up. It only reads and reports: the parent
does the work itself if there is no child or the child dies.
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
SPARE_DESCRIPTORS = 128  # left to the parent


def can_fork() -> bool:
    """Return whether a second processor and spare descriptors exist, and no other thread.

    A forked child lacks the other threads, but not the locks that they hold.
    """
    if not sys.platform.startswith("linux") or len(os.sched_getaffinity(0)) < 2:
        return False
    file_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        is_alone = len(os.listdir("/proc/self/task")) == 1
        needed = len(os.listdir("/proc/self/fd")) + SPARE_DESCRIPTORS
        return is_alone and not 0 <= file_limit < needed
    except OSError:
        return False


@contextmanager
def child(work: Callable[[], None], keep: Collection[int]) -> Iterator[int | None]:
    """Run `work` in a child until the block ends; yield its pid, `None` if fork failed.

    The child closes all descriptors but `keep`, so that it holds no file lock of the parent.
    """
    pid = None
    # The child must not run the parent's signal handlers.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        try:
            # A pending signal may be raised by this call.
            signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
            pid = _fork(work, keep)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        yield pid
    finally:
        if pid is not None:
            _end(pid)


def has_ended(pid: int) -> bool:
    """Return whether a child has exited, as far as the kernel tells."""
    if not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True  # another part of the process has reaped it


def _fork(work: Callable[[], None], keep: Collection[int]) -> int | None:
    try:
        pid = os.fork()
    except OSError:
        return None
    if pid == 0:
        _run_child(work, keep)
    return pid


def _end(pid: int) -> None:
    """Kill and reap a child; an interrupt meanwhile is raised afterwards."""
    problem = None
    while True:
        try:
            # Once reaped, its pid may belong to another process.
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


def _run_child(work: Callable[[], None], keep: Collection[int]) -> None:
    """Run the child; never returns, and skips the parent's exit handlers."""
    try:
        gc.disable()
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > MAX_STANDARD_FD and fd not in keep:
                with suppress(OSError):
                    os.close(fd)
        _redirect_standard_streams()
        work()
    finally:
        os._exit(0)


def _redirect_standard_streams() -> None:
    """Point stdio to /dev/null: a reader of the parent's output must not wait for the child."""
    devnull = os.open(os.devnull, os.O_RDWR)
    for fd in range(MAX_STANDARD_FD + 1):
        os.dup2(devnull, fd)
    os.close(devnull)
