"""Changes: the data of a file_edit entry, from what a log tells about a change.

A log seldom holds both versions of a file. A diff is written where it can be: from the pieces
that were replaced, from the whole of a new file, or as the agent itself wrote it down.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from mulligan.core.diff import compare, quoted, split_lines

_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def created(path: str, content: str) -> dict[str, Any]:
    """A file that was not there before."""
    return _data(path, "create", [("", content)])


def overwritten(path: str, content: str) -> dict[str, Any]:
    """A file that got a new content, while nobody wrote down the old one."""
    lines = len(split_lines(content.encode()))
    return {"path": path, "operation": "modify", "additions": lines}


def replaced(path: str, pieces: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Pieces of a file, old and new.

    Where in the file a piece stood is not known, so the lines of each are counted from 1.
    """
    return _data(path, "modify", pieces)


def unified(path: str, operation: str, diff: str) -> dict[str, Any]:
    """A change of which the log holds the unified diff."""
    additions, deletions = _counts(diff)
    return {
        "path": path,
        "operation": operation,
        "diff": diff,
        "additions": additions,
        "deletions": deletions,
    }


def heads(path: str, operation: str) -> str:
    """The two lines above the hunks of a unified diff."""
    old = "/dev/null" if operation == "create" else _name("a", path)
    new = "/dev/null" if operation == "delete" else _name("b", path)
    return f"--- {old}\n+++ {new}\n"


def _name(side: str, path: str) -> str:
    name = quoted(f"{side}/{path.lstrip('/')}".encode()).decode()
    # Readers take a tab as the end of a name, and would otherwise stop at the space.
    return f"{name}\t" if " " in name else name


def _data(path: str, operation: str, pieces: Iterable[tuple[str, str]]) -> dict[str, Any]:
    hunks: list[str] = []
    additions = deletions = 0
    for old, new in pieces:
        diff, more, less = compare(old.encode(), new.encode(), old_name=b"a", new_name=b"b")
        hunks += diff.decode(errors="replace").split("\n", 2)[2:]
        additions += more
        deletions += less
    data = {"path": path, "operation": operation, "additions": additions, "deletions": deletions}
    return {**data, "diff": heads(path, operation) + "".join(hunks)} if hunks else data


def _counts(diff: str) -> tuple[int, int]:
    """Additions and deletions, told from the headers of files by the lengths of the hunks."""
    additions = deletions = old = new = 0
    for line in diff.split("\n"):
        if old <= 0 and new <= 0:
            if hunk := _HUNK.match(line):
                old, new = (1 if length is None else int(length[:9]) for length in hunk.groups())
        elif line.startswith("+"):
            additions += 1
            new -= 1
        elif line.startswith("-"):
            deletions += 1
            old -= 1
        elif not line.startswith("\\"):
            old -= 1
            new -= 1
    return additions, deletions
