"""Test merges of edits into another version, one row for each shape.

In most rows a letter is a line. `base` is the session's baseline, `before` is the disk with the
session's edits, and `after` is the disk with another author's edits on top.
"""

from __future__ import annotations

import random

import pytest

from mulligan.core.hunks import Hunk, hunks
from mulligan.core.merge import MergedContent, Span, map_spans, merge_edits, touched


def content(letters: str) -> bytes:
    return b"".join(letter.encode() + b"\n" for letter in letters)


def hunk(old_start: int, old: str, new_start: int, new: str) -> Hunk:
    return Hunk(
        old_start,
        tuple(letter.encode() + b"\n" for letter in old),
        new_start,
        tuple(letter.encode() + b"\n" for letter in new),
    )


def check(base: bytes, before: bytes, after: bytes, wanted: bytes, left: list[Hunk]) -> None:
    """Check the result, with and without hunks that the caller passes in."""
    merged = merge_edits(base, before, after)
    assert merged == MergedContent(wanted, tuple(left))
    ready = merge_edits(
        base, before, after, pending=hunks(base, before), edits=tuple(hunks(before, after))
    )
    assert ready == merged
    assert set(left) <= set(hunks(before, after))


def lines_of(old: bytes, new: bytes) -> tuple[list[bytes], list[bytes]]:
    """Return all lines that a diff deletes, and all that it adds."""
    found = hunks(old, new)
    return (
        [line for hunk in found for line in hunk.old_lines],
        [line for hunk in found for line in hunk.new_lines],
    )


@pytest.mark.parametrize(
    ("base", "before", "after", "wanted"),
    [
        # Far from each other, and the other way round.
        ("abcdef", "aBcdef", "aBcdEf", "abcdEf"),
        ("abcdef", "abcdEf", "aBcdEf", "aBcdef"),
        ("abcdef", "aXYbcdef", "aXYbcdf", "abcdf"),
        ("abcdef", "adef", "adeXf", "abcdeXf"),
        ("abcdefgh", "aBcdeFgh", "ZaBcdXeFgY", "ZabcdXefgY"),
        # Beside lines that the session changed.
        ("abcd", "abXd", "aZXd", "aZcd"),
        ("abcd", "aXcd", "aXZd", "abZd"),
        ("abcd", "aXcd", "aXd", "abd"),
        ("abcd", "aXcd", "aZXcd", "aZbcd"),
        ("abcd", "aXcd", "aXZcd", "abZcd"),
        # Beside lines that the session inserted: before, behind, both.
        ("abcd", "abXcd", "aZXcd", "aZcd"),
        ("abcd", "abXcd", "abXZd", "abZd"),
        ("abcd", "abXcd", "abZXcd", "abZcd"),
        ("abcd", "abXcd", "abXZcd", "abZcd"),
        ("abcd", "abXcd", "abYXZcd", "abYZcd"),
        ("abcd", "abXcd", "aYXZd", "aYZd"),
        # Beside the place where the session deleted lines.
        ("abcd", "acd", "Zcd", "Zbcd"),
        ("abcd", "acd", "aZd", "abZd"),
        ("abcd", "acd", "cd", "bcd"),
        ("abcd", "acd", "ad", "abd"),
        ("abcd", "acd", "aZcd", "aZbcd"),
        # At the beginning, at the end, and where nothing else is.
        ("ab", "b", "Zb", "Zab"),
        ("ab", "a", "aZ", "aZb"),
        ("ab", "", "Z", "Zab"),
        ("", "ab", "Zab", "Z"),
        ("", "ab", "abZ", "Z"),
        ("", "ab", "YabZ", "YZ"),
    ],
)
def test_a_change_beside_pending_work_joins_the_base(
    base: str, before: str, after: str, wanted: str
) -> None:
    check(content(base), content(before), content(after), content(wanted), [])
    # What is pending now is what was pending.
    assert lines_of(content(wanted), content(after)) == lines_of(content(base), content(before))


@pytest.mark.parametrize(
    ("base", "before", "after", "wanted", "left"),
    [
        ("abc", "aXc", "aZc", "abc", [hunk(1, "X", 1, "Z")]),
        ("abc", "aXc", "ac", "abc", [hunk(1, "X", 1, "")]),
        ("abc", "aXc", "aZ", "abc", [hunk(1, "Xc", 1, "Z")]),
        ("abc", "aXYc", "aXZYc", "abc", [hunk(2, "", 2, "Z")]),
        ("abc", "aXYc", "aXc", "abc", [hunk(2, "Y", 2, "")]),
        ("abcde", "abde", "aZe", "abcde", [hunk(1, "bd", 1, "Z")]),
        # The other hunks of the same change go their way.
        ("abcde", "aXcde", "aZcdE", "abcdE", [hunk(1, "X", 1, "Z")]),
        ("abcde", "aXcYe", "ZXcWe", "Zbcde", [hunk(3, "Y", 3, "W")]),
        # One change over several hunks, and several over one.
        ("abcde", "aXcYe", "aWe", "abcde", [hunk(1, "XcY", 1, "W")]),
        ("ab", "aXYZUVb", "aXMZNVb", "ab", [hunk(2, "Y", 2, "M"), hunk(4, "U", 4, "N")]),
    ],
)
def test_an_edit_that_overlaps_pending_work_is_unplaced(
    base: str, before: str, after: str, wanted: str, left: list[Hunk]
) -> None:
    check(content(base), content(before), content(after), content(wanted), left)


@pytest.mark.parametrize(
    ("base", "before", "after", "wanted"),
    [
        # A replacement, an insertion and a deletion; a change elsewhere goes along.
        ("abcdef", "aBcdeF", "abcdeF", "abcdef"),
        ("abcdef", "aXbcdeF", "abcdeF", "abcdef"),
        ("abcdef", "acdeF", "abcdeF", "abcdef"),
        ("abcdef", "aBcdef", "abcdZf", "abcdZf"),
        ("abcdef", "acdef", "abcdZf", "abcdZf"),
        # Two hunks undone with one change.
        ("abcdefg", "aBcDefG", "abcdefG", "abcdefg"),
        # Everything.
        ("abc", "", "abc", "abc"),
        ("", "abc", "", ""),
    ],
)
def test_an_edit_that_restores_the_base_is_not_unplaced(
    base: str, before: str, after: str, wanted: str
) -> None:
    check(content(base), content(before), content(after), content(wanted), [])


@pytest.mark.parametrize(
    ("base", "before", "after", "wanted"),
    [
        # Some of the deleted lines, all of them, and more.
        ("abcdeZ", "aeY", "abeY", "abcdeZ"),
        ("abcdeZ", "aeY", "abdeY", "abcdeZ"),
        ("abcdeZ", "aeY", "abcdeY", "abcdeZ"),
        ("abcdeZ", "aeY", "aWbcdVeY", "aWbcdVeZ"),
        # Together with a change of the line above or below.
        ("abcdZ", "adY", "abcDY", "abcDZ"),
        ("abcdZ", "adY", "AbcdY", "AbcdZ"),
    ],
)
def test_restored_lines_are_not_duplicated(base: str, before: str, after: str, wanted: str) -> None:
    check(content(base), content(before), content(after), content(wanted), [])


@pytest.mark.parametrize(
    ("base", "before", "after", "wanted"),
    [
        # The last line loses its end, gets one, or was never given one.
        (b"a\nb\nc\n", b"A\nb\nc\n", b"A\nb\nc", b"a\nb\nc"),
        (b"a\nb\nc", b"A\nb\nc", b"A\nb\nc\n", b"a\nb\nc\n"),
        (b"a\nb\nc", b"A\nb\nc", b"A\nb\nc\nd", b"a\nb\nc\nd"),
        (b"a\nb", b"a\n", b"a\nc\n", b"a\nc\nb"),
        (b"a\nb", b"a\n", b"a\nb", b"a\nb"),
        # Nothing at all against one empty line, and blank lines among each other.
        (b"", b"\n", b"z\n\n", b"z\n"),
        (b"a\n\n\nb\n", b"a\n\n\nB\n", b"a\n\n\n\nB\n", b"a\n\n\n\nb\n"),
        # Line ends are part of the line.
        (b"a\r\nb\r\nc\r\n", b"A\r\nb\r\nc\r\n", b"A\r\nb\r\nc\n", b"a\r\nb\r\nc\n"),
        (b"a\rb\nc\nd\n", b"a\rB\nc\nd\n", b"a\rB\nc\nd\re", b"a\rb\nc\nd\re"),
        (b"\xff\n\0\nx\n", b"\xfe\n\0\nx\n", b"\xfe\n\0\n\xf0", b"\xff\n\0\n\xf0"),
    ],
)
def test_line_endings_are_merged_exactly(
    base: bytes, before: bytes, after: bytes, wanted: bytes
) -> None:
    check(base, before, after, wanted, [])


@pytest.mark.parametrize(
    ("base", "before", "after"),
    [
        # The line that lost its end is not the last one in the base.
        (b"a\nb\nc\n", b"a\nb\n", b"a\nb"),
        (b"a\nb\nc\n", b"a\nb\n", b"a\nb\nd"),
        (b"a\nb\n", b"a\n", b"a\nb"),
        # The base ends without an end where lines are added.
        (b"a\nb", b"a\nb\nc\n", b"a\nb\nc\nd\n"),
        (b"a", b"b\n", b"b\nc"),
        (b"a", b"", b"b"),
    ],
)
def test_two_lines_never_become_one(base: bytes, before: bytes, after: bytes) -> None:
    check(base, before, after, base, hunks(before, after))
    # A change elsewhere is not held up by it.
    left = hunks(b"y\nx\n" + before, b"z\nx\n" + after)[1:]
    check(b"y\nx\n" + base, b"y\nx\n" + before, b"z\nx\n" + after, b"z\nx\n" + base, left)


@pytest.mark.parametrize("data", [b"", b"a", b"a\n", b"\n", b"\r\nb"])
@pytest.mark.parametrize("other", [b"", b"c", b"a\nc\n"])
def test_where_two_versions_are_equal_the_third_is_the_answer(data: bytes, other: bytes) -> None:
    assert merge_edits(data, data, other) == MergedContent(other, ())
    assert merge_edits(other, data, data) == MergedContent(other, ())
    assert merge_edits(data, other, data) == MergedContent(data, ())


@pytest.mark.parametrize(
    ("before", "after", "present", "wanted", "left"),
    [
        # Others wrote above, below and right beside.
        ("abc", "aXc", "ZaXcY", "ZabcY", []),
        ("abc", "aXbc", "aXYbc", "aYbc", []),
        ("abc", "aXbc", "aYXbc", "aYbc", []),
        ("abc", "ac", "aYc", "abYc", []),
        # No edits since, or the edit is reverted already.
        ("abc", "aXc", "aXc", "abc", []),
        ("abcd", "aXcd", "abcD", "abcD", []),
        # Others have changed the same lines: theirs stay, and the rest is taken back.
        ("abc", "aXc", "aYc", "aYc", [hunk(1, "X", 1, "b")]),
        ("abcde", "AbcdE", "AbcdY", "abcdY", [hunk(4, "E", 4, "e")]),
    ],
)
def test_reverting_keeps_later_edits_of_others(
    before: str, after: str, present: str, wanted: str, left: list[Hunk]
) -> None:
    taken = merge_edits(content(present), content(after), content(before))
    assert taken == MergedContent(content(wanted), tuple(left))


@pytest.mark.parametrize(
    ("of", "by", "numbers"),
    [
        ([], [], set()),
        ([(1, 2)], [], set()),
        ([], [(1, 2)], set()),
        # Sharing lines, next to each other, apart.
        ([(1, 3)], [(2, 4)], {0}),
        ([(1, 3)], [(1, 3)], {0}),
        ([(1, 3)], [(3, 4)], set()),
        ([(3, 4)], [(1, 3)], set()),
        ([(1, 2)], [(5, 6)], set()),
        # A deletion inside, at the border, and two at one place.
        ([(1, 3)], [(2, 2)], {0}),
        ([(2, 2)], [(1, 3)], {0}),
        ([(1, 3)], [(1, 1)], set()),
        ([(1, 3)], [(3, 3)], set()),
        ([(3, 3)], [(1, 3)], set()),
        ([(1, 1)], [(1, 3)], set()),
        ([(1, 1)], [(1, 1)], {0}),
        ([(1, 1)], [(2, 2)], set()),
        # One over many, many over one.
        ([(0, 1), (2, 2), (4, 6), (8, 9)], [(1, 5)], {1, 2}),
        ([(1, 9)], [(0, 2), (4, 5), (8, 12)], {0}),
        ([(0, 2), (4, 6), (8, 8), (10, 12)], [(1, 1), (6, 7), (8, 8), (11, 20)], {0, 2, 3}),
    ],
)
def test_touched_hunks_overlap_in_the_new_version(
    of: list[Span], by: list[Span], numbers: set[int]
) -> None:
    def at(spans: list[Span]) -> list[Hunk]:
        # The old side does not matter.
        return [Hunk(100, (), start, (b"x\n",) * (end - start)) for start, end in spans]

    assert touched(at(of), at(by)) == numbers


@pytest.mark.parametrize(
    ("before", "after", "span", "wanted"),
    [
        # Nothing happened, or it happened above or below.
        ("abcd", "abcd", (1, 3), (1, 3)),
        ("abcd", "XYabcd", (1, 3), (3, 5)),
        ("abcd", "bcd", (1, 3), (0, 2)),
        ("abcd", "abcdXY", (1, 3), (1, 3)),
        # Replaced: wholly, as part of more, in part, and only the neighbours.
        ("abcd", "aXYZd", (1, 3), (1, 4)),
        ("abcd", "XYZ", (1, 3), (0, 3)),
        ("abcd", "aXYcd", (1, 3), (1, 4)),
        ("abcd", "abXYd", (1, 3), (1, 4)),
        ("abcdef", "abXYZf", (1, 4), (1, 5)),
        ("abcd", "XYbcZ", (1, 3), (2, 4)),
        # Deleted.
        ("abcd", "ad", (1, 3), (1, 1)),
        ("abcd", "acd", (1, 3), (1, 2)),
        ("abcd", "", (1, 3), (0, 0)),
        # Lines inserted inside belong to it, those at its borders do not.
        ("abcd", "abXcd", (1, 3), (1, 4)),
        ("abcd", "aXbcd", (1, 3), (2, 4)),
        ("abcd", "abcXd", (1, 3), (1, 3)),
        # A place between two lines.
        ("abcd", "Xabcd", (2, 2), (3, 3)),
        ("abcd", "abXYcd", (2, 2), (2, 4)),
        ("abcd", "aXYZd", (2, 2), (1, 4)),
        ("abcd", "aXYZd", (1, 1), (1, 1)),
        ("abcd", "aXYZd", (3, 3), (4, 4)),
        ("abcd", "ad", (1, 1), (1, 1)),
        ("", "abc", (0, 0), (0, 3)),
    ],
)
def test_spans_map_to_where_their_lines_went(
    before: str, after: str, span: Span, wanted: Span
) -> None:
    old, new = content(before), content(after)
    assert map_spans([span], old, new) == [wanted]
    assert map_spans([span, span], old, new, edits=hunks(old, new)) == [wanted, wanted]


def test_hundreds_of_hunks_in_a_large_file_all_find_their_place() -> None:
    chance = random.Random(7)
    base = [b"line %d\n" % number for number in range(20_000)]
    before, after, wanted = list(base), list(base), list(base)
    for number in range(200):
        mine, theirs = number * 100 + chance.randrange(40), number * 100 + 50 + number % 40
        before[mine] = after[mine] = b"mine %d\n" % number
        after[theirs] = wanted[theirs] = b"theirs %d\n" % number
    merged = merge_edits(b"".join(base), b"".join(before), b"".join(after))
    assert merged == MergedContent(b"".join(wanted), ())
