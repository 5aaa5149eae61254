"""The staging folder, and what to do with files that are found in it.

While files are changed, those on their way in and out lie in a folder beside them, as `w0`, `w1`…
and `r0`, `r1`…, numbered like the changes they belong to. A slot may hold what is to come, the
beginning of it, or what was there before: all of that is in the store. Anything else is somebody's
work that was caught in between, and this is the only copy of it: it goes back to its place, or,
if that is taken, beside it under a new name. So is a file that a program has open for writing.
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

READ_BYTES = 4096
STILL_OPEN = (".nfs", ".fuse_hidden")
"""What some file systems call a file that was deleted while it is open; it goes by itself."""
Read = Callable[[bytes], Iterator[bytes]]


def folder(tag: str) -> bytes:
    """The name of the staging folder of an operation."""
    return b".mulligan-tmp-" + tag.encode()


def rescue(root: bytes, tag: str, changes: Sequence[Change], read: Read) -> list[bytes]:
    """Clears up after a crash; gives the new names of what could not go back to its place."""
    with Directories(root) as directories:
        stray = []
        for place in _places(directories, changes):
            staged = directories.open_if_there(join(place, folder(tag)))
            if staged is not None:
                fd = os.dup(staged)
                try:
                    stray += clear(directories, fd, changes, read)
                finally:
                    os.close(fd)
                parent = directories.open(place)
                remove(tag, parent)
                os.fsync(parent)
        return stray


def remove(tag: str, parent: int) -> bool:
    """Removes a staging folder that was cleared; `False` while names are in it that the file system
    keeps for what is still open."""
    try:
        os.rmdir(folder(tag), dir_fd=parent)
    except OSError as problem:
        if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
            raise
        return False
    return True


def clear(directories: Directories, fd: int, changes: Sequence[Change], read: Read) -> list[bytes]:
    """Empties a staging folder without losing anything; gives new names, as `rescue` does."""
    stray = []
    for name in sorted(os.listdir(fd)):
        if name.startswith(STILL_OPEN):
            continue
        slot = os.fsencode(name)
        index = int(slot[1:]) if slot[1:].isdigit() else -1
        if 0 <= index < len(changes):
            saved = _put_back(directories, fd, slot, changes[index], read)
        else:
            saved = set_aside(directories, fd, slot, b"", b"unknown")
        if saved is not None:
            stray.append(saved)
    return stray


def _put_back(
    directories: Directories, fd: int, slot: bytes, change: Change, read: Read
) -> bytes | None:
    known = [each for each in (change.before, change.after) if each and not each.is_directory]
    directory, _slash, name = change.path.rpartition(b"/")
    parent = directories.open_if_there(directory)
    still_ours = parent is None or _has_not_changed_places(parent, name, change)
    with watched(fd, slot) as is_idle:
        is_stored = any(content_matches_or_false(fd, slot, each) for each in known) or (
            slot.startswith(b"w") and _is_beginning(fd, slot, change, read, zeros=still_ours)
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


def _has_not_changed_places(parent: int, name: bytes, change: Change) -> bool:
    """Whether what is staged is surely still ours: the path is as it was before."""
    before = change.before
    if before is None or before.is_directory:
        return True
    return content_matches_or_false(parent, name, before)


def _is_beginning(fd: int, slot: bytes, change: Change, read: Read, *, zeros: bool) -> bool:
    """Whether a file was being staged: it holds the beginning of what is to come.

    After a power loss pages in it may be `zeros`, where only the length had reached the disk.
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
        for piece in read(after.id):
            found = os.read(file, len(piece))
            for at in range(0, len(found), READ_BYTES):
                page = found[at : at + READ_BYTES]
                if piece[at : at + len(page)] != page and (any(page) or not zeros):
                    return False
            if len(found) < len(piece):
                break
        return True
    except Corrupt:
        return False
    finally:
        os.close(file)


def set_aside(
    directories: Directories, fd: int, slot: bytes, directory: bytes, name: bytes
) -> bytes:
    for number in range(1, 10_000):
        saved = name[:200] + b".rescued-%d" % number
        try:
            move_if_free(slot, fd, saved, directories.open(directory))
        except FileExistsError:
            continue
        return join(directory, saved)
    raise OSError(errno.EEXIST, "no free name to put rescued bytes under")


def _places(directories: Directories, changes: Iterable[Change]) -> list[bytes]:
    places = {b""}
    for change in changes:
        path = change.path
        while path:
            path = path.rpartition(b"/")[0]
            if path in places:
                break
            places.add(path)
    return sorted(place for place in places if directories.open_if_there(place) is not None)
