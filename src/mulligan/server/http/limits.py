"""Limit concurrent requests and streams, and note when the server was last used."""

from __future__ import annotations

import time
from typing import Protocol

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from mulligan.server.http.errors_json import RequestRefused, error_response

MAX_REQUESTS = 256
MAX_STREAMS = 4096
EVENTS = "/api/v1/events"


class Usage(Protocol):
    """How many clients wait for an answer, and when the last one got it."""

    clients: int
    used_at: float


class Limits:
    """Count requests and streams; refuse those above the limits with `too_many`."""

    def __init__(self, app: ASGIApp, *, usage: Usage) -> None:
        self._app = app
        self._usage = usage
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
            await _refuse(scope, receive, send)
            return
        self._requests += 1
        self._usage.clients += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._requests -= 1
            self._leave()

    async def _as_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._streams >= MAX_STREAMS:
            await _refuse(scope, receive, send)
            return
        self._streams += 1
        self._usage.clients += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._streams -= 1
            self._leave()

    def _leave(self) -> None:
        self._usage.clients -= 1
        self._usage.used_at = time.monotonic()


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await WebSocketClose(code=1013)(scope, receive, send)
        return
    problem = RequestRefused(
        "too_many",
        "Too many requests at once; try again in a second.",
        {"retry-after": "1", "connection": "close"},
    )
    await error_response(problem)(scope, receive, send)
