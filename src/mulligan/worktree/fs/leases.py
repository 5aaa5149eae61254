"""Detect files that a program has open for writing, with read leases.

The kernel grants a read lease only if no program has the file open for writing, or mapped for
that. While the lease is held, an open for writing waits for its end, or for
`/proc/sys/fs/lease-break-time`. So a file that has left its place cannot be written to any more if

1. a lease on it is granted after it was moved: every later open by its name finds another file;
2. the lease is still unbroken right before the file is deleted.

Leases need Linux, a local file system, and a file of our own (or CAP_LEASE). Elsewhere the answer
is `None`, and `/proc` names the writers among the processes that this user may look into.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from mulligan.worktree.fs.safe_paths import OPEN_FILE, Directories

try:
    from fcntl import F_GETLEASE, F_RDLCK, F_SETLEASE, F_SETSIG, F_UNLCK, fcntl
except ImportError:
    HAS_LEASES = False
else:
    HAS_LEASES = True

OPEN_FOR_WRITING = "open for writing by "
UNKNOWN_PROGRAM = "another program"
FOREIGN_SYSTEMS = (b"nfs", b"cifs", b"smb")
"""File systems whose server may refuse a lease though the file is not open for writing."""
Inode = tuple[int, int]


def reason_to_leave(program: str = UNKNOWN_PROGRAM) -> str:
    return f"{OPEN_FOR_WRITING}{program}; --force replaces it"


def take(fd: int) -> bool | None:
    """Take a read lease; `False` if open for writing, `None` if unsupported."""
    if not HAS_LEASES:
        return None
    try:
        # The kernel announces a break with SIGIO, which would end the process; SIGURG does nothing.
        fcntl(fd, F_SETSIG, signal.SIGURG)
        fcntl(fd, F_SETLEASE, F_RDLCK)
    except OSError as problem:
        if problem.errno == errno.EAGAIN and not _is_foreign(fd):
            return False
        return None
    return True


def is_unbroken(fd: int) -> bool:
    """Return True while no program waits to open the leased file for writing."""
    return bool(fcntl(fd, F_GETLEASE) == F_RDLCK)


def release(fd: int) -> None:
    """End a lease; closing `fd` is not enough if a forked child shares it."""
    with suppress(OSError):
        fcntl(fd, F_SETLEASE, F_UNLCK)


@contextmanager
def watched(parent: int, name: bytes) -> Iterator[Callable[[], bool]]:
    """Hold a lease; yield a function: True unless a program has the file open for writing."""
    try:
        fd = os.open(name, OPEN_FILE, dir_fd=parent)
    except OSError:
        yield lambda: True
        return
    answer = take(fd)
    try:
        yield lambda: is_unbroken(fd) if answer else answer is None
    finally:
        if answer:
            release(fd)
        os.close(fd)


def is_open_for_writing(parent: int, name: bytes) -> bool | None:
    """Return whether a program has the file open for writing; `None` if unknown."""
    try:
        fd = os.open(name, OPEN_FILE, dir_fd=parent)
    except OSError:
        return None
    try:
        answer = take(fd)
        return None if answer is None else not answer
    finally:
        os.close(fd)  # ends the lease


def open_for_writing(root: bytes, paths: Iterable[bytes]) -> dict[bytes, str]:
    """Return the `paths` that are open for writing, each with the reason to leave it."""
    refused: dict[bytes, Inode] = {}
    unknown: dict[bytes, Inode] = {}
    with Directories(root) as directories:
        for path in paths:
            directory, _slash, name = path.rpartition(b"/")
            parent = directories.open_if_there(directory)
            if parent is None:
                continue
            answer = is_open_for_writing(parent, name)
            if answer is not False:
                with suppress(OSError):
                    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
                    inodes = refused if answer else unknown
                    inodes[path] = (status.st_dev, status.st_ino)
    programs = _programs({**unknown, **refused})
    return {
        path: reason_to_leave(programs.get(inode, UNKNOWN_PROGRAM))
        for path, inode in {**unknown, **refused}.items()
        if path in refused or inode in programs
    }


def _programs(wanted: Mapping[bytes, Inode]) -> dict[Inode, str]:
    """Return the program that has each file open for writing, as far as `/proc` shows."""
    programs: dict[Inode, str] = {}
    inodes = set(wanted.values())
    names = {path.rpartition(b"/")[2] for path in wanted}
    processes = os.listdir(b"/proc") if wanted and os.path.isdir(b"/proc/self/fd") else []
    for process in processes:
        if not process.isdigit():
            continue
        descriptors = b"/proc/%b/fd" % process
        with suppress(OSError):
            for number in os.listdir(descriptors):
                with suppress(OSError, ValueError):
                    # Names first: stat of a file on a dead network server may hang.
                    target = os.readlink(b"%b/%b" % (descriptors, number))
                    if target.rpartition(b"/")[2] not in names:
                        continue
                    status = os.stat(b"%b/%b" % (descriptors, number))
                    inode = (status.st_dev, status.st_ino)
                    if inode in inodes and _is_writable(process, number):
                        programs[inode] = f"{_command(process)} (process {process.decode()})"
    return programs


def _is_writable(process: bytes, number: bytes) -> bool:
    for line in _read(b"/proc/%b/fdinfo/%b" % (process, number)).splitlines():
        if line.startswith(b"flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def _command(process: bytes) -> str:
    name = _read(b"/proc/%b/comm" % process).strip().decode("utf-8", "replace")
    return "".join(each if each.isprintable() else "?" for each in name) or UNKNOWN_PROGRAM


def _is_foreign(fd: int) -> bool:
    """Return True if the file is on one of `FOREIGN_SYSTEMS`."""
    device = os.fstat(fd).st_dev
    number = b"%d:%d" % (os.major(device), os.minor(device))
    for line in _read(b"/proc/self/mountinfo").splitlines():
        before, _dash, after = line.partition(b" - ")
        if before.split(b" ")[2] == number:
            return after.startswith(FOREIGN_SYSTEMS)
    return False


def _read(path: bytes) -> bytes:
    with suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""
