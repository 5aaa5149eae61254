"""Read back what a restore wrote, and verify every path at its end."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from mulligan.core.tree import LINK, Change, Entry
from mulligan.worktree.fs.safe_paths import (
    OPEN_FILE,
    Directories,
    content_matches,
    could_match,
    digest,
    status_of,
)
from mulligan.worktree.restore.staging_area import Slot

NOTHING: Mapping[bytes, os.stat_result] = MappingProxyType({})


def read_back(slot: Slot, entry: Entry) -> os.stat_result | None:
    """Return the stat of a staged file; raise `ValueError` if its content is wrong.

    Returns `None` for links and unreadable files, which `verify` checks in their place.
    """
    if entry.kind == LINK:
        return None
    try:
        fd = os.open(slot.name, OPEN_FILE, dir_fd=slot.fd)
    except OSError:
        return None
    try:
        if digest(fd, entry.size) != entry.id:
            raise ValueError("the disk returned other bytes than were written")
        return os.fstat(fd)
    finally:
        os.close(fd)


def verify(
    root: bytes, changes: Iterable[Change], known: Mapping[bytes, os.stat_result] = NOTHING
) -> list[bytes]:
    """Return the paths that do not have the content and mode of the plan.

    `known` has the stats of files that were read back; one with an equal stat is not read again.
    """
    wrong = []
    with Directories(root) as directories:
        for change in changes:
            if _is_unchanged_unchecked(directories, change, known.get(change.path)):
                continue
            directory, _slash, name = change.path.rpartition(b"/")
            parent = directories.open_if_there(directory)
            if not _is_right(parent, name, change.after, known.get(change.path)):
                wrong.append(change.path)
    return wrong


def _is_unchanged_unchecked(
    directories: Directories, change: Change, known: os.stat_result | None
) -> bool:
    """Return whether one `lstat` shows the file that was read back, or a removed path missing."""
    try:
        status = directories.lstat_unchecked(change.path)
    except OSError:
        return False
    if change.after is None or status is None:
        return change.after is None and status is None
    return status.st_mode & 0o7777 == change.after.mode and _is_untouched(status, known)


def _is_right(
    parent: int | None, name: bytes, after: Entry | None, known: os.stat_result | None
) -> bool:
    status = status_of(parent, name) if parent is not None else None
    if after is None or status is None or parent is None:
        return after is None and status is None
    if after.kind != LINK and status.st_mode & 0o7777 != after.mode:
        return False
    try:
        return _is_untouched(status, known) or content_matches(parent, name, after, status)
    except PermissionError:
        # The planned mode may forbid reading.
        return could_match(status, after)


def _is_untouched(status: os.stat_result, known: os.stat_result | None) -> bool:
    # Without the ctime, which the rename to its place has changed.
    return known is not None and (
        (status.st_ino, status.st_mtime_ns, status.st_size, status.st_dev)
        == (known.st_ino, known.st_mtime_ns, known.st_size, known.st_dev)
    )
