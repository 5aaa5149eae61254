"""What kind of step a change of the user's files is."""

from __future__ import annotations

import sys

from mulligan.core.tree import LINK, Change, Entry


def names_of(path: bytes) -> list[bytes]:
    """The names in a path, as the system tells them apart."""
    return (path.lower() if sys.platform in ("darwin", "win32") else path).split(b"/")


def is_folder(entry: Entry | None) -> bool:
    return entry is not None and entry.is_directory


def is_write(change: Change) -> bool:
    """Whether new bytes go to this path."""
    after = change.after
    return after is not None and not after.is_directory and not after.same_content(change.before)


def is_removal(change: Change) -> bool:
    """Whether a file goes away, leaving nothing or making room for a folder."""
    before, after = change.before, change.after
    return before is not None and not before.is_directory and (after is None or after.is_directory)


def wants_mode(change: Change) -> bool:
    before, after = change.before, change.after
    if after is None or after.kind == LINK:
        return False
    if after.is_directory:
        return before is None or not before.is_directory or before.mode != after.mode
    return after.same_content(before) and before is not None and before.mode != after.mode
