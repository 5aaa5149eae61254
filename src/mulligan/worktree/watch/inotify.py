"""Which files may have changed since the last look: the kernel's events, as hints.

A `Watcher` holds one inotify instance for one project. The scan names each directory that it
is about to list (`add`, before it lists it, so nothing falls in between), and asks later what
happened (`since`). Ignored folders are never named and so never cost a watch. Nothing here
reads or writes a user's file.

Always true:

- A path that changed in a watched directory is reported, or `lost` is. What events cannot tell
  (writes through `mmap`, through a hard link elsewhere, on the far side of a network mount, a
  new mount over a directory) is why a full scan runs now and then.
- A reported directory stands for everything below it: whoever asked lists it again, recursively,
  and adds what it lists. That is how `mkdir -p a/b/c` is seen whole although nobody watched
  `a` when `b` appeared, and why a watch may be dropped whenever its directory is reported.
- A token is good for whoever finished the look that the answer carrying it asked for.
- Paths are bytes, relative to the root; `b""` is the root.

The usual packages hide overflows of the kernel's queue, cannot name files that are not UTF-8,
and watch ignored folders too; so the four system calls are made here, through ctypes.
"""

from __future__ import annotations

import array
import errno
import functools
import os
import select
import struct
import sys
import threading
import time
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from mulligan.errors import Unsupported

if sys.platform == "linux":
    import fcntl
    import termios

if TYPE_CHECKING:
    from types import TracebackType


class Changes(NamedTuple):
    """What may have changed, appeared or vanished; with `lost`, look at everything instead."""

    paths: frozenset[bytes]
    lost: bool
    token: str


class Watcher:
    """Watches the directories of one root that it is told to; safe to use from several threads.

    Raises `Unsupported` where there is no inotify to be had; scanning everything works there.
    """

    def __init__(self, root: bytes, *, max_remembered: int = 100_000) -> None:
        self.instance = os.urandom(8).hex()
        self._libc = _libc()
        self._root = os.path.abspath(root)
        self._identity: tuple[int, int] | None = None  # of the root, when it was added
        self._lock = threading.Lock()
        self._closed = False

        self._paths: dict[int, bytes] = {}  # watch -> directory, and the way back:
        self._watches: dict[bytes, int] = {}
        self._children: dict[bytes, set[bytes]] = {}  # directory -> known directories in it
        self._unwatched: set[bytes] = set()  # should be watched, but the kernel refused
        self._doomed: list[int] = []  # no longer in _paths, still to be removed in the kernel

        self._number = 0  # of the latest event
        self._floor = 0  # tokens below it ask for more than is remembered
        self._noticed = 0  # up to here, wait() has nothing new to tell
        self._remembered: dict[bytes, int] = {}  # path -> its latest event, oldest first
        self._max_remembered = max_remembered

        self._fd: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            import ctypes

            reason = os.strerror(ctypes.get_errno())
            raise Unsupported(
                f"The kernel gives no more inotify instances ({reason}). Raise "
                "fs.inotify.max_user_instances, or go on without the watcher."
            )

    def add(self, directory: bytes) -> bool:
        """Watch one directory; call it before listing the directory, every time.

        False without loss when there is no such directory, or none that may be listed. False
        when the kernel refuses (limit of watches, memory, a path too long for it): `since`
        then says `lost` until the directory is watched, forgotten or gone.
        """
        if b"\0" in directory:
            return False
        path = b"%b/%b" % (self._root, directory)
        with self._lock:
            if self._closed:
                return False
            # Before the watch: if the root is replaced in between, the two differ, and that
            # is noticed as a loss.
            identity = None if directory else _identity(self._root)
            for _ in range(4):
                watch: int = self._libc.inotify_add_watch(self._fd, path, _MASK)
                if watch < 0:
                    return self._not_added(directory)
                known = self._paths.get(watch)
                if known is None and directory not in self._watches:
                    self._paths[watch] = directory
                    self._watches[directory] = watch
                    self._link(directory)
                    if directory in self._unwatched:
                        self._unwatched.remove(directory)
                        self._touch(directory)  # for those who looked while it was unwatched
                    known = directory
                if known == directory:
                    if not directory:
                        self._identity = identity
                    return True
                # The kernel knows of a move that we have not read yet: this directory was
                # `known`, or another one had its path. Let both go, read on, and ask again.
                if not directory or known == b"":
                    self._lose()
                self._let_go(directory)
                if known is None:
                    self._doomed.append(watch)
                else:
                    self._let_go(known)
                self._drain()
            self._lose()  # moved again each time that we looked
            return False

    def add_many(self, directories: Iterable[bytes]) -> bool:
        """Watch several; whether all of them are."""
        watched = [self.add(directory) for directory in directories]
        return all(watched)

    def forget(self, directory: bytes) -> None:
        """Stop watching the directory and all below it."""
        with self._lock:
            if not self._closed:
                self._drop(directory)
                self._drain()

    def since(self, token: str | None) -> Changes:
        """What happened after the answer that carried the token, up to this call."""
        with self._lock:
            changes = self._since(token)
            self._noticed = self._number
            return changes

    def peek(self, token: str | None) -> Changes:
        """`since` on behalf of somebody else: it takes no news from the one who waits."""
        with self._lock:
            return self._since(token)

    def wait(self, timeout: float | None) -> bool:
        """Block until there is something that `since` has not told yet; False when time is up."""
        deadline = None if timeout is None else time.monotonic() + timeout
        poll = select.poll()
        while True:
            with self._lock:
                if self._closed:
                    return False
                self._drain()
                if self._number != self._noticed:
                    self._noticed = self._number
                    return True
                poll.register(self._fd, select.POLLIN)
            # In slices, because another thread may read the event away, or close.
            pause = 1.0 if deadline is None else min(1.0, deadline - time.monotonic())
            if pause <= 0:
                return False
            poll.poll(pause * 1000)

    def queued(self) -> int:
        """How many bytes of events nobody has read yet."""
        with self._lock:
            return 0 if self._closed else self._available()

    @property
    def broken(self) -> bool:
        """Whether it can no longer promise anything about what was added."""
        return self._closed

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # From here on, the lock is held.

    def _since(self, token: str | None) -> Changes:
        if not self._closed:
            # A parent of the root may have been renamed: no event tells of that.
            if b"" in self._watches and _identity(self._root) != self._identity:
                self._lose()
            self._drain()
        start = self._number_of(token)
        now = f"{self.instance}:{self._number}"
        blind = self._closed or self._unwatched or b"" not in self._watches
        if start is None or start < self._floor or blind:
            return Changes(frozenset(), True, now)
        paths = []
        for path, number in reversed(self._remembered.items()):
            if number <= start:
                break
            paths.append(path)
        return Changes(frozenset(paths), False, now)

    def _number_of(self, token: str | None) -> int | None:
        instance, _, number = (token or "").partition(":")
        if instance != self.instance or not number.isdecimal() or len(number) > 20:
            return None
        return int(number) if int(number) <= self._number else None

    def _drain(self) -> None:
        """Take in every event that is queued, and remove the watches that this dooms."""
        self._read()
        while self._doomed:
            # In portions: each removal queues an event of its own.
            for watch in self._doomed[-1024:]:
                self._libc.inotify_rm_watch(self._fd, watch)
            del self._doomed[-1024:]
            self._read()

    def _read(self) -> None:
        # As much as there is now, not until it is empty: a busy writer must not hold us here.
        left = self._available()
        while left > 0:
            try:
                data = os.read(self._fd, _READ_SIZE)
            except BlockingIOError:
                return
            left -= len(data)
            try:
                self._take(data)
            except BaseException:
                # An interrupt: the kernel does not tell it again.
                self._lose()
                raise

    def _available(self) -> int:
        available = array.array("i", [0])
        fcntl.ioctl(self._fd, termios.FIONREAD, available)
        return available[0]

    def _take(self, data: bytes) -> None:
        """Take in one buffer of events.

        Events that were there already in the same words are skipped: nothing is added while
        we read, so the second one could not do anything that the first did not.
        """
        seen = set()
        start = 0
        while start < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, start)
            end = start + _EVENT.size + length
            event = data[start:end]
            start = end
            if event in seen:
                continue
            seen.add(event)
            if mask & (_Q_OVERFLOW | _UNMOUNT):
                self._lose()
                continue
            directory = self._paths.get(watch)
            if directory is None:  # dropped before this event was read
                continue
            name = event[_EVENT.size :].rstrip(b"\0")
            if name:
                path = b"%b/%b" % (directory, name) if directory else name
                if mask & _ISDIR and mask & (_MOVED_FROM | _DELETE):
                    self._drop(path)
                self._touch(path)
            elif mask & (_MOVE_SELF | _DELETE_SELF | _IGNORED):
                if directory:
                    self._let_go(directory)
                else:
                    self._lose()
            else:
                self._touch(directory)

    def _touch(self, path: bytes) -> None:
        directory, _slash, name = path.rpartition(b"/")
        if name.startswith(b".mulligan-tmp-"):
            return
        if name == b".git":
            # What is in it does not matter, but that a folder is a repository does.
            if not directory:
                return
            path = directory
        self._number += 1
        self._remembered.pop(path, None)  # so that the latest is the last
        self._remembered[path] = self._number
        if len(self._remembered) > self._max_remembered:
            for old in list(islice(self._remembered, (len(self._remembered) + 1) // 2)):
                self._floor = self._remembered.pop(old)

    def _let_go(self, directory: bytes) -> None:
        self._drop(directory)
        self._touch(directory)

    def _lose(self) -> None:
        """Start afresh: what we believe of watches and paths may be wrong by now."""
        self._doomed.extend(self._paths)
        self._paths.clear()
        self._watches.clear()
        self._children.clear()
        self._unwatched.clear()
        self._remembered.clear()
        self._number += 1
        self._floor = self._number

    def _link(self, directory: bytes) -> None:
        while directory:
            parent = directory[: max(directory.rfind(b"/"), 0)]
            siblings = self._children.setdefault(parent, set())
            if directory in siblings:
                return
            siblings.add(directory)
            directory = parent

    def _drop(self, directory: bytes) -> None:
        """Forget the watches at and below the directory; the next drain removes them."""
        parent = directory[: max(directory.rfind(b"/"), 0)]
        if directory and directory not in self._children.get(parent, ()):
            return
        self._children.get(parent, set()).discard(directory)
        below = [directory]
        while below:
            directory = below.pop()
            below.extend(self._children.pop(directory, ()))
            self._unwatched.discard(directory)
            watch = self._watches.pop(directory, None)
            if watch is not None:
                del self._paths[watch]
                self._doomed.append(watch)

    def _not_added(self, directory: bytes) -> bool:
        import ctypes

        # Nothing that could be listed either; its parent, or its own watch, reports it.
        if ctypes.get_errno() in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES}:
            self._unwatched.discard(directory)
            return False
        self._drop(directory)
        self._unwatched.add(directory)
        self._link(directory)
        return False


# From <sys/inotify.h>: the kernel's promise, the same on every architecture.
_MODIFY = 0x2
_ATTRIB = 0x4
_CLOSE_WRITE = 0x8
_MOVED_FROM = 0x40
_MOVED_TO = 0x80
_CREATE = 0x100
_DELETE = 0x200
_DELETE_SELF = 0x400
_MOVE_SELF = 0x800
_UNMOUNT = 0x2000
_Q_OVERFLOW = 0x4000
_IGNORED = 0x8000
_ONLYDIR = 0x1000000
_DONT_FOLLOW = 0x2000000
_EXCL_UNLINK = 0x4000000
_ISDIR = 0x40000000

_MASK = (
    (_MODIFY | _ATTRIB | _CLOSE_WRITE | _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO)
    | (_DELETE_SELF | _MOVE_SELF)
    | (_ONLYDIR | _DONT_FOLLOW | _EXCL_UNLINK)
)
_EVENT = struct.Struct("=iIII")  # watch, mask, cookie, length of the name with its padding
_READ_SIZE = 1 << 18


@functools.cache
def _libc() -> Any:
    if sys.platform != "linux":
        raise Unsupported(
            f"The watcher needs Linux's inotify, and this is {sys.platform}. "
            "Everything works without it; each checkpoint then looks at every file."
        )
    import ctypes  # here: a command that only talks to a running watcher does not pay for it

    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.inotify_init1.argtypes = [ctypes.c_int]
        libc.inotify_add_watch.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
        libc.inotify_rm_watch.argtypes = [ctypes.c_int, ctypes.c_int]
    except (OSError, AttributeError) as error:
        raise Unsupported(f"The C library here has no inotify: {error}.") from error
    return libc


def _identity(root: bytes) -> tuple[int, int] | None:
    try:
        status = os.stat(root)
    except OSError:
        return None
    return status.st_dev, status.st_ino
