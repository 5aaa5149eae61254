"""Stream the events of a turn that a client drives.

1. Begin the turn, with its checkpoint.
2. Stream every entry that any process appends to the session.
3. End the turn as interrupted if its client leaves, if no entry comes for too long, or if the
   server stops.
4. Send `done` as the last event, after the end of the turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mulligan.errors import MulliganError
from mulligan.journal import entries, operations, sessions, views
from mulligan.server.dialogs.events import streamed
from mulligan.server.events import SEND_SECONDS
from mulligan.server.http.errors_json import as_error, encoded
from mulligan.server.projects.feed import Delivery, Subscription
from mulligan.server.projects.registry import Registry
from mulligan.workspace.results.turns import Turn
from mulligan.workspace.sessions.entries import entry_result
from mulligan.workspace.workspace import Workspace

LOG = logging.getLogger("mulligan.server")
PING_SECONDS = 15.0
SILENT_SECONDS = 1800.0
PAGE_ENTRIES = 200
PING = b": ping\n\n"
ENDING = "The server is stopping and has ended the turn; its work so far is kept."
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
]


class ChatStream(Response):
    """The response to a message: the events of the turn that it begins."""

    media_type = "text/event-stream"

    def __init__(
        self, registry: Registry, project: str, dialog: str, message: str, timeout: float | None
    ) -> None:
        self.status_code = 200
        self.background = None
        self._registry, self._project, self._dialog, self._message = (
            registry,
            project,
            dialog,
            message,
        )
        self._patience = SILENT_SECONDS if timeout is None else timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = await self._registry.work(
            self._project, _begin, dialog=self._dialog, message=self._message
        )
        self._registry.wake()
        # Errors up to here are ordinary responses; from here on they are events.
        telling = asyncio.create_task(self._tell(begun, send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait((telling, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (telling, leaving):
                task.cancel()
            told, _ = await asyncio.gather(telling, leaving, return_exceptions=True)
            if isinstance(told, TimeoutError):
                abort: Callable[[], None] | None = scope.get("state", {}).get("abort")
                if abort is not None:
                    abort()
            if told is not None:
                # Shielded: even if this task is cancelled, the turn must be ended.
                await asyncio.shield(self._end(begun))

    async def _tell(self, begun: _Begun, send: Send) -> None:
        """Send events until the turn is over; end it if there is a problem."""
        stream = _Stream(send, self._dialog)
        await stream.begin()
        await stream.tell({
            "type": "user", "content": self._message, "checkpoint": begun.turn.checkpoint,
            "session": begun.turn.round,
        })  # fmt: skip
        try:
            problem = await self._follow(begun, stream)
        except MulliganError as raised:
            problem = as_error(raised)[1]["error"]["message"]
        if problem is not None:
            await stream.tell({"type": "error", "error": problem})
            await self._end(begun)
        await stream.tell({"type": "done", "done": True})
        await stream.end()

    async def _follow(self, begun: _Begun, stream: _Stream) -> str | None:
        """Send new entries until the turn is over; return the reason if it must be ended."""
        position = begun.position
        heard = asyncio.get_running_loop().time()
        while True:
            async with self._registry.subscribe(self._project) as subscription:
                is_last = subscription.ended
                found: list[Delivery] | None = []
                while found is not None:
                    news = await self._registry.work(
                        self._project, _news, turn=begun.turn, position=position
                    )
                    for event in news.events:
                        await stream.tell(event)
                    now = asyncio.get_running_loop().time()
                    heard = now if news.position > position else heard
                    position = news.position
                    if not news.is_all:
                        continue
                    if news.is_over:
                        return None
                    if is_last:
                        return ENDING
                    left = heard + self._patience - now
                    if left <= 0:
                        return f"No event came for {self._patience:.0f} s; the turn was ended."
                    found = await self._something(subscription, stream, left)

    async def _end(self, begun: _Begun) -> None:
        await self._registry.work(self._project, _end, turn=begun.turn)
        self._registry.wake()

    async def _something(
        self, subscription: Subscription, stream: _Stream, seconds: float
    ) -> list[Delivery] | None:
        """Wait for an event of this session, at most `seconds`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := until - loop.time()) > 0:
            found = await subscription.next(min(PING_SECONDS, left))
            if found is None or any(_concerns(self._dialog, each) for each in found):
                return found
            if not found:
                await stream.ping()
        return []


class _Begun(NamedTuple):
    """A turn that has begun, and the `seq` of its message."""

    turn: Turn
    position: int


class _News(NamedTuple):
    events: list[dict[str, Any]]
    position: int
    is_over: bool
    is_all: bool = True


class _Stream:
    """The response body."""

    def __init__(self, send: Send, dialog: str) -> None:
        self._send, self._dialog = send, dialog

    async def begin(self) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": HEADERS})

    async def tell(self, event: dict[str, Any]) -> None:
        await self._body(b"data: %s\n\n" % encoded(event | {"dialog_id": self._dialog}))

    async def ping(self) -> None:
        await self._body(PING)

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _body(self, data: bytes) -> None:
        # A client that reads nothing for so long counts as gone.
        async with asyncio.timeout(SEND_SECONDS):
            await self._send({"type": "http.response.body", "body": data, "more_body": True})


async def _left(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        continue


def _concerns(dialog: str, told: Delivery) -> bool:
    kind, session = told.event.kind, told.event.data.get("session")
    return session == dialog or kind.startswith("operation")


def _begin(workspace: Workspace, dialog: str, message: str) -> _Begun:
    # The turn ends with the stream, and so with this process.
    turn = workspace.sessions.begin_turn(dialog, message, process=None)
    return _Begun(turn, workspace.sessions.entry(turn.entry, turn.session).seq)


def _news(workspace: Workspace, turn: Turn, position: int) -> _News:
    """Read the entries after `position`, and whether the turn is over."""
    # Check first: entries appended before the end are then among those read.
    is_over = not _is_open(workspace, turn)
    session = sessions.by_id(workspace.project.journal, turn.session)
    if session is None:
        return _News([], position, is_over=True)
    rows = entries.page(
        workspace.project.journal,
        session.number,
        since=position,
        limit=PAGE_ENTRIES,
        include_compacted=True,
    )
    found = [entry_result(session, row) for row in rows if not row.off_path]
    events = [event for entry in found for event in streamed(workspace, entry)]
    last = rows[-1].seq if rows else position
    return _News(events, last, is_over, is_all=len(rows) < PAGE_ENTRIES)


def _is_open(workspace: Workspace, turn: Turn) -> bool:
    journal = workspace.project.journal
    session = sessions.by_id(journal, turn.session)
    if session is None or not views.has_open_turn(journal, session.number):
        return False
    return operations.last_begun_turn(journal, turn.session) == turn.operation


def _end(workspace: Workspace, turn: Turn) -> None:
    """End a turn as interrupted if it is still open."""
    try:
        with workspace.project.locked():
            if _is_open(workspace, turn):
                workspace.sessions.end_turn(turn.session, interrupted=True)
    except MulliganError as problem:
        # The next turn of the session ends it as well.
        LOG.warning("The turn of session %s stays open: %s", turn.session, problem)
