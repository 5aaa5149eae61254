"""Find the server of a home, or start one: for the command line and for hooks.

    home/
      server.json     process and address of the running server
      server.token    its token, new at each start
      server.sock     its unix socket, which needs no token
      server.lock     held by the running server
      server.log      stderr of a server that `ensure` started

Imports only the standard library, and takes a millisecond.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from typing import Any, NamedTuple

from mulligan.errors import MulliganError
from mulligan.workspace.project.process import is_gone

RECORD, TOKEN, SOCKET = "server.json", "server.token", "server.sock"
LOCK, LOG = "server.lock", "server.log"
IDLE_SECONDS = 600
START_SECONDS = 20.0
END_SECONDS = 5.0


class Address(NamedTuple):
    """Where a server listens. `socket` needs no token."""

    host: str
    port: int
    socket: str
    token: str
    pid: int
    started_at: str

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def running(home: str) -> Address | None:
    """Return the address of the running server of a home, if any."""
    try:
        with open(os.path.join(home, RECORD), encoding="utf-8") as file:
            content: dict[str, Any] = json.load(file)
        with open(os.path.join(home, TOKEN), encoding="ascii") as file:
            token = file.read().strip()
        if is_gone(content["process"]):
            return None
        return Address(
            content["host"], content["port"], content["socket"], token, content["pid"],
            content["started_at"],
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return None


def ensure(home: str, *, idle: int = IDLE_SECONDS) -> Address:
    """Return the server of a home; start one that stops after `idle` seconds if there is none.

    Concurrent callers all get the server that was first.
    """
    found = running(home)
    if found is not None and _answers(found):
        return found
    os.makedirs(home, mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    log = os.open(os.path.join(home, LOG), flags, 0o600)
    try:
        started = subprocess.Popen(
            [sys.executable, "-m", "mulligan", "serve", "--idle", str(idle)],
            env=os.environ | {"MULLIGAN_HOME": home},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(log)
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        found = running(home)
        if found is not None and _answers(found):
            if found.pid != started.pid:
                _end(started)
            return found
        # Another server may have been first: then ours exits, and that one answers.
        if started.poll() not in (None, 0, 5):
            break
        time.sleep(0.02)
    raise MulliganError(f"The server did not start; see {os.path.join(home, LOG)}.")


def connect(address: Address, timeout: float = 1.0) -> socket.socket:
    """Connect to a server's unix socket; raises `OSError`."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout)
        folder, name = os.path.split(address.socket)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            connection.connect(socket_address(address.socket, fd, name))
        finally:
            os.close(fd)
    except BaseException:
        connection.close()
        raise
    return connection


def ask(
    address: Address, method: str, path: str, body: Any = None, *, timeout: float = 30.0
) -> Any:
    """Send a request over the unix socket; raises `MulliganError` for anything but success."""
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection("localhost")
    try:
        connection.sock = connect(address, timeout)
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"content-type": "application/json"})
        answer = connection.getresponse()
        found = json.loads(answer.read())
    except (OSError, HTTPException, ValueError) as problem:
        raise MulliganError(
            f"The server (process {address.pid}) does not answer: {problem}."
        ) from problem
    finally:
        connection.close()
    if answer.status >= 400:
        raise MulliganError(f"The server refused {method} {path}: {found['error']['message']}")
    return found


def socket_address(path: str, folder: int, name: str) -> str:
    """Return the path of a socket, or a short alias if it is too long for the kernel."""
    if len(os.fsencode(path)) < 100 or not sys.platform.startswith("linux"):
        return path
    return f"/proc/self/fd/{folder}/{name}"


def _end(started: subprocess.Popen[bytes]) -> None:
    """End our own child: another server was first, and a late child would outlive that one."""
    started.terminate()
    try:
        started.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        started.kill()
        started.wait()


def _answers(address: Address) -> bool:
    try:
        connect(address).close()
    except OSError:
        return False
    return True
