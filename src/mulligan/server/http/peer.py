"""Find the process at the other end of a connection from this machine."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from typing import Any

from starlette.requests import HTTPConnection

from mulligan.workspace.project.process import client_identity

LOCAL_ADDRESS, REMOTE_ADDRESS, INODE = 1, 2, 9  # columns of /proc/net/tcp


def client_process(connection: HTTPConnection) -> str | int:
    """Identify the client's process for the journal; 0 if it is unknown. Reads /proc."""
    found = connection.scope.get("state", {}).get("socket")
    try:
        pid = None if found is None else _peer(found)
    except (OSError, ValueError):
        # The client has left, or /proc cannot be read.
        pid = None
    return (pid and client_identity(pid)) or 0


def _peer(connection: Any) -> int | None:
    if connection.family == socket.AF_UNIX:
        return peer_credentials(connection)[0] if hasattr(socket, "SO_PEERCRED") else None
    # The client's own entry has the two addresses the other way round.
    ends = _written(connection.getpeername()), _written(connection.getsockname())
    table = "/proc/net/tcp6" if connection.family == socket.AF_INET6 else "/proc/net/tcp"
    with open(table, encoding="ascii") as file:
        for line in file:
            fields = line.split()
            if (fields[LOCAL_ADDRESS], fields[REMOTE_ADDRESS]) == ends:
                return _holder(f"socket:[{fields[INODE]}]")
    return None


def peer_credentials(connection: Any) -> tuple[int, int, int]:
    """Process, user and group that connected to a unix socket."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, user, group = struct.unpack("3i", found)
    return pid, user, group


def _written(address: tuple[Any, ...]) -> str:
    """Write an address as /proc/net/tcp does: words in the machine's byte order."""
    host, port = address[:2]
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def _holder(name: str) -> int | None:
    """The oldest process of this user that has the socket open."""
    for pid in sorted(int(each) for each in os.listdir("/proc") if each.isdigit()):
        # Processes end meanwhile, and those of other users cannot be read.
        with suppress(OSError):
            folder = f"/proc/{pid}/fd"
            for fd in os.listdir(folder):
                with suppress(OSError):
                    if os.readlink(f"{folder}/{fd}") == name:
                        return pid
    return None
