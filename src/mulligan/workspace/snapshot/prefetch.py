"""Read changed files ahead of the next operation, when a watcher reports them.

The next operation then finds most of its scan done. Only objects and the in-memory stat cache are
written; no checkpoint, no operation. Objects that no operation uses are freed by gc. To limit the
cost, a path is read ahead once between two operations, and large changes are left to the operation.
"""

from __future__ import annotations

import os
import select
from threading import Thread
from typing import TYPE_CHECKING

import apsw

from mulligan.errors import MulliganError
from mulligan.store.writer import Writer
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.snapshot.take import take_snapshot

if TYPE_CHECKING:
    from mulligan.worktree.watch.inotify import Watcher

QUIET_SECONDS = 0.02  # seconds without events
PAUSE_SECONDS = 1.0  # seconds after a useless prefetch
MAX_PREFETCHED_FILES = 512
MAX_PREFETCHED_BYTES = 8 << 20


class Prefetcher:
    """A thread that prefetches until it is closed; one per project with a watcher."""

    def __init__(self, project: OpenProject, watcher: Watcher) -> None:
        self._project = project
        self._watcher = watcher
        self._done: set[bytes] = set()
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = Thread(target=self._run, name="mulligan-ahead", daemon=True)
        self._thread.start()

    def restart(self) -> None:
        """Allow every path to be read ahead again, after an operation has scanned."""
        self._done.clear()

    def close(self) -> None:
        """Stop the thread. The caller must not hold a lock that the thread waits for."""
        os.eventfd_write(self._stop, 1)
        self._thread.join()
        os.close(self._stop)

    def _run(self) -> None:
        while self._wait_for_events():
            # While events keep coming, a program is still writing.
            waiting = -1
            while waiting != (waiting := self._watcher.queued()):
                if self._is_stopped(QUIET_SECONDS):
                    return
            try:
                useful = waiting == 0 or self._prefetch()
            except (MulliganError, OSError, apsw.Error):
                # The next operation meets the same error, and reports it.
                useful = False
            if not useful and self._is_stopped(PAUSE_SECONDS):
                return

    def _prefetch(self) -> bool:
        project = self._project
        with project.locked(wait=0):
            token = project.cache().token
            seen = self._watcher.peek(token)
            if seen.lost or not self._is_small(seen.paths) or self._done & seen.paths:
                return False
            done = self._done | seen.paths
            with Writer(project.store) as writer:
                take_snapshot(project, writer, prefetch=True)
                writer.commit()
            self._done = done
            return True

    def _is_small(self, paths: frozenset[bytes]) -> bool:
        if len(paths) > MAX_PREFETCHED_FILES:
            return False
        size = 0
        for path in paths:
            try:
                size += os.lstat(os.path.join(self._project.location.root, path)).st_size
            except OSError:
                continue
        return size <= MAX_PREFETCHED_BYTES

    def _wait_for_events(self) -> bool:
        """Wait for events; return False if the thread must stop."""
        poll = select.poll()
        poll.register(self._stop, select.POLLIN)
        poll.register(self._watcher.fileno(), select.POLLIN)
        return all(fd != self._stop for fd, _event in poll.poll())

    def _is_stopped(self, seconds: float) -> bool:
        """Sleep; return True if the thread must stop."""
        poll = select.poll()
        poll.register(self._stop, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
