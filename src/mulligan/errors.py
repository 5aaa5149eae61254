"""Define every error that Mulligan raises on purpose.

    MulliganError
    ├── UsageError            the request is invalid
    │   └── RefusedRoot       `/` or a home directory as project, without an explicit request
    ├── NotFound              no such project, checkpoint, operation or path
    │   ├── Ambiguous         a prefix that matches several ids
    │   └── NothingToUndo     undo or redo with no operation left
    ├── WouldLoseWork         refused, because bytes would be lost; nothing was changed
    ├── Busy                  another process holds the project's lock
    ├── Corrupt               stored data is damaged
    │   └── MissingObject     a referenced object is not in the store
    ├── NewerFormat           written by a later Mulligan
    ├── OutOfSpace            the disk is full, or a quota is used up; nothing was changed
    ├── NotWritable           Mulligan's data can be read, but not written
    └── Unsupported           this system lacks something that is needed

Each class has a stable `code`. The CLI maps it to an exit status, the server to an HTTP status.
A message names the thing that failed and what to do next.
"""

from __future__ import annotations

import errno
import os


class MulliganError(Exception):
    """Base of all errors; `code` is stable, the text is for people."""

    code = "failed"


class UsageError(MulliganError):
    code = "usage"


class RefusedRoot(UsageError):
    code = "refused_root"


class NotFound(MulliganError):
    code = "not_found"


class Ambiguous(NotFound):
    code = "ambiguous"


class NothingToUndo(NotFound):
    code = "nothing_to_undo"


class WouldLoseWork(MulliganError):
    code = "would_lose_work"


class Busy(MulliganError):
    code = "busy"


class Corrupt(MulliganError):
    code = "corrupt"


class MissingObject(Corrupt):
    code = "missing_object"


class NewerFormat(MulliganError):
    code = "newer_format"


class OutOfSpace(MulliganError):
    code = "out_of_space"


class NotWritable(MulliganError):
    code = "not_writable"


class Unsupported(MulliganError):
    code = "unsupported"


NO_MEMORY = (
    "There is not enough memory for this. Nothing is lost; free some memory, or raise the limit "
    "of this process (`ulimit -v`), and try again."
)
"""The message for any `MemoryError`."""
NO_SPACE_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_WRITABLE_ERRNOS = (errno.EROFS, errno.EACCES, errno.EPERM)
MIN_FREE_BYTES = 1 << 20


def write_failed(path: str, code: int | None, problem: Exception) -> MulliganError:
    """Return the error for a failed write; `code` is the errno, if known."""
    if code in NOT_WRITABLE_ERRNOS or not os.access(os.path.dirname(path), os.W_OK):
        return NotWritable(
            f"{path} cannot be written to ({os.strerror(code) if code else problem}); nothing was "
            "changed. Stored data can still be read."
        )
    if code in NO_SPACE_ERRNOS or _is_full(path):
        return OutOfSpace(f"No space left for {path}; nothing was changed. Free some space.")
    return MulliganError(f"{path} cannot be used: {problem}.")


def _is_full(path: str) -> bool:
    try:
        space = os.statvfs(os.path.dirname(path))
    except (OSError, AttributeError):
        return False
    return space.f_bavail * space.f_frsize < MIN_FREE_BYTES
