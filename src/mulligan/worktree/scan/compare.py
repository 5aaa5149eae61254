"""Compare the files of a directory with the stat cache, and read those that changed.

A file with the cached ctime, inode and size costs one `lstat`. No single file makes a scan fail:
one that is unreadable, special, too large or vanishes is recorded with the reason.
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
    """The comparison of one scan; `collect` stores the results of the reads."""

    def __init__(
        self, classifier: Classifier, reader: FileReader, sink: Sink, limits: Limits
    ) -> None:
        self._classifier = classifier
        self._reader = reader
        self._sink = sink
        self._limits = limits

    def compare(self, fd: int, path: bytes, node: Node) -> bool:
        """Compare the directory's files with the cache; `True` if one became a directory."""
        became_directory = False
        lstat = os.stat
        for known, guard in ((node.files, False), (node.guards, True)):
            different: list[tuple[bytes, FileStat, os.stat_result | OSError]] = []
            files: Iterable[tuple[bytes, FileStat]] = known.items()
            if self._reader.has_workers:
                files = self._read_unseen(path, node, files)
            for name, seen in files:
                try:
                    status = lstat(name, dir_fd=fd, follow_symlinks=False)
                except OSError as problem:
                    different.append((name, seen, problem))
                    continue
                # Every change of a file sets its ctime, and no program can set it back. The size
                # shows a power loss that took bytes written at that time.
                if (
                    status.st_ctime_ns != seen[4]
                    or status.st_ino != seen[5]
                    or status.st_size != seen[2]
                ):
                    different.append((name, seen, status))
            for name, seen, status_or_error in different:
                if isinstance(status_or_error, FileNotFoundError):
                    self._classifier.remove(node, name)
                elif isinstance(status_or_error, OSError):
                    self._classifier.mark_unreadable(
                        node, name, f"cannot be accessed: {status_or_error.strerror}", guard
                    )
                else:
                    became_directory |= stat.S_ISDIR(status_or_error.st_mode)
                    self.changed(fd, path, node, name, seen, status_or_error, guard)
        return became_directory

    def _read_unseen(
        self, path: bytes, node: Node, files: Iterable[tuple[bytes, FileStat]]
    ) -> list[tuple[bytes, FileStat]]:
        """Queue the files known to be regular without an `lstat`; return the others."""
        others = []
        for name, seen in files:
            if seen is REGULAR_UNREAD:
                self._reader.read(ReadJob(path, name, node, UNKNOWN, None, False))
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
        """Read a file that differs from the cache, or record why it cannot be read."""
        kind = stat.S_IFMT(status.st_mode)
        limit = self._limits.guard_bytes if guard else self._limits.file_bytes
        try:
            if kind == stat.S_IFLNK:
                self._classifier.keep(node, name, self._link(fd, name, status), guard)
            elif kind == stat.S_IFDIR:
                return
            elif kind != stat.S_IFREG:
                self._classifier.mark_unreadable(
                    node, name, SPECIAL.get(kind, "is not an ordinary file"), guard
                )
            elif status.st_size > limit:
                self._classifier.mark_unreadable(
                    node, name, too_large(status.st_size, limit), guard
                )
            else:
                node.changed(name)
                self._reader.read(ReadJob(path, name, node, status.st_size, seen[6] or None, guard))
        except OSError as problem:
            vanished = problem.errno in (errno.ENOENT, errno.ELOOP)
            reason = f"cannot be read: {problem.strerror}"
            self._classifier.mark_unreadable(
                node, name, "vanished during the scan" if vanished else reason, guard
            )

    def _link(self, fd: int, name: bytes, status: os.stat_result) -> FileStat:
        cutoff = racy_cutoff(status.st_dev)
        target = os.readlink(name, dir_fd=fd)
        changed = -1 if is_racy(status.st_ctime_ns, cutoff) else status.st_ctime_ns
        id = self._sink.put(target)
        return (LINK, 0, len(target), status.st_mtime_ns, changed, status.st_ino, id)

    def collect(self) -> None:
        """Read all queued files and store the results in the cache."""
        for job, seen, problem in self._reader.finish():
            if seen is not None:
                self._classifier.keep(job.node, job.name, seen, job.guard)
            else:
                self._classifier.mark_unreadable(
                    job.node, job.name, problem or "cannot be read", job.guard
                )
