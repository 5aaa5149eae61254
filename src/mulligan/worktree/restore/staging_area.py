"""Write new contents to a staging directory, one on each file system.

Where the kernel supports O_TMPFILE, a file is created without a name in its final directory and
then linked into the staging directory: so it is allocated near its neighbours and inherits the
directory's attributes. After a crash the kernel deletes files that have no name.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mulligan.core.tree import LINK, Entry
from mulligan.worktree.fs.safe_paths import OPEN_DIRECTORY, OPEN_FILE, Directories
from mulligan.worktree.restore.staging_recovery import Read, remove, staging_name
from mulligan.worktree.restore.unnamed_files import OPEN_UNNAMED, UnnamedFile

OPEN_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Slot(NamedTuple):
    """The name of a staged file in the staging directory open as `fd`."""

    fd: int
    name: bytes


class StagingArea:
    """The staging directories of one operation, created on demand."""

    def __init__(self, directories: Directories, tag: str) -> None:
        self.directories: dict[bytes, int] = {}
        # Parents in which a staging directory may exist, open or not.
        self.places: set[bytes] = set()
        self._directories = directories
        self._tag = tag
        self._is_resumed = False
        self._can_be_unnamed = hasattr(os, "O_TMPFILE")

    def slot(self, path: bytes, name: bytes, device: int | None = None) -> Slot:
        """Return a slot on the file system of the path; `device` is that of its directory."""
        if device == self._directories.device:
            place = b""
        else:
            place = self._directories.device_root(path)
        if place not in self.directories:
            try:
                self._create(place)
            except OSError as problem:
                if problem.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
                # The top directory may be read-only while others are writable.
                place = self._directories.nearest(path)
                if place not in self.directories:
                    self._create(place)
        return Slot(self.directories[place], name)

    def write(
        self,
        slot: Slot,
        entry: Entry,
        read: Read,
        *,
        parent: int | None,
        file: UnnamedFile | None = None,
        sync: bool,
    ) -> None:
        """Write a content and its mode to a slot.

        `parent` is the final directory, if it exists; `file` an unnamed file created there.
        """
        if self._is_resumed:
            unlink_if_there(slot)
        if entry.kind == LINK:
            target = b"".join(read(entry.id))
            os.symlink(target, slot.name, dir_fd=slot.fd)
            return
        if file is not None and self._fill_and_link(slot, file.fd, entry, read, sync=sync):
            return
        if self._write_unnamed(slot, entry, read, parent, sync=sync):
            return
        with _closing(os.open(slot.name, OPEN_NEW, 0o600, dir_fd=slot.fd)) as fd:
            _fill(fd, entry, read, sync=sync)

    def _write_unnamed(
        self, slot: Slot, entry: Entry, read: Read, parent: int | None, *, sync: bool
    ) -> bool:
        """Write an unnamed file and link it; `False`, nothing changed, if unsupported."""
        if parent is None or not self._can_be_unnamed:
            return False
        try:
            fd = os.open(b".", OPEN_UNNAMED, 0o600, dir_fd=parent)
        except OSError as problem:
            # Only a lack of permission is about this directory alone.
            self._can_be_unnamed = problem.errno in (errno.EACCES, errno.EPERM)
            return False
        with _closing(fd):
            return self._fill_and_link(slot, fd, entry, read, sync=sync)

    def _fill_and_link(self, slot: Slot, fd: int, entry: Entry, read: Read, *, sync: bool) -> bool:
        _fill(fd, entry, read, sync=sync)
        try:
            os.link(f"/proc/self/fd/{fd}", slot.name, dst_dir_fd=slot.fd)
        except OSError:
            self._can_be_unnamed = False
            return False
        return True

    def remove(self, place: bytes) -> bool:
        """Remove an empty staging directory; `False` if it is not empty. The caller closes it."""
        self.directories.pop(place, None)
        is_gone = remove(self._tag, self._directories.open(place))
        self.places.discard(place)
        return is_gone

    def _create(self, place: bytes) -> None:
        parent = self._directories.open(place)
        self.places.add(place)
        try:
            os.mkdir(staging_name(self._tag), 0o700, dir_fd=parent)
        except FileExistsError:
            self._is_resumed = True
        except OSError:
            self.places.discard(place)
            raise
        self.directories[place] = os.open(staging_name(self._tag), OPEN_DIRECTORY, dir_fd=parent)


@contextmanager
def _closing(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)


def _fill(fd: int, entry: Entry, read: Read, *, sync: bool) -> None:
    for chunk in read(entry.id):
        view = memoryview(chunk)
        while view:
            view = view[os.write(fd, view) :]
    os.fchmod(fd, entry.mode)
    if sync:
        os.fsync(fd)


def unlink_if_there(slot: Slot) -> None:
    try:
        os.unlink(slot.name, dir_fd=slot.fd)
    except FileNotFoundError:
        pass


def sync_file(parent: int, name: bytes) -> None:
    """Sync a file and its mode; skip one that may not be opened."""
    try:
        fd = os.open(name, OPEN_FILE, dir_fd=parent)
    except OSError as problem:
        # ELOOP: a link is synced with its directory.
        if problem.errno in (errno.EACCES, errno.EPERM, errno.ELOOP):
            return
        raise
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
