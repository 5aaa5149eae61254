"""Memoize results that depend on files; a result is valid while their stats are equal.

A file changed shortly before it was read could change again with the same stat (racily clean): a
result that depends on such a file is not kept.
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

_recorded: ContextVar[dict[Path, Stamp] | None] = ContextVar("recorded", default=None)


def depends_on(path: P) -> P:
    """Record that the running computation depends on a path; call before reading it.

    Returns the path. A path that does not exist counts, too.
    """
    stamps = _recorded.get()
    if stamps is not None:
        stamps.setdefault(path, _stamp(path))
    return path


class StatMemo(Generic[T]):
    """A cache of results, each with the stamps of its files."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, tuple[dict[Path, Stamp], T]] = {}

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the cached result while its files are unchanged, else compute it."""
        entry = self._entries.get(key)
        if entry is not None and all(_is_unchanged(*recorded) for recorded in entry[0].items()):
            return entry[1]
        stamps: dict[Path, Stamp] = {}
        started = now_s()
        token = _recorded.set(stamps)
        try:
            result = compute()
        finally:
            _recorded.reset(token)
        self._entries.pop(key, None)
        if not any(_is_racy(stamp, started) for stamp in stamps.values()):
            if len(self._entries) >= MAX_MEMO_ENTRIES:
                self._entries.clear()
            self._entries[key] = (stamps, result)
        return result


def _is_racy(stamp: Stamp, started: float) -> bool:
    return stamp is not None and stamp[0] >= started - RACY_SECONDS


def _is_unchanged(path: Path, stamp: Stamp) -> bool:
    if stamp is None and os.access in os.supports_follow_symlinks:
        # Faster than a stat that raises.
        return not os.access(path, os.F_OK, follow_symlinks=False)
    return _stamp(path) == stamp


def _stamp(path: Path) -> Stamp:
    """Return what identifies a file, or a link and its target; `None` if missing."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISLNK(status.st_mode):
        return _identity(status)
    changed = status.st_ctime_ns
    try:
        target = _identity(os.stat(path))
    except OSError:
        target = (0,)  # dangling, or a loop
    return (max(changed // 10**9, target[0]), changed, status.st_ino, *target)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    if stat.S_ISREG(status.st_mode):
        changed = status.st_ctime_ns
        return (changed // 10**9, changed, status.st_mtime_ns, status.st_size, status.st_ino)
    # Of a directory only its existence and identity matter.
    return (0, stat.S_IFMT(status.st_mode), status.st_ino, status.st_dev)
