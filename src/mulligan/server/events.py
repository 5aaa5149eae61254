"""Stream live events to an `EventSource`.

A client that vanished without closing is noticed at the next ping. A client that does not read is
disconnected; it resumes with the id of the last event it received.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from mulligan.server.api import Router
from mulligan.server.http.errors_json import encoded
from mulligan.server.projects.feed import Delivery, Subscription
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import About

section = Router("events")
PING_SECONDS = 15.0
SEND_SECONDS = 20.0
HELLO = b"retry: 1000\n\n"
PING = b": ping\n\n"


class EventsQuery(NamedTuple):
    project: Annotated[str | None, About("Only this project; all of them otherwise.")] = None
    after: Annotated[str | None, About("The id of the last event that was seen.")] = None
    token: Annotated[str | None, About("The token, where no header can be sent.")] = None


@section.get("/events", "Everything that happens, as it happens", content="text/event-stream")
async def events(hub: Registry, request: Request, query: EventsQuery) -> Response:
    if query.project is not None:
        # Open the project, so that its files are watched.
        await hub.workspace(query.project)
    if request.method == "HEAD":
        return Response(media_type=EventStream.media_type)
    after = request.headers.get("last-event-id") or query.after
    return EventStream(hub, query.project, after)


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)


class EventStream(Response):
    """A response that ends when the client leaves, falls behind, or the server stops."""

    media_type = "text/event-stream"

    def __init__(self, hub: Registry, project: str | None, after: str | None) -> None:
        self.status_code = 200
        self.background = None
        self._registry, self._project, self._after = hub, project, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._registry.subscribe(self._project, self._after) as subscription:
            headers = [(b"content-type", b"text/event-stream; charset=utf-8"),
                       (b"cache-control", b"no-store")]  # fmt: skip
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            telling = asyncio.create_task(self._tell(subscription, scope, send))
            leaving = asyncio.create_task(_left(receive))
            try:
                await asyncio.wait((telling, leaving), return_when=asyncio.FIRST_COMPLETED)
            finally:
                leaving.cancel()
                telling.cancel()
                await asyncio.gather(telling, leaving, return_exceptions=True)

    async def _tell(self, subscription: Subscription, scope: Scope, send: Send) -> None:
        found: list[Delivery] | None = []
        data = HELLO
        try:
            while found is not None:
                # A client that reads nothing for so long counts as gone.
                async with asyncio.timeout(SEND_SECONDS):
                    await send({"type": "http.response.body", "body": data, "more_body": True})
                found = await subscription.next(PING_SECONDS)
                data = b"".join(map(_line, found)) if found else PING
            async with asyncio.timeout(SEND_SECONDS):
                await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            abort: Callable[[], None] | None = scope.get("state", {}).get("abort")
            if abort is not None:
                abort()


async def _left(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        continue


def _line(told: Delivery) -> bytes:
    number = b"" if told.cursor is None else f"id: {told.cursor}\n".encode()
    kind = told.event.kind.encode()
    return b"%sevent: %s\ndata: %s\n\n" % (number, kind, encoded(told.event.as_json()))
