"""Looking ahead: with a watcher, what changed is read as soon as the files fall quiet.

So the next verb finds most of its look done. Only objects are written, and the stat cache in
memory; no checkpoint, no operation: nothing counts until a verb says so, and what no verb asked
for in the end is freed by the next garbage collection. That this stays little, a path is read
ahead once between two looks of verbs, and much at a time is left to them.
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
PAUSE_SECONDS = 1.0  # seconds after one that was of no use
MAX_PREFETCHED_FILES = 512
MAX_PREFETCHED_BYTES = 8 << 20


class Prefetcher:
    """A thread that looks ahead until it is closed. One for each project with a watcher."""

    def __init__(self, project: OpenProject, watcher: Watcher) -> None:
        self._project = project
        self._watcher = watcher
        self._done: set[bytes] = set()
        self._stop = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = Thread(target=self._run, name="mulligan-ahead", daemon=True)
        self._thread.start()

    def restart(self) -> None:
        """A verb has looked: what was read ahead until now was of use."""
        self._done.clear()

    def close(self) -> None:
        """Ends the thread; not to be called by somebody who holds what it may wait for."""
        os.eventfd_write(self._stop, 1)
        self._thread.join()
        os.close(self._stop)

    def _run(self) -> None:
        while self._events_wait():
            # As long as more come within a moment, somebody is just writing.
            waiting = -1
            while waiting != (waiting := self._watcher.queued()):
                if self._is_stopped(QUIET_SECONDS):
                    return
            try:
                useful = waiting == 0 or self._look()
            except (MulliganError, OSError, apsw.Error):
                # Whatever is wrong, the next verb meets it too, and says it to somebody.
                useful = False
            if not useful and self._is_stopped(PAUSE_SECONDS):
                return

    def _look(self) -> bool:
        project = self._project
        with project.locked(wait=0):
            token = project.cache().token
            seen = self._watcher.peek(token)
            if seen.lost or not self._is_little(seen.paths) or self._done & seen.paths:
                return False
            done = self._done | seen.paths
            with Writer(project.store) as writer:
                take_snapshot(project, writer, ahead=True)
                writer.commit()
            self._done = done
            return True

    def _is_little(self, paths: frozenset[bytes]) -> bool:
        if len(paths) > MAX_PREFETCHED_FILES:
            return False
        size = 0
        for path in paths:
            try:
                size += os.lstat(os.path.join(self._project.location.root, path)).st_size
            except OSError:
                continue
        return size <= MAX_PREFETCHED_BYTES

    def _events_wait(self) -> bool:
        """Waits for events; `False` when it is to end."""
        poll = select.poll()
        poll.register(self._stop, select.POLLIN)
        poll.register(self._watcher.fileno(), select.POLLIN)
        return all(fd != self._stop for fd, _event in poll.poll())

    def _is_stopped(self, seconds: float) -> bool:
        """Waits for so long, unless it is to end."""
        poll = select.poll()
        poll.register(self._stop, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
