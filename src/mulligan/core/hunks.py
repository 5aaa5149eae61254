"""Split a diff into hunks; apply or revert any choice of them.

A hunk holds the lines of both sides and their positions, without context. Hunks of one diff are
never adjacent, so each can be applied or reverted alone. Always true: applying some to old gives
the same bytes as reverting the others in new. Content that does not match a hunk is refused.
"""

from collections.abc import Iterable
from typing import NamedTuple

from mulligan.core.diff import changed_ranges, split_lines


class Hunk(NamedTuple):
    """One contiguous difference between two versions; line numbers count from 0."""

    old_start: int
    old_lines: tuple[bytes, ...]
    new_start: int
    new_lines: tuple[bytes, ...]

    @property
    def additions(self) -> int:
        return len(self.new_lines)

    @property
    def deletions(self) -> int:
        return len(self.old_lines)


def hunks(old: bytes, new: bytes) -> list[Hunk]:
    """Return all hunks from old to new, in order."""
    if old == new:
        return []
    old_lines, new_lines = split_lines(old), split_lines(new)
    return [
        Hunk(
            old_start,
            tuple(old_lines[old_start:old_end]),
            new_start,
            tuple(new_lines[new_start:new_end]),
        )
        for old_start, old_end, new_start, new_end in changed_ranges(old_lines, new_lines)
    ]


def apply_hunks(base: bytes, chosen: Iterable[Hunk]) -> bytes:
    """Apply chosen hunks of `hunks(base, new)`; all of them give exactly `new`.

    Raises `ValueError` if `base` lacks a hunk's old lines, or two hunks meet.
    """
    return _replace(base, [(hunk.old_start, hunk.old_lines, hunk.new_lines) for hunk in chosen])


def revert_hunks(new: bytes, chosen: Iterable[Hunk]) -> bytes:
    """Revert chosen hunks of `hunks(old, new)`; all of them give exactly `old`.

    Raises `ValueError` if `new` lacks a hunk's new lines, or two hunks meet.
    """
    return _replace(new, [(hunk.new_start, hunk.new_lines, hunk.old_lines) for hunk in chosen])


def _replace(
    content: bytes, changes: list[tuple[int, tuple[bytes, ...], tuple[bytes, ...]]]
) -> bytes:
    if not changes:
        return content
    lines = split_lines(content)
    result: list[bytes] = []
    position = 0
    previous_end = -1  # at least one line must lie between two hunks
    for start, expected, wanted in sorted(changes):
        if start <= previous_end:
            raise ValueError(f"Two hunks meet at line {start + 1}; take them from one diff.")
        end = start + len(expected)
        # An insertion has no old lines to compare, but its position must exist.
        if start > len(lines) or tuple(lines[start:end]) != expected:
            raise ValueError(f"Line {start + 1} does not match the hunk; compute the hunks again.")
        result += lines[position:start]
        result += wanted
        position = previous_end = end
    result += lines[position:]
    # A line without newline in the middle would silently join two lines into one.
    if any(not line.endswith(b"\n") for line in result[:-1]):
        raise ValueError("The end of the content does not match; compute the hunks again.")
    return b"".join(result)
