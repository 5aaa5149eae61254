"""What tells whether files are as they were, for all of a folder in one go.

To look at a file and be given all that there is to know about it takes Python nearly as long as it
takes the system to find it. Where the system can be told to write it down somewhere instead, only
the bytes that matter are compared, those of all files at once: the prints of some files are their
inodes, one after another, then the seconds of their times of change, then the nanoseconds.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain, compress, islice, repeat
from mmap import mmap
from operator import and_, eq
from struct import Struct
from threading import active_count

from mulligan.files.index import Seen

EACH = 8 + 8 + 4  # bytes of a file
NO_FOLLOW, CHANGED_AND_INODE = 0x100, 0x80 | 0x100
SIZE = 256  # of the kernel's `struct statx`, in which these lie on every machine at
INODE, SECONDS, NANOSECONDS = 32 // 8, 96 // 8, 104 // 4
SECOND = 1_000_000_000
UNSIGNED = (1 << 64) - 1
UNSIGNED_QUAD, QUAD, INT = Struct("Q"), Struct("q"), Struct("i")
AT_A_TIME = 1024


def remembered(files: Iterable[Seen]) -> bytes:
    """Of files as the cache has them; of one that it does not trust, what no file has."""
    known = list(files)
    inodes = array("Q", [seen[5] & UNSIGNED for seen in known])
    seconds = array("q", [seen[4] // SECOND for seen in known])
    nanoseconds = array("i", [seen[4] % SECOND for seen in known])
    return b"".join((inodes, seconds, nanoseconds))


def replace(room: mmap, start: int, count: int, place: int, seen: Seen) -> None:
    """Writes what is one file's into the prints of so many, which begin somewhere in memory."""
    seconds, nanoseconds = divmod(seen[4], SECOND)
    UNSIGNED_QUAD.pack_into(room, start + 8 * place, seen[5] & UNSIGNED)
    QUAD.pack_into(room, start + 8 * (count + place), seconds)
    INT.pack_into(room, start + 16 * count + 4 * place, nanoseconds)


def same(one: bytes, other: bytes) -> Iterator[bool]:
    """Of each file whether two prints agree about it."""
    first, *rest = (map(eq, *pair) for pair in zip(_parts(one), _parts(other), strict=True))
    for each in rest:
        first = map(and_, first, each)
    return first


def _parts(prints: bytes) -> tuple[memoryview, memoryview, memoryview]:
    view, count = memoryview(prints), len(prints) // EACH
    seconds, nanoseconds = 8 * count, 16 * count
    return (
        view[:seconds].cast("Q"),
        view[seconds:nanoseconds].cast("q"),
        view[nanoseconds:].cast("i"),
    )


class Taking:
    """Takes the prints of files. For one thread at a time."""

    def __init__(self) -> None:
        """Raises `OSError` where the system has no such thing."""
        if not sys.platform.startswith("linux"):
            raise OSError("only Linux has this")
        import ctypes

        # It must stay where it is for as long as it is written to.
        self._room = ctypes.create_string_buffer(SIZE * AT_A_TIME)
        start = ctypes.addressof(self._room)
        self._places = [ctypes.c_void_p(start + SIZE * place) for place in range(AT_A_TIME)]
        whole = memoryview(self._room).cast("B")
        self._unsigned, self._quads, self._ints = whole.cast("Q"), whole.cast("q"), whole.cast("i")
        try:
            self._ways = [each(None).statx for each in (ctypes.CDLL, ctypes.PyDLL)]
        except AttributeError as problem:
            raise OSError("this system is too old for it") from problem
        self.begin()
        if any(self._take(-1, [b"/"])):
            raise OSError("it is not allowed here")

    def begin(self) -> None:
        """Where there is no other thread that could go on while this one waits for the system, that
        need not be seen to each time. To be called before a look, for then it is known."""
        self._call = self._ways[active_count() == 1]

    def __call__(self, fd: int, names: Iterable[bytes], count: int) -> bytes:
        """Of so many files in a folder that is open; of one that is not there, what no file has."""
        if count <= AT_A_TIME:
            return b"".join(self._parts(fd, names, count))
        left = iter(names)
        some = [
            self._parts(fd, islice(left, AT_A_TIME), min(AT_A_TIME, count - start))
            for start in range(0, count, AT_A_TIME)
        ]
        return b"".join(chain(*zip(*some, strict=True)))

    def _parts(self, fd: int, names: Iterable[bytes], count: int) -> tuple[bytes, bytes, bytes]:
        failed = self._take(fd, names)
        if any(failed):
            for place in compress(range(count), failed):
                self._unsigned[INODE + SIZE // 8 * place] = 0
        end = SIZE // 8 * count
        return (
            self._unsigned[INODE : end : SIZE // 8].tobytes(),
            self._quads[SECONDS : end : SIZE // 8].tobytes(),
            self._ints[NANOSECONDS : 2 * end : SIZE // 4].tobytes(),
        )

    def _take(self, fd: int, names: Iterable[bytes]) -> list[int]:
        """Of each whether it failed."""
        how = (repeat(NO_FOLLOW), repeat(CHANGED_AND_INODE), self._places)
        return list(map(self._call, repeat(fd), names, *how))
