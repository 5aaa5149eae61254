"""Hunks: the parts of a difference that can be kept or undone one by one.

A hunk holds the lines of both sides and where they stand, and no context. Hunks of one difference
never touch each other, so any choice of them can be applied to the old content or reverted in the
new one. What is always true: applying some to old gives the same bytes as reverting the others in
new. Both look before they replace: content that is not what the hunk says is refused.
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
    """All hunks from old to new, in order; none when equal."""
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
    """`base` with the chosen ones of `hunks(base, new)`; all of them give exactly `new`.

    Raises ValueError when `base` does not hold the old lines of a hunk, or two hunks meet.
    """
    return _replace(base, [(hunk.old_start, hunk.old_lines, hunk.new_lines) for hunk in chosen])


def revert_hunks(new: bytes, chosen: Iterable[Hunk]) -> bytes:
    """`new` without the chosen ones of `hunks(old, new)`; all of them give exactly `old`.

    Raises ValueError when `new` does not hold the new lines of a hunk, or two hunks meet.
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
    barrier = -1  # where the hunk before ends; the next one must leave a line between
    for start, expected, wanted in sorted(changes):
        if start <= barrier:
            raise ValueError(f"Two hunks meet at line {start + 1}; take them from one difference.")
        end = start + len(expected)
        # An insertion says nothing of the lines around it, so at least its place must exist.
        if start > len(lines) or tuple(lines[start:end]) != expected:
            raise ValueError(
                f"Line {start + 1} is not what the hunk says; compute the hunks again."
            )
        result += lines[position:start]
        result += wanted
        position = barrier = end
    result += lines[position:]
    # Only the last line may lack its end: otherwise two lines would silently become one.
    if any(not line.endswith(b"\n") for line in result[:-1]):
        raise ValueError("The content ends elsewhere than the hunk says; compute the hunks again.")
    return b"".join(result)
