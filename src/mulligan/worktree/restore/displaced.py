"""What was taken out of its place to go: compared at once, and deleted when all is in order.

Whoever has such a file open may still write to it: then it is not what was to go any more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from mulligan.core.tree import FILE, Change
from mulligan.worktree.fs.deferred_unlink import Freeing
from mulligan.worktree.fs.safe_paths import OPEN_FILE, digest, looks_like, may_be_like, surely_is
from mulligan.worktree.restore.staging_area import Slot


class Taken(NamedTuple):
    """What was compared: how it stood by then, and, of a file, its descriptor if there was room for
    one."""

    change: Change
    slot: Slot
    stood: tuple[int, int, int]
    fd: int | None


class Rubbish:
    """All that was taken out and is in the store. `freeing` lets go of it in the end."""

    def __init__(self, freeing: Freeing) -> None:
        self._freeing = freeing
        self._taken: list[Taken] = []

    def takes(self, change: Change, slot: Slot) -> bool:
        """Whether what lies in the slot is what was to go; if so, it will be deleted."""
        before = change.before
        assert before is not None
        fd = None
        try:
            if before.kind == FILE:
                fd = os.open(slot.name, OPEN_FILE, dir_fd=slot.fd)
                status = os.fstat(fd)
                is_same = may_be_like(status, before) and digest(fd, before.size) == before.id
            else:
                status = os.stat(slot.name, dir_fd=slot.fd, follow_symlinks=False)
                is_same = looks_like(slot.fd, slot.name, before, status)
        except OSError:
            # What cannot be read is not what it should be, as far as we may say: it goes back.
            is_same = False
        has_room = is_same and len(self._taken) < self._freeing.most
        if fd is not None and not has_room:
            os.close(fd)
            fd = None
        if is_same:
            self._taken.append(Taken(change, slot, _standing(status), fd))
        return is_same

    def give_back(self) -> None:
        """What was taken last is not to be deleted after all."""
        fd = self._taken.pop().fd
        if fd is not None:
            os.close(fd)

    def drop(self) -> Iterator[Change]:
        """Deletes it; gives those changes that somebody has written to since, and which stay."""
        try:
            while self._taken:
                taken = self._taken.pop()
                if not self._delete(taken):
                    yield taken.change
        finally:
            for each in self._taken:
                if each.fd is not None:
                    os.close(each.fd)

    def _delete(self, taken: Taken) -> bool:
        change, slot, stood, fd = taken
        assert change.before is not None
        if fd is not None:
            self._freeing.hold(fd)
            now = os.fstat(fd)
        else:
            now = os.stat(slot.name, dir_fd=slot.fd, follow_symlinks=False)
        # Another name of the same file, changed in the same restore, moves this time too.
        if _standing(now) != stood and not surely_is(slot.fd, slot.name, change.before):
            return False
        if fd is not None:
            os.unlink(slot.name, dir_fd=slot.fd)
        else:
            self._freeing.unlink(slot.name, slot.fd)
        return True


def _standing(status: os.stat_result) -> tuple[int, int, int]:
    """Changes with whatever is written. The time of change alone would not tell of a write in the
    moment of the rename, which sets it; the other time is as old as the content."""
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size
