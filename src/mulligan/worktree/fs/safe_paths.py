"""Reaching files safely: from the root, one folder at a time, never through a symbolic link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from types import TracebackType

from mulligan.core.tree import DIRECTORY, LINK, Entry
from mulligan.worktree.fs.openat2 import is_at_hand, open_beneath

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# What says nothing about a file: this process, or the whole system, has too much open.
RESOURCE_ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
READ_BYTES = 1 << 20
MAX_OPEN_DIRECTORIES = (
    16  # so many folders are reached sooner than the way to call the system otherwise is made
)
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Directories:
    """Opens folders below a root. Keeps only the last one open: one asked for again later is
    reached anew, so that a folder that was swapped for something else meanwhile is noticed."""

    def __init__(self, root: bytes) -> None:
        self._root = os.open(root, OPEN_DIRECTORY & ~os.O_NOFOLLOW)
        self.device = os.fstat(self._root).st_dev
        self._last: tuple[bytes, int] | None = None
        self._count = 0

    def __enter__(self) -> Directories:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.forget()
        os.close(self._root)

    def open(self, path: bytes) -> int:
        """A descriptor that stays open until another folder is asked for. Raises `OSError`."""
        if not path:
            return self._root
        if self._last is not None and self._last[0] == path:
            return self._last[1]
        self.forget()
        self._count += 1
        fd = None
        if b"/" in path and (self._count > MAX_OPEN_DIRECTORIES or is_at_hand()):
            fd = open_beneath(self._root, path, OPEN_DIRECTORY)
        if fd is None:
            fd = self._walk(path)
        self._last = (path, fd)
        return fd

    def _walk(self, path: bytes) -> int:
        fd = self._root
        for name in path.split(b"/"):
            try:
                inner = os.open(name, OPEN_DIRECTORY, dir_fd=fd)
            finally:
                if fd != self._root:
                    os.close(fd)
            fd = inner
        return fd

    def open_if_there(self, path: bytes) -> int | None:
        try:
            return self.open(path)
        except OSError as problem:
            if problem.errno in RESOURCE_ERRORS:
                raise
            return None

    def forget(self) -> None:
        if self._last is not None:
            os.close(self._last[1])
            self._last = None

    def lstat_unchecked(self, path: bytes) -> os.stat_result | None:
        """What seems to be at a path; `None` for nothing. Raises `OSError`.

        It may be behind a link: who finds nothing can rely on that, who finds something must know
        it again, or reach it.
        """
        try:
            return os.stat(path or b".", dir_fd=self._root, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def nearest(self, path: bytes) -> bytes:
        """The nearest folder above a path that is there."""
        while path:
            path = path.rpartition(b"/")[0]
            if self.open_if_there(path) is not None:
                return path
        return b""

    def device_root(self, path: bytes) -> bytes:
        """The topmost folder above a path from which a rename to it stays on one file system."""
        place = self.nearest(path)
        fd = self.open(place)
        device = os.fstat(fd).st_dev
        if device == self.device:
            return b""
        while place:
            above = place.rpartition(b"/")[0]
            if os.fstat(self.open(above)).st_dev != device:
                return place
            place = above
        return b""


@contextmanager
def open_root(root: bytes) -> Iterator[int]:
    """The project's root, open for a while; it alone may be a link."""
    fd = os.open(root, OPEN_DIRECTORY & ~os.O_NOFOLLOW)
    try:
        yield fd
    finally:
        os.close(fd)


def exists(parent: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def exists_unchecked(parent: int, name: bytes) -> bool:
    """Whether a name is there, as far as we may know."""
    try:
        return exists(parent, name)
    except OSError:
        return False


def status_of(parent: int, name: bytes) -> os.stat_result | None:
    """What is there under a name; `None` for nothing."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def is_file(disk: Directories, path: bytes) -> bool:
    """Whether a file or link is on the disk at this path itself, not behind some link."""
    with suppress(OSError):
        if disk.lstat_unchecked(path) is None:
            return False
    directory, _slash, name = path.rpartition(b"/")
    parent = disk.open_if_there(directory)
    if parent is None:
        return False
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return False
    return not stat.S_ISDIR(status.st_mode)


def read_small(parent: int, name: bytes, limit: int = 1 << 26) -> bytes | None:
    """The content of an ordinary file, or of its beginning; `None` for anything else."""
    try:
        fd = os.open(name, OPEN_FILE, dir_fd=parent)
    except OSError as problem:
        if problem.errno in RESOURCE_ERRORS:
            raise
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        pieces, size = [], 0
        while size < limit and (piece := os.read(fd, 1 << 16)):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)
    except OSError:
        return None
    finally:
        os.close(fd)


def count_files(parent: int, name: bytes, depth: int) -> int:
    """How many files a folder holds, as far as they can be counted."""
    count = 0
    try:
        fd = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    except OSError:
        return 0
    try:
        below = []
        with os.scandir(fd) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    below.append(os.fsencode(entry.name))
                else:
                    count += 1
        for each in below if depth > 0 else ():
            count += count_files(fd, each, depth - 1)
    except OSError:
        return count
    finally:
        os.close(fd)
    return count


def content_matches(
    parent: int, name: bytes, entry: Entry, status: os.stat_result | None = None
) -> bool:
    """Whether the disk holds this content under this name; read from the disk, not believed.

    The mode does not count: losing a mode loses no bytes. `status` is what the name has just been
    seen to be, if somebody has looked.
    """
    try:
        status = status or os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not could_match(status, entry):
            return False
        if entry.kind == DIRECTORY:
            return True
        if entry.kind == LINK:
            return sha256(os.readlink(name, dir_fd=parent)).digest() == entry.id
        return digest_of(parent, name, entry.size) == entry.id
    except OSError as problem:
        if problem.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
            return False
        raise


def content_matches_or_false(parent: int, name: bytes, entry: Entry) -> bool:
    """`looks_like`, and what cannot be read is not what it should be, as far as we may say."""
    try:
        return content_matches(parent, name, entry)
    except OSError as problem:
        if problem.errno in RESOURCE_ERRORS:
            raise
        return False


def could_match(status: os.stat_result, entry: Entry) -> bool:
    """Whether what is there can be this content at all, to go by its kind and length."""
    if entry.kind == DIRECTORY:
        return stat.S_ISDIR(status.st_mode)
    if entry.kind == LINK:
        return stat.S_ISLNK(status.st_mode)
    return stat.S_ISREG(status.st_mode) and status.st_size == entry.size


def digest_of(parent: int, name: bytes, size: int) -> bytes:
    """The SHA-256 of a file's bytes; `size` is how many there should be."""
    fd = os.open(name, OPEN_FILE, dir_fd=parent)
    try:
        return digest(fd, size)
    finally:
        os.close(fd)


def digest(fd: int, size: int) -> bytes:
    """The SHA-256 of what is left to read; `size` is how much that should be."""
    # Of a small file everything at once, and room for one byte more: none came, so it ended.
    begin = os.read(fd, min(size + 1, READ_BYTES))
    if len(begin) == size < READ_BYTES:
        return sha256(begin).digest()
    whole = sha256(begin)
    while piece := os.read(fd, READ_BYTES):
        whole.update(piece)
    return whole.digest()
