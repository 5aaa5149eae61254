"""What was taken out of its place to go: compared at once, and deleted when all is in order.

A program that has such a file open may still write to it. So a file is compared under a read lease
(`leases`), which is held until it is deleted: while it holds, no program can write to the file. One
that is open for writing stays, and so does one that was written to since it was compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from mulligan.core.tree import FILE, Change
from mulligan.worktree.fs import leases
from mulligan.worktree.fs.deferred_unlink import DeferredUnlink
from mulligan.worktree.fs.safe_paths import (
    OPEN_FILE,
    content_matches,
    content_matches_or_false,
    could_match,
    digest,
)
from mulligan.worktree.restore.staging_area import Slot

CHANGED_CONCURRENTLY = "it was changed by somebody else in the meantime"


class DisplacedFile(NamedTuple):
    """What was compared: how it stood by then, and, of a file, its descriptor if there was room for
    one. `lease` is what was said to a read lease on that."""

    change: Change
    slot: Slot
    stood: tuple[int, int, int]
    fd: int | None
    lease: bool | None

    def close(self) -> None:
        if self.fd is not None:
            _close(self.fd, self.lease)


class Kept(NamedTuple):
    """What was not deleted after all, and why."""

    change: Change
    slot: Slot
    reason: str


class DisplacedFiles:
    """All that was taken out and is in the store. `freeing` lets go of it in the end.

    With `replace_open` a file that is open for writing may be taken out; it is not deleted either.
    """

    def __init__(self, freeing: DeferredUnlink, *, replace_open: bool = False) -> None:
        self.replace_open = replace_open
        self._freeing = freeing
        self._taken: list[DisplacedFile] = []

    def accept(self, change: Change, slot: Slot) -> str | None:
        """Take what lies in the slot, to be deleted; the reason if it is not what was to go."""
        before = change.before
        assert before is not None
        fd = lease = None
        try:
            if before.kind == FILE:
                fd = os.open(slot.name, OPEN_FILE, dir_fd=slot.fd)
                lease = leases.take(fd)
                status = os.fstat(fd)
                is_same = could_match(status, before) and digest(fd, before.size) == before.id
            else:
                status = os.stat(slot.name, dir_fd=slot.fd, follow_symlinks=False)
                is_same = content_matches(slot.fd, slot.name, before, status)
        except OSError:
            # What cannot be read is not what it should be, as far as we may say: it goes back.
            is_same = False
        reason = None if is_same else CHANGED_CONCURRENTLY
        if is_same and fd is not None and not self.replace_open and not _is_idle(fd, lease):
            reason = leases.reason_to_leave()
        if fd is not None and (reason is not None or len(self._taken) >= self._freeing.most):
            _close(fd, lease)
            fd = lease = None
        if reason is None:
            self._taken.append(DisplacedFile(change, slot, _standing(status), fd, lease))
        return reason

    def give_back(self) -> None:
        """What was taken last is not to be deleted after all."""
        self._taken.pop().close()

    def delete_all(self) -> Iterator[Kept]:
        """Delete it; gives what was written to since, or is open for writing, and stays."""
        try:
            while self._taken:
                taken = self._reopened(self._taken.pop())
                try:
                    reason = self._reason_to_keep(taken)
                    if reason is None:
                        self._delete(taken)
                except BaseException:
                    taken.close()
                    raise
                if reason is not None:
                    taken.close()
                    yield Kept(taken.change, taken.slot, reason)
        finally:
            for each in self._taken:
                each.close()

    def _reopened(self, taken: DisplacedFile) -> DisplacedFile:
        """Of a file, with a descriptor and, unless it is still open for writing, a lease."""
        change, slot, _stood, fd, lease = taken
        if change.before is None or change.before.kind != FILE:
            return taken
        if fd is None:
            with suppress(OSError):
                fd = os.open(slot.name, OPEN_FILE, dir_fd=slot.fd)
        elif lease is not False:
            return taken
        return taken._replace(fd=fd, lease=leases.take(fd)) if fd is not None else taken

    def _delete(self, taken: DisplacedFile) -> None:
        if taken.fd is None:
            self._freeing.unlink(taken.slot.name, taken.slot.fd)
            return
        os.unlink(taken.slot.name, dir_fd=taken.slot.fd)
        if taken.lease:
            leases.release(taken.fd)
        self._freeing.hold(taken.fd)

    def _reason_to_keep(self, taken: DisplacedFile) -> str | None:
        change, slot, stood, fd, lease = taken
        assert change.before is not None
        if fd is not None:
            now = os.fstat(fd)
        else:
            now = os.stat(slot.name, dir_fd=slot.fd, follow_symlinks=False)
        # Another name of the same file, changed in the same restore, moves this time too.
        if _standing(now) != stood and not content_matches_or_false(
            slot.fd, slot.name, change.before
        ):
            return CHANGED_CONCURRENTLY
        if fd is not None and not _is_idle(fd, lease):
            return leases.reason_to_leave()
        return None


def _is_idle(fd: int, lease: bool | None) -> bool:
    """True if no program has the file open for writing, as far as can be known."""
    return leases.is_unbroken(fd) if lease else lease is None


def _close(fd: int, lease: bool | None) -> None:
    if lease:
        leases.release(fd)
    os.close(fd)


def _standing(status: os.stat_result) -> tuple[int, int, int]:
    """Changes with whatever is written. The time of change alone would not tell of a write in the
    moment of the rename, which sets it; the other time is as old as the content."""
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size
