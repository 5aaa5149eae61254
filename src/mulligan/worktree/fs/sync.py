"""Make many files durable with one `syncfs`.

A hundred fsyncs are a hundred commits of the file system's journal; `syncfs` is one. It also waits
for what other programs wrote there, so fewer than `MAX_SEPARATE_SYNCS` files are synced singly.
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
    """Sync the file system that holds an open file; `False` if that fails or is unsupported."""
    syncfs = _syncfs()
    return syncfs is not None and syncfs(fd) == 0


def sync_directories(root: bytes, paths: Iterable[bytes]) -> None:
    """Fsync directories below `root`. Raises `OSError`."""
    with Directories(root) as directories:
        for path in sorted(paths):
            try:
                fd = directories.open(path)
            except OSError as problem:
                if problem.errno in RESOURCE_ERRORS:
                    raise
                continue  # removed meanwhile, with everything in it
            try:
                os.fsync(fd)
            except OSError as problem:
                # Some file systems cannot fsync a directory.
                if problem.errno not in (errno.EINVAL, errno.ENOTSUP):
                    raise


class BackgroundSync:
    """Sync file systems in a background thread.

    The descriptors must stay open until `wait` has returned.
    """

    def __init__(self, descriptors: Iterable[int]) -> None:
        self._descriptors = list(descriptors)
        self._results: list[bool] = []
        self._task = BackgroundTask(self._sync)
        if self._descriptors:
            self._task.start()

    def wait(self) -> bool:
        """Wait for the sync; `False` if it failed or there was nothing to sync."""
        self._task.wait()
        return bool(self._results) and all(self._results)

    def _sync(self) -> None:
        self._results = [sync_file_system(fd) for fd in self._descriptors]


@cache
def _syncfs() -> Callable[[int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    syncfs: Callable[[int], int] | None
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return syncfs
