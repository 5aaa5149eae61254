"""Open a directory several components deep with one `openat2` call, without following links.

RESOLVE_NO_SYMLINKS and RESOLVE_BENEATH give the safety of opening one component after another, at
a fraction of the cost.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache

MACHINES = ("x86_64", "aarch64", "riscv64", "ppc64le", "s390x")
OPENAT2 = 437  # the system call's number on all of these machines
RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH = 0x04, 0x08


def is_loaded() -> bool:
    """Return True if the ctypes call is set up, which takes longer than many calls."""
    return _system_call.cache_info().currsize > 0


def open_beneath(parent: int, path: bytes, flags: int) -> int | None:
    """Return a descriptor; `None` if openat2 failed: walk the path to learn why."""
    call = _system_call(flags)
    if call is None or b"\0" in path:
        return None
    fd = call(parent, path)
    return fd if fd >= 0 else None


@cache
def _system_call(flags: int) -> Callable[[int, bytes], int] | None:
    if not sys.platform.startswith("linux") or os.uname().machine not in MACHINES:
        return None
    import ctypes

    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    function.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
    )
    # The kernel's `struct open_how`: flags, mode and resolve, 64 bits each.
    how = b"".join(
        number.to_bytes(8, sys.byteorder)
        for number in (flags, 0, RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH)
    )
    return lambda parent, path: int(function(OPENAT2, parent, path, how, len(how)))
