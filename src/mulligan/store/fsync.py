"""Make file names durable: a name survives a power loss once its directory is synced."""

from __future__ import annotations

import os


def sync_directory(path: str) -> None:
    """Sync the names in a directory."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directories(path: str) -> None:
    """Make a directory and its parents with mode 700, and sync their names."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(os.path.abspath(path))
    make_directories(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    sync_directory(parent)
