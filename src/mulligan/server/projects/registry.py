"""The projects that a server has open.

A workspace is opened by the first request that names its project, and stays open. The most
recently used ones have a watcher, so that a scan costs what changed (`project_watch`). Requests run
in threads, at most `MAX_THREADS_PER_PROJECT` for each project, so that a busy project does not
delay the others.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, NamedTuple, NotRequired, TypedDict, TypeVar

import anyio
import anyio.to_thread

from mulligan.clock import now_ns
from mulligan.core.coverage import decode_path
from mulligan.core.times import rfc3339
from mulligan.errors import Busy, MulliganError, NotFound
from mulligan.journal import checkpoints, sessions, views
from mulligan.journal.db import Database
from mulligan.journal.migrations import JOURNAL
from mulligan.server.projects.feed import Event, Feed, Subscription
from mulligan.server.projects.jobs import Job, Jobs, Work
from mulligan.server.projects.memory import return_freed_memory
from mulligan.server.projects.watch import ProjectWatch, WatchedProjects
from mulligan.workspace.opening import open_location
from mulligan.workspace.project.location import (
    ProjectLocation,
    find_project,
    is_imported,
    known_projects,
    register,
)
from mulligan.workspace.results.files import Progress
from mulligan.workspace.results.review import PendingStats
from mulligan.workspace.sessions.sessions import stop_dead_sessions
from mulligan.workspace.workspace import Workspace

Answer = TypeVar("Answer")
MAX_THREADS = 48
MAX_THREADS_PER_PROJECT = 8
FEED_THREADS = 4
CHECK_EVERY_SECONDS = 5.0
MEMORY_SECONDS = 60.0
LOCK_WAIT_SECONDS = 20.0
CLOSE_TIMEOUT_S = 10.0


class ProjectRow(TypedDict):
    """A project that has data in the home. `problem` says why it cannot be read, if so.

    `pending` counts the pending work of each session. A list leaves it out for a project with
    pending work that is not open yet; a request for that one project opens it.
    """

    project: str
    root: str
    name: str
    exists: bool
    imported: bool
    sessions: int
    checkpoints: int
    updated_at: str | None
    problem: str | None
    pending: NotRequired[dict[str, PendingStats]]


class Registry:
    """The open projects of one home. Use it from one event loop; `close` it at the end."""

    def __init__(
        self, home: str, *, watch: bool = True, default_project: str | None = None
    ) -> None:
        """`default_project` serves requests that name no project."""
        self.default_project = default_project
        self.home = home
        self.started_at = rfc3339(now_ns())
        self.jobs = Jobs(self._tell_of_job)
        self.used_at = time.monotonic()
        self.clients = 0
        self._watched = WatchedProjects() if watch else None
        self._ending = False
        self._open: dict[str, _Open] = {}
        self._retired: list[_Open] = []
        self._opening: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._feed: Feed | None = None
        self._threads = anyio.CapacityLimiter(MAX_THREADS)
        self._lines: dict[str, anyio.CapacityLimiter] = {}

    def start(self) -> None:
        """Bind the registry to the running event loop."""
        self._loop = asyncio.get_running_loop()

    async def call(self, verb: Callable[..., Answer], *given: Any, **named: Any) -> Answer:
        """Run a blocking function in a worker thread."""
        return await anyio.to_thread.run_sync(partial(verb, *given, **named), limiter=self._threads)

    async def work(self, project: str, verb: Callable[..., Answer], **given: Any) -> Answer:
        """Run a function with the `workspace` of a project; raises `NotFound`."""
        line = self._lines.setdefault(project, anyio.CapacityLimiter(MAX_THREADS_PER_PROJECT))
        try:
            async with line:
                return await self.call(self._with_workspace, project, verb, given)
        except NotFound:
            if project not in self._open:
                # Keep no limiter for an unknown id: a client may try any number of ids.
                self._lines.pop(project, None)
            raise

    async def workspace(self, project: str) -> Workspace:
        """Return the workspace of a project by its id; raises `NotFound`."""
        return (await self.call(self._opened, project)).workspace

    async def open_path(
        self, path: str, *, create: bool = True, automatic: bool = False
    ) -> Workspace:
        """Return the workspace that contains `path`; register it if it is new."""
        return (await self.call(self.opened_at, path, create=create, automatic=automatic)).workspace

    def opened_at(self, path: str, *, create: bool = True, automatic: bool = False) -> _Open:
        """`open_path` for a worker thread; registers a project known only from imported logs."""
        project = find_project(path, self.home, automatic=automatic)
        if is_imported(project) and create:
            register(project)
            with self._lock:
                # Other threads may be using it: it is closed at shutdown.
                self._retired += [self._open.pop(project.id)] if project.id in self._open else []
        if not create and not os.path.exists(project.path("journal.sqlite")):
            raise NotFound(f"There is no checkpoint of {decode_path(project.root)} yet.")
        return self._use(self._open_one(project))

    def opened(self, project: str) -> Workspace:
        """`workspace` for a worker thread; raises `NotFound`."""
        return self._opened(project).workspace

    def if_open(self, project: str) -> Workspace | None:
        """Return the workspace of a project that is open already, else None."""
        found = self._open.get(project)
        return None if found is None else found.workspace

    def listed(self) -> list[ProjectRow]:
        """List the projects of the home, the most recently updated first."""
        found = [self._described(project) for project in known_projects(self.home)]
        return sorted(found, key=lambda each: each["updated_at"] or "", reverse=True)

    def described(self, project: str) -> ProjectRow:
        """Describe one project as in `listed`."""
        return self._described(self._known(project))

    def subscribe(
        self, project: str | None = None, after: str | int | None = None
    ) -> AbstractAsyncContextManager[Subscription]:
        """Subscribe to a project, or to all; see `Feed.subscribe`."""
        return self.feed.subscribe(project, after)

    @property
    def feed(self) -> Feed:
        """The event feed, created for the first subscriber."""
        if self._feed is None:
            self.start()
            # In threads of its own: requests that wait for a lock must not delay events.
            own = anyio.CapacityLimiter(FEED_THREADS)

            async def call(verb: Callable[..., Any], *given: Any) -> Any:
                return await anyio.to_thread.run_sync(verb, *given, limiter=own)

            self._feed = Feed(self.home, call)
        return self._feed

    def wake(self) -> None:
        """Have the feed read the journals now: a request has just written."""
        if self._feed is not None:
            self._feed.wake()

    def begin(self, kind: str, project: str, work: Callable[[Workspace], Any]) -> Job:
        """Start a job on a project, in a workspace of its own that reports progress."""
        known = self._known(project)

        def run(progress: Progress) -> Any:
            with Workspace(open_location(known, self.home, progress=progress)) as workspace:
                return work(workspace)

        return self.jobs.start(kind, project, run)

    def begin_elsewhere(self, kind: str, work: Work) -> Job:
        """Start a job that concerns no single project."""
        return self.jobs.start(kind, None, work)

    def publish(self, event: Event) -> None:
        """Send an event to the subscribers, from any thread."""
        if self._loop is not None and self._feed is not None:
            try:
                self._loop.call_soon_threadsafe(self._feed.publish, event)
            except RuntimeError:
                # The loop is closed, and so is every subscription.
                return

    async def check_projects(self) -> None:
        """Every few seconds: stop dead sessions, free the memory of unused projects."""
        while True:
            await asyncio.sleep(CHECK_EVERY_SECONDS)
            for each in list(self._open.values()):
                try:
                    await self.call(each.check)
                except (MulliganError, OSError):
                    # Busy or not writable: `current_status` detects dead processes anyway.
                    continue

    async def end_streams(self) -> None:
        """End every subscription, and refuse new ones."""
        await self.feed.close()

    def interrupt(self) -> None:
        """Have long requests fail at their next progress report, which is as safe as a kill."""
        self._ending = True

    def progress(self, stage: str, done: int, total: int | None) -> None:
        """Progress callback of every request: raise `Busy` once the server is stopping."""
        if self._ending:
            raise Busy("The server is stopping; start it again, then repeat the request.")

    async def close(self) -> None:
        """Shut down in order: subscriptions, requests, jobs, projects."""
        await self.end_streams()
        self.interrupt()
        with anyio.move_on_after(CLOSE_TIMEOUT_S):
            while self._threads.borrowed_tokens:
                await anyio.sleep(0.02)
        await anyio.to_thread.run_sync(self._close)

    def _with_workspace(
        self, project: str, verb: Callable[..., Answer], given: dict[str, Any]
    ) -> Answer:
        return verb(workspace=self._opened(project).workspace, **given)

    def _known(self, project: str) -> ProjectLocation:
        with self._lock:
            if project in self._open:
                return self._open[project].workspace.project.location
        for known in known_projects(self.home):
            if known.id == project:
                return known
        raise NotFound(f"There is no project {project!r}; GET /api/v1/projects lists them.")

    def _opened(self, project: str) -> _Open:
        found = self._open.get(project)
        return self._use(self._open_one(self._known(project)) if found is None else found)

    def _use(self, opened: _Open) -> _Open:
        """Keep the memory and the watcher of a project that is used."""
        opened.used_at = time.monotonic()
        if self._watched is not None and opened.watch is not None:
            self._watched.use(opened.watch)
        return opened

    def _open_one(self, project: ProjectLocation) -> _Open:
        """Open a project once; concurrent callers wait, those of other projects do not."""
        with self._lock:
            turn = self._opening.setdefault(project.id, threading.Lock())
        with turn:
            found = self._open.get(project.id)
            if found is None:
                found = _Open(project, self)
                with self._lock:
                    self._open[project.id] = found
        return found

    def _described(self, project: ProjectLocation) -> ProjectRow:
        root = decode_path(project.root)
        counts, problem = _Counts(), None
        try:
            counts = self._counts(project)
        except (MulliganError, OSError) as raised:
            problem = str(raised)
        row: ProjectRow = {
            "project": project.id,
            "root": root,
            "name": os.path.basename(root) or root,
            "exists": os.path.isdir(project.root),
            "imported": is_imported(project),
            "sessions": counts.sessions,
            "checkpoints": counts.checkpoints,
            "updated_at": counts.updated_at,
            "problem": problem,
        }
        if not counts.undecided:
            row["pending"] = {}
        return row

    def _counts(self, project: ProjectLocation) -> _Counts:
        """Count from the journal alone, without opening the project."""
        found = self._open.get(project.id)
        if found is not None:
            return _counted(found.workspace.project.journal)
        path = project.path("journal.sqlite")
        if not os.path.exists(path):
            raise NotFound(f"{decode_path(project.root)} has no journal.")
        journal = Database(path, JOURNAL)
        try:
            return _counted(journal)
        finally:
            journal.close()

    def _tell_of_job(self, job: Job) -> None:
        self.publish(Event(job.project, None, "job", job.as_json()))

    def _close(self) -> None:
        self.jobs.close()
        if self._watched is not None:
            self._watched.close()
        with self._lock:
            opened = [*self._open.values(), *self._retired]
            self._open.clear()
        for each in opened:
            each.close()


def open_project(project: ProjectLocation, registry: Registry) -> Workspace:
    """Open a project; one known only from imported logs stays marked as imported."""
    return Workspace(
        open_location(project, registry.home, wait=LOCK_WAIT_SECONDS, progress=registry.progress)
    )


class _Open:
    """One open project: its workspace, and its watcher unless there are no files to watch."""

    def __init__(self, project: ProjectLocation, registry: Registry) -> None:
        self.workspace = open_project(project, registry)
        self.used_at: float | None = time.monotonic()
        self.watch: ProjectWatch | None = None
        if os.path.isdir(project.root) and not is_imported(project):
            self.watch = ProjectWatch(
                self.workspace,
                announce_changes=lambda: registry.publish(Event(project.id, None, "files", {})),
                begin_first_checkpoint=lambda: registry.begin(
                    "checkpoint", project.id, _first_checkpoint
                ),
            )

    def check(self) -> None:
        """Stop sessions whose process is gone; free memory if unused for `MEMORY_SECONDS`."""
        if self.used_at is not None and time.monotonic() - self.used_at > MEMORY_SECONDS:
            self.used_at = None
            self.workspace.project.drop_memory()
            return_freed_memory()
        stop_dead_sessions(self.workspace.project)

    def close(self) -> None:
        if self.watch is not None:
            self.watch.stop()
            self.watch.wait_stopped()
        self.workspace.close()


def _first_checkpoint(workspace: Workspace) -> Any:
    """Take the first checkpoint, unless another process has taken it meanwhile."""
    with workspace.project.locked():
        taken = checkpoints.latest(workspace.project.journal)
        if taken is not None:
            return workspace.find(taken.id)
        return workspace.checkpoint("First checkpoint", kind="initial")


class _Counts(NamedTuple):
    sessions: int = 0
    checkpoints: int = 0
    updated_at: str | None = None
    undecided: bool = False
    """True if a session has pending work or an open turn."""


def _counted(journal: Database) -> _Counts:
    newest = sessions.newest_first(journal, limit=1)
    latest = checkpoints.latest(journal)
    times = [each.updated_at for each in newest]
    times += [latest.created_at] if latest is not None else []
    return _Counts(
        sessions.count(journal), checkpoints.count(journal), max(times, default=None),
        bool(views.live(journal)),
    )  # fmt: skip
