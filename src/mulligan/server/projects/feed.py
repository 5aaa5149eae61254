"""Send the events of the journals to subscribers.

One poller checks every followed journal for changes, whichever process wrote them; a thousand
idle subscribers cost as much as one. A subscriber that is too slow is disconnected and resumes by
event number from the journal. Hints, such as changed files, have no number and are sent once.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from mulligan.errors import MulliganError, NotFound, UsageError
from mulligan.journal import events
from mulligan.journal.db import Database
from mulligan.journal.migrations import JOURNAL
from mulligan.workspace.project.location import ProjectLocation, known_projects

POLL_SECONDS = 0.08
PROJECT_POLL_SECONDS = 2.0
MAX_BATCH_EVENTS = 500
MAX_QUEUED_EVENTS = 2000
PROJECT_PREFIX_CHARACTERS = 8  # so many characters tell the projects of a home apart
POSITION = re.compile(r"([0-9a-f]{8})([0-9a-f]{1,15})")

Call = Callable[..., Awaitable[Any]]


class Event(NamedTuple):
    """One event. Without a number it is a hint, which is sent only once."""

    project: str | None
    number: int | None
    kind: str
    data: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {"project": self.project, "number": self.number, "kind": self.kind} | self.data


class Delivery(NamedTuple):
    """An event, and the cursor to resume after it; hints have none."""

    cursor: str | None
    event: Event


class Subscription:
    """The queue of one subscriber: first the events it missed, then live ones."""

    def __init__(self, project: str | None, positions: dict[str, int]) -> None:
        self.project = project
        self.ended = False
        self._positions = positions
        self._missed: list[tuple[_Followed, int]] = []
        self._queue: deque[Event] = deque()
        self._something = asyncio.Event()
        self._call: Call | None = None

    async def next(self, seconds: float) -> list[Delivery] | None:
        """Return the next events; an empty list after `seconds`, None at the end."""
        missed = await self._next_missed()
        if missed:
            return missed
        if not self._queue and not self.ended:
            try:
                async with asyncio.timeout(seconds):
                    await self._something.wait()
            except TimeoutError:
                return []
        self._something.clear()
        if self.ended:
            return None
        found = [self._told(event) for event in self._queue]
        self._queue.clear()
        return found

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (found := await self.next(3600)) is not None:
            for told in found:
                yield told.event

    def push(self, event: Event) -> None:
        """Queue an event; end the subscription if its queue is full."""
        if len(self._queue) >= MAX_QUEUED_EVENTS:
            self.end()
        elif not self.ended:
            self._queue.append(event)
            self._something.set()

    def end(self) -> None:
        self.ended = True
        self._queue.clear()
        self._something.set()

    def wants(self, event: Event) -> bool:
        return self.project is None or event.project is None or event.project == self.project

    def miss(self, call: Call, followed: _Followed, after: int) -> None:
        """Deliver the events after number `after` first."""
        self._call = call
        if after < followed.told:
            self._missed.append((followed, followed.told))

    def follow(self, project: str, number: int) -> None:
        """Follow a project from event `number` on."""
        self._positions.setdefault(project, number)

    async def _next_missed(self) -> list[Delivery]:
        while self._missed:
            assert self._call is not None
            followed, until = self._missed[0]
            position = self._positions[followed.project.id]
            rows = await self._call(events.after, followed.journal, position, MAX_BATCH_EVENTS)
            found = [
                self._told(row_event(followed.project.id, row))
                for row in rows
                if row.number <= until
            ]
            if len(found) < MAX_BATCH_EVENTS:
                self._missed.pop(0)
            if found:
                return found
        return []

    def _told(self, event: Event) -> Delivery:
        if event.number is None or event.project is None:
            return Delivery(None, event)
        self._positions[event.project] = event.number
        if self.project is not None:
            return Delivery(str(event.number), event)
        return Delivery(_cursor(self._positions), event)


class Feed:
    """The followed journals and the subscriptions. Belongs to one event loop."""

    def __init__(self, home: str, call: Call) -> None:
        self._home = home
        self._call = call
        self._followed: dict[str, _Followed] = {}
        self._subscriptions: set[Subscription] = set()
        self._wake = asyncio.Event()
        self._opening = asyncio.Lock()
        self._poller: asyncio.Task[None] | None = None
        self._projects_at = 0.0
        self._closed = False

    @property
    def followers(self) -> int:
        return len(self._subscriptions)

    @asynccontextmanager
    async def subscribe(
        self, project: str | None = None, after: str | int | None = None
    ) -> AsyncIterator[Subscription]:
        """Subscribe to a project, or to all: after an event, or from now on.

        `after` is the cursor of the last received event. Raises `NotFound`, and `UsageError` for
        an invalid cursor.
        """
        resumed = after is not None and after != ""
        wanted = _positions(project, after) if resumed else {}
        subscription = Subscription(project, {})
        async with self._opening:
            await self._follow(project)
            self._subscriptions.add(subscription)
            for id, followed in self._followed.items():
                if project in (None, id):
                    # A journal restored from a backup can be older than the cursor.
                    start = min(wanted.get(id, 0), followed.told) if resumed else followed.told
                    subscription.follow(id, start)
                    subscription.miss(self._call, followed, start)
            if self._closed:
                subscription.end()
            elif self._poller is None:
                self._poller = asyncio.create_task(self._poll())
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def publish(self, event: Event) -> None:
        """Queue an event for every subscriber of its project."""
        for subscription in list(self._subscriptions):
            if subscription.wants(event):
                subscription.push(event)

    def wake(self) -> None:
        """Poll the journals now."""
        self._wake.set()

    async def close(self) -> None:
        """End every subscription; clients resume by number."""
        self._closed = True
        for subscription in list(self._subscriptions):
            subscription.end()
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)
        for followed in self._followed.values():
            followed.journal.close()
        self._followed.clear()

    async def _follow(self, project: str | None) -> None:
        """Follow a project from now on, or all known ones."""
        if project is not None and project in self._followed:
            return
        for found in await self._call(_opened, self._home, project, set(self._followed)):
            self._followed[found.project.id] = found
        if project is not None and project not in self._followed:
            raise NotFound(f"There is no project {project!r} with a journal.")

    async def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if not self._subscriptions:
                # No subscriber is left; the next one starts a new poller.
                async with self._opening:
                    if not self._subscriptions:
                        for each in self._followed.values():
                            each.journal.close()
                        self._followed.clear()
                        self._poller = None
                        return
            if loop.time() - self._projects_at > PROJECT_POLL_SECONDS:
                self._projects_at = loop.time()
                await self._find_new_projects()
            for followed, rows in await self._call(_news, list(self._followed.values())):
                for row in rows:
                    followed.told = row.number
                    self.publish(row_event(followed.project.id, row))
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                continue
            self._wake.clear()

    async def _find_new_projects(self) -> None:
        """Add new projects to the subscriptions to all projects, from their first event."""
        everything = [each for each in self._subscriptions if each.project is None]
        if not everything:
            return
        async with self._opening:
            for found in await self._call(_opened, self._home, None, set(self._followed)):
                found.told = found.read = 0
                found.stamp = None
                self._followed[found.project.id] = found
                for subscription in everything:
                    subscription.follow(found.project.id, 0)


class _Followed:
    """A followed journal. `read` belongs to the poller's thread, `told` to the loop."""

    def __init__(self, project: ProjectLocation, journal: Database) -> None:
        self.project = project
        self.journal = journal
        self.stamp: int | None = events.stamp(journal)
        self.told = self.read = events.last(journal)


def row_event(project: str, row: events.EventRow) -> Event:
    data: dict[str, Any] = {}
    if row.session is not None:
        data["session"] = row.session
    if row.kind.startswith("entry"):
        data["seq"] = row.subject
    elif row.kind.startswith("operation"):
        data["operation"] = row.subject
    return Event(project, row.number, row.kind, data)


def _opened(home: str, project: str | None, known: set[str]) -> list[_Followed]:
    """Open the journals that are not followed yet; skip unreadable ones."""
    found = []
    for each in known_projects(home):
        path = each.path("journal.sqlite")
        if each.id in known or project not in (None, each.id) or not os.path.exists(path):
            continue
        try:
            found.append(_Followed(each, Database(path, JOURNAL)))
        except (MulliganError, OSError):
            continue
    return found


def _news(followed: list[_Followed]) -> list[tuple[_Followed, list[events.EventRow]]]:
    """Read the new events of each journal; skip unreadable ones."""
    found = []
    for each in followed:
        try:
            stamp = events.stamp(each.journal)
            if stamp == each.stamp:
                continue
            rows = events.after(each.journal, each.read, MAX_BATCH_EVENTS)
            each.stamp = stamp if len(rows) < MAX_BATCH_EVENTS else None
        except (MulliganError, OSError):
            continue
        if rows:
            each.read = rows[-1].number
            found.append((each, rows))
    return found


def _cursor(positions: dict[str, int]) -> str:
    """Encode the position in every project as a cursor."""
    return ".".join(
        f"{id[:PROJECT_PREFIX_CHARACTERS]}{number:x}" for id, number in sorted(positions.items())
    )


def _positions(project: str | None, after: str | int | None) -> dict[str, int]:
    """Decode a cursor: one number, or one for each project by its id's prefix."""
    text = str(after)
    if project is not None and text.isascii() and text.isdigit() and len(text) <= 18:
        return {project: int(text)}
    parts = [POSITION.fullmatch(each) for each in text.split(".")]
    if project is not None or None in parts:
        raise UsageError(
            f"{text[:50]!r} is not an event id; give the id of the last event you received."
        )
    return _Prefixed({part[1]: int(part[2], 16) for part in parts if part is not None})


class _Prefixed(dict[str, int]):
    """Positions by the prefix of a project's id."""

    def get(self, id: str, default: Any = None) -> Any:
        return super().get(id[:PROJECT_PREFIX_CHARACTERS], default)
