"""Half of a look, done by a child process from the other end.

Looking at an unchanged tree is one call to the system for each file. Where there are many, a child
goes through the directories from the last to the first and says which files are as they are
remembered, while the look itself goes from the first to the last; where the two meet, both are
done. A byte for each directory and each file, in memory that both see, is all that is said.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import chain

from mulligan.files.forking import can_fork, child
from mulligan.files.index import Node, Seen, signature
from mulligan.files.reach import OPEN_DIRECTORY

MANY = 20_000
"""Files from which on a child saves more time than it takes to have one."""

TAKEN, DONE = 1, 2
SAME = 1


class Twin:
    """What the child has said so far: of each directory whether it is done, and of each of its
    files, in order, whether it is as remembered. What is not said is not known."""

    def __init__(self, root: Node) -> None:
        self.known = list(root.walk())
        self.starts = [len(self.known)]
        for _path, node in self.known:
            self.starts.append(self.starts[-1] + len(node.files) + len(node.guards))
        self._places = {path: place for place, (path, _node) in enumerate(self.known)}
        self.told = mmap.mmap(-1, self.starts[-1])

    def unsure(self, path: bytes, node: Node) -> Collection[bytes] | None:
        """The files of a directory that may be other than remembered; `None`: any of them.

        If the child has not been there, it is for the caller to look, and the child goes no
        further than to here. To be asked before anything is changed in the node.
        """
        place = self._places.get(path)
        if place is None:
            return None
        if self.told[place] != DONE:
            self.told[place] = TAKEN
            return None
        marks = self.told[self.starts[place] : self.starts[place + 1]]
        if marks.count(SAME) == len(marks):
            return ()
        names = chain(node.files, node.guards)
        return {name for name, mark in zip(names, marks, strict=True) if mark != SAME}


@contextmanager
def with_twin(fd: int, root: Node) -> Iterator[Twin | None]:
    """Has a child look at what is known below the folder `fd`, if that is worth it."""
    files = sum([len(node.files) + len(node.guards) for _path, node in root.walk()])
    if files < MANY or not can_fork():
        yield None
        return
    twin = None
    with suppress(OSError):
        twin = Twin(root)
    if twin is None:
        yield None
        return
    parent = os.getpid()
    with closing(twin.told), child(lambda: _look_backwards(fd, twin, parent), {fd}) as pid:
        yield twin if pid is not None else None


def _look_backwards(fd: int, twin: Twin, parent: int) -> None:
    told = twin.told
    for place in range(len(twin.known) - 1, -1, -1):
        if told[place] == TAKEN or os.getppid() != parent:
            return
        marks = _marks(fd, *twin.known[place])
        if marks is not None:
            told[twin.starts[place] : twin.starts[place + 1]] = marks
            told[place] = DONE


def _marks(root: int, path: bytes, node: Node) -> bytes | None:
    """Of each file whether it is as remembered, if this is the directory that is."""
    if node.signature is None or node.partial:
        return None
    try:
        fd = os.open(path or b".", OPEN_DIRECTORY, dir_fd=root)
        try:
            if signature(os.fstat(fd))[2:] != node.signature[2:]:
                return None
            return bytes([*_are_same(fd, node.files), *_are_same(fd, node.guards)])
        finally:
            os.close(fd)
    except OSError:
        return None


def _are_same(fd: int, files: Mapping[bytes, Seen]) -> Iterator[bool]:
    lstat = os.stat
    for name, seen in files.items():
        try:
            status = lstat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            yield False
        else:
            yield status.st_ctime_ns == seen[4] and status.st_ino == seen[5]
