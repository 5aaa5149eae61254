"""Making files without a name, one step ahead of whoever fills them.

To make a file keeps the file system busy for longer than to fill it keeps Python. A thread that
does nothing else hardly ever has Python wait, where several that do all of it would mostly wait for
each other. If it does not keep up, whoever fills them makes some, too, from the other end.

A file without a name that nobody takes is closed and thereby gone, as it is after a kill.
"""

from __future__ import annotations

import os
import resource
import time
from collections import deque
from collections.abc import Generator, Sequence
from typing import NamedTuple

from mulligan.core.tree import FILE, Change
from mulligan.worktree.fs.background import POLL_SECONDS, BackgroundTask, short_switch_interval
from mulligan.worktree.fs.safe_paths import Directories

NAMELESS_FILE = getattr(os, "O_TMPFILE", 0) | os.O_WRONLY | os.O_CLOEXEC
MIN_FILES = 48
MAX_FILES_AHEAD = 48  # files that wait to be filled, where a process may have so many open and more
MAX_SHARE_OF_FILE_LIMIT = 8  # of all that it may have


class UnnamedFile(NamedTuple):
    """A file without a name, the file system that it is on, and whether it has its mode."""

    fd: int
    device: int
    has_mode: bool


def made_for(
    root: bytes, writes: Sequence[Change]
) -> Generator[tuple[Change, UnnamedFile | None], None, None]:
    """Each of these changes once, some of them with a file in the folder that it is about.

    The file is the caller's to close. In order where there are few, and else in none.
    """
    if len(writes) < MIN_FILES or not hasattr(os, "O_TMPFILE"):
        for change in writes:
            yield change, None
        return
    with short_switch_interval():
        yield from _Making(root, writes).each()


class _Making:
    def __init__(self, root: bytes, writes: Sequence[Change]) -> None:
        self._root = root
        # The thread takes from the beginning of it, and its caller from the end.
        self._left = deque(writes)
        self._made: deque[tuple[Change, UnnamedFile | None]] = deque()
        allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._ahead = (
            MAX_FILES_AHEAD
            if allowed < 0
            else min(MAX_FILES_AHEAD, allowed // MAX_SHARE_OF_FILE_LIMIT)
        )
        self._is_stopped = False
        self._thread = BackgroundTask(self._make)

    def each(self) -> Generator[tuple[Change, UnnamedFile | None], None, None]:
        # An interrupt may come at any moment, that of its start included.
        try:
            self._thread.start()
            # Of the thread first: once it has ended, nothing more is made behind our back.
            while not self._thread.is_over or self._made or self._left:
                if self._made:
                    yield self._made.popleft()
                elif self._left:
                    try:
                        change = self._left.pop()
                    except IndexError:
                        # The thread was faster.
                        continue
                    yield change, None
                else:
                    self._thread.wait()
        finally:
            self._is_stopped = True
            try:
                self._thread.wait()
            finally:
                for _change, made in self._made:
                    if made is not None:
                        os.close(made.fd)

    def _make(self) -> None:
        with Directories(self._root) as directories:
            while not self._is_stopped:
                if len(self._made) >= self._ahead:
                    time.sleep(POLL_SECONDS)
                    continue
                try:
                    change = self._left.popleft()
                except IndexError:
                    return
                made = None
                try:
                    made = _made(directories, change)
                finally:
                    self._made.append((change, made))


def _made(directories: Directories, change: Change) -> UnnamedFile | None:
    """`None` if there cannot be one: whoever was to have it meets the same, and can tell why."""
    if change.after is None or change.after.kind != FILE:
        return None
    try:
        folder = directories.open(change.path.rpartition(b"/")[0])
        device = os.fstat(folder).st_dev
        fd = os.open(b".", NAMELESS_FILE, 0o600, dir_fd=folder)
    except OSError:
        return None
    # The bits above those would be taken away when it is written to.
    has_mode = change.after.mode <= 0o777
    if has_mode:
        try:
            os.fchmod(fd, change.after.mode)
        except OSError:
            has_mode = False
    return UnnamedFile(fd, device, has_mode)
