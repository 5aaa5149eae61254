"""Open files from the project root, one component at a time, without following links."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from types import TracebackType

from mulligan.core.tree import DIRECTORY, LINK, Entry
from mulligan.worktree.fs.openat2 import is_loaded, open_beneath

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Errors about the process or the system, not about the file.
RESOURCE_ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
READ_BYTES = 1 << 20
MIN_OPENS_FOR_OPENAT2 = 16  # fewer opens cost less than loading ctypes
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Directories:
    """Open directories below a root; only the last one stays open.

    A directory is opened again for each visit, so that one replaced meanwhile is noticed.
    """

    def __init__(self, root: bytes) -> None:
        self._root = os.open(root, OPEN_DIRECTORY & ~os.O_NOFOLLOW)
        self.device = os.fstat(self._root).st_dev
        self._last: tuple[bytes, int] | None = None
        self._opens = 0

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
        """Return a descriptor that stays open until the next call. Raises `OSError`."""
        if not path:
            return self._root
        if self._last is not None and self._last[0] == path:
            return self._last[1]
        self.forget()
        self._opens += 1
        fd = None
        if b"/" in path and (self._opens > MIN_OPENS_FOR_OPENAT2 or is_loaded()):
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
        """Open a directory; `None` if that fails for a reason of its own."""
        try:
            return self.open(path)
        except OSError as problem:
            if problem.errno in RESOURCE_ERRORS:
                raise
            return None

    def forget(self) -> None:
        """Close the directory that was opened last."""
        if self._last is not None:
            os.close(self._last[1])
            self._last = None

    def lstat_unchecked(self, path: bytes) -> os.stat_result | None:
        """Return the stat of a path. May follow symlinks in parents; trust only None."""
        try:
            return os.stat(path or b".", dir_fd=self._root, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def nearest(self, path: bytes) -> bytes:
        """Return the nearest existing directory above a path."""
        while path:
            path = path.rpartition(b"/")[0]
            if self.open_if_there(path) is not None:
                return path
        return b""

    def device_root(self, path: bytes) -> bytes:
        """Return the topmost directory above a path on the same file system as the path."""
        directory = self.nearest(path)
        device = os.fstat(self.open(directory)).st_dev
        if device == self.device:
            return b""
        while directory:
            above = directory.rpartition(b"/")[0]
            if os.fstat(self.open(above)).st_dev != device:
                return directory
            directory = above
        return b""


@contextmanager
def open_root(root: bytes) -> Iterator[int]:
    """Open the project root, the only path that may be a link."""
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
    """Return whether a name exists; False if the kernel does not say."""
    try:
        return exists(parent, name)
    except OSError:
        return False


def status_of(parent: int, name: bytes) -> os.stat_result | None:
    """Return the stat of a name; `None` if it does not exist."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def is_file(disk: Directories, path: bytes) -> bool:
    """Return whether a file or link is at this path, with no link among its parents."""
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
    """Return a regular file's content, or about its first `limit` bytes; else `None`."""
    try:
        fd = os.open(name, OPEN_FILE, dir_fd=parent)
    except OSError as problem:
        if problem.errno in RESOURCE_ERRORS:
            raise
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        chunks, size = [], 0
        while size < limit and (chunk := os.read(fd, 1 << 16)):
            chunks.append(chunk)
            size += len(chunk)
        return b"".join(chunks)
    except OSError:
        return None
    finally:
        os.close(fd)


def count_files(parent: int, name: bytes, depth: int) -> int:
    """Count the files below a directory, skipping what cannot be read."""
    count = 0
    try:
        fd = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    except OSError:
        return 0
    try:
        subdirectories = []
        with os.scandir(fd) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    subdirectories.append(os.fsencode(entry.name))
                else:
                    count += 1
        for subdirectory in subdirectories if depth > 0 else ():
            count += count_files(fd, subdirectory, depth - 1)
    except OSError:
        return count
    finally:
        os.close(fd)
    return count


def content_matches(
    parent: int, name: bytes, entry: Entry, status: os.stat_result | None = None
) -> bool:
    """Read the file and return whether it has this content; the mode is not compared.

    `status` is the file's stat if the caller has it.
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
    """Call `content_matches`; False if the file cannot be read."""
    try:
        return content_matches(parent, name, entry)
    except OSError as problem:
        if problem.errno in RESOURCE_ERRORS:
            raise
        return False


def could_match(status: os.stat_result, entry: Entry) -> bool:
    """Return whether kind and size allow this content."""
    if entry.kind == DIRECTORY:
        return stat.S_ISDIR(status.st_mode)
    if entry.kind == LINK:
        return stat.S_ISLNK(status.st_mode)
    return stat.S_ISREG(status.st_mode) and status.st_size == entry.size


def digest_of(parent: int, name: bytes, size: int) -> bytes:
    """Return the SHA-256 of a file whose expected length is `size`."""
    fd = os.open(name, OPEN_FILE, dir_fd=parent)
    try:
        return digest(fd, size)
    finally:
        os.close(fd)


def digest(fd: int, size: int) -> bytes:
    """Return the SHA-256 from the current offset on; `size` is the expected length."""
    # One byte more than expected: a short read shows that a small file ends there.
    first = os.read(fd, min(size + 1, READ_BYTES))
    if len(first) == size < READ_BYTES:
        return sha256(first).digest()
    hasher = sha256(first)
    while chunk := os.read(fd, READ_BYTES):
        hasher.update(chunk)
    return hasher.digest()
