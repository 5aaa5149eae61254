"""A server that runs: one for a home, from its first byte to its orderly end."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import uvicorn

from mulligan.errors import Busy, MulliganError, UsageError
from mulligan.server.app import create_app
from mulligan.server.errors_json import HEADER_LIMIT, MESSAGE_LIMIT
from mulligan.server.protocol import Connection
from mulligan.server.registry import Hub
from mulligan.server.server_file import (
    LOCK,
    RECORD,
    SOCKET,
    TOKEN,
    Address,
    running,
    socket_address,
)
from mulligan.workspace.process import identity

LOOPBACK = "127.0.0.1"
BACKLOG = 1024
KEEP_ALIVE_SECONDS = 30
END_SECONDS = 15
OPEN_FILES = 16_384


def serve(
    home: str,
    *,
    host: str | None = None,
    port: int = 0,
    path: str | None = None,
    idle: float | None = None,
    watch: bool = True,
    project: str | None = None,
    ready: Callable[[Address], None],
) -> None:
    """Serves a home until it is told to end, or nobody has asked for anything for `idle` seconds.

    On loopback, unless a `host` is named, and on a unix socket in the home, or at `path`. Calls
    `ready` when it listens. `project` is meant where a request names none. Raises `Busy` if the
    home has a server.
    """
    os.makedirs(home, mode=0o700, exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(_alone(home))
        hub = Hub(home, watch=watch, default_project=project)
        token = _token(home)
        sockets = [stack.enter_context(_listening(host or LOOPBACK, port))]
        places = dict.fromkeys([os.path.join(home, SOCKET), path or ""])
        sockets += [stack.enter_context(_listening_at(each)) for each in places if each]
        address = Address(
            host or LOOPBACK,
            sockets[0].getsockname()[1],
            os.path.abspath(path) if path else os.path.join(home, SOCKET),
            token,
            os.getpid(),
            hub.started_at,
        )
        stack.enter_context(_recorded(home, address))
        _allow_many_files()
        asyncio.run(_run(hub, address, host, sockets, idle, ready))


async def _run(
    hub: Hub,
    address: Address,
    host: str | None,
    sockets: list[socket.socket],
    idle: float | None,
    ready: Callable[[Address], None],
) -> None:
    config = uvicorn.Config(
        create_app(hub, token=address.token, host=host),
        http=Connection,
        ws="websockets-sansio",
        ws_max_size=MESSAGE_LIMIT,
        lifespan="on",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=END_SECONDS,
        h11_max_incomplete_event_size=HEADER_LIMIT,
    )
    server = _Server(config, hub, idle)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.end)
    ready(address)
    await server.serve(sockets=sockets)


class _Server(uvicorn.Server):
    """uvicorn's server, ended by our own signals, or by itself."""

    def __init__(self, config: uvicorn.Config, hub: Hub, idle: float | None) -> None:
        super().__init__(config)
        self._hub = hub
        self._idle = idle

    def end(self) -> None:
        """Ends in order; asked a second time, at once."""
        if self.should_exit:
            self.force_exit = True
            self._hub.interrupt()
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        if self._idle is not None and not self._hub.clients and not self._hub.jobs.running:
            self.should_exit |= time.monotonic() - self._hub.used_at > self._idle
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Streams have no end of their own, and nobody should wait for one.
        await self._hub.end_streams()
        await super().shutdown(sockets)
        if self.force_exit:
            # Then the server itself does not wait for its application, which has files to close.
            await self.lifespan.shutdown()


@contextmanager
def _alone(home: str) -> Iterator[None]:
    """One server a home, by a lock that goes with its process."""
    fd = os.open(os.path.join(home, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = running(home)
            where = f" at {other.url} (process {other.pid})" if other is not None else ""
            raise Busy(f"This home has a server already{where}.") from None
        yield
    finally:
        os.close(fd)


def _token(home: str) -> str:
    """The token of a home: the one that is there, if nobody else could have read it."""
    path = os.path.join(home, TOKEN)
    with suppress(OSError, UnicodeDecodeError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, encoding="ascii") as file:
            status = os.fstat(fd)
            known = file.read().strip()
        if status.st_uid == os.getuid() and not status.st_mode & 0o077 and len(known) >= 32:
            return known
    made = secrets.token_urlsafe(32)
    _write(path, made)
    return made


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        family, kind, protocol, _name, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # Said in full: only of what is known to be TCP does asyncio send small pieces at once.
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as problem:
        raise UsageError(f"There is no address {host}: {problem}.") from problem
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(where)
        except OSError as problem:
            raise MulliganError(f"Cannot listen on {host}, port {port}: {problem}.") from problem
        listener.listen(BACKLOG)
        listener.setblocking(False)
        yield listener


@contextmanager
def _listening_at(path: str) -> Iterator[socket.socket]:
    """A unix socket that only the user may open. One that is left behind is replaced."""
    folder, name = os.path.split(os.path.abspath(path))
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            # The file takes its mode from the socket: at no moment could others open it.
            os.fchmod(listener.fileno(), 0o600)
            _clear(name, fd, path)
            listener.bind(socket_address(os.path.join(folder, name), fd, name))
            os.chmod(name, 0o600, dir_fd=fd)
            listener.listen(BACKLOG)
            listener.setblocking(False)
            yield listener
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=fd)
    finally:
        os.close(fd)


def _clear(name: str, folder: int, path: str) -> None:
    import stat

    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise UsageError(f"{path} is there already, and is no socket.")
    os.unlink(name, dir_fd=folder)


@contextmanager
def _recorded(home: str, address: Address) -> Iterator[None]:
    """Says in the home where the server is, for as long as it is there."""
    path = os.path.join(home, RECORD)
    content = {
        "pid": address.pid,
        "process": identity(),
        "host": address.host,
        "port": address.port,
        "socket": address.socket,
        "started_at": address.started_at,
    }
    _write(path, json.dumps(content))
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _write(path: str, content: str) -> None:
    """Writes a file that only the user may read, whole or not at all."""
    temporary = f"{path}.{os.getpid()}.{secrets.token_hex(4)}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="ascii") as file:
        file.write(content)
        file.flush()
        os.fsync(fd)
    os.replace(temporary, path)


def _allow_many_files() -> None:
    """Every client costs a descriptor; as many as the system lets this user have."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
