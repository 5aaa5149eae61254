"""Read a project's rule files; excludes are in effect only if the user accepted the content.

`.mulliganignore` and `.mulligan.toml` may come from agents or cloned repositories. Until the user
accepts its exact content, such a file can include paths and exclude none.
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
NOT_ACCEPTED = "is not accepted; its excludes are ignored"
BOM = b"\xef\xbb\xbf"
Accepted = frozenset[tuple[bytes, bytes]]
"""The path of each accepted file, below the project's root, and the SHA-256 of its content."""


class RuleFile(NamedTuple):
    """A rule file's content; `None` if missing, or unreadable for the reason in `problem`."""

    content: bytes | None
    problem: str = ""


class Effect(NamedTuple):
    """The rules of a `.mulliganignore` in effect, and why others are not."""

    rules: bytes | None
    passed_over: str = ""
    broken: bool = False


def read_rule_file(parent: int, name: bytes, limit: int) -> RuleFile:
    """Read a regular file of at most `limit` bytes, without following a link."""
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
        chunks, size = [], 0
        while size <= limit and (chunk := os.read(fd, min(1 << 16, limit + 1 - size))):
            chunks.append(chunk)
            size += len(chunk)
    except OSError as problem:
        return RuleFile(None, f"cannot be read: {problem.strerror}")
    finally:
        os.close(fd)
    if size > limit:
        return RuleFile(None, f"is larger than {limit >> 10} KB")
    return RuleFile(b"".join(chunks))


def effect_of(fd: int, directory: bytes, accepted: Accepted) -> Effect:
    """Read the `.mulliganignore` of the directory open as `fd`; return its rules in effect."""
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
    """Return the patterns of an ignore file that exclude paths."""
    lines = [line.rstrip(b" \r") for line in content.removeprefix(BOM).split(b"\n")]
    return [line for line in lines if line and not line.startswith((b"#", b"!"))]


def without_excludes(content: bytes) -> bytes:
    """Return the ignore file with only the patterns that include paths."""
    lines = content.removeprefix(BOM).split(b"\n")
    return b"\n".join(line for line in lines if line.startswith(b"!"))
