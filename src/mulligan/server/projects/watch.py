"""Watch the files of the projects in use, at most `MAX_WATCHED_PROJECTS` at a time.

The kernel gives a user 128 inotify instances (fs.inotify.max_user_instances), which editors and
other Mulligan processes need too. So the least recently used project loses its watcher when
another one is used. Without a watcher its scans compare every file, and file changes are announced
after the next request.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from mulligan.errors import Busy, MulliganError, Unsupported
from mulligan.journal import checkpoints
from mulligan.server.projects.jobs import Job
from mulligan.workspace.opening import start_watching
from mulligan.workspace.watch_server import Watching
from mulligan.workspace.workspace import Workspace

MAX_WATCHED_PROJECTS = 8
QUIET_SECONDS = 0.1
IDLE_POLL_SECONDS = 0.5
STOP_TIMEOUT_S = 5.0


class WatchedProjects:
    """Keep the most recently used projects watched. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(MAX_WATCHED_PROJECTS)
        self._recent: OrderedDict[ProjectWatch, None] = OrderedDict()
        """Least recently used first."""
        self._closed = False

    def use(self, watch: ProjectWatch) -> None:
        """Mark a project as used: watch it, and stop the least recently used one if need be."""
        with self._lock:
            if watch in self._recent:
                self._recent.move_to_end(watch)
            elif not self._closed and watch.start(self._slots):
                self._recent[watch] = None
                if len(self._recent) > MAX_WATCHED_PROJECTS:
                    self._recent.popitem(last=False)[0].stop()

    def close(self) -> None:
        """Stop every watcher, for good; `ProjectWatch.wait_stopped` waits for one."""
        with self._lock:
            self._closed = True
            for watch in self._recent:
                watch.stop()
            self._recent.clear()


class ProjectWatch:
    """The watcher of one project: its thread, its background scan and its socket.

    It can be started and stopped many times. Each start has a thread, which waits for the thread
    before it and for a free slot, and releases both the watcher and the slot at its end.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        announce_changes: Callable[[], None],
        begin_first_checkpoint: Callable[[], Job],
    ) -> None:
        self._workspace = workspace
        self._project = workspace.project
        self._announce_changes = announce_changes
        self._begin_first_checkpoint = begin_first_checkpoint
        self._first_checkpoint: Job | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def start(self, slots: threading.Semaphore) -> bool:
        """Start the watcher, or queue for a slot; false if the kernel gives no inotify instance.

        With a free slot the watcher is there on return, so that the caller's scan uses it.
        """
        previous = self._thread
        is_first_in_line = previous is None or not previous.is_alive()
        has_slot = is_first_in_line and slots.acquire(blocking=False)
        if has_slot and not self._start_watcher():
            slots.release()
            return False
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run,
            args=(self._stop, slots, previous, has_slot),
            name="mulligan-watch",
            daemon=True,
        )
        self._thread.start()
        return True

    def stop(self) -> None:
        """Ask the thread to close the watcher; do not wait, for a request may be using it."""
        self._stop.set()

    def wait_stopped(self) -> None:
        """Wait for the thread of a stopped watcher, at most `STOP_TIMEOUT_S`."""
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_S)

    def _start_watcher(self) -> bool:
        try:
            start_watching(self._project)
        except Unsupported:
            return False
        return True

    def _run(
        self,
        stop: threading.Event,
        slots: threading.Semaphore,
        previous: threading.Thread | None,
        has_slot: bool,
    ) -> None:
        """Watch the project until `stop`.

        1. Wait for the thread of the previous start, which may still close its watcher.
        2. Take the project's first checkpoint, also if the project is not watched in the end.
        3. Wait for a slot, and start the watcher.
        4. Serve the watcher to other processes, and announce changes.
        5. Close the watcher, then release the slot.
        """
        if previous is not None:
            previous.join()
        has_checkpoint = self._wait_for_first_checkpoint(stop)
        if not has_slot and not _acquire(slots, stop):
            return
        try:
            is_watched = has_slot or self._start_watcher()
            if is_watched and has_checkpoint and not stop.is_set():
                # Requests profit from the watcher even if it cannot be served.
                with suppress(MulliganError, OSError):
                    self._serve(stop, was_unwatched=previous is not None)
            stop.wait()
        finally:
            self._project.stop_watching()
            slots.release()

    def _wait_for_first_checkpoint(self, stop: threading.Event) -> bool:
        """Take the first checkpoint as a job, which a client can cancel; true if there is one."""
        with suppress(MulliganError, OSError):
            if checkpoints.latest(self._project.journal) is not None:
                return True
            if self._first_checkpoint is None:
                self._first_checkpoint = self._begin_first_checkpoint()
            while not self._first_checkpoint.ended.wait(0.2):
                if stop.is_set():
                    return False
            return self._first_checkpoint.state == "done"
        return False

    def _serve(self, stop: threading.Event, *, was_unwatched: bool) -> None:
        """Serve the watcher at `watch.sock`, and announce changes until `stop`."""
        socket: Watching | None = None
        try:
            socket = Watching(self._project)
        except Busy:
            # Another process serves a watcher of this project; ours is for this process alone.
            self._workspace.status()
        try:
            if was_unwatched:
                # Files may have changed while there was no watcher.
                self._announce_changes()
            self._announce_until(stop)
        finally:
            if socket is not None:
                socket.close()

    def _announce_until(self, stop: threading.Event) -> None:
        watcher = self._project.watcher
        if watcher is None:
            return
        token = watcher.peek(None).token
        while not stop.is_set():
            # A scan of ours consumes events, which ends the wait late: so peek in any case.
            watcher.wait(IDLE_POLL_SECONDS)
            changes = watcher.peek(token)
            if changes.paths or changes.lost:
                # A burst of changes is announced once, after a moment without any.
                stop.wait(QUIET_SECONDS)
                changes = watcher.peek(token)
                self._announce_changes()
            token = changes.token


def _acquire(slots: threading.Semaphore, stop: threading.Event) -> bool:
    while not stop.is_set():
        if slots.acquire(timeout=IDLE_POLL_SECONDS):
            return True
    return False
