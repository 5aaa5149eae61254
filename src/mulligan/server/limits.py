"""How much is served at once, and since when nobody has asked for anything."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from mulligan.server.errors_json import RequestRefused, error_response

if TYPE_CHECKING:
    from mulligan.server.registry import Registry

MAX_REQUESTS = 256
MAX_STREAMS = 4096
EVENTS = "/api/v1/events"


class Limits:
    """Counts requests and streams, and turns away more than so many: `too_many`."""

    def __init__(self, app: ASGIApp, *, hub: Registry) -> None:
        self._app = app
        self._hub = hub
        self._requests = 0
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_stream = path == EVENTS or (path.startswith("/api/") and path.endswith("/chat"))
        if scope["type"] == "http" and not is_stream:
            await self._as_request(scope, receive, send)
        elif scope["type"] in ("http", "websocket"):
            await self._as_stream(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _as_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._requests >= MAX_REQUESTS:
            await _turn_away(scope, receive, send)
            return
        self._requests += 1
        self._hub.clients += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._requests -= 1
            self._leave()

    async def _as_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._streams >= MAX_STREAMS:
            await _turn_away(scope, receive, send)
            return
        self._streams += 1
        self._hub.clients += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._streams -= 1
            self._leave()

    def _leave(self) -> None:
        self._hub.clients -= 1
        self._hub.used_at = time.monotonic()


async def _turn_away(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await WebSocketClose(code=1013)(scope, receive, send)
        return
    problem = RequestRefused(
        "too_many", "Too much is going on; try again.", {"retry-after": "1", "connection": "close"}
    )
    await error_response(problem)(scope, receive, send)
