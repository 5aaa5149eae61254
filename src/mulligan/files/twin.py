"""Half of a look, done by a child process from the other end.

Looking at an unchanged tree is one call to the system for each file. Where there are many, a child
goes through the directories from the last to the first and says which files are as it remembers
them, while the look itself goes from the first to the last; where the two meet, both are done. A
byte for each directory and each file, in memory that both see, and the times that a directory was
found to have, is all that is said.

The child stays, for to be forked costs more than to look at some thousand files. It remembers what
was known when it began. Of a file that has changed since it learns when it is asked the next time,
for what it compares with lies in memory that both see, too; of a new name it never does. What it
does not know is for whoever asks to look at, and once that is much, another child takes its place.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, compress
from operator import is_not
from struct import Struct
from typing import NamedTuple

from mulligan.files.forking import can_fork, child, has_ended, keep_apart
from mulligan.files.index import Node, Seen, signature
from mulligan.files.prints import EACH, Taking, remembered, replace, same
from mulligan.files.reach import OPEN_DIRECTORY, opened

MANY = 20_000
"""Files from which on a child saves more time in one look than it takes to have one."""

ENOUGH = 4_000
"""Files from which on it does so for somebody who has looked before, and will again."""

OUTDATED = 10
"""One in so many files that are not as the child remembers: then it is time for another."""

WAKE_SECONDS = 10

TAKEN, DONE = 1, 2
"""Of a directory: whoever asked looks at it; the child has."""
SAME = 1
"""Of a file: it is as remembered."""
TIMES = Struct("qq")
"""Of a directory: when it was changed, as the first two parts of its signature tell."""


class Remembered(NamedTuple):
    """A directory as it was known when the child was forked."""

    path: bytes
    signature: tuple[int, int, int, int] | None
    files: dict[bytes, Seen]
    guards: dict[bytes, Seen]


class Twin:
    """The child of one workspace: there when it is worth it, until it is closed."""

    def __init__(self) -> None:
        self._child: _Child | None = None
        self._has_looked = False

    @contextmanager
    def looking(self, path: bytes, fd: int, root: Node) -> Iterator[Said | None]:
        """Has a child look at what is known below a folder, if that is worth it.

        The folder is given by its path, and open as `fd`.
        """
        said = self._begin(path, fd, root)
        try:
            yield said
        finally:
            self._has_looked = True
            if said is not None:
                said.end()
                if said.is_outdated:
                    self.close()

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _begin(self, path: bytes, fd: int, root: Node) -> Said | None:
        if self._child is not None and not self._child.is_of(fd):
            self.close()
        if self._child is None:
            self._child = self._forked(path, fd, root)
            return self._child.said if self._child is not None else None
        try:
            return self._child.look_again()
        except OSError:
            # It is no more.
            self.close()
            return None

    def _forked(self, path: bytes, fd: int, root: Node) -> _Child | None:
        files = sum([len(node.files) + len(node.guards) for _path, node in root.walk()])
        if files < (ENOUGH if self._has_looked else MANY) or not can_fork():
            return None
        with suppress(OSError), ExitStack() as ends:
            begun = _Child(path, fd, root, ends)
            if begun.pid is not None:
                begun.ends = ends.pop_all()
                return begun
        return None


class Said:
    """What the child says in one look: of each directory whether it is done, and its times, and of
    each of its files, in order, whether it is as remembered. What is not said is not known."""

    def __init__(self, root: Node) -> None:
        self.known = [
            Remembered(
                path, None if node.partial else node.signature, dict(node.files), dict(node.guards)
            )
            for path, node in root.walk()
        ]
        self.starts = [len(self.known) + 1]
        for each in self.known:
            self.starts.append(self.starts[-1] + len(each.files) + len(each.guards))
        self._places = {each.path: place for place, each in enumerate(self.known)}
        self._orders: dict[int, dict[bytes, int]] = {}
        self._missed = 0
        self._news: dict[int, tuple[Node, set[bytes]]] = {}
        self._taking: Taking | None = None
        self.told = mmap.mmap(-1, self.starts[-1])
        self._times = mmap.mmap(-1, TIMES.size * self.starts[0])
        self._prints = mmap.mmap(-1, 1 + EACH * (self.starts[-1] - self.starts[0]))

    def begin(self) -> None:
        """Before the child is told to look once more."""
        self._missed = 0
        self.told[:] = bytes(len(self.told))
        if self.has_prints and self._taking is None:
            self._taking = Taking()
        if self._taking is not None:
            self._taking.begin()
        self._learn()

    @property
    def has_prints(self) -> bool:
        """Whether files can be compared in one go; only the child can tell, and says so."""
        return self._prints[0] == SAME

    @has_prints.setter
    def has_prints(self, value: bool) -> None:
        self._prints[0] = value

    def _learn(self) -> None:
        """Has the child know what was found of files that it knew otherwise."""
        news, self._news = self._news, {}
        if not self.has_prints:
            return
        for place, (node, names) in news.items():
            files = self.known[place].files
            start, end = self._where(place)
            order = self._orders.get(place)
            if order is None:
                order = {name: number for number, name in enumerate(files)}
                self._orders[place] = order
            for name in names:
                seen = node.files.get(name)
                if seen is not None and files[name] is not seen:
                    files[name] = seen
                    replace(self._prints, start, (end - start) // EACH, order[name], seen)

    def set_print(self, place: int, content: bytes) -> None:
        start, end = self._where(place)
        self._prints[start:end] = content

    def compared(self, place: int, fd: int, taking: Taking) -> bytes:
        """Of each file of an open directory whether it is as remembered."""
        _path, _signature, files, guards = self.known[place]
        start, end = self._where(place)
        found = taking(fd, chain(files, guards), (end - start) // EACH)
        known = self._prints[start:end]
        return bytes([SAME]) * (len(known) // EACH) if found == known else bytes(same(found, known))

    def tell(self, place: int, times: tuple[int, int], marks: bytes) -> None:
        """For the child: what a directory was found to be."""
        TIMES.pack_into(self._times, TIMES.size * place, *times)
        self.told[self.starts[place] : self.starts[place + 1]] = marks
        # Last, for now it counts.
        self.told[place] = DONE

    def _where(self, place: int) -> tuple[int, int]:
        first, start, end = self.starts[0], self.starts[place], self.starts[place + 1]
        return 1 + EACH * (start - first), 1 + EACH * (end - first)

    def end(self) -> None:
        """Whatever is not said by now is of no use."""
        self.told[len(self.known)] = TAKEN

    @property
    def is_ended(self) -> bool:
        return self.told[len(self.known)] == TAKEN

    @property
    def is_outdated(self) -> bool:
        return self._missed * OUTDATED > len(self.told)

    def is_unchanged(self, path: bytes, node: Node) -> bool:
        """Whether a directory has the names it had, and each of its files is as it was."""
        place = self._places.get(path)
        if place is None or self.told[place] != DONE:
            return False
        _path, known, files, guards = self.known[place]
        times = TIMES.unpack_from(self._times, TIMES.size * place)
        if known is None or node.signature != (*times, *known[2:]):
            return False
        marks = self._marks(place)
        if self._is_same(place, node, marks):
            return True
        is_known = node.files.keys() <= files.keys() and node.guards.keys() <= guards.keys()
        return is_known and not self._differing(place, node, marks)

    def _marks(self, place: int) -> bytes:
        return self.told[self.starts[place] : self.starts[place + 1]]

    def _is_same(self, place: int, node: Node, marks: bytes) -> bool:
        """Whether all that the child remembers is the same, and all that is known here."""
        _path, _signature, files, guards = self.known[place]
        is_same = marks.count(SAME) == len(marks)
        return is_same and node.files == files and node.guards == guards

    def _differing(self, place: int, node: Node, marks: bytes) -> Collection[bytes]:
        """The files that may be other than they are known to be in a node."""
        _path, _signature, files, guards = self.known[place]
        # What the child saw unchanged may have changed, and back, in what is known here. What is
        # equal and not the very same is looked at once more: to compare would take longer.
        differing = {*_not_the_same(node.files, files), *_not_the_same(node.guards, guards)}
        if marks.count(SAME) < len(marks):
            names = chain(files, guards)
            unlike = [name for name, mark in zip(names, marks, strict=True) if mark != SAME]
            differing.update([each for each in unlike if each in node.files or each in node.guards])
        if differing:
            # What they are will be known by the end of this look.
            self._news[place] = (node, differing & files.keys())
        return differing

    def unsure(
        self, path: bytes, node: Node, fd: int, status: os.stat_result
    ) -> Collection[bytes] | None:
        """The files of an open directory that may be other than remembered; `None`: any of them.

        If the child has not been there, it goes no further than to here, and all that can be done
        in one go is done. To be asked before anything is changed in the node.
        """
        place = self._places.get(path)
        if place is None:
            self._missed += len(node.files) + 1
            return None
        is_done = self.told[place] == DONE
        if not is_done:
            self.told[place] = TAKEN
        known = self.known[place].signature
        if known is None or known[2:] != signature(status)[2:]:
            return None
        if is_done:
            marks = self._marks(place)
        elif self._taking is not None:
            marks = self.compared(place, fd, self._taking)
        else:
            return None
        if self._is_same(place, node, marks):
            return ()
        unsure = self._differing(place, node, marks)
        self._missed += len(unsure)
        return unsure


def _not_the_same(now: Mapping[bytes, Seen], then: Mapping[bytes, Seen]) -> Iterator[bytes]:
    """The names under which not the very same is known as then."""
    return compress(now, map(is_not, now.values(), map(then.get, now)))


class _Child:
    """A child that was forked, and how to tell it to look once more."""

    def __init__(self, path: bytes, fd: int, root: Node, ends: ExitStack) -> None:
        self.ends = ends
        self.said = Said(root)
        self._owner = os.getpid()
        self._path = path
        self._root = signature(os.fstat(fd))[2:]
        # Who is called by a pipe is taken for somebody whom the caller waits for, and given the
        # caller's processor; it is to have another. Only the end of the caller is told by one.
        self._bell = os.eventfd(0, os.EFD_CLOEXEC)
        ends.callback(os.close, self._bell)
        end, held = os.pipe()
        ends.enter_context(os.fdopen(held, "wb", 0))
        with os.fdopen(end, "rb", 0):
            answer, reply = os.pipe()
            self._answer = ends.enter_context(os.fdopen(answer, "rb", 0))
            with os.fdopen(reply, "wb", 0):
                work = child(lambda: self._work(end, reply), {end, reply, self._bell})
                self.pid = ends.enter_context(work)
        os.set_blocking(answer, False)

    def is_of(self, fd: int) -> bool:
        """Whether it is this process's own, and looks at this very folder."""
        return self._owner == os.getpid() and self.is_at(fd)

    def is_at(self, fd: int) -> bool:
        return self._root == signature(os.fstat(fd))[2:]

    def look_again(self) -> Said | None:
        """What it says from now on; `None` if it is still at work. Raises `OSError` if it died."""
        answer = self._answer.read(1)
        if answer is None:
            return None
        assert self.pid is not None
        if not answer or has_ended(self.pid):
            raise ChildProcessError
        self.said.begin()
        keep_apart(self.pid)
        os.eventfd_write(self._bell, 1)
        return self.said

    def close(self) -> None:
        self.ends.close()

    def _work(self, end: int, reply: int) -> None:
        import select

        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        poll.register(end, select.POLLIN)
        looking = _Backwards(self.said)
        while True:
            self._look(looking)
            os.write(reply, b"!")
            # Now nobody waits.
            looking.prepare()
            while not (told := poll.poll(WAKE_SECONDS * 1000)):
                # Others may hold the other end, too: then it does not tell that the owner is gone.
                if os.getppid() != self._owner:
                    return
            if any(fd == end for fd, _event in told):
                return
            os.eventfd_read(self._bell)

    def _look(self, looking: _Backwards) -> None:
        # Open only for as long as it takes: who waits would keep a disk from being taken out.
        with suppress(OSError), opened(self._path) as fd:
            if self.is_at(fd):
                looking.look(fd)


class _Backwards:
    """What the child does."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._taking: Taking | None = None

    def prepare(self) -> None:
        """Makes what is of use from the next time on."""
        said = self._said
        if said.has_prints:
            return
        with suppress(OSError):
            taking = Taking()
            for place, (_path, _signature, files, guards) in enumerate(said.known):
                said.set_print(place, remembered([*files.values(), *guards.values()]))
            self._taking = taking
            said.has_prints = True

    def look(self, fd: int) -> None:
        said, told = self._said, self._said.told
        for place in range(len(said.known) - 1, -1, -1):
            if told[place] == TAKEN or said.is_ended:
                return
            with suppress(OSError):
                self._look_at(fd, place)

    def _look_at(self, root: int, place: int) -> None:
        """Says of each file whether it is as remembered, if this is the directory that is."""
        said = self._said
        path, known, files, guards = said.known[place]
        if known is None:
            return
        fd = os.open(path or b".", OPEN_DIRECTORY, dir_fd=root)
        try:
            found = signature(os.fstat(fd))
            if found[2:] != known[2:]:
                return
            if self._taking is not None:
                marks = said.compared(place, fd, self._taking)
            else:
                marks = bytes([*_are_same(fd, files), *_are_same(fd, guards)])
        finally:
            os.close(fd)
        said.tell(place, found[:2], marks)


def _are_same(fd: int, files: Mapping[bytes, Seen]) -> Iterator[bool]:
    lstat = os.stat
    for name, seen in files.items():
        try:
            status = lstat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            yield False
        else:
            yield (
                status.st_ctime_ns == seen[4]
                and status.st_ino == seen[5]
                and status.st_size == seen[2]
            )
