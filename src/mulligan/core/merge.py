"""Rebase edits from one version of a file onto another, line by line.

A session has a baseline; the disk differs from it by the session's pending work. When the user or
another session edits the disk, that edit joins the baseline, so that only the pending work differs
again. Reverting one author's edits is the same merge in the other direction.

Always true: a hunk is merged whole or returned as unplaced, with its lines left as they are. The
result consists of whole input lines. Callers treat binary files as a unit instead.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mulligan.core.diff import split_lines
from mulligan.core.hunks import Hunk, hunks

# (start, end) of lines, half-open, from 0; an empty span lies between two lines.
Span = tuple[int, int]


class MergedContent(NamedTuple):
    """The merged content, and the hunks that conflicted."""

    content: bytes
    unplaced: tuple[Hunk, ...]


def merge_edits(
    base: bytes,
    before: bytes,
    after: bytes,
    *,
    pending: Sequence[Hunk] | None = None,
    edits: Sequence[Hunk] | None = None,
) -> MergedContent:
    """Apply the edits from `before` to `after` to `base`: a three-way merge.

    The arguments are (ours, common, theirs). `unplaced` holds the hunks of `hunks(before, after)`
    that overlap a difference of `base` and `before`, unless they make those lines what they are in
    `base`. An edit next to a difference does not overlap it and stays on its side. An insertion
    where `before` lacks lines of `base` goes before those lines; lines that it restores are not
    duplicated. A hunk that would join two lines, because one lacks its newline, is unplaced.

    `pending` is `hunks(base, before)` and `edits` is `hunks(before, after)`, if known.
    """
    if base == before:
        return MergedContent(after, ())
    if after in (before, base):
        return MergedContent(base, ())
    if pending is None:
        pending = hunks(base, before)
    if edits is None:
        edits = hunks(before, after)
    lines = split_lines(base)
    result: list[bytes] = []
    position = 0
    clashes: list[_Clash] = []
    joining: list[Hunk] = []
    contacts = _contacts([_new(hunk) for hunk in pending], [_old(edit) for edit in edits])
    for edit, (first, stop) in zip(edits, contacts, strict=True):
        if stop > first:
            if not clashes or clashes[-1].pending[-1] is not pending[first]:
                clashes.append(_Clash([], [pending[first]]))
            clashes[-1].edits.append(edit)
            clashes[-1].pending.extend(pending[first + 1 : stop])
            continue
        place = _place(
            edit,
            pending[first - 1] if first else None,
            pending[first] if first < len(pending) else None,
        )
        if _joins_lines(place, lines):
            joining.append(edit)
            continue
        result += lines[position : place.start]
        result += place.lines
        position = place.end
    result += lines[position:]
    if clashes:
        after_lines = split_lines(after)
        clashes = [clash for clash in clashes if not clash.is_undone(lines, after_lines)]
    # Only the last line of `after` can lack its newline, so joining hunks come last.
    unplaced = [edit for clash in clashes for edit in clash.edits] + joining
    return MergedContent(b"".join(result), tuple(unplaced))


def touched(of: Sequence[Hunk], by: Sequence[Hunk]) -> set[int]:
    """Return the indexes in `of` of the hunks that overlap a hunk in `by`.

    Both are hunks to the same new version, in order; their positions in it are compared. Adjacent
    hunks do not overlap, but two deletions at one position do.
    """
    spans = [_new(hunk) for hunk in of]
    others = [_new(hunk) for hunk in by]
    overlapping: set[int] = set()
    for other, (first, stop) in zip(others, _contacts(spans, others), strict=True):
        overlapping.update(range(first, stop))
        if other[0] == other[1] and first and spans[first - 1] == other:
            overlapping.add(first - 1)
    return overlapping


def map_spans(
    spans: Sequence[Span], before: bytes, after: bytes, *, edits: Sequence[Hunk] | None = None
) -> list[Span]:
    """Map line spans of `before` to `after`, each on its own, in any order.

    A hunk that overlaps a span belongs to it with all its new lines; an adjacent hunk does not.
    Deleted lines map to an empty span. An empty span at an insertion maps to the inserted lines,
    because it could lie on either side of them.
    """
    if edits is None:
        edits = hunks(before, after)
    starts = [edit.old_start for edit in edits]
    moved: list[Span] = []
    for start, end in spans:
        new_start, new_end = start, end
        number = bisect_right(starts, start) - 1
        if number >= 0:
            old_end = _old(edits[number])[1]
            hunk_start, hunk_end = _new(edits[number])
            new_start = hunk_start if start < old_end else hunk_end + start - old_end
        number = bisect_left(starts, end) - 1
        if number >= 0:
            old_end = _old(edits[number])[1]
            new_end = _new(edits[number])[1] + max(end - old_end, 0)
        # An empty span at an insertion maps to its ends in reverse order.
        moved.append((min(new_start, new_end), max(new_start, new_end)))
    return moved


class _Place(NamedTuple):
    """A range of lines in `base`, and the lines to replace it with."""

    start: int
    end: int
    lines: tuple[bytes, ...]


class _Clash(NamedTuple):
    """Edits and pending hunks that overlap, directly or transitively."""

    edits: list[Hunk]
    pending: list[Hunk]

    def is_undone(self, base: list[bytes], after: list[bytes]) -> bool:
        """True if the edits restored what `base` holds."""
        first, last = self.pending[0], self.pending[-1]
        first_edit, last_edit = self.edits[0], self.edits[-1]
        start = min(first.new_start, first_edit.old_start)
        end = max(_new(last)[1], _old(last_edit)[1])
        # Outside the clash, the lines of all three versions correspond one to one.
        base_start = first.old_start - (first.new_start - start)
        base_end = _old(last)[1] + (end - _new(last)[1])
        after_start = first_edit.new_start - (first_edit.old_start - start)
        after_end = _new(last_edit)[1] + (end - _old(last_edit)[1])
        return base[base_start:base_end] == after[after_start:after_end]


def _old(hunk: Hunk) -> Span:
    return hunk.old_start, hunk.old_start + len(hunk.old_lines)


def _new(hunk: Hunk) -> Span:
    return hunk.new_start, hunk.new_start + len(hunk.new_lines)


def _contacts(spans: Sequence[Span], by: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield, for each span in `by`, the index range of `spans` that overlap it.

    Spans overlap if they share a line, or if one is empty and strictly inside the other.
    """
    first = 0
    for start, end in by:
        while first < len(spans) and spans[first][1] <= start:
            first += 1
        stop = first
        while stop < len(spans) and spans[stop][0] < end:
            stop += 1
        yield first, stop


def _place(edit: Hunk, previous: Hunk | None, following: Hunk | None) -> _Place:
    """Return the place in `base` of an edit between two pending hunks.

    If the edit restores adjacent lines that a pending hunk deleted, `base` has them already: the
    place then covers them, so that they are not duplicated.
    """
    start, end = _old(edit)
    lines = edit.new_lines
    above, below = _deleted_at(previous, start), _deleted_at(following, end)
    if previous is not None:
        shift = _old(previous)[1] - _new(previous)[1]
        start, end = start + shift, end + shift
    if above and not edit.old_lines:
        start -= len(above)
        if _is_subsequence(lines, above):
            return _Place(start, end, above)
        if _is_subsequence(above, lines):
            return _Place(start, end, lines)
        return _Place(start, start, lines)
    if above and lines[: len(above)] == above:
        return _Place(start - len(above), end, lines)
    if below and lines[-len(below) :] == below:
        return _Place(start, end + len(below), lines)
    return _Place(start, end, lines)


def _deleted_at(hunk: Hunk | None, place: int) -> tuple[bytes, ...]:
    """Return the lines that a pure deletion removed at exactly this place."""
    if hunk is None or hunk.new_lines or hunk.new_start != place:
        return ()
    return hunk.old_lines


def _is_subsequence(some: tuple[bytes, ...], lines: tuple[bytes, ...]) -> bool:
    """True if `some` are among `lines`, in the same order."""
    rest = iter(lines)
    return all(line in rest for line in some)


def _joins_lines(place: _Place, base: list[bytes]) -> bool:
    """True if a line without newline would be followed by another line."""
    if not place.lines:
        return False
    if place.end < len(base):
        return not place.lines[-1].endswith(b"\n")
    return 0 < place.start == len(base) and not base[-1].endswith(b"\n")
