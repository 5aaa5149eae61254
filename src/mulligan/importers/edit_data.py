"""Build the data of file_edit entries from an agent's account of a change.

A log seldom holds both versions of a file. A diff is built from the replaced pieces or from the
content of a new file, or taken over as the agent wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from mulligan.core.diff import compare, quoted, split_lines

_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def created(path: str, content: str) -> dict[str, Any]:
    """Describe a new file."""
    return _from_pieces(path, "create", [("", content)])


def overwritten(path: str, content: str) -> dict[str, Any]:
    """Describe a file whose old content the log does not hold."""
    lines = len(split_lines(content.encode()))
    return {"path": path, "operation": "modify", "additions": lines}


def replaced(path: str, pieces: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Describe replaced pieces of a file, given as (old, new).

    Logs do not say at which line a piece stood, so each hunk is numbered from line 1.
    """
    return _from_pieces(path, "modify", pieces)


def from_diff(path: str, operation: str, diff: str) -> dict[str, Any]:
    """Describe a change by the unified diff in the log."""
    additions, deletions = _count_lines(diff)
    return {
        "path": path,
        "operation": operation,
        "diff": diff,
        "additions": additions,
        "deletions": deletions,
    }


def diff_header(path: str, operation: str) -> str:
    """Return the `---` and `+++` lines of a unified diff."""
    old = "/dev/null" if operation == "create" else _header_name("a", path)
    new = "/dev/null" if operation == "delete" else _header_name("b", path)
    return f"--- {old}\n+++ {new}\n"


def _header_name(side: str, path: str) -> str:
    name = quoted(f"{side}/{path.lstrip('/')}".encode()).decode()
    # Without the tab, patch programs end the name at its first space.
    return f"{name}\t" if " " in name else name


def _from_pieces(path: str, operation: str, pieces: Iterable[tuple[str, str]]) -> dict[str, Any]:
    hunks: list[str] = []
    additions = deletions = 0
    for old, new in pieces:
        diff, added, deleted = compare(old.encode(), new.encode(), old_name=b"a", new_name=b"b")
        hunks += diff.decode(errors="replace").split("\n", 2)[2:]
        additions += added
        deletions += deleted
    data = {"path": path, "operation": operation, "additions": additions, "deletions": deletions}
    return {**data, "diff": diff_header(path, operation) + "".join(hunks)} if hunks else data


def _count_lines(diff: str) -> tuple[int, int]:
    """Count added and deleted lines, using the lengths in the hunk headers.

    Without the lengths, `---` and `+++` headers would count as lines.
    """
    additions = deletions = old_left = new_left = 0
    for line in diff.split("\n"):
        if old_left <= 0 and new_left <= 0:
            if hunk := _HUNK.match(line):
                old_left, new_left = (
                    1 if length is None else int(length[:9]) for length in hunk.groups()
                )
        elif line.startswith("+"):
            additions += 1
            new_left -= 1
        elif line.startswith("-"):
            deletions += 1
            old_left -= 1
        elif not line.startswith("\\"):
            old_left -= 1
            new_left -= 1
    return additions, deletions
