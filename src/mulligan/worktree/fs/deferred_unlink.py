"""Unlink files now and free their blocks in a background thread.

On a file system mounted with `discard`, freeing blocks waits for the disk: milliseconds a file.
The kernel frees an unlinked file only when its last descriptor is closed, so the file is opened
before the unlink and closed later by a thread. The name is gone at once, also after a power loss.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from functools import partial
from types import TracebackType

from mulligan.worktree.fs.background import BackgroundTask

MAX_HELD_FILES = 256
FILE_LIMIT_DIVISOR = 8  # hold at most this fraction of RLIMIT_NOFILE
CLOSING_THREADS = 8

_running: list[BackgroundTask] = []
if hasattr(os, "register_at_fork"):
    # A forked child has none of the parent's threads to wait for.
    os.register_at_fork(after_in_child=_running.clear)


def finish() -> None:
    """Wait for all background closes."""
    while _running:
        _running.pop().wait()


class DeferredUnlink:
    """Unlink names at once; close the files in batches of `max_held` in the background."""

    def __init__(self) -> None:
        self._held: list[int] = []
        file_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.max_held = (
            MAX_HELD_FILES
            if file_limit < 0
            else min(MAX_HELD_FILES, file_limit // FILE_LIMIT_DIVISOR)
        )

    def __enter__(self) -> DeferredUnlink:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close_held()

    def unlink(self, name: bytes, parent: int) -> None:
        if hasattr(os, "O_PATH"):
            # O_PATH needs no permission on the file.
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                self.hold(os.open(name, flags, dir_fd=parent))
            except OSError:
                pass  # out of descriptors: the unlink frees the blocks at once
        os.unlink(name, dir_fd=parent)

    def hold(self, fd: int) -> None:
        """Take ownership of the descriptor of a file that is or will be unlinked."""
        if len(self._held) >= self.max_held:
            self._close_held()
        self._held.append(fd)

    def finish(self) -> None:
        """Close every held file and wait until that is done."""
        self._close_held()
        finish()

    def _close_held(self) -> None:
        held, self._held = self._held, []
        try:
            finish()
        finally:
            if held:
                # The caller starts one thread; that thread starts the others.
                _running.append(_start(_close_all, held))


def _close_all(descriptors: list[int]) -> None:
    count = min(CLOSING_THREADS, len(descriptors))
    parts = [descriptors[start::CLOSING_THREADS] for start in range(count)]
    tasks = [_start(_close, part) for part in parts[1:]]
    _close(parts[0])
    for task in tasks:
        task.wait()


def _close(descriptors: list[int]) -> None:
    for fd in descriptors:
        os.close(fd)


def _start(work: Callable[[list[int]], None], descriptors: list[int]) -> BackgroundTask:
    task = BackgroundTask(partial(work, descriptors))
    task.start()
    return task
