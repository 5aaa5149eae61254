"""The files of a directory compared with what is remembered of them, and those that changed read.

One whose time of change and inode are as remembered costs one `lstat`. Nothing here fails because
of one file: what cannot be read, is special, too large or vanishes is remembered with the reason.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable

from mulligan.core.tree import LINK
from mulligan.worktree.scan.classify import REGULAR_UNREAD, Classifier, Limits
from mulligan.worktree.scan.racy import is_racy, racy_cutoff
from mulligan.worktree.scan.reader import UNKNOWN, FileReader, ReadJob, Sink, too_large
from mulligan.worktree.scan.stat_cache import FileStat, Node

SPECIAL = {
    stat.S_IFSOCK: "is a socket",
    stat.S_IFIFO: "is a named pipe",
    stat.S_IFBLK: "is a block device",
    stat.S_IFCHR: "is a character device",
}


class FileComparison:
    """Of one look. What was read is known once it is settled."""

    def __init__(self, names: Classifier, contents: FileReader, sink: Sink, limits: Limits) -> None:
        self._names = names
        self._contents = contents
        self._sink = sink
        self._limits = limits

    def compare(self, fd: int, path: bytes, node: Node) -> bool:
        """Compare the directory's files with the cache; `True` if one became a directory."""
        again = False
        lstat = os.stat
        for known, guard in ((node.files, False), (node.guards, True)):
            different: list[tuple[bytes, FileStat, os.stat_result | OSError]] = []
            files: Iterable[tuple[bytes, FileStat]] = known.items()
            if self._contents.is_prepared:
                files = self._read_at_once(path, node, files)
            for name, seen in files:
                try:
                    status = lstat(name, dir_fd=fd, follow_symlinks=False)
                except OSError as problem:
                    different.append((name, seen, problem))
                    continue
                # Whatever changes a file changes this time, and nobody can set it back. But a power
                # loss can take bytes that were written at that time, and then the size tells.
                if (
                    status.st_ctime_ns != seen[4]
                    or status.st_ino != seen[5]
                    or status.st_size != seen[2]
                ):
                    different.append((name, seen, status))
            for name, seen, found in different:
                if isinstance(found, FileNotFoundError):
                    self._names.remove(node, name)
                elif isinstance(found, OSError):
                    self._names.mark_unreadable(
                        node, name, f"cannot be looked at: {found.strerror}", guard
                    )
                else:
                    again |= stat.S_ISDIR(found.st_mode)
                    self.changed(fd, path, node, name, seen, found, guard)
        return again

    def _read_at_once(
        self, path: bytes, node: Node, files: Iterable[tuple[bytes, FileStat]]
    ) -> list[tuple[bytes, FileStat]]:
        """Has files read of which the folder says what they are; gives the others."""
        others = []
        for name, seen in files:
            if seen is REGULAR_UNREAD:
                self._contents.read(ReadJob(path, name, node, UNKNOWN, None, False))
            else:
                others.append((name, seen))
        return others

    def changed(
        self,
        fd: int,
        path: bytes,
        node: Node,
        name: bytes,
        seen: FileStat,
        status: os.stat_result,
        guard: bool,
    ) -> None:
        """A file that is not as the cache has it: reads it, or says why that cannot be."""
        kind = stat.S_IFMT(status.st_mode)
        limit = self._limits.guard_bytes if guard else self._limits.file_bytes
        try:
            if kind == stat.S_IFLNK:
                self._names.keep(node, name, self._link(fd, name, status), guard)
            elif kind == stat.S_IFDIR:
                return
            elif kind != stat.S_IFREG:
                self._names.mark_unreadable(
                    node, name, SPECIAL.get(kind, "is no ordinary file"), guard
                )
            elif status.st_size > limit:
                self._names.mark_unreadable(node, name, too_large(status.st_size, limit), guard)
            else:
                node.changed(name)
                self._contents.read(
                    ReadJob(path, name, node, status.st_size, seen[6] or None, guard)
                )
        except OSError as problem:
            vanished = problem.errno in (errno.ENOENT, errno.ELOOP)
            reason = f"cannot be read: {problem.strerror}"
            self._names.mark_unreadable(
                node, name, "vanished while it was looked at" if vanished else reason, guard
            )

    def _link(self, fd: int, name: bytes, status: os.stat_result) -> FileStat:
        before = racy_cutoff(status.st_dev)
        target = os.readlink(name, dir_fd=fd)
        changed = -1 if is_racy(status.st_ctime_ns, before) else status.st_ctime_ns
        id = self._sink.put(target)
        return (LINK, 0, len(target), status.st_mtime_ns, changed, status.st_ino, id)

    def collect(self) -> None:
        """Takes in the contents that were read."""
        for job, seen, problem in self._contents.finish():
            if seen is not None:
                self._names.keep(job.node, job.name, seen, job.guard)
            else:
                self._names.mark_unreadable(
                    job.node, job.name, problem or "cannot be read", job.guard
                )
