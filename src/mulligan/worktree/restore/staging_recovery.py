"""Empty a staging directory without losing bytes, after a crash too.

During a restore, staged files (`w0`, `w1`, …) and removed files (`r0`, `r1`, …) are in a staging
directory, numbered by their change. A slot may hold the new content, a prefix of it, or the old
content: all of these are in the store and are deleted. Any other content is the only copy of what
a program wrote during the restore: it goes back to its path, or beside it under a new name if the
path is taken. So does a file that a program has open for writing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence

from mulligan.core.tree import FILE, Change, join
from mulligan.errors import Corrupt
from mulligan.worktree.fs.leases import watched
from mulligan.worktree.fs.rename import exchange, move_if_free
from mulligan.worktree.fs.safe_paths import (
    RESOURCE_ERRORS,
    Directories,
    content_matches,
    content_matches_or_false,
)

PAGE_BYTES = 4096
SILLY_RENAMED = (".nfs", ".fuse_hidden")
"""Name prefixes of deleted files that are still open; the file system removes them itself."""
Read = Callable[[bytes], Iterator[bytes]]


def staging_name(tag: str) -> bytes:
    """Return the name of an operation's staging directory."""
    return b".mulligan-tmp-" + tag.encode()


def rescue(root: bytes, tag: str, changes: Sequence[Change], read: Read) -> list[bytes]:
    """Empty the staging directories after a crash; return the new names of rescued files."""
    with Directories(root) as directories:
        rescued = []
        for place in _existing_parents(directories, changes):
            staged = directories.open_if_there(join(place, staging_name(tag)))
            if staged is not None:
                fd = os.dup(staged)
                try:
                    rescued += clear(directories, fd, changes, read)
                finally:
                    os.close(fd)
                parent = directories.open(place)
                remove(tag, parent)
                os.fsync(parent)
        return rescued


def remove(tag: str, parent: int) -> bool:
    """Remove an empty staging directory; `False` if open deleted files still have a name in it."""
    try:
        os.rmdir(staging_name(tag), dir_fd=parent)
    except OSError as problem:
        if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
            raise
        return False
    return True


def clear(directories: Directories, fd: int, changes: Sequence[Change], read: Read) -> list[bytes]:
    """Empty a staging directory without losing bytes; return the new names of rescued files."""
    rescued = []
    for name in sorted(os.listdir(fd)):
        if name.startswith(SILLY_RENAMED):
            continue
        slot = os.fsencode(name)
        index = int(slot[1:]) if slot[1:].isdigit() else -1
        if 0 <= index < len(changes):
            new_path = _put_back(directories, fd, slot, changes[index], read)
        else:
            new_path = set_aside(directories, fd, slot, b"", b"unknown")
        if new_path is not None:
            rescued.append(new_path)
    return rescued


def _put_back(
    directories: Directories, fd: int, slot: bytes, change: Change, read: Read
) -> bytes | None:
    """Delete a staged file that is stored, else put it back; return a new path."""
    stored = [each for each in (change.before, change.after) if each and not each.is_directory]
    directory, _slash, name = change.path.rpartition(b"/")
    parent = directories.open_if_there(directory)
    not_exchanged = parent is None or _is_not_exchanged(parent, name, change)
    with watched(fd, slot) as is_idle:
        is_stored = any(content_matches_or_false(fd, slot, each) for each in stored) or (
            slot.startswith(b"w") and _is_prefix(fd, slot, change, read, zeros=not_exchanged)
        )
        if is_stored and is_idle():
            os.unlink(slot, dir_fd=fd)
            return None
    if parent is not None:
        after = change.after
        try:
            if after is None or after.is_directory or not content_matches(parent, name, after):
                move_if_free(slot, fd, name, parent)
                return None
            exchange(slot, fd, name, parent)
            with watched(fd, slot) as is_idle:
                if content_matches(fd, slot, after) and is_idle():
                    os.unlink(slot, dir_fd=fd)
                    return None
        except OSError:
            pass
    return set_aside(directories, fd, slot, directory if parent is not None else b"", name)


def _is_not_exchanged(parent: int, name: bytes, change: Change) -> bool:
    """Return whether the path still has its old content, so that the slot holds our file."""
    before = change.before
    if before is None or before.is_directory:
        return True
    return content_matches_or_false(parent, name, before)


def _is_prefix(fd: int, slot: bytes, change: Change, read: Read, *, zeros: bool) -> bool:
    """Return whether a slot holds a prefix of the new content.

    With `zeros`, pages may be zero: after a power loss only the length may be on the disk.
    """
    after = change.after
    if after is None or after.kind != FILE:
        return False
    status = os.stat(slot, dir_fd=fd, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode) or status.st_size > after.size:
        return False
    try:
        file = os.open(slot, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    except OSError as problem:
        if problem.errno in RESOURCE_ERRORS:
            raise
        return False
    try:
        for chunk in read(after.id):
            staged = os.read(file, len(chunk))
            for at in range(0, len(staged), PAGE_BYTES):
                page = staged[at : at + PAGE_BYTES]
                if chunk[at : at + len(page)] != page and (any(page) or not zeros):
                    return False
            if len(staged) < len(chunk):
                break
        return True
    except Corrupt:
        return False
    finally:
        os.close(file)


def set_aside(
    directories: Directories, fd: int, slot: bytes, directory: bytes, name: bytes
) -> bytes:
    """Move a staged file to a free name beside its path; return the new path."""
    for number in range(1, 10_000):
        new_name = name[:200] + b".rescued-%d" % number
        try:
            move_if_free(slot, fd, new_name, directories.open(directory))
        except FileExistsError:
            continue
        return join(directory, new_name)
    raise OSError(errno.EEXIST, "no free name to put rescued bytes under")


def _existing_parents(directories: Directories, changes: Iterable[Change]) -> list[bytes]:
    """Return the existing directories above the changes: each may hold a staging directory."""
    places = {b""}
    for change in changes:
        path = change.path
        while path:
            path = path.rpartition(b"/")[0]
            if path in places:
                break
            places.add(path)
    return sorted(place for place in places if directories.open_if_there(place) is not None)
