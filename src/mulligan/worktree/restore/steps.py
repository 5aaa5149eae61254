"""Tell which step of a restore a change needs."""

from __future__ import annotations

import sys

from mulligan.core.tree import LINK, Change, Entry


def names_of(path: bytes) -> list[bytes]:
    """Return the components of a path, in lower case where the system ignores case."""
    return (path.lower() if sys.platform in ("darwin", "win32") else path).split(b"/")


def is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.is_directory


def is_write(change: Change) -> bool:
    """Return whether new content is written to this path."""
    after = change.after
    return after is not None and not after.is_directory and not after.same_content(change.before)


def is_removal(change: Change) -> bool:
    """Return whether a file is removed, perhaps for a directory."""
    before, after = change.before, change.after
    return before is not None and not before.is_directory and (after is None or after.is_directory)


def needs_mode(change: Change) -> bool:
    """Return whether only the mode changes, or a directory is created."""
    before, after = change.before, change.after
    if after is None or after.kind == LINK:
        return False
    if after.is_directory:
        return before is None or not before.is_directory or before.mode != after.mode
    return after.same_content(before) and before is not None and before.mode != after.mode
