"""HTTP connections with timeouts and a check of the peer's user."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from mulligan.server.http.peer import peer_credentials

HEADER_SECONDS = 10.0
GONE_MILLISECONDS = 60_000
MAX_CONNECTIONS = 8192


class Connection(H11Protocol):
    """uvicorn's HTTP/1.1 protocol, with a timeout wherever it waits for the client.

    `HEADER_SECONDS` is the limit for a request's headers, and for the rest of a request that is
    answered already. `read_body` limits bodies.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        found: socket.socket | None = transport.get_extra_info("socket")
        self.app_state = self.app_state | {"abort": transport.abort, "socket": found}
        if len(self.connections) > MAX_CONNECTIONS or (
            found is not None and not _is_welcome(found)
        ):
            transport.abort()
            return
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """Start the timer if the next bytes are the client's to send, else stop it."""
        if self.transport.get_protocol() is not self:
            # Upgraded: the WebSocket protocol owns the transport, and has timers of its own.
            self._stop_waiting()
            return
        answered = self.cycle is None or self.cycle.response_complete
        between = self.cycle is not None and self.conn.their_state is h11.IDLE
        if not answered or (between and not self.conn.trailing_data[0]):
            self._stop_waiting()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _is_welcome(connection: Any) -> bool:
    """True if the peer may connect: on a unix socket only the same user, or root."""
    if connection.family != socket.AF_UNIX:
        _notice_when_gone(connection)
        return True
    if not hasattr(socket, "SO_PEERCRED"):
        # Without SO_PEERCRED only the permissions of the socket file protect it.
        return True
    return peer_credentials(connection)[1] in (os.getuid(), 0)


def _notice_when_gone(connection: Any) -> None:
    """Have the kernel close connections to peers that no longer answer."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_MILLISECONDS)
