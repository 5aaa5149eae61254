"""Set the mode and owner of restored files."""

from __future__ import annotations

import os
import stat

from mulligan.core.tree import Entry
from mulligan.worktree.restore.staging_area import Slot, sync_file


def keep_owner(slot: Slot, replaced: os.stat_result, staged: os.stat_result | None) -> None:
    """Give a staged file the owner of the file it replaces, if we are root.

    `staged` is its stat if the caller has it.
    """
    if os.geteuid() != 0:
        return
    staged = staged or os.stat(slot.name, dir_fd=slot.fd, follow_symlinks=False)
    if (staged.st_uid, staged.st_gid) != (replaced.st_uid, replaced.st_gid):
        os.chown(slot.name, replaced.st_uid, replaced.st_gid, dir_fd=slot.fd, follow_symlinks=False)
        if stat.S_ISREG(staged.st_mode):
            # chown clears the setuid and setgid bits.
            os.chmod(slot.name, staged.st_mode & 0o7777, dir_fd=slot.fd)


def set_mode(parent: int, name: bytes, entry: Entry) -> bool:
    """Set and sync the mode of a file or directory; `False` if another kind is there."""
    kind = os.O_DIRECTORY if entry.is_directory else 0
    # O_PATH | O_NOFOLLOW: the mode of a link's target must not change.
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
