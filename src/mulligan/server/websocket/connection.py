"""The WebSocket: requests, responses and events in YAAI's envelope.

    {"type": "request", "id": "1", "channel": "code:list-sessions", "payload": {}, "timestamp": 0}

Each request gets one response with its `id`: with a `payload`, or with an `error`. Whatever else
arrives gets an error, and the connection goes on. Timestamps of the envelope are milliseconds
since the epoch; times in payloads are RFC 3339.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from mulligan.clock import now_ns
from mulligan.errors import Busy, Corrupt, MulliganError, NewerFormat, NotFound, UsageError
from mulligan.server.http.errors_json import (
    MESSAGE_LIMIT,
    STATUS,
    RequestRefused,
    as_error,
    decoded,
    encoded,
    query_of,
)
from mulligan.server.projects.feed import Subscription
from mulligan.server.projects.registry import Registry
from mulligan.server.websocket.payloads import InvalidPayload
from mulligan.server.websocket.requests import REQUESTS, RequestScope, told

LOG = logging.getLogger("mulligan.server")
PATHS = ("/ws", "/api/v1/ws")
REQUESTS_A_SECOND = 100
IDLE_SECONDS = 120.0
ANSWER_SECONDS = 60.0
SEND_SECONDS = 20.0
AT_ONCE = 32
MAX_SUBSCRIPTIONS = 16
GOING_AWAY = 1001


def routes(registry: Registry) -> list[BaseRoute]:
    async def serve(socket: WebSocket) -> None:
        await Connection(registry, socket).serve()

    return [WebSocketRoute(path, serve) for path in PATHS]


class Request(NamedTuple):
    id: str
    channel: str
    payload: dict[str, Any]


class Connection:
    """One client: its pending requests and its subscriptions."""

    def __init__(self, registry: Registry, socket: WebSocket) -> None:
        self._registry, self._socket = registry, socket
        self._sending = asyncio.Lock()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._following: dict[str, asyncio.Task[None]] = {}
        self._allowance = Allowance(REQUESTS_A_SECOND, time.monotonic)
        projects = query_of(socket.scope).get("project", [])
        self._project = projects[0] if projects else None

    async def serve(self) -> None:
        await self._socket.accept()
        try:
            while True:
                message = await self._next()
                if message is None:
                    return
                await self._hear(message)
        except (WebSocketDisconnect, ConnectionError, RuntimeError):
            # The client has left, or is being left, in the middle of something.
            return
        finally:
            for task in (*self._tasks, *self._following.values()):
                task.cancel()
            await asyncio.gather(*self._tasks, *self._following.values(), return_exceptions=True)

    async def _next(self) -> bytes | None:
        """Return the next message; None if the client left or was idle for too long."""
        while True:
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    heard = await self._socket.receive()
            except TimeoutError:
                if self._following or self._tasks:
                    # A client that waits for events or an answer may be silent.
                    continue
                await self._close(GOING_AWAY, "CONNECTION_CLOSED: no message for too long")
                return None
            if heard["type"] == "websocket.disconnect":
                return None
            found: bytes | None = heard.get("bytes")
            return found if found is not None else str(heard["text"]).encode("utf-8", "replace")

    async def _hear(self, message: bytes) -> None:
        request: Request | None = None
        id, channel = None, ""
        try:
            if len(message) > MESSAGE_LIMIT:
                raise UsageError(f"A message has more than {MESSAGE_LIMIT >> 20} MB.")
            content = decoded(message)
            id, channel = _address(content)
            request = _request(content)
        except UsageError as problem:
            await self._respond(id, channel, error=_error("INVALID_MESSAGE", str(problem)))
            return
        if not self._allowance.take():
            text = f"More than {REQUESTS_A_SECOND} requests a second; wait a moment."
            await self._respond(request.id, channel, error=_error("RATE_LIMITED", text))
            return
        await self._turns.acquire()
        self._begin(self._answered(request))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, request: Request) -> None:
        payload = error = None
        try:
            payload = await self._answer(request)
        except TimeoutError:
            text = f"There was no answer within {ANSWER_SECONDS:.0f} s; the work goes on."
            error = _error("TIMEOUT", text)
        except Exception as problem:
            error = _as_error(problem)
        finally:
            self._turns.release()
        try:
            await self._respond(request.id, request.channel, payload, error)
        except (WebSocketDisconnect, ConnectionError, RuntimeError):
            # The client has left.
            return

    async def _answer(self, request: Request) -> Any:
        if request.channel == "code:subscribe":
            return await self._subscribe(request.payload)
        if request.channel == "code:unsubscribe":
            return self._unsubscribe(request.payload)
        verb = REQUESTS.get(request.channel)
        if verb is None:
            raise RequestRefused(
                "unknown_channel", f"No handler for channel: {request.channel[:80]}"
            )
        asked = RequestScope(self._registry, self._project, self._socket)
        working = asyncio.ensure_future(verb.run(asked, verb.read(request.payload)))
        done, _ = await asyncio.wait({working}, timeout=ANSWER_SECONDS)
        if not done:
            # A running request cannot be stopped; drop its result.
            working.add_done_callback(_forget)
            raise TimeoutError
        self._registry.wake()
        return working.result()

    async def _subscribe(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Subscribe to a project, or to all; `after` is the last received cursor."""
        given = payload.get("project") or payload.get("projectPath") or self._project
        after = payload.get("after")
        if not isinstance(given, str | None) or not isinstance(after, str | int | None):
            raise InvalidPayload("`project` and `after` must be text.")
        if len(self._following) >= MAX_SUBSCRIPTIONS:
            raise InvalidPayload(f"A connection follows at most {MAX_SUBSCRIPTIONS} projects.")
        asked = RequestScope(self._registry, None, self._socket)
        project = None if given is None else await asked.project(given)
        name = project or "*"
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        old = self._following.pop(name, None)
        if old is not None:
            old.cancel()
        task = asyncio.create_task(self._follow(project, after, started))
        self._following[name] = task
        task.add_done_callback(lambda ended: self._followed(name, ended))
        await started
        return {"subscribed": True, "project": project}

    def _unsubscribe(self, payload: dict[str, Any]) -> bool:
        """Follows nothing any more."""
        for task in self._following.values():
            task.cancel()
        return bool(self._following)

    def _followed(self, name: str, ended: asyncio.Task[None]) -> None:
        if self._following.get(name) is ended:
            del self._following[name]
        _forget(ended)

    async def _follow(
        self, project: str | None, after: str | int | None, started: asyncio.Future[None]
    ) -> None:
        try:
            async with self._registry.subscribe(project, after) as subscription:
                started.set_result(None)
                await self._tell(subscription)
        except MulliganError as problem:
            if not started.done():
                started.set_exception(problem)

    async def _tell(self, subscription: Subscription) -> None:
        while (found := await subscription.next(60.0)) is not None:
            for each in found:
                for channel, payload in await told(self._registry, each):
                    await self._send({"type": "event", "channel": channel, "payload": payload})
        await self._send({
            "type": "event", "channel": "code:unsubscribed", "payload": {"project":
            subscription.project},
        })  # fmt: skip

    async def _respond(
        self, id: str | None, channel: str, payload: Any = None, error: Any = None
    ) -> None:
        found: dict[str, Any] = {"type": "response", "id": id, "channel": channel}
        await self._send(found | ({"payload": payload} if error is None else {"error": error}))

    async def _send(self, content: dict[str, Any]) -> None:
        data = encoded(content | {"timestamp": now_ns() // 1_000_000}).decode("ascii")
        async with self._sending:
            if self._socket.client_state is not WebSocketState.CONNECTED:
                raise WebSocketDisconnect(GOING_AWAY)
            try:
                # A client that takes nothing for so long is gone, or as good as gone.
                async with asyncio.timeout(SEND_SECONDS):
                    await self._socket.send_text(data)
            except TimeoutError:
                abort: Callable[[], None] | None = self._socket.scope.get("state", {}).get("abort")
                if abort is not None:
                    abort()
                raise WebSocketDisconnect(GOING_AWAY) from None

    async def _close(self, code: int, reason: str) -> None:
        if self._socket.client_state is WebSocketState.CONNECTED:
            await self._socket.close(code, reason)


class Allowance:
    """So many requests a second, and as many at once."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self._rate, self._clock = rate, clock
        self._left, self._at = rate, clock()

    def take(self) -> bool:
        now = self._clock()
        self._left = min(self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def _address(content: Any) -> tuple[str | None, str]:
    """Return the request id and channel to answer, as far as the message has them."""
    if not isinstance(content, dict):
        return None, ""
    id, channel = content.get("id"), content.get("channel")
    return id if isinstance(id, str) else None, channel if isinstance(channel, str) else ""


def _request(content: Any) -> Request:
    if not isinstance(content, dict) or content.get("type") != "request":
        raise UsageError("A message is an object with the type `request`.")
    id, channel, payload = (content.get(name) for name in ("id", "channel", "payload"))
    if not isinstance(id, str) or not isinstance(channel, str):
        raise UsageError("A request has an `id` and a `channel`, both text.")
    if payload is None:
        payload = {}
    if not isinstance(payload, dict):
        raise UsageError("The payload of a request is an object.")
    return Request(id, channel, payload)


def _error(code: str, message: str, details: Any = None) -> dict[str, Any]:
    return {"code": code, "message": message} | ({} if details is None else {"details": details})


def _as_error(problem: Exception) -> dict[str, Any]:
    """A problem as the envelope has it; what a verb raised is told in the details."""
    if isinstance(problem, InvalidPayload):
        return _error("INVALID_MESSAGE", str(problem))
    if isinstance(problem, RequestRefused) and problem.code in ("unknown_channel", "unauthorized"):
        return _error(problem.code.upper(), str(problem))
    if not isinstance(problem, MulliganError):
        LOG.error("A request over the WebSocket failed.", exc_info=problem)
    status, body = as_error(problem)
    words = body["error"]
    details = {"code": _result_code(problem), "reason": words["code"], "status": status}
    return _error("HANDLER_ERROR", words["message"], details)


def _result_code(problem: Exception) -> str:
    """The code that a YAAI result has for it."""
    if isinstance(problem, NotFound):
        return "NOT_FOUND"
    if isinstance(problem, Corrupt | NewerFormat | Busy):
        return "DATABASE_ERROR"
    code = problem.code if isinstance(problem, MulliganError) else "failed"
    return code.upper() if code in STATUS else "FAILED"


def _forget(ended: asyncio.Future[Any]) -> None:
    """Retrieve the exception to silence asyncio's warning."""
    if not ended.cancelled():
        ended.exception()
