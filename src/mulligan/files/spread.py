"""The same work for many paths, in several threads that are mostly waiting for the system."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import TypeVar

from mulligan.files.reach import Directories

MANY = 48
WORKERS = min(4, os.cpu_count() or 1)
SOON = 0.0005  # seconds
Item = TypeVar("Item")


def spread(root: bytes, items: Sequence[Item], work: Callable[[Directories, Item], None]) -> None:
    """Calls `work` once for each item, in no order where there are many; each thread has folders
    of its own. What one raises ends them all, and is raised when none is at work any more."""
    left = iter(items)
    problems: list[BaseException] = []

    def do_some() -> None:
        try:
            with Directories(root) as directories:
                for item in left:
                    if problems:
                        return
                    work(directories, item)
        except BaseException as problem:
            problems.append(problem)

    if len(items) < MANY:
        do_some()
    else:
        with quick_turns():
            _together(do_some, problems)
    if problems:
        raise problems[0]


@contextmanager
def quick_turns() -> Iterator[None]:
    """A thread that comes back from the system does not wait long until it can go on."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SOON)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def _together(do_some: Callable[[], None], problems: list[BaseException]) -> None:
    """Has it done by several threads, this one among them."""
    threads = [Thread(target=do_some) for _ in range(WORKERS - 1)]
    try:
        for thread in threads:
            try:
                thread.start()
            except RuntimeError:
                # No more threads are to be had: those that are there do it all.
                break
        do_some()
    except BaseException as problem:
        problems.append(problem)
    for thread in threads:
        _join(thread, problems)


def _join(thread: Thread, problems: list[BaseException]) -> None:
    """Waits for a thread whatever happens: what it does must not go on behind our back."""
    while thread.is_alive():
        try:
            thread.join()
        except BaseException as problem:
            problems.append(problem)
