"""Rename without overwriting: exchange two names, or move to a free name.

Linux and macOS have one system call for both. Where the file system does not support it, a move
is a hard link and an unlink, and there is no exchange. Without hard links the target is checked
first, which leaves a short race.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache

NOREPLACE, EXCHANGE = 1, 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
_NO_LINKS = (*_UNSUPPORTED, errno.EPERM, errno.EMLINK)


class NoExchange(OSError):
    """This file system cannot exchange two names."""


def exchange(source: bytes, source_fd: int, target: bytes, target_fd: int) -> None:
    """Exchange two names atomically; raise `NoExchange` where that is not supported."""
    call = _system_call()
    if call is None:
        raise NoExchange(errno.ENOSYS, "renameat2 is not available")
    try:
        call(source_fd, source, target_fd, target, EXCHANGE)
    except OSError as problem:
        if problem.errno in _UNSUPPORTED:
            raise NoExchange(problem.errno, problem.strerror) from problem
        raise


def move_if_free(source: bytes, source_fd: int, target: bytes, target_fd: int) -> None:
    """Rename to a free name; raise `FileExistsError`, changing nothing, if it is taken."""
    call = _system_call()
    if call is not None:
        try:
            call(source_fd, source, target_fd, target, NOREPLACE)
        except OSError as problem:
            if problem.errno not in _UNSUPPORTED:
                raise
        else:
            return
    try:
        os.link(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd, follow_symlinks=False)
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
        try:
            os.stat(target, dir_fd=target_fd, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
        else:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
    else:
        os.unlink(source, dir_fd=source_fd)


@cache
def _system_call() -> Callable[[int, bytes, int, bytes, int], None] | None:
    if sys.platform == "darwin":
        name, flags = "renameatx_np", {NOREPLACE: 4, EXCHANGE: 2}
    elif sys.platform.startswith("linux"):
        name, flags = "renameat2", {NOREPLACE: 1, EXCHANGE: 2}
    else:
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        return None
    function.argtypes = (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    )

    def call(source_fd: int, source: bytes, target_fd: int, target: bytes, how: int) -> None:
        if function(source_fd, source, target_fd, target, flags[how]) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), os.fsdecode(target))

    return call
