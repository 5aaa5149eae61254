"""The projects that a server has open, and what happens in them.

A workspace is opened when it is first asked for and stays open, with a watcher, so that each look
costs what changed. Events come from the journal, whichever process wrote them; that files have
changed comes from the watcher, and is told without a number: it is not history.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.to_thread

from mulligan.core.coverage import text
from mulligan.errors import MulliganError, NotFound
from mulligan.journal import checkpoints, events, sessions
from mulligan.journal.db import Database
from mulligan.journal.migrations import JOURNAL
from mulligan.workspace.home import Project, find_project, is_imported, known_projects
from mulligan.workspace.watching import Watching
from mulligan.workspace.workspace import Workspace

Answer = TypeVar("Answer")
THREADS = 16
LOOK_EVERY = 0.1
QUIET = 0.15
BATCH = 500


class Event(NamedTuple):
    """Something that happened. Without a number it is a hint, and will not be told again."""

    project: str
    number: int | None
    kind: str
    data: dict[str, Any]


class Hub:
    """The open projects of one home. Use it from one event loop; `close` it at the end."""

    def __init__(self, home: str, *, watch: bool = True) -> None:
        self.home = home
        self._watch = watch
        self._open: dict[str, _Open] = {}
        self._journals: dict[str, Database] = {}
        self._lock = threading.Lock()
        self._limiter = anyio.CapacityLimiter(THREADS)

    async def call(self, verb: Callable[..., Answer], *given: Any, **named: Any) -> Answer:
        """Runs something that touches the disk, in a thread."""
        return await anyio.to_thread.run_sync(partial(verb, *given, **named), limiter=self._limiter)

    async def workspace(self, project: str) -> Workspace:
        """The workspace of a project by its id; raises `NotFound`."""
        return (await self.call(self._opened, project)).workspace

    async def open_path(self, path: str, *, create: bool = True) -> Workspace:
        """The workspace that a path lies in, made known if it is new."""
        return (await self.call(self._opened_at, path, create)).workspace

    async def projects(self) -> list[dict[str, Any]]:
        """Every project that has data in the home."""
        return await self.call(self._projects)

    async def close(self) -> None:
        await self.call(self._close)

    async def events(self, project: str, after: int | None = None) -> AsyncIterator[Event]:
        """What happens in a project, from an event on or from now, until the caller has enough."""
        opened = await self.call(self._opened, project)
        number = after if after is not None else await self.call(_last, opened)
        seen = opened.changes
        while True:
            for row in await self.call(_after, opened, number):
                number = row.number
                yield row_event(project, row)
            if opened.changes != seen:
                seen = opened.changes
                yield Event(project, None, "files", {})
            await opened.something(LOOK_EVERY, number)

    def _opened(self, project: str) -> _Open:
        with self._lock:
            found = self._open.get(project)
            if found is None:
                known = {each.id: each for each in known_projects(self.home)}
                if project not in known:
                    raise NotFound(f"There is no project {project!r}.")
                found = self._open[project] = _Open(known[project], self.home, self._watch)
        return found

    def _opened_at(self, path: str, create: bool) -> _Open:
        project = find_project(path, self.home)
        with self._lock:
            found = self._open.get(project.id)
            if found is None:
                if not create and not os.path.exists(project.path("journal.sqlite")):
                    raise NotFound(f"There is no checkpoint of {text(project.root)} yet.")
                found = self._open[project.id] = _Open(project, self.home, self._watch)
        return found

    def _projects(self) -> list[dict[str, Any]]:
        found = []
        for project in known_projects(self.home):
            row: dict[str, Any] = {
                "project": project.id,
                "root": text(project.root),
                "name": os.path.basename(text(project.root)) or text(project.root),
                "exists": os.path.isdir(project.root),
                "imported": is_imported(project),
            }
            try:
                journal = self._journal(project)
                newest = sessions.newest_first(journal, limit=1)
                latest = checkpoints.latest(journal)
                times = [each.updated_at for each in newest]
                times += [latest.created_at] if latest is not None else []
                row |= {
                    "sessions": sessions.count(journal),
                    "checkpoints": checkpoints.count(journal),
                    "updated_at": max(times, default=None),
                    "problem": None,
                }
            except (MulliganError, OSError) as problem:
                row |= {
                    "sessions": 0, "checkpoints": 0, "updated_at": None, "problem": str(problem),
                }  # fmt: skip
            found.append(row)
        return sorted(found, key=lambda each: each["updated_at"] or "", reverse=True)

    def _journal(self, project: Project) -> Database:
        """A project's journal; to count its sessions, the project itself need not be opened."""
        with self._lock:
            if project.id in self._open:
                return self._open[project.id].workspace.journal
            if project.id not in self._journals:
                path = project.path("journal.sqlite")
                if not os.path.exists(path):
                    raise NotFound(f"{text(project.root)} has no journal.")
                self._journals[project.id] = Database(path, JOURNAL)
            return self._journals[project.id]

    def _close(self) -> None:
        with self._lock:
            for journal in self._journals.values():
                journal.close()
            self._journals.clear()
            for opened in self._open.values():
                opened.close()
            self._open.clear()


class _Open:
    """One open project: its workspace, and a thread that waits for its files to change."""

    def __init__(self, project: Project, home: str, watch: bool) -> None:
        there = os.path.isdir(project.root) and not is_imported(project)
        self.workspace = Workspace(project, home, watch=watch and there)
        self.changes = 0
        self._watching: Watching | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if self.workspace.watcher is not None:
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()

    async def something(self, seconds: float, number: int) -> None:
        """Waits a moment: for a file to change, or for the journal to be looked at again."""
        before = self.changes
        for _step in range(4):
            await asyncio.sleep(seconds / 4)
            if self.changes != before:
                return

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)
        if self._watching is not None:
            self._watching.close()
        self.workspace.close()

    def _follow(self) -> None:
        """Serves the watcher to other processes, and counts when something has changed."""
        try:
            self._watching = Watching(self.workspace)
        except (MulliganError, OSError):
            return
        while not self._stop.is_set():
            try:
                if self._watching.changes(0.5):
                    # A burst is told once, when it has gone quiet for a moment.
                    self._stop.wait(QUIET)
                    self.changes += 1
            except (MulliganError, OSError):
                return


def row_event(project: str, row: events.EventRow) -> Event:
    data: dict[str, Any] = {}
    if row.session is not None:
        data["session"] = row.session
    if row.kind.startswith("entry"):
        data["seq"] = row.subject
    elif row.kind.startswith("operation"):
        data["operation"] = row.subject
    return Event(project, row.number, row.kind, data)


def _after(opened: _Open, number: int) -> list[events.EventRow]:
    return events.after(opened.workspace.journal, number, BATCH)


def _last(opened: _Open) -> int:
    return events.last(opened.workspace.journal)
