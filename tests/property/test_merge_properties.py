"""Test properties of merges, for any three versions and for known authors."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mulligan.core.diff import split_lines
from mulligan.core.hunks import Hunk, apply_hunks, hunks, revert_hunks
from mulligan.core.merge import MergedContent, Span, map_spans, merge_edits, touched

# Few different lines, so that repetitions, moves and equal edits on both sides are common.
WORDS = [b"a", b"b", b"c", b"d", b"", b"}", b"\xff", b"x\ry"]
ENDS = [b"\n", b"\n", b"\n", b"\r\n"]
line = st.builds(lambda word, end: word + end, st.sampled_from(WORDS), st.sampled_from(ENDS))
last = st.sampled_from([b"", b"", b"a", b"b", b"\r"])
contents = st.builds(lambda lines, last: b"".join(lines) + last, st.lists(line, max_size=15), last)


def edited(draw: st.DrawFn, content: bytes) -> bytes:
    """Draw an edited content; its last line may lack a newline."""
    lines = split_lines(content)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(lines)))
        removed = draw(st.integers(0, 3))
        lines[place : place + removed] = draw(st.lists(line, max_size=3))
    return b"".join(lines) + draw(last)


@st.composite
def histories(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """Draw base, before and after, derived from each other or from one content."""
    base = draw(contents)
    before = edited(draw, base)
    return base, before, edited(draw, draw(st.sampled_from([base, before, before, before])))


triples = st.one_of(histories(), st.tuples(contents, contents, contents))


def old_span(hunk: Hunk) -> Span:
    return hunk.old_start, hunk.old_start + len(hunk.old_lines)


def new_span(hunk: Hunk) -> Span:
    return hunk.new_start, hunk.new_start + len(hunk.new_lines)


def overlap(first: Span, second: Span) -> bool:
    """True if both share a line, or one is empty and strictly inside the other."""
    if first[0] == first[1] or second[0] == second[1]:
        return first[0] < second[0] < first[1] or second[0] < first[0] < second[1]
    return bool(set(range(*first)) & set(range(*second)))


def contact(first: Span, second: Span) -> bool:
    """True if both overlap or have a common border."""
    return first[0] <= second[1] and second[0] <= first[1]


def turned(found: list[Hunk]) -> list[Hunk]:
    """Reverse hunks."""
    return [Hunk(h.new_start, h.new_lines, h.old_start, h.old_lines) for h in found]


@given(triples)
@settings(max_examples=600)
def test_a_result_has_whole_lines_and_a_hunk_is_merged_or_unplaced(
    versions: tuple[bytes, bytes, bytes],
) -> None:
    base, before, after = versions
    content, left = merge_edits(base, before, after)
    known = {line for version in versions for line in split_lines(version)}
    lines = split_lines(content)
    assert set(lines) <= known
    edits = hunks(before, after)
    if base != before:
        assert set(left) <= set(edits)
        assert sorted(left) == list(left)
    here = set(lines).union(*(hunk.new_lines for hunk in left))
    assert here.issuperset(line for hunk in edits for line in hunk.new_lines)
    # Nobody can lose a line of the base by a change that was not about it.
    gone = Counter(line for hunk in edits if hunk not in left for line in hunk.old_lines)
    assert Counter(split_lines(base)) - gone <= Counter(lines)


@given(contents, contents)
def test_where_two_versions_are_equal_the_third_is_the_answer(one: bytes, other: bytes) -> None:
    assert merge_edits(one, other, other) == MergedContent(one, ())
    assert merge_edits(one, one, other) == MergedContent(other, ())
    assert merge_edits(one, other, one) == MergedContent(one, ())
    assert merge_edits(one, one, other) == MergedContent(other, ())


@given(triples)
@settings(max_examples=600)
def test_unplaced_hunks_are_those_of_a_slow_model(
    versions: tuple[bytes, bytes, bytes],
) -> None:
    base, before, after = versions
    assume(base not in (before, after))
    pending, edits = hunks(base, before), hunks(before, after)
    content, left = merge_edits(base, before, after)
    free = [
        edit
        for edit in edits
        if not any(overlap(old_span(edit), new_span(hunk)) for hunk in pending)
    ]
    lacking = {hunk.new_start for hunk in pending if not hunk.new_lines}
    if any(place in lacking for edit in free for place in old_span(edit)):
        return  # what was deleted may have been put back; told apart elsewhere
    expected = walked(split_lines(before), pending, free)
    if all(line.endswith(b"\n") for line in expected[:-1]):
        assert content == b"".join(expected)
        assert not set(free) & set(left)
    else:
        assert content == b"".join(walked(split_lines(before), pending, free[:-1]))
        assert left[-1:] == tuple(free[-1:])
    for edit in edits:
        if edit not in free and edit not in left:
            # It led back to what the base has.
            assert set(edit.new_lines) <= set(split_lines(base))


def walked(before: list[bytes], pending: list[Hunk], edits: list[Hunk]) -> list[bytes]:
    """Line by line through `before`, with the old side of pending and the new side of edits."""
    result: list[bytes] = []
    for place in range(len(before) + 1):
        for edit in edits:
            if old_span(edit) == (place, place):
                result += edit.new_lines
        for hunk in pending:
            if hunk.new_start == place:
                result += hunk.old_lines
        for edit in edits:
            if edit.old_start == place and edit.old_lines:
                result += edit.new_lines
        taken = [new_span(hunk) for hunk in pending] + [old_span(edit) for edit in edits]
        if place < len(before) and not any(start <= place < end for start, end in taken):
            result.append(before[place])
    return result


@given(histories())
@settings(max_examples=400)
def test_two_changes_apart_from_each_other_give_the_same_in_either_order(
    versions: tuple[bytes, bytes, bytes],
) -> None:
    base, before, after = versions
    pending, edits = hunks(base, before), hunks(before, after)
    assume(not any(contact(old_span(edit), new_span(hunk)) for edit in edits for hunk in pending))
    one = merge_edits(base, before, after, pending=pending, edits=edits)
    other = merge_edits(after, before, base, pending=turned(edits), edits=turned(pending))
    assert one == other
    assert one.unplaced == ()


class Story(NamedTuple):
    """Three versions with the author of each line, and the expected result."""

    base: bytes
    before: bytes
    after: bytes
    truth: bytes
    pending: list[tuple[tuple[bytes, ...], tuple[bytes, ...]]]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Draw unchanged lines, and between them edits of the session or of another author.

    No line occurs twice, so that the author of each edit is unambiguous.
    """
    number = 0

    def fresh(least: int, most: int) -> tuple[bytes, ...]:
        nonlocal number
        lines = []
        for _ in range(draw(st.integers(least, most))):
            number += 1
            lines.append(b"%d" % number + draw(st.sampled_from(ENDS)))
        return tuple(lines)

    parts: list[tuple[tuple[bytes, ...], ...]] = []
    pending: list[tuple[tuple[bytes, ...], tuple[bytes, ...]]] = []
    for _ in range(draw(st.integers(0, 6))):
        who = draw(st.sampled_from(["session", "other", "other, session", "both"]))
        old, new = fresh(0, 3), fresh(0, 3)
        mine = (old, new, new, old)
        theirs_old, theirs_new = fresh(0, 3), fresh(0, 3)
        theirs = (theirs_old, theirs_old, theirs_new, theirs_new)
        if who == "both":
            # Adjacent edits. Without a new line of the session or an old one of the other author,
            # an insertion could belong on either side of the session's deletion.
            who = "session, other" if new or theirs_old else "session"
        if "session" in who and (old or new):
            pending.append((old, new))
        parts += [mine if name == "session" else theirs for name in who.split(", ")]
        parts.append((fresh(1, 2),) * 4)
    ended = draw(st.booleans())
    base, before, after, truth = (
        b"".join(line for part in parts for line in part[side]) for side in range(4)
    )
    if not ended:
        # The last line is unchanged, so all versions lose its newline.
        base, before, after, truth = (
            version.removesuffix(b"\n") for version in (base, before, after, truth)
        )
    return Story(base, before, after, truth, pending)


@given(stories())
@settings(max_examples=600)
def test_a_change_outside_of_pending_work_joins_the_base_and_leaves_the_same_work_pending(
    story: Story,
) -> None:
    assert merge_edits(story.base, story.before, story.after) == MergedContent(story.truth, ())
    again = [(hunk.old_lines, hunk.new_lines) for hunk in hunks(story.truth, story.after)]
    assert again == story.pending


@given(stories())
@settings(max_examples=200)
def test_reverting_one_author_leaves_exactly_the_other(story: Story) -> None:
    # Revert the other author's edits, and the session's from below them.
    theirs = merge_edits(story.truth, story.after, story.before)
    mine = merge_edits(story.after, story.before, story.base)
    assert theirs.unplaced == mine.unplaced == ()
    # Lines that both had at one place may come back in another order: nothing tells which.
    assert sorted(split_lines(theirs.content)) == sorted(split_lines(story.base))
    assert sorted(split_lines(mine.content)) == sorted(split_lines(story.truth))


@given(histories(), st.data())
@settings(max_examples=300)
def test_pending_hunks_that_another_author_reverted_change_nothing(
    versions: tuple[bytes, bytes, bytes], data: st.DataObject
) -> None:
    base, before, _ = versions
    pending = hunks(base, before)
    undone = [hunk for hunk in pending if data.draw(st.booleans())]
    after = revert_hunks(before, undone)
    shift = 0
    edits = []
    for hunk in turned(undone):
        edits.append(hunk._replace(new_start=hunk.old_start + shift))
        shift += len(hunk.new_lines) - len(hunk.old_lines)
    assert apply_hunks(before, edits) == after
    folded = merge_edits(base, before, after, pending=pending, edits=edits)
    assert folded == (MergedContent(base, ()) if pending else MergedContent(after, ()))


@given(contents, contents, contents)
@settings(max_examples=300)
def test_touched_equals_comparing_all_pairs(one: bytes, other: bytes, disk: bytes) -> None:
    of, by = hunks(one, disk), hunks(other, disk)
    slow = {
        number
        for number, hunk in enumerate(of)
        for second in by
        if overlap(new_span(hunk), new_span(second))
        or (hunk.additions == second.additions == 0 and hunk.new_start == second.new_start)
    }
    assert touched(of, by) == slow


@given(histories(), st.data())
@settings(max_examples=300)
def test_mapped_spans_hold_every_kept_line_and_all_replacements(
    versions: tuple[bytes, bytes, bytes], data: st.DataObject
) -> None:
    _, before, after = versions
    count = len(split_lines(before))
    ends = st.tuples(st.integers(0, count), st.integers(0, count))
    spans = [(min(pair), max(pair)) for pair in data.draw(st.lists(ends, max_size=5))]
    edits = hunks(before, after)
    moved = map_spans(spans, before, after)
    assert moved == map_spans(spans, before, after, edits=edits)
    for span, (start, end) in zip(spans, moved, strict=True):
        wanted: set[int] = set()
        shift = 0
        rest = set(range(*span))
        for edit in edits:
            old, new = old_span(edit), new_span(edit)
            wanted |= {place + shift for place in rest if place < old[0]}
            rest = {place for place in rest if place >= old[1]}
            shift = new[1] - old[1]
            if overlap(span, old) or span == old:
                wanted |= set(range(*new))
        wanted |= {place + shift for place in rest}
        assert set(range(start, end)) == wanted
        assert 0 <= start <= end <= len(split_lines(after))
