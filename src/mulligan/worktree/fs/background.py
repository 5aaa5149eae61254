"""Run work in a background thread; the caller runs it itself if no thread has started."""

from __future__ import annotations

import atexit
import os
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from threading import get_ident

READ_THREADS = min(4, os.cpu_count() or 1)
POLL_S = 0.0005
START_TIMEOUT_S = 5.0

_starting: set[BackgroundTask] = set()
"""Tasks whose thread was requested and has not begun to run."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_starting.clear)


@atexit.register
def _wait_for_starting_threads() -> None:
    """Wait for threads that have not begun to run.

    A thread that begins while the interpreter ends crashes CPython before 3.11.6, and 3.12.0.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while _starting and time.monotonic() < deadline:
        time.sleep(POLL_S)


class BackgroundTask:
    """Work for a background thread; its caller must `wait` for it in the end.

    `start` does not wait for the thread: a caller woken by it often shares its processor and
    loses a millisecond or more. If the thread has not begun when the caller waits, or could not be
    started, the caller does the work.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._is_done = False
        # The first thread in the list does the work. An append is atomic, so an interrupt cannot
        # leave the work unclaimed.
        self._claims: list[int] = []
        self._done_lock = allocate_lock()
        self._done_lock.acquire()

    @property
    def is_done(self) -> bool:
        return self._is_done

    def start(self) -> None:
        """Request a thread; without one, `wait` does the work."""
        _starting.add(self)
        try:
            start_new_thread(self._run_in_thread, ())
        except BaseException as problem:
            _starting.discard(self)
            if not isinstance(problem, RuntimeError):
                raise

    def wait(self) -> None:
        """Return when the work is done; an interrupt meanwhile is raised then."""
        problem = None
        while not self._is_done:
            try:
                if not self._run():
                    self._done_lock.acquire()
                    self._done_lock.release()
            except BaseException as each:
                problem = each
        if problem is not None:
            raise problem

    def _run_in_thread(self) -> None:
        _starting.discard(self)
        self._run()

    def _run(self) -> bool:
        """Do the work; `False` if another thread has claimed it."""
        me = get_ident()
        self._claims.append(me)
        if self._claims[0] != me:
            return False
        try:
            self._work()
        finally:
            self._is_done = True
            self._done_lock.release()
        return True
