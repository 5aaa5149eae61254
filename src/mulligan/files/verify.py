"""Reading back what was changed: whether each path now holds what it should."""

from __future__ import annotations

from collections.abc import Iterable

from mulligan.core.tree import LINK, Change, Entry
from mulligan.files.reach import Directories, looks_like, status_of
from mulligan.files.spread import spread


def verify(root: bytes, changes: Iterable[Change]) -> list[bytes]:
    """The paths that do not hold what they should after these changes, read back from the disk."""
    changes = list(changes)
    wrong = set()

    def compare(directories: Directories, change: Change) -> None:
        directory, _slash, name = change.path.rpartition(b"/")
        if not _is_right(directories.open_if_there(directory), name, change.after):
            wrong.add(change.path)

    spread(root, changes, compare)
    return [change.path for change in changes if change.path in wrong]


def _is_right(parent: int | None, name: bytes, after: Entry | None) -> bool:
    status = status_of(parent, name) if parent is not None else None
    if after is None or status is None or parent is None:
        return after is None and status is None
    if after.kind != LINK and status.st_mode & 0o7777 != after.mode:
        return False
    return looks_like(parent, name, after, status)
