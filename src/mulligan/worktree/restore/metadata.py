"""Modes and owners: what a file has besides its bytes."""

from __future__ import annotations

import os
import stat

from mulligan.core.tree import Entry
from mulligan.worktree.restore.staging_area import Slot, sync_file


def keep_owner(slot: Slot, taken: os.stat_result, staged: os.stat_result | None) -> None:
    """Gives what is `staged`, if somebody has looked, to the owner of what it replaces, where that
    is ours to give."""
    if os.geteuid() != 0:
        return
    staged = staged or os.stat(slot.name, dir_fd=slot.fd, follow_symlinks=False)
    if (staged.st_uid, staged.st_gid) != (taken.st_uid, taken.st_gid):
        os.chown(slot.name, taken.st_uid, taken.st_gid, dir_fd=slot.fd, follow_symlinks=False)
        if stat.S_ISREG(staged.st_mode):
            # A change of owner takes the setuid and setgid bits away.
            os.chmod(slot.name, staged.st_mode & 0o7777, dir_fd=slot.fd)


def set_mode(parent: int, name: bytes, entry: Entry) -> bool:
    """Gives a file or a folder its mode, for good; `False` if something else is there."""
    kind = os.O_DIRECTORY if entry.is_directory else 0
    # Opened as a mere path and without following links, so that nothing else is ever changed.
    fd = os.open(
        name, getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=parent
    )
    try:
        status = os.fstat(fd)
        expected = stat.S_IFDIR if entry.is_directory else stat.S_IFREG
        if stat.S_IFMT(status.st_mode) != expected:
            return False
        if status.st_mode & 0o7777 != entry.mode:
            if hasattr(os, "O_PATH"):
                os.chmod(f"/proc/self/fd/{fd}", entry.mode)
                sync_file(parent, name)
            else:
                os.fchmod(fd, entry.mode)
                os.fsync(fd)
        return True
    finally:
        os.close(fd)
