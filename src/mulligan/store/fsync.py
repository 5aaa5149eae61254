"""Names that survive a power loss: a name is safe only once the directory it is in was synced."""

from __future__ import annotations

import os


def sync_directory(path: str) -> None:
    """Makes names that were created or removed in a directory durable."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directories(path: str) -> None:
    """Makes a directory and those above it, for this user only, and all their names durable."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(os.path.abspath(path))
    make_directories(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    sync_directory(above)
