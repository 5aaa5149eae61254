"""Collect inotify events: the paths that may have changed since the last scan.

A `Watcher` holds one inotify instance for one project. The scanner calls `add` before it lists a
directory, so that no change falls in between, and later calls `since`. Ignored directories are
never added and cost no watch. The watcher reads and writes no user file.

Always true:

- Every changed path in a watched directory is reported, or `lost` is set. inotify does not report
  writes through `mmap` or a hard link elsewhere, on a network server, or a new mount over a
  directory; for these a full scan runs every ten minutes.
- A reported directory stands for everything below it: the scanner lists it again, recursively, and
  adds what it lists. So `mkdir -p a/b/c` is seen whole although `a` was not watched when `b`
  appeared, and a watch may be dropped whenever its directory is reported.
- A token is valid once the scan of the paths that came with it is complete.
- Paths are bytes, relative to the root; `b""` is the root.

Existing packages hide queue overflows, cannot name files that are not UTF-8, and watch ignored
directories; so the system calls are made here, through ctypes.
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
    """Paths that may have changed, appeared or vanished; if `lost`, run a full scan."""

    paths: frozenset[bytes]
    lost: bool
    token: str


class Watcher:
    """Watches added directories of one root; thread-safe.

    Raises `Unsupported` without inotify; full scans work there.
    """

    def __init__(self, root: bytes, *, max_paths: int = 100_000) -> None:
        self.instance = os.urandom(8).hex()
        self._libc = _libc()
        self._root = os.path.abspath(root)
        self._identity: tuple[int, int] | None = None  # of the root, when it was added
        self._lock = threading.Lock()
        self._closed = False

        self._paths: dict[int, bytes] = {}  # watch -> directory
        self._watches: dict[bytes, int] = {}  # directory -> watch
        self._children: dict[bytes, set[bytes]] = {}  # directory -> known subdirectories
        self._unwatched: set[bytes] = set()  # added, but the kernel refused
        self._to_remove: list[int] = []  # watches to remove in the kernel

        self._last_event = 0  # number of the latest event
        self._oldest_token = 0  # events before it were dropped
        self._reported = 0  # the last event that wait() or since() has reported
        self._events: dict[bytes, int] = {}  # path -> number of its latest event, oldest first
        self._max_paths = max_paths

        self._fd: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            import ctypes

            reason = os.strerror(ctypes.get_errno())
            raise Unsupported(
                f"The kernel refused an inotify instance ({reason}). Raise "
                "fs.inotify.max_user_instances, or go on without the watcher."
            )

    def add(self, directory: bytes) -> bool:
        """Watch a directory; call this before every listing of it.

        Returns False if it does not exist or may not be listed. Also returns False if the kernel
        refuses (watch limit, memory, path length): then `since` reports `lost` until the directory
        is watched, forgotten or gone.
        """
        if b"\0" in directory:
            return False
        path = b"%b/%b" % (self._root, directory)
        with self._lock:
            if self._closed:
                return False
            # Before the watch, so that a root replaced in between is reported as lost.
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
                        self._record(directory)  # it may have changed while unwatched
                    known = directory
                if known == directory:
                    if not directory:
                        self._identity = identity
                    return True
                # A rename is queued that we have not read: this directory was `known`, or
                # another one had its path. Drop both watches, read the events, and retry.
                if not directory or known == b"":
                    self._lose()
                self._drop_and_record(directory)
                if known is None:
                    self._to_remove.append(watch)
                else:
                    self._drop_and_record(known)
                self._drain()
            self._lose()  # renamed again before each retry
            return False

    def add_many(self, directories: Iterable[bytes]) -> bool:
        """Watch several directories; return whether all are watched."""
        watched = [self.add(directory) for directory in directories]
        return all(watched)

    def forget(self, directory: bytes) -> None:
        """Stop watching the directory and all below it."""
        with self._lock:
            if not self._closed:
                self._drop(directory)
                self._drain()

    def since(self, token: str | None) -> Changes:
        """Return the changes since the call that returned the token."""
        with self._lock:
            changes = self._since(token)
            self._reported = self._last_event
            return changes

    def peek(self, token: str | None) -> Changes:
        """Return the changes like `since`, without consuming the event that `wait` reports."""
        with self._lock:
            return self._since(token)

    def wait(self, timeout: float | None) -> bool:
        """Block until there are unreported changes; False at the timeout."""
        deadline = None if timeout is None else time.monotonic() + timeout
        poll = select.poll()
        while True:
            with self._lock:
                if self._closed:
                    return False
                self._drain()
                if self._last_event != self._reported:
                    self._reported = self._last_event
                    return True
                poll.register(self._fd, select.POLLIN)
            # At most a second at a time, since another thread may read the event, or close.
            pause = 1.0 if deadline is None else min(1.0, deadline - time.monotonic())
            if pause <= 0:
                return False
            poll.poll(pause * 1000)

    def queued(self) -> int:
        """Return the number of queued bytes of events."""
        with self._lock:
            return 0 if self._closed else self._available()

    @property
    def broken(self) -> bool:
        """Return whether added directories are no longer watched."""
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

    # The methods below are called with the lock held.

    def _since(self, token: str | None) -> Changes:
        if not self._closed:
            # No event reports the rename of a parent of the root.
            if b"" in self._watches and _identity(self._root) != self._identity:
                self._lose()
            self._drain()
        start = self._event_of(token)
        now = f"{self.instance}:{self._last_event}"
        blind = self._closed or self._unwatched or b"" not in self._watches
        if start is None or start < self._oldest_token or blind:
            return Changes(frozenset(), True, now)
        paths = []
        for path, number in reversed(self._events.items()):
            if number <= start:
                break
            paths.append(path)
        return Changes(frozenset(paths), False, now)

    def _event_of(self, token: str | None) -> int | None:
        instance, _, number = (token or "").partition(":")
        if instance != self.instance or not number.isdecimal() or len(number) > 20:
            return None
        return int(number) if int(number) <= self._last_event else None

    def _drain(self) -> None:
        """Read all queued events and remove the dropped watches."""
        self._read()
        while self._to_remove:
            # In batches, because each removal queues an event.
            for watch in self._to_remove[-_REMOVAL_BATCH:]:
                self._libc.inotify_rm_watch(self._fd, watch)
            del self._to_remove[-_REMOVAL_BATCH:]
            self._read()

    def _read(self) -> None:
        # Only what is queued now: a busy writer must not keep us reading.
        bytes_left = self._available()
        while bytes_left > 0:
            try:
                data = os.read(self._fd, _READ_BYTES)
            except BlockingIOError:
                return
            bytes_left -= len(data)
            try:
                self._parse(data)
            except BaseException:
                # After an interrupt the events are gone.
                self._lose()
                raise

    def _available(self) -> int:
        available = array.array("i", [0])
        fcntl.ioctl(self._fd, termios.FIONREAD, available)
        return available[0]

    def _parse(self, data: bytes) -> None:
        """Process one buffer of events; equal events have the same effect, so one is enough."""
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
            if directory is None:
                continue  # the watch was dropped before this event was read
            name = event[_EVENT.size :].rstrip(b"\0")
            if name:
                path = b"%b/%b" % (directory, name) if directory else name
                if mask & _ISDIR and mask & (_MOVED_FROM | _DELETE):
                    self._drop(path)
                self._record(path)
            elif mask & (_MOVE_SELF | _DELETE_SELF | _IGNORED):
                if directory:
                    self._drop_and_record(directory)
                else:
                    self._lose()
            else:
                self._record(directory)

    def _record(self, path: bytes) -> None:
        """Add an event for a path, dropping the older half when there are too many."""
        directory, _slash, name = path.rpartition(b"/")
        if name.startswith(b".mulligan-tmp-"):
            return
        if name == b".git":
            # Only whether the parent is a repository matters, not the content of `.git`.
            if not directory:
                return
            path = directory
        self._last_event += 1
        self._events.pop(path, None)  # keeps the latest last
        self._events[path] = self._last_event
        if len(self._events) > self._max_paths:
            for old in list(islice(self._events, (len(self._events) + 1) // 2)):
                self._oldest_token = self._events.pop(old)

    def _drop_and_record(self, directory: bytes) -> None:
        self._drop(directory)
        self._record(directory)

    def _lose(self) -> None:
        """Drop all watches and events: they may be wrong. Tokens until now become invalid."""
        self._to_remove.extend(self._paths)
        self._paths.clear()
        self._watches.clear()
        self._children.clear()
        self._unwatched.clear()
        self._events.clear()
        self._last_event += 1
        self._oldest_token = self._last_event

    def _link(self, directory: bytes) -> None:
        while directory:
            parent = directory[: max(directory.rfind(b"/"), 0)]
            siblings = self._children.setdefault(parent, set())
            if directory in siblings:
                return
            siblings.add(directory)
            directory = parent

    def _drop(self, directory: bytes) -> None:
        """Drop the watches at and below a directory; the next `_drain` removes them."""
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
                self._to_remove.append(watch)

    def _not_added(self, directory: bytes) -> bool:
        import ctypes

        # It cannot be listed either; the watch of its parent reports a change.
        if ctypes.get_errno() in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES}:
            self._unwatched.discard(directory)
            return False
        self._drop(directory)
        self._unwatched.add(directory)
        self._link(directory)
        return False


# From <sys/inotify.h>; the same on every architecture.
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
_READ_BYTES = 1 << 18
_REMOVAL_BATCH = 1024


@functools.cache
def _libc() -> Any:
    if sys.platform != "linux":
        raise Unsupported(
            f"The watcher needs Linux's inotify, and this is {sys.platform}. "
            "Everything works without it; each checkpoint then scans every file."
        )
    import ctypes  # slow to import, and not needed by clients of a remote watcher

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
