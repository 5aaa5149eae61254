"""Run the server of a home, from its sockets to its orderly shutdown."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import uvicorn

from mulligan.errors import Busy, MulliganError, UsageError
from mulligan.server.app import create_app
from mulligan.server.http.access import Access
from mulligan.server.http.errors_json import HEADER_LIMIT, MESSAGE_LIMIT
from mulligan.server.http.protocol import Connection
from mulligan.server.lifecycle.page_files import delete_page_files
from mulligan.server.lifecycle.server_file import (
    LOCK,
    RECORD,
    SOCKET,
    TOKEN,
    Address,
    running,
    socket_address,
)
from mulligan.server.projects.memory import use_one_arena
from mulligan.server.projects.registry import Registry
from mulligan.workspace.project.process import identity

LOOPBACK, LOOPBACK_6 = "127.0.0.1", "::1"
PORT_ATTEMPTS = 20
MIN_TOKEN_CHARACTERS = 32
MAX_BACKLOG_CONNECTIONS = 1024
KEEP_ALIVE_SECONDS = 30
END_SECONDS = 15
OPEN_FILES = 16_384

PageAddress = Callable[[str | None], str]
"""Makes a one-time address of the page, about a project or the one that was looked at last."""
Ready = Callable[[Address, PageAddress], None]


def serve(
    home: str,
    *,
    host: str | None = None,
    port: int = 0,
    path: str | None = None,
    idle: float | None = None,
    watch: bool = True,
    project: str | None = None,
    token_file: str | None = None,
    ready: Ready,
) -> None:
    """Serve a home until a signal, or until no request came for `idle` seconds.

    Listens on loopback or on `host`, and on a unix socket in the home or at `path`; calls `ready`
    then. `project` serves requests that name no project. The token is new at each start unless
    `token_file` holds one. Raises `Busy` if the home has a server.
    """
    os.makedirs(home, mode=0o700, exist_ok=True)
    use_one_arena()
    with ExitStack() as stack:
        stack.enter_context(_alone(home))
        registry = Registry(home, watch=watch, default_project=project)
        token = secrets.token_urlsafe(32) if token_file is None else _kept_token(token_file)
        sockets = _listening_on_loopback(port) if host is None else [_listening(host, port)]
        for each in sockets:
            stack.enter_context(each)
        port = sockets[0].getsockname()[1]
        places = dict.fromkeys([os.path.join(home, SOCKET), path or ""])
        sockets += [stack.enter_context(_listening_at(each)) for each in places if each]
        address = Address(
            host or LOOPBACK,
            port,
            os.path.abspath(path) if path else os.path.join(home, SOCKET),
            token,
            os.getpid(),
            registry.started_at,
        )
        stack.enter_context(_recorded(home, address))
        _allow_many_files()
        access = Access(token, port=port, host=host)
        asyncio.run(_run(registry, address, access, host, sockets, idle, ready))


async def _run(
    registry: Registry,
    address: Address,
    access: Access,
    host: str | None,
    sockets: list[socket.socket],
    idle: float | None,
    ready: Ready,
) -> None:
    config = uvicorn.Config(
        create_app(registry, access=access, host=host),
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
    server = _Server(config, registry, idle)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.end)
    ready(address, access.page_address)
    await server.serve(sockets=sockets)


class _Server(uvicorn.Server):
    """uvicorn's server with our signals and an idle timeout."""

    def __init__(self, config: uvicorn.Config, registry: Registry, idle: float | None) -> None:
        super().__init__(config)
        self._registry = registry
        self._idle = idle

    def end(self) -> None:
        """Shut down in order; at the second call, at once."""
        if self.should_exit:
            self.force_exit = True
            self._registry.interrupt()
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        if (
            self._idle is not None
            and not self._registry.clients
            and not self._registry.jobs.running
        ):
            self.should_exit |= time.monotonic() - self._registry.used_at > self._idle
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Streams never end by themselves, and uvicorn would wait for them.
        await self._registry.end_streams()
        await super().shutdown(sockets)
        if self.force_exit:
            # uvicorn skips the lifespan then, but the projects must be closed.
            await self.lifespan.shutdown()


@contextmanager
def _alone(home: str) -> Iterator[None]:
    """Hold the lock that allows one server for each home."""
    fd = os.open(os.path.join(home, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = running(home)
            where = f" at {other.url} (process {other.pid})" if other is not None else ""
            raise Busy(
                f"This home has a server already{where}; use it, or stop it first."
            ) from None
        yield
    finally:
        os.close(fd)


def _kept_token(path: str) -> str:
    """Read the token from a file of mode 600; create the file if it is missing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        made = secrets.token_urlsafe(32)
        _write(path, made)
        return made
    except OSError as problem:
        raise UsageError(f"Cannot read the token in {path}: {problem.strerror}.") from problem
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        known = file.read(1024).strip()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise UsageError(f"Other users can read the token in {path}; make a new one, mode 600.")
    if len(known) < MIN_TOKEN_CHARACTERS or not known.isascii() or len(known.split()) != 1:
        raise UsageError(
            f"{path} holds no token: one line of at least {MIN_TOKEN_CHARACTERS} characters."
        )
    return known.decode("ascii")


def _listening_on_loopback(port: int) -> list[socket.socket]:
    """Listen on 127.0.0.1 and, where there is IPv6, on the same port of ::1.

    A browser tries both for the page's name, so no other program may listen on either.
    """
    for _ in range(PORT_ATTEMPTS if port == 0 else 1):
        first = _listening(LOOPBACK, port)
        chosen = first.getsockname()[1]
        try:
            return [first, _bound(socket.AF_INET6, (LOOPBACK_6, chosen))]
        except OSError as problem:
            if problem.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                return [first]
            first.close()
            reason = f"Cannot listen on {LOOPBACK_6}, port {chosen}: {problem}."
    raise MulliganError(reason)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _kind, _protocol, _name, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as problem:
        raise UsageError(f"There is no address {host}: {problem}.") from problem
    try:
        return _bound(family, where)
    except OSError as problem:
        raise MulliganError(f"Cannot listen on {host}, port {port}: {problem}.") from problem


def _bound(family: int, where: Any) -> socket.socket:
    # Name the protocol: asyncio sets TCP_NODELAY only then.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and where[0] == LOOPBACK_6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(where)
        listener.listen(MAX_BACKLOG_CONNECTIONS)
    except BaseException:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


@contextmanager
def _listening_at(path: str) -> Iterator[socket.socket]:
    """Listen on a unix socket of mode 600; replace one that a dead server left."""
    folder, name = os.path.split(os.path.abspath(path))
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            # The file takes its mode from the socket: at no moment could others open it.
            os.fchmod(listener.fileno(), 0o600)
            _clear(name, fd, path)
            listener.bind(socket_address(os.path.join(folder, name), fd, name))
            os.chmod(name, 0o600, dir_fd=fd)
            listener.listen(MAX_BACKLOG_CONNECTIONS)
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
        raise UsageError(f"{path} exists and is not a socket; give another path.")
    os.unlink(name, dir_fd=folder)


@contextmanager
def _recorded(home: str, address: Address) -> Iterator[None]:
    """Write the server's address and token into the home; delete both at the end."""
    path, token = os.path.join(home, RECORD), os.path.join(home, TOKEN)
    content = {
        "pid": address.pid,
        "process": identity(),
        "host": address.host,
        "port": address.port,
        "socket": address.socket,
        "started_at": address.started_at,
    }
    delete_page_files(home)
    # The token first: a client that reads the record needs the matching token.
    _write(token, address.token)
    _write(path, json.dumps(content))
    try:
        yield
    finally:
        for each in (path, token):
            with suppress(FileNotFoundError):
                os.unlink(each)
        delete_page_files(home)


def _write(path: str, content: str) -> None:
    """Write a file of mode 600 atomically."""
    temporary = f"{path}.{os.getpid()}.{secrets.token_hex(4)}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="ascii") as file:
        file.write(content)
        file.flush()
        os.fsync(fd)
    os.replace(temporary, path)


def _allow_many_files() -> None:
    """Raise the limit of open files: each client needs a descriptor."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
