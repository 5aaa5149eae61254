"""Every error that Mulligan raises on purpose.

    MulliganError
    ├── UsageError            the request itself makes no sense
    │   └── RefusedRoot       `/` or a home directory, without being told so
    ├── NotFound              no such project, checkpoint, operation or path
    │   ├── Ambiguous         a prefix that fits several
    │   └── NothingToUndo     undo or redo with nothing left to take back
    ├── WouldLoseWork         going on would lose bytes; nothing was changed
    ├── Busy                  another process holds the project
    ├── Corrupt               stored data does not say what it must
    │   └── MissingObject     an object that something refers to is not in the store
    ├── NewerFormat           written by a later Mulligan
    ├── OutOfSpace            the disk is full, or a quota is used up; nothing was changed
    ├── NotWritable           Mulligan's data can be read, but not written here
    └── Unsupported           this cannot work here

Each class carries a `code`, one word that faces translate: the command line into an exit
status, the server into an HTTP status. A message names the thing and a way forward.
"""

from __future__ import annotations

import errno
import os


class MulliganError(Exception):
    """The root of the tree; `code` is stable, the text is for people."""

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
"""What to say of a `MemoryError`, wherever it was raised."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says when there is no space: none on the disk, or none left for this user."""
CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)


def write_failed(path: str, code: int | None, problem: Exception) -> MulliganError:
    """What to say of a file that could not be written; `code` is the system's, if it is known."""
    if code in CLOSED or not os.access(os.path.dirname(path), os.W_OK):
        return NotWritable(
            f"{path} cannot be written to ({os.strerror(code) if code else problem}); nothing was "
            "changed. What is stored can be read."
        )
    if code in FULL or _is_full(path):
        return OutOfSpace(f"No space left for {path}; nothing was changed. Free some space.")
    return MulliganError(f"{path} cannot be used: {problem}.")


def _is_full(path: str) -> bool:
    try:
        space = os.statvfs(os.path.dirname(path))
    except (OSError, AttributeError):
        return False
    return space.f_bavail * space.f_frsize < 1 << 20
