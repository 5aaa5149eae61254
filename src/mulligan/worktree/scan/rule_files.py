"""Rule files of a project: read without risk, and only in effect as far as the user accepts them.

`.mulliganignore` and `.mulligan.toml` are written by agents and by strangers whose repositories are
cloned. Without the user's acceptance of its exact content, such a file may bring paths into scope
and leaves none out.
"""

from __future__ import annotations

import errno
import os
import stat
from hashlib import sha256
from typing import NamedTuple

from mulligan.worktree.fs.safe_paths import OPEN_FILE, RESOURCE_ERRORS

MULLIGANIGNORE = b".mulliganignore"
IGNORE_FILE_MAX_BYTES = 1 << 20
NOT_ACCEPTED = "is not accepted; ignored in it: all that leaves files out"
BOM = b"\xef\xbb\xbf"
Accepted = frozenset[tuple[bytes, bytes]]
"""The path of each accepted file, below the project's root, and the SHA-256 of its content."""


class RuleFile(NamedTuple):
    """What a rule file holds; `None` if there is none, or if it is not fit to be read."""

    content: bytes | None
    problem: str = ""


class Effect(NamedTuple):
    """What counts of a `.mulliganignore`, and why not all of it does."""

    rules: bytes | None
    passed_over: str = ""
    broken: bool = False


def read_rule_file(parent: int, name: bytes, limit: int) -> RuleFile:
    """Reads an ordinary file of at most `limit` bytes, never through a link."""
    try:
        fd = os.open(name, OPEN_FILE, dir_fd=parent)
    except OSError as problem:
        if problem.errno in RESOURCE_ERRORS:
            raise
        if problem.errno in (errno.ENOENT, errno.ENOTDIR):
            return RuleFile(None)
        if problem.errno in (errno.ELOOP, errno.ENXIO):
            return RuleFile(None, "is not an ordinary file")
        return RuleFile(None, f"cannot be read: {problem.strerror}")
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return RuleFile(None, "is not an ordinary file")
        pieces, size = [], 0
        while size <= limit and (piece := os.read(fd, min(1 << 16, limit + 1 - size))):
            pieces.append(piece)
            size += len(piece)
    except OSError as problem:
        return RuleFile(None, f"cannot be read: {problem.strerror}")
    finally:
        os.close(fd)
    if size > limit:
        return RuleFile(None, f"is larger than {limit >> 10} KB")
    return RuleFile(b"".join(pieces))


def effect_of(fd: int, directory: bytes, accepted: Accepted) -> Effect:
    """Reads the `.mulliganignore` of the directory open as `fd`, and tells what counts of it."""
    content, problem = read_rule_file(fd, MULLIGANIGNORE, IGNORE_FILE_MAX_BYTES)
    if content is None:
        return Effect(None, problem, broken=bool(problem))
    path = directory + b"/" + MULLIGANIGNORE if directory else MULLIGANIGNORE
    if not leaves_out(content) or is_accepted(path, content, accepted):
        return Effect(content)
    return Effect(without_excludes(content), NOT_ACCEPTED)


def is_accepted(path: bytes, content: bytes, accepted: Accepted) -> bool:
    return bool(accepted) and (path, sha256(content).digest()) in accepted


def leaves_out(content: bytes) -> list[bytes]:
    """The patterns of an ignore file that leave paths out."""
    lines = [line.rstrip(b" \r") for line in content.removeprefix(BOM).split(b"\n")]
    return [line for line in lines if line and not line.startswith((b"#", b"!"))]


def without_excludes(content: bytes) -> bytes:
    """The ignore file with only the patterns that bring paths into scope."""
    lines = content.removeprefix(BOM).split(b"\n")
    return b"\n".join(line for line in lines if line.startswith(b"!"))
