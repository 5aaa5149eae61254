"""A WebSocket that asks, and a server in the test's own process."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from websockets.sync.client import ClientConnection, connect

from mulligan.server.app import create_app
from mulligan.server.http.access import Access
from mulligan.server.http.protocol import Connection
from mulligan.server.projects.registry import Registry

TOKEN = "a token of the test's own"
SECONDS = 60


class Socket:
    """A WebSocket that asks, and keeps events that came in between."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.events: list[dict[str, Any]] = []
        self._count = 0

    def response(self, channel: str, payload: Any = None) -> dict[str, Any]:
        """Asks, and gives the whole response."""
        self._count += 1
        id = f"r{self._count}"
        self.send({"type": "request", "id": id, "channel": channel, "payload": payload,
                   "timestamp": 0})  # fmt: skip
        while True:
            found = self.next()
            if found["type"] == "response":
                assert found["id"] == id, found
                return found
            self.events.append(found)

    def ask(self, channel: str, **payload: Any) -> Any:
        """Asks, and gives the payload of the response, which must not be an error."""
        found = self.response(channel, payload)
        assert "error" not in found, found
        return found["payload"]

    def error(self, channel: str, payload: Any = None) -> dict[str, Any]:
        """Asks for what cannot be had."""
        found = self.response(channel, payload)
        assert "payload" not in found, found
        return dict(found["error"])

    def send(self, content: Any) -> None:
        raw = content if isinstance(content, str | bytes) else json.dumps(content)
        self.connection.send(raw)

    def next(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.connection.recv(timeout=SECONDS))
        return found

    def event(self, channel: str, **holds: Any) -> dict[str, Any]:
        """The next event on a channel whose payload holds this."""
        while True:
            found = self.events.pop(0) if self.events else self.next()
            if found["channel"] == channel and holds.items() <= found["payload"].items():
                return found


@contextmanager
def socket_to(port: int, token: str, path: str = "/ws") -> Iterator[Socket]:
    headers = {"authorization": f"Bearer {token}"}
    address = f"ws://127.0.0.1:{port}{path}"
    with connect(address, additional_headers=headers, max_size=None) as connection:
        yield Socket(connection)


@contextmanager
def serving_here(home: Path) -> Iterator[int]:
    """A server in this process, where its limits can be changed; gives its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    access = Access(TOKEN, port=listening.getsockname()[1])
    app = create_app(Registry(str(home)), access=access)
    config = uvicorn.Config(
        app, http=Connection, ws="websockets-sansio", log_level="warning",
        timeout_graceful_shutdown=5,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve([listening])), name="server", daemon=True
    )
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(SECONDS)
        listening.close()
        assert not thread.is_alive()
