"""Threads that work for somebody: how many, how they take turns, and that none is left behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

WORKERS = min(4, os.cpu_count() or 1)
SOON = 0.0005  # seconds


@contextmanager
def quick_turns() -> Iterator[None]:
    """A thread that comes back from the system does not wait long until it can go on."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SOON)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def wait_for(thread: Thread) -> None:
    """Returns when it has ended, and not before: what it does must not go on behind our back.

    An interrupt meanwhile is raised then.
    """
    problem = None
    while thread.is_alive():
        try:
            thread.join()
        except BaseException as each:
            problem = each
    if problem is not None:
        raise problem
