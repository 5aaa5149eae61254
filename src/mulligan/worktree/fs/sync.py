"""Making many files durable at once.

Syncing a hundred small files one by one takes a hundred commits of the file system's journal.
Where the system can sync a whole file system, that takes one. It also waits for what others have
written there; for a handful of files each is synced by itself instead.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache

from mulligan.worktree.fs.background import BackgroundTask
from mulligan.worktree.fs.safe_paths import RESOURCE_ERRORS, Directories

MAX_SEPARATE_SYNCS = 8


def sync_file_system(fd: int) -> bool:
    """Syncs all that was written to the file system of an open file; `False` if that cannot be."""
    call = _call()
    return call is not None and call(fd) == 0


def sync_folders(root: bytes, folders: Iterable[bytes]) -> None:
    """Makes the names in folders below `root` durable; raises `OSError` if the disk does not."""
    with Directories(root) as directories:
        for folder in sorted(folders):
            try:
                fd = directories.open(folder)
            except OSError as problem:
                if problem.errno in RESOURCE_ERRORS:
                    raise
                # One that is gone again took with it what was made durable in it.
                continue
            try:
                os.fsync(fd)
            except OSError as problem:
                # Some file systems have no such thing for folders.
                if problem.errno not in (errno.EINVAL, errno.ENOTSUP):
                    raise


class BackgroundSync:
    """File systems that are being synced, while their caller has other things to do."""

    def __init__(self, descriptors: Iterable[int]) -> None:
        """The descriptors must stay open until `wait` has returned."""
        self._descriptors = list(descriptors)
        self._is_done: list[bool] = []
        self._work = BackgroundTask(self._sync)
        if self._descriptors:
            self._work.start()

    def wait(self) -> bool:
        """Returns when they are durable; `False` if that cannot be had like this, or of none."""
        self._work.wait()
        return bool(self._is_done) and all(self._is_done)

    def _sync(self) -> None:
        self._is_done = [sync_file_system(fd) for fd in self._descriptors]


@cache
def _call() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    found: Callable[[int], int] | None
    found = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return found
