"""Where new contents wait until they may take their places: a folder on each file system.

A file is made in the folder that it will be in, without a name, where the system can do that, and
then named in the staging folder: so it lies on the disk where its neighbours lie, and has what it
inherits from its folder. One that a crash leaves without a name is gone by itself.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mulligan.core.tree import LINK, Entry
from mulligan.worktree.fs.safe_paths import OPEN_DIRECTORY, OPEN_FILE, Directories
from mulligan.worktree.restore.making import NAMELESS_FILE, UnnamedFile
from mulligan.worktree.restore.staging_recovery import Read, folder, remove

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Slot(NamedTuple):
    """A place for a staged file: its name in the folder that is open as `fd`."""

    fd: int
    name: bytes


class StagingArea:
    """The staging folders of one operation, made as they are needed."""

    def __init__(self, directories: Directories, tag: str) -> None:
        self.folders: dict[bytes, int] = {}
        # Where there may be one, be it open or not.
        self.places: set[bytes] = set()
        self._directories = directories
        self._tag = tag
        self._is_resumed = False
        self._can_be_nameless = hasattr(os, "O_TMPFILE")

    def slot(self, path: bytes, name: bytes, device: int | None = None) -> Slot:
        """A place from which a rename to the path stays on one file system.

        `device` is the file system of the folder of the path, if that is there.
        """
        if device == self._directories.device:
            place = b""
        else:
            place = self._directories.device_root(path)
        if place not in self.folders:
            try:
                self._make(place)
            except OSError as problem:
                if problem.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                    raise
                # The top may be closed to us while folders below are open.
                place = self._directories.nearest(path)
                if place not in self.folders:
                    self._make(place)
        return Slot(self.folders[place], name)

    def write(
        self,
        slot: Slot,
        entry: Entry,
        read: Read,
        *,
        near: int | None,
        made: UnnamedFile | None = None,
        sync: bool,
    ) -> None:
        """Puts a content into its slot, with its mode. `near` is the folder that it is to go to,
        if that is there already; `made` a file without a name that was made there."""
        if self._is_resumed:
            unlink_if_there(slot)
        if entry.kind == LINK:
            target = b"".join(read(entry.id))
            os.symlink(target, slot.name, dir_fd=slot.fd)
            return
        if made is not None and self._fill_and_name(
            slot, made.fd, entry, read, sync=sync, has_mode=made.has_mode
        ):
            return
        if self._write_nameless(slot, entry, read, near, sync=sync):
            return
        with _closing(os.open(slot.name, NEW_FILE, 0o600, dir_fd=slot.fd)) as fd:
            _fill(fd, entry, read, sync=sync)

    def _write_nameless(
        self, slot: Slot, entry: Entry, read: Read, near: int | None, *, sync: bool
    ) -> bool:
        """`False` if that cannot be here; then nothing has happened."""
        if near is None or not self._can_be_nameless:
            return False
        try:
            fd = os.open(b".", NAMELESS_FILE, 0o600, dir_fd=near)
        except OSError as problem:
            # A folder may be closed to us; otherwise the next will tell the same.
            self._can_be_nameless = problem.errno in (errno.EACCES, errno.EPERM)
            return False
        with _closing(fd):
            return self._fill_and_name(slot, fd, entry, read, sync=sync)

    def _fill_and_name(
        self,
        slot: Slot,
        fd: int,
        entry: Entry,
        read: Read,
        *,
        sync: bool,
        has_mode: bool = False,
    ) -> bool:
        _fill(fd, entry, read, sync=sync, has_mode=has_mode)
        try:
            os.link(f"/proc/self/fd/{fd}", slot.name, dst_dir_fd=slot.fd)
        except OSError:
            self._can_be_nameless = False
            return False
        return True

    def remove(self, place: bytes) -> bool:
        """Removes a folder that is empty again; `False` if it is not quite. Whoever holds it open
        closes it."""
        self.folders.pop(place, None)
        is_gone = remove(self._tag, self._directories.open(place))
        self.places.discard(place)
        return is_gone

    def _make(self, place: bytes) -> None:
        parent = self._directories.open(place)
        self.places.add(place)
        try:
            os.mkdir(folder(self._tag), 0o700, dir_fd=parent)
        except FileExistsError:
            self._is_resumed = True
        except OSError:
            self.places.discard(place)
            raise
        self.folders[place] = os.open(folder(self._tag), OPEN_DIRECTORY, dir_fd=parent)


@contextmanager
def _closing(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)


def _fill(fd: int, entry: Entry, read: Read, *, sync: bool, has_mode: bool = False) -> None:
    for piece in read(entry.id):
        view = memoryview(piece)
        while view:
            view = view[os.write(fd, view) :]
    if not has_mode:
        os.fchmod(fd, entry.mode)
    if sync:
        os.fsync(fd)


def unlink_if_there(slot: Slot) -> None:
    try:
        os.unlink(slot.name, dir_fd=slot.fd)
    except FileNotFoundError:
        pass


def sync_file(parent: int, name: bytes) -> None:
    """Makes a file and its mode durable; one that may not be read cannot be synced by itself."""
    try:
        fd = os.open(name, OPEN_FILE, dir_fd=parent)
    except OSError as problem:
        # A link is what ELOOP speaks of: it is durable with its folder.
        if problem.errno in (errno.EACCES, errno.EPERM, errno.ELOOP):
            return
        raise
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
