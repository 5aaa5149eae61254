"""Deleting files without waiting for their blocks to be freed.

Where a file system tells the disk at once about blocks that are free again, each deletion waits
for the disk: milliseconds a file. A file that is still open when its name goes is freed when it
is closed, and that may happen while others go on with their work. Nothing depends on it: what is
deleted here is gone for everybody, and stays so after a power loss.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from functools import partial
from types import TracebackType

from mulligan.worktree.fs.background import BackgroundTask

MAX_HELD_FILES = 256  # held open at a time, where a process may have so many and more
MAX_SHARE_OF_FILE_LIMIT = 8  # of all that it may have
AT_ONCE = 8


_running: list[BackgroundTask] = []
if hasattr(os, "register_at_fork"):
    # No thread goes along into a child: there is nobody there to wait for.
    os.register_at_fork(after_in_child=_running.clear)


def finish() -> None:
    """Waits until everything that is being let go is gone."""
    while _running:
        _running.pop().wait()


class DeferredUnlink:
    """Deletes names; the files are let go in the background, the last of them at the end."""

    def __init__(self) -> None:
        self._held: list[int] = []
        # How many descriptors it holds at a time.
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.most = (
            MAX_HELD_FILES
            if allowed < 0
            else min(MAX_HELD_FILES, allowed // MAX_SHARE_OF_FILE_LIMIT)
        )

    def __enter__(self) -> DeferredUnlink:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._let_go()

    def unlink(self, name: bytes, parent: int) -> None:
        if hasattr(os, "O_PATH"):
            # As a mere path: no permission is needed for that, and nothing can be read by it.
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                self.hold(os.open(name, flags, dir_fd=parent))
            except OSError:
                # No descriptor is left: then it is freed at once.
                pass
        os.unlink(name, dir_fd=parent)

    def hold(self, fd: int) -> None:
        """Takes over a descriptor of something that has been deleted, or is about to be."""
        if len(self._held) >= self.most:
            self._let_go()
        self._held.append(fd)

    def finish(self) -> None:
        """Lets go of all that is held, and returns when that is gone."""
        self._let_go()
        finish()

    def _let_go(self) -> None:
        held, self._held = self._held, []
        try:
            finish()
        finally:
            if held:
                # One thread, which has others help it: the caller has only that one to begin.
                _running.append(_started(_close_all, held))


def _close_all(descriptors: list[int]) -> None:
    parts = [descriptors[start::AT_ONCE] for start in range(min(AT_ONCE, len(descriptors)))]
    helping = [_started(_close, part) for part in parts[1:]]
    _close(parts[0])
    for each in helping:
        each.wait()


def _close(descriptors: list[int]) -> None:
    for fd in descriptors:
        os.close(fd)


def _started(work: Callable[[list[int]], None], descriptors: list[int]) -> BackgroundTask:
    beside = BackgroundTask(partial(work, descriptors))
    beside.start()
    return beside
