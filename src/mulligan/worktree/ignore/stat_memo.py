"""Answers that follow from files which hardly ever change: remembered with what was consulted.

Whether a file is as it was is told by its stat. One that was changed shortly before it was read
could change again without a trace: an answer that depends on such a file is not remembered.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Generic, TypeVar

from mulligan.clock import now_s

T = TypeVar("T")
Path = str | bytes
P = TypeVar("P", bound=Path)
Stamp = tuple[int, ...] | None
MAX_MEMO_ENTRIES = 16
RACY_SECONDS = 3

_log: ContextVar[dict[Path, Stamp] | None] = ContextVar("consulted", default=None)


def depends_on(path: P) -> P:
    """Says that what is at a path, or that nothing is, makes a difference; to be called before
    one looks. Gives the path."""
    log = _log.get()
    if log is not None:
        log.setdefault(path, _stamp(path))
    return path


class StatMemo(Generic[T]):
    """The last answers, each with what it depends on."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[dict[Path, Stamp], T]] = {}

    def get(self, question: Hashable, find: Callable[[], T]) -> T:
        """What `find` gives, or gave when it was last asked and all that it consulted was the
        same."""
        known = self._known.get(question)
        if known is not None and all(_is_still(path, was) for path, was in known[0].items()):
            return known[1]
        stamps: dict[Path, Stamp] = {}
        begun = now_s()
        token = _log.set(stamps)
        try:
            answer = find()
        finally:
            _log.reset(token)
        self._known.pop(question, None)
        if all(_is_settled(was, begun) for was in stamps.values()):
            if len(self._known) >= MAX_MEMO_ENTRIES:
                self._known.clear()
            self._known[question] = (stamps, answer)
        return answer


def _is_settled(was: Stamp, begun: float) -> bool:
    return was is None or was[0] < begun - RACY_SECONDS


def _is_still(path: Path, was: Stamp) -> bool:
    if was is None and os.access in os.supports_follow_symlinks:
        # To find nothing, and be told so without an exception, is the quickest of all.
        return not os.access(path, os.F_OK, follow_symlinks=False)
    return _stamp(path) == was


def _stamp(path: Path) -> Stamp:
    """What is at a path, and of a link also what it leads to."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISLNK(status.st_mode):
        return _of(status)
    changed = status.st_ctime_ns
    try:
        target = _of(os.stat(path))
    except OSError:
        # It leads nowhere, or in a circle.
        target = (0,)
    return (max(changed // 10**9, target[0]), changed, status.st_ino, *target)


def _of(status: os.stat_result) -> tuple[int, ...]:
    if stat.S_ISREG(status.st_mode):
        changed = status.st_ctime_ns
        return (changed // 10**9, changed, status.st_mtime_ns, status.st_size, status.st_ino)
    # Of a folder it matters only that it is there, and which.
    return (0, stat.S_IFMT(status.st_mode), status.st_ino, status.st_dev)
