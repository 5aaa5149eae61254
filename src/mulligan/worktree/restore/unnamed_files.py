"""Create unnamed files (O_TMPFILE) in a background thread, ahead of the code that fills them.

Creating a file takes the kernel longer than filling it takes Python, and the thread does not hold
the interpreter lock meanwhile. If the thread falls behind, the caller takes changes from the other
end of the queue and creates their files itself.

The kernel deletes an unnamed file when it is closed, also after a kill.
"""

from __future__ import annotations

import os
import resource
import time
from collections import deque
from collections.abc import Generator, Sequence
from typing import NamedTuple

from mulligan.core.tree import FILE, Change
from mulligan.worktree.fs.background import POLL_S, BackgroundTask
from mulligan.worktree.fs.safe_paths import Directories

OPEN_UNNAMED = getattr(os, "O_TMPFILE", 0) | os.O_WRONLY | os.O_CLOEXEC
MIN_FILES_FOR_THREAD = 48
MAX_FILES_AHEAD = 48
FILE_LIMIT_DIVISOR = 8  # hold at most this fraction of RLIMIT_NOFILE


class UnnamedFile(NamedTuple):
    """An empty file without a name, and its file system."""

    fd: int
    device: int


def with_unnamed_files(
    root: bytes, writes: Sequence[Change]
) -> Generator[tuple[Change, UnnamedFile | None], None, None]:
    """Yield each change once, many with an unnamed file in the directory of its path.

    The caller closes the file. With fewer than `MIN_FILES_FOR_THREAD` changes the order is kept and
    no file is created.
    """
    if len(writes) < MIN_FILES_FOR_THREAD or not hasattr(os, "O_TMPFILE"):
        for change in writes:
            yield change, None
        return
    yield from _Creation(root, writes).each()


class _Creation:
    def __init__(self, root: bytes, writes: Sequence[Change]) -> None:
        self._root = root
        # The thread takes from the left end, the caller from the right.
        self._pending = deque(writes)
        self._created: deque[tuple[Change, UnnamedFile | None]] = deque()
        file_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._max_ahead = (
            MAX_FILES_AHEAD
            if file_limit < 0
            else min(MAX_FILES_AHEAD, file_limit // FILE_LIMIT_DIVISOR)
        )
        self._is_stopped = False
        self._thread = BackgroundTask(self._create_all)

    def each(self) -> Generator[tuple[Change, UnnamedFile | None], None, None]:
        # The start is inside the try, because an interrupt may come at any moment.
        try:
            self._thread.start()
            # `is_done` is read first: after it, the thread adds nothing to `_created`.
            while not self._thread.is_done or self._created or self._pending:
                if self._created:
                    yield self._created.popleft()
                elif self._pending:
                    try:
                        change = self._pending.pop()
                    except IndexError:
                        continue  # the thread took the last one
                    yield change, None
                else:
                    self._thread.wait()
        finally:
            self._is_stopped = True
            try:
                self._thread.wait()
            finally:
                for _change, file in self._created:
                    if file is not None:
                        os.close(file.fd)

    def _create_all(self) -> None:
        with Directories(self._root) as directories:
            while not self._is_stopped:
                if len(self._created) >= self._max_ahead:
                    time.sleep(POLL_S)
                    continue
                try:
                    change = self._pending.popleft()
                except IndexError:
                    return
                file = None
                try:
                    file = _create(directories, change)
                finally:
                    self._created.append((change, file))


def _create(directories: Directories, change: Change) -> UnnamedFile | None:
    """Create a file for a change; `None` on error, which the caller will meet, too."""
    if change.after is None or change.after.kind != FILE:
        return None
    try:
        directory = directories.open(change.path.rpartition(b"/")[0])
        device = os.fstat(directory).st_dev
        return UnnamedFile(os.open(b".", OPEN_UNNAMED, 0o600, dir_fd=directory), device)
    except OSError:
        return None
