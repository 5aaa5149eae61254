"""Threads that work for somebody: how many, how they take turns, and that none is left behind."""

from __future__ import annotations

import atexit
import os
import sys
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident

READ_THREADS = min(4, os.cpu_count() or 1)
POLL_SECONDS = 0.0005  # seconds
BEGIN_TIMEOUT_S = 5.0


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """A thread that comes back from the system does not wait long until it can go on."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(POLL_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


_starting: set[BackgroundTask] = set()
"""Those whose thread was asked for and has not begun."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_starting.clear)


@atexit.register
def _let_all_begin() -> None:
    """Wait for the threads that have not begun.

    One that begins while the interpreter ends crashes CPython 3.11 before 3.11.6, and 3.12.0.
    """
    until = time.monotonic() + BEGIN_TIMEOUT_S
    while _starting and time.monotonic() < until:
        time.sleep(POLL_SECONDS)


class BackgroundTask:
    """Work that a thread does beside its caller, who must `wait` for it in the end.

    Nobody waits for the thread to begin: who does is often woken on its processor, and then gets
    no other for a millisecond or more. If it has not begun when it is waited for, or no thread was
    to be had, the work is done by whoever waits.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._is_over = False
        # Whose it is: the first to put itself down. In one step, so that an interrupt between two
        # cannot leave it to nobody.
        self._takers: list[int] = []
        self._going = allocate_lock()
        self._going.acquire()

    @property
    def is_over(self) -> bool:
        return self._is_over

    def start(self) -> None:
        _starting.add(self)
        try:
            start_new_thread(self._begin, ())
        except BaseException as problem:
            _starting.discard(self)
            if not isinstance(problem, RuntimeError):
                raise

    def wait(self) -> None:
        """Returns when it is over, and not before: nothing must go on behind the caller's back.

        An interrupt meanwhile is raised then.
        """
        problem = None
        while not self._is_over:
            try:
                if not self._do():
                    self._going.acquire()
                    self._going.release()
            except BaseException as each:
                problem = each
        if problem is not None:
            raise problem

    def _begin(self) -> None:
        _starting.discard(self)
        self._do()

    def _do(self) -> bool:
        """`False` if it is another's to do."""
        me = get_ident()
        self._takers.append(me)
        if self._takers[0] != me:
            return False
        try:
            self._work()
        finally:
            self._is_over = True
            self._going.release()
        return True
