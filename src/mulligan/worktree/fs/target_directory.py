"""Open a directory outside the project to restore into, without following links."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mulligan.errors import UsageError
from mulligan.worktree.fs.safe_paths import OPEN_DIRECTORY, Directories, status_of

DESCRIPTORS = "/proc/self/fd"


@contextmanager
def target_directory(path: bytes, *, create: bool) -> Iterator[bytes | None]:
    """Open an absolute path; yield a path that keeps naming the opened directory.

    Yields `None` if it does not exist and `create` is false. Raises `UsageError` if a component is
    a link or a file.
    """
    fd = os.open(b"/", OPEN_DIRECTORY)
    try:
        for name in path.strip(b"/").split(b"/"):
            inner = _open(fd, name, path, create=create)
            os.close(fd)
            fd = -1
            if inner is None:
                break
            fd = inner
        if fd < 0:
            yield None
        elif Path(DESCRIPTORS).is_dir():
            # Another program could replace a component of `path` while files are written.
            yield os.fsencode(f"{DESCRIPTORS}/{fd}")
        else:
            yield path
    finally:
        if fd >= 0:
            os.close(fd)


def _open(parent: int, name: bytes, path: bytes, *, create: bool) -> int | None:
    if create:
        try:
            os.mkdir(name, dir_fd=parent)
        except FileExistsError:
            pass
        except OSError as problem:
            if problem.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
    try:
        return os.open(name, OPEN_DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        if create:
            raise
        return None
    except OSError as problem:
        if problem.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise UsageError(
            f"{os.fsdecode(path)} leads through {os.fsdecode(name)}, which is a link or a file; "
            "nothing was written. Name the directory by its own path."
        ) from None


def what_is_at(directories: Directories, path: bytes) -> str | None:
    """Return `file`, `link`, `directory`, `other`; `blocked` below a file or link; else `None`."""
    above, _slash, name = path.rpartition(b"/")
    try:
        status = status_of(directories.open(above), name)
    except FileNotFoundError:
        return None
    except OSError as problem:
        if problem.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        return "blocked"
    if status is None:
        return None
    kinds = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "directory"}
    return kinds.get(stat.S_IFMT(status.st_mode), "other")
