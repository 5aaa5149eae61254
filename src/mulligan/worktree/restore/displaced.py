"""Compare files displaced by a restore at once, and delete them at its end.

A program that has a displaced file open may still write to it. So a file is compared under a read
lease (`leases`) that is held until the deletion: meanwhile no program can write to it. A file that
is open for writing, or was written to since the comparison, is kept.
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

CHANGED_CONCURRENTLY = "it was changed since the restore was planned"


class DisplacedFile(NamedTuple):
    """A compared file; `fd` is None if too many are open, `lease` is from `leases.take`."""

    change: Change
    slot: Slot
    version: tuple[int, int, int]
    fd: int | None
    lease: bool | None

    def close(self) -> None:
        if self.fd is not None:
            _close(self.fd, self.lease)


class Kept(NamedTuple):
    """A displaced file that was not deleted, and why."""

    change: Change
    slot: Slot
    reason: str


class DisplacedFiles:
    """Displaced files whose content is in the store, to be deleted by `unlinker`.

    With `replace_open`, `accept` takes files that are open for writing; they are not deleted.
    """

    def __init__(self, unlinker: DeferredUnlink, *, replace_open: bool = False) -> None:
        self.replace_open = replace_open
        self._unlinker = unlinker
        self._files: list[DisplacedFile] = []

    def accept(self, change: Change, slot: Slot) -> str | None:
        """Take the file in the slot for deletion; return a reason to put it back instead."""
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
            is_same = False  # unreadable
        reason = None if is_same else CHANGED_CONCURRENTLY
        if is_same and fd is not None and not self.replace_open and not _is_idle(fd, lease):
            reason = leases.reason_to_leave()
        if fd is not None and (reason is not None or len(self._files) >= self._unlinker.max_held):
            _close(fd, lease)
            fd = lease = None
        if reason is None:
            self._files.append(DisplacedFile(change, slot, _version(status), fd, lease))
        return reason

    def give_back(self) -> None:
        """Drop the file that was accepted last from the deletion."""
        self._files.pop().close()

    def delete_all(self) -> Iterator[Kept]:
        """Delete the files; yield those kept because they were or can be written to."""
        try:
            while self._files:
                file = self._reopen(self._files.pop())
                try:
                    reason = self._reason_to_keep(file)
                    if reason is None:
                        self._delete(file)
                except BaseException:
                    file.close()
                    raise
                if reason is not None:
                    file.close()
                    yield Kept(file.change, file.slot, reason)
        finally:
            for file in self._files:
                file.close()

    def _reopen(self, file: DisplacedFile) -> DisplacedFile:
        """Open a file that has no descriptor, and try again for a lease that was refused."""
        change, slot, _version, fd, lease = file
        if change.before is None or change.before.kind != FILE:
            return file
        if fd is None:
            with suppress(OSError):
                fd = os.open(slot.name, OPEN_FILE, dir_fd=slot.fd)
        elif lease is not False:
            return file
        return file._replace(fd=fd, lease=leases.take(fd)) if fd is not None else file

    def _delete(self, file: DisplacedFile) -> None:
        if file.fd is None:
            self._unlinker.unlink(file.slot.name, file.slot.fd)
            return
        os.unlink(file.slot.name, dir_fd=file.slot.fd)
        if file.lease:
            leases.release(file.fd)
        self._unlinker.hold(file.fd)

    def _reason_to_keep(self, file: DisplacedFile) -> str | None:
        change, slot, version, fd, lease = file
        assert change.before is not None
        if fd is not None:
            now = os.fstat(fd)
        else:
            now = os.stat(slot.name, dir_fd=slot.fd, follow_symlinks=False)
        # A ctime alone can differ because the restore changed a hard link of the file.
        if _version(now) != version and not content_matches_or_false(
            slot.fd, slot.name, change.before
        ):
            return CHANGED_CONCURRENTLY
        if fd is not None and not _is_idle(fd, lease):
            return leases.reason_to_leave()
        return None


def _is_idle(fd: int, lease: bool | None) -> bool:
    """Return True unless a program is known to have the file open for writing."""
    return leases.is_unbroken(fd) if lease else lease is None


def _close(fd: int, lease: bool | None) -> None:
    if lease:
        leases.release(fd)
    os.close(fd)


def _version(status: os.stat_result) -> tuple[int, int, int]:
    """Return what changes with every write: a write during the rename shows only in the mtime."""
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size
