"""Read a single path into the store, without a scan."""

from __future__ import annotations

import os
import stat

from mulligan.core.tree import Entry, file_entry, link_entry
from mulligan.worktree.fs.safe_paths import OPEN_FILE, Directories
from mulligan.worktree.scan.reader import Sink


def entry_at(root: bytes, path: bytes, sink: Sink, *, limit: int | None = None) -> Entry | None:
    """Store the content of a file or link and return its entry.

    Returns `None` if the path is missing, a directory, special, or over `limit` bytes. Raises
    `OSError` if the file cannot be read.
    """
    directory, _slash, name = path.rpartition(b"/")
    with Directories(root) as directories:
        parent = directories.open_if_there(directory)
        if parent is None:
            return None
        try:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=parent)
            return link_entry(name, len(target), sink.put(target))
        if not stat.S_ISREG(status.st_mode):
            return None
        fd = os.open(name, OPEN_FILE, dir_fd=parent)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                return None
            if limit is not None and status.st_size > limit:
                return None
            id, size = sink.put_stream(lambda length: os.read(fd, length))
        finally:
            os.close(fd)
    return file_entry(name, status.st_mode & 0o7777, size, id)
