"""Changes that were made to one version, carried over to another one.

A session has a baseline; the disk differs from it by the session's pending work. When somebody
else changes the disk, their change is to join the baseline, so that what differs is the pending
work again and nothing else. Taking back what one of several wrote is the same thing the other way
round. Both are `fold`.

What is always true: a change is carried over whole or it is handed back. Where it overlaps what
differs between the two versions it is handed back, and those lines stay as they are. The result
is made of whole lines of what was handed in. Lines are those of `split_lines`, so a file that
makes no sense as lines (`is_binary`) should be taken whole instead.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mulligan.core.diff import split_lines
from mulligan.core.hunks import Hunk, hunks

# (start, end) of lines, half-open, counted from 0; empty is a place between two lines.
Span = tuple[int, int]


class MergedContent(NamedTuple):
    """A content with somebody's changes in it, and the changes that found no place there."""

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
    """`base` with those changes from `before` to `after` that lie where `base` and `before` agree.

    `left` are the hunks of `hunks(before, after)` that overlap a difference of `base` and
    `before`; a hunk that makes such a place what it is in `base` is done already and not left.
    Next to a difference is not in it: the change goes to that side of the lines in `base`. An
    insertion where `before` lacks lines of `base` goes before those lines; lines that it puts
    back are not doubled.

    A change that would join two lines into one, because one of them has no end, is left.
    Whoever has `hunks(base, before)` or `hunks(before, after)` hands them in as `pending` and
    `edits`. A three-way merge is `fold(ours, common, theirs)`.
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
    unfit: list[Hunk] = []
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
            unfit.append(edit)
            continue
        result += lines[position : place.start]
        result += place.lines
        position = place.end
    result += lines[position:]
    if clashes:
        after_lines = split_lines(after)
        clashes = [clash for clash in clashes if not clash.is_undone(lines, after_lines)]
    # Only the last line of `after` can be without its end, so what is unfit comes last.
    left = [edit for clash in clashes for edit in clash.edits] + unfit
    return MergedContent(b"".join(result), tuple(left))


def take_back(present: bytes, after: bytes, before: bytes) -> MergedContent:
    """`present` without what led from `before` to `after`; what others did since stays.

    `left` are the hunks of `hunks(after, before)` that overlap what others did.
    """
    return merge_edits(present, after, before)


def touched(of: Sequence[Hunk], by: Sequence[Hunk]) -> set[int]:
    """Which of the first hunks overlap one of the second, by number.

    Both come from differences with the same new version, in order, and it is their places there
    that count. Next to each other is not overlapping, but two deletions at one place are.
    """
    spans = [_new(hunk) for hunk in of]
    others = [_new(hunk) for hunk in by]
    found: set[int] = set()
    for other, (first, stop) in zip(others, _contacts(spans, others), strict=True):
        found.update(range(first, stop))
        if other[0] == other[1] and first and spans[first - 1] == other:
            found.add(first - 1)
    return found


def carried(
    spans: Sequence[Span], before: bytes, after: bytes, *, edits: Sequence[Hunk] | None = None
) -> list[Span]:
    """Where spans of lines in `before` are in `after`, each for itself and in any order.

    A hunk that a span reaches into belongs to it with all its new lines; one that is next to it
    does not. So lines that were replaced become the lines that replaced them, and lines that
    were deleted become the place where they were. An empty span at which lines were inserted
    becomes these lines: nobody can say on which side of them it is.
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
        # The two change places for an empty span at which lines were inserted.
        moved.append((min(new_start, new_end), max(new_start, new_end)))
    return moved


class _Place(NamedTuple):
    """Lines of `base` and what is to stand there instead."""

    start: int
    end: int
    lines: tuple[bytes, ...]


class _Clash(NamedTuple):
    """Edits and pending hunks that overlap, directly or through each other."""

    edits: list[Hunk]
    pending: list[Hunk]

    def is_undone(self, base: list[bytes], after: list[bytes]) -> bool:
        """Whether the edits led back to what is in `base`, so that nothing is left to do."""
        first, last = self.pending[0], self.pending[-1]
        first_edit, last_edit = self.edits[0], self.edits[-1]
        start = min(first.new_start, first_edit.old_start)
        end = max(_new(last)[1], _old(last_edit)[1])
        # From there to the first change, and from the last change to there, all are the same.
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
    """For each of the second spans, which of the first overlap it: the numbers first to stop.

    Spans overlap when they share a line, or one is empty and strictly inside the other. Those
    before `first` end before the other span or where it begins.
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
    """Where in `base` an edit belongs that lies between two pending hunks.

    Lines that `before` lacks right beside the edit, and that the edit puts back, are in `base`
    already: the place then takes them in, so that they are not there twice.
    """
    start, end = _old(edit)
    lines = edit.new_lines
    above, below = _lacking(previous, start), _lacking(following, end)
    if previous is not None:
        shift = _old(previous)[1] - _new(previous)[1]
        start, end = start + shift, end + shift
    if above and not edit.old_lines:
        start -= len(above)
        if _within(lines, above):
            return _Place(start, end, above)
        if _within(above, lines):
            return _Place(start, end, lines)
        return _Place(start, start, lines)
    if above and lines[: len(above)] == above:
        return _Place(start - len(above), end, lines)
    if below and lines[-len(below) :] == below:
        return _Place(start, end + len(below), lines)
    return _Place(start, end, lines)


def _lacking(hunk: Hunk | None, place: int) -> tuple[bytes, ...]:
    """The lines of `base` that a pending hunk deleted at exactly this place, and nothing else."""
    if hunk is None or hunk.new_lines or hunk.new_start != place:
        return ()
    return hunk.old_lines


def _within(some: tuple[bytes, ...], lines: tuple[bytes, ...]) -> bool:
    """Whether some lines are among the others, in the same order."""
    rest = iter(lines)
    return all(line in rest for line in some)


def _joins_lines(place: _Place, base: list[bytes]) -> bool:
    """Whether a line without an end would be followed by another line."""
    if not place.lines:
        return False
    if place.end < len(base):
        return not place.lines[-1].endswith(b"\n")
    return 0 < place.start == len(base) and not base[-1].endswith(b"\n")
