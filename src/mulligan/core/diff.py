"""Line differences of two byte strings.

Lines end after `\\n` and nowhere else, keep their ends, and are compared byte for byte: CRLF, a
missing final newline and bytes that are not text all count. What is always true: lines outside
`changed_ranges` are equal in both versions, pair by pair, so old plus ranges is exactly new.

The search is a patience difference. The common beginning and end are set aside; lines that occur
once on each side are anchors; what lies between two anchors is searched again. A gap without
anchors gets Myers' search, in windows. All of it spends from one purse of work, and a gap that
comes too late is reported as one replaced block: larger than it need be, never wrong.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, compress, islice, pairwise
from itertools import count as from_zero
from operator import ne

# (old_start, old_end, new_start, new_end), half-open, counted from 0.
Range = tuple[int, int, int, int]
# (old_start, new_start, length) of equal lines.
Run = tuple[int, int, int]

BINARY_PROBE = 8192
MAX_DIFF_STEPS = 2_000_000  # steps for one difference, about half a second
MAX_WINDOW_EDITS = 256  # the most edits that one Myers window may hold
SECOND_LOOK = 100  # the most edits searched for when patience found three times as many
MAX_SLIDE_LINES = 1000  # the most lines that a group is moved for readability


def split_lines(data: bytes) -> list[bytes]:
    """The lines with their ends; joined they are `data` again."""
    if b"\r" not in data:
        return data.splitlines(keepends=True)
    *lines, last = data.split(b"\n")
    lines = [line + b"\n" for line in lines]
    if last:
        lines.append(last)
    return lines


def is_binary(data: bytes) -> bool:
    """Whether showing lines makes no sense: an early NUL. Text of any other coding has lines."""
    return b"\0" in data[:BINARY_PROBE]


def changed_ranges(old: Sequence[bytes], new: Sequence[bytes]) -> list[Range]:
    """What differs: in order, as large as possible, never touching each other."""
    return _slide(_ranges(old, new), old, new)


def line_counts(old: bytes, new: bytes) -> tuple[int, int]:
    """Additions and deletions."""
    if old == new:
        return 0, 0
    additions = deletions = 0
    for old_start, old_end, new_start, new_end in _ranges(split_lines(old), split_lines(new)):
        additions += new_end - new_start
        deletions += old_end - old_start
    return additions, deletions


def unified(old: bytes, new: bytes, *, old_name: bytes, new_name: bytes, context: int = 3) -> bytes:
    """The difference as `git diff` writes it, from the `---` line on; nothing when equal.

    Names are written as given (`a/path`, `/dev/null`), quoted only where a name would break the
    header's line.
    """
    return compare(old, new, old_name=old_name, new_name=new_name, context=context)[0]


def compare(
    old: bytes, new: bytes, *, old_name: bytes, new_name: bytes, context: int = 3
) -> tuple[bytes, int, int]:
    """`unified` and `line_counts` in one go: the text, additions, deletions."""
    if old == new:
        return b"", 0, 0
    out = [b"--- " + _header_name(old_name), b"+++ " + _header_name(new_name)]
    if not old or not new:
        gone, come = _count(old), _count(new)
        out.append(b"@@ -%b +%b @@\n" % (_span(0, gone), _span(0, come)))
        out.append(_marked(b"-" if old else b"+", old or new))
        return b"".join(out), come, gone
    old_lines, new_lines = split_lines(old), split_lines(new)
    ranges = changed_ranges(old_lines, new_lines)
    for group in _with_context(ranges, context):
        before = min(context, group[0][0])
        after = min(context, len(old_lines) - group[-1][1])
        old_start, old_end = group[0][0] - before, group[-1][1] + after
        new_start, new_end = group[0][2] - before, group[-1][3] + after
        out.append(b"@@ -%b +%b @@\n" % (_span(old_start, old_end), _span(new_start, new_end)))
        position = old_start
        for old_from, old_to, new_from, new_to in group:
            out.append(_marked(b" ", b"".join(old_lines[position:old_from])))
            out.append(_marked(b"-", b"".join(old_lines[old_from:old_to])))
            out.append(_marked(b"+", b"".join(new_lines[new_from:new_to])))
            position = old_to
        out.append(_marked(b" ", b"".join(old_lines[position:old_end])))
    additions = sum(new_end - new_start for _, _, new_start, new_end in ranges)
    deletions = sum(old_end - old_start for old_start, old_end, _, _ in ranges)
    return b"".join(out), additions, deletions


def _count(data: bytes) -> int:
    """How many lines a text has."""
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


def _marked(mark: bytes, text: bytes) -> bytes:
    """Some lines, each with a mark before it."""
    if not text:
        return b""
    marked = mark + text[:-1].replace(b"\n", b"\n" + mark) + text[-1:]
    # Only the last line of a file can be without its end.
    return marked if text.endswith(b"\n") else marked + b"\n\\ No newline at end of file\n"


def _span(start: int, end: int) -> bytes:
    """Lines count from 1, an empty span names the line before it, and a count of 1 is left out."""
    if end - start == 1:
        return b"%d" % end
    return b"%d,%d" % (start + 1 if end > start else start, end - start)


def quoted(name: bytes) -> bytes:
    """A name as git writes it in a patch: in quotes if it would be misread otherwise."""
    if _MISREAD.search(name):
        return b'"' + b"".join(_QUOTED.get(byte, b"%c" % byte) for byte in name) + b'"'
    return name


def _header_name(name: bytes) -> bytes:
    name = quoted(name)
    # Readers take a tab as the end of a name, and would otherwise stop at the space.
    return name + (b"\t\n" if b" " in name else b"\n")


_MISREAD = re.compile(rb'[\x00-\x1f"\\\x7f]')
_QUOTED = {byte: b"\\%03o" % byte for byte in (*range(0x20), 0x7F)} | {
    ord(plain): b"\\" + escaped.encode()
    for plain, escaped in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True)
}


def _with_context(ranges: list[Range], context: int) -> Iterator[list[Range]]:
    """The ranges in groups whose context lines meet."""
    group = ranges[:1]
    for previous, following in pairwise(ranges):
        if following[0] - previous[1] > 2 * context:
            yield group
            group = []
        group.append(following)
    if group:
        yield group


def _ranges(old: Sequence[bytes], new: Sequence[bytes]) -> list[Range]:
    """The changed ranges where the search left them."""
    head, tail = _trim(old, new)
    a_lines, b_lines = old[head : len(old) - tail], new[head : len(new) - tail]
    if not a_lines or not b_lines:
        whole = (head, len(old) - tail, head, len(new) - tail)
        return [whole] if a_lines or b_lines else []
    ids = {line: number for number, line in enumerate(dict.fromkeys(chain(a_lines, b_lines)))}
    a = list(map(ids.__getitem__, a_lines))
    b = list(map(ids.__getitem__, b_lines))
    ranges: list[Range] = []
    i = j = 0
    for run_i, run_j, length in [*_equal_runs(a, b), (len(a), len(b), 0)]:
        if run_i > i or run_j > j:
            ranges.append((head + i, head + run_i, head + j, head + run_j))
        i, j = run_i + length, run_j + length
    return ranges


def _trim(a: Sequence[object], b: Sequence[object]) -> tuple[int, int]:
    """How many lines at the beginning and at the end are equal."""
    room = min(len(a), len(b))
    head = next(compress(from_zero(), map(ne, a, b)), room)
    backwards = islice(reversed(a), room - head)
    return head, next(compress(from_zero(), map(ne, backwards, reversed(b))), room - head)


def _equal_runs(a: list[int], b: list[int]) -> list[Run]:
    """Runs of equal lines in order: the patience search, unless it is far from the shortest."""
    if not a or not b:
        return []
    search = _Search(a, b)
    search.patience()
    runs = sorted(search.runs)
    # One unique line that moved over many repeated ones misleads an anchor search.
    edits = len(a) + len(b) - 2 * sum(length for _, _, length in runs)
    shorter = _shortest(a, b, 0, 0, min(edits // 3, SECOND_LOOK), MAX_DIFF_STEPS // 20)
    if shorter.i == len(a) and shorter.j == len(b):
        return shorter.runs
    return runs


class _Search:
    """One difference under way: the equal runs found so far and the work that is left."""

    def __init__(self, a: list[int], b: list[int]) -> None:
        self.a = a
        self.b = b
        self.runs: list[Run] = []
        self.work = MAX_DIFF_STEPS + 8 * (len(a) + len(b))

    def patience(self) -> None:
        """Splits at anchors, with a list of gaps still to do instead of recursion."""
        gaps: list[Range] = [(0, len(self.a), 0, len(self.b))]
        while gaps:
            i, i_end, j, j_end = gaps.pop()
            self.work -= i_end - i + j_end - j
            if self.work < 0:
                return
            anchors = _anchors(self.a, self.b, i, i_end, j, j_end)
            if anchors:
                gaps += self._split(anchors, i, i_end, j, j_end)
            else:
                self._gap(i, i_end, j, j_end)

    def _split(
        self, anchors: list[tuple[int, int]], i: int, i_end: int, j: int, j_end: int
    ) -> Iterator[Range]:
        """Grows each anchor both ways as far as lines are equal; yields what lies between."""
        a, b = self.a, self.b
        for anchor_i, anchor_j in chain(anchors, [(i_end, j_end)]):
            if anchor_i < i:
                continue  # the anchor before has grown over this one
            start_i, start_j = anchor_i, anchor_j
            while start_i > i and start_j > j and a[start_i - 1] == b[start_j - 1]:
                start_i -= 1
                start_j -= 1
            if start_i > i and start_j > j:
                yield i, start_i, j, start_j
            i, j = anchor_i, anchor_j
            while i < i_end and j < j_end and a[i] == b[j]:
                i += 1
                j += 1
            if i > start_i:
                self.runs.append((start_i, start_j, i - start_i))

    def _gap(self, i: int, i_end: int, j: int, j_end: int) -> None:
        """Myers' search where nothing is unique, over the lines that both sides have."""
        shared = set(self.a[i:i_end]).intersection(self.b[j:j_end])
        if not shared:
            return
        places_i = [place for place in range(i, i_end) if self.a[place] in shared]
        places_j = [place for place in range(j, j_end) if self.b[place] in shared]
        a = [self.a[place] for place in places_i]
        b = [self.b[place] for place in places_j]
        size = len(a) + len(b)
        head, tail = _trim(a, b)
        runs = [(0, 0, head), (len(a) - tail, len(b) - tail, tail)]
        del a[len(a) - tail :], b[len(b) - tail :]
        i = j = head
        # A window of n edits costs about n * n / 2 steps and leaves at least n lines behind.
        window = max(16, min(MAX_WINDOW_EDITS, self.work // size))
        while i < len(a) and j < len(b) and self.work > 0:
            found = _shortest(a, b, i, j, window, self.work)
            self.work -= found.work
            runs += found.runs
            i, j = found.i, found.j
        for run_i, run_j, length in runs:
            self.runs += zip(
                places_i[run_i : run_i + length],
                places_j[run_j : run_j + length],
                [1] * length,
                strict=True,
            )


def _anchors(
    a: list[int], b: list[int], i: int, i_end: int, j: int, j_end: int
) -> list[tuple[int, int]]:
    """The longest rising sequence of lines that occur once on each side."""
    count_a, count_b = Counter(a[i:i_end]), Counter(b[j:j_end])
    unique = {line for line, count in count_a.items() if count == 1 == count_b.get(line)}
    if not unique:
        return []
    place_b = {line: place for place, line in enumerate(b[j:j_end], j) if line in unique}
    pairs = [(place, place_b[line]) for place, line in enumerate(a[i:i_end], i) if line in unique]
    if all(first[1] < second[1] for first, second in pairwise(pairs)):
        return pairs
    # Patience sorting: ends[n] closes the best rising sequence of n + 1 pairs known so far.
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
    rising: list[tuple[int, int]] = []
    number = last[-1]
    while number >= 0:
        rising.append(pairs[number])
        number = before[number]
    return rising[::-1]


class _Found:
    """Where a Myers search came to, over which equal runs, and what it cost."""

    __slots__ = ("i", "j", "runs", "work")

    def __init__(self, i: int, j: int, runs: list[Run], work: int) -> None:
        self.i = i
        self.j = j
        self.runs = runs
        self.work = work


def _shortest(a: list[int], b: list[int], i0: int, j0: int, edits: int, work: int) -> _Found:
    """Myers' greedy search from (i0, j0), with at most so many edits and about so much work.

    Comes to the end of both lists if that is possible within the limits, else to the point that
    leaves the most lines behind.
    """
    i_end, j_end = len(a), len(b)
    base = i0 - j0
    middle = edits + 1
    # reach[middle + k] is the furthest i on diagonal k, where k = (i - i0) - (j - j0).
    reach = [i0] * (2 * edits + 3)
    rounds: list[list[int]] = []
    spent = 0
    best = (i0, j0, 0)
    for count in range(edits + 1):
        rounds.append(reach[middle - count - 1 : middle + count + 2])
        for k in range(-count, count + 1, 2):
            left, right = reach[middle + k - 1], reach[middle + k + 1]
            if count and (k == -count or (k != count and left < right)):
                i = right
            else:
                i = left + 1 if count else left
            j = start = i - base - k
            while i < i_end and j < j_end and a[i] == b[j]:
                i += 1
                j += 1
            reach[middle + k] = i
            spent += 1 + j - start
            if i + j > best[0] + best[1] and i <= i_end and j <= j_end:
                best = (i, j, count)
        if (best[0] == i_end and best[1] == j_end) or spent > work:
            break
    i, j, count = best
    runs: list[Run] = []
    while count:
        k = i - j - base
        # Each round kept the diagonals -count - 1 .. count + 1 as they were when it began.
        at = k + count + 1
        left, right = rounds[count][at - 1], rounds[count][at + 1]
        down = k == -count or (k != count and left < right)
        start = right if down else left + 1
        if i > start:
            runs.append((start, start - base - k, i - start))
        i, j = (right, right - base - k - 1) if down else (left, left - base - k + 1)
        count -= 1
    if i > i0:
        runs.append((i0, j0, i - i0))
    return _Found(best[0], best[1], runs[::-1], spent)


def _slide(ranges: list[Range], old: Sequence[bytes], new: Sequence[bytes]) -> list[Range]:
    """Moves insertions and deletions to where a reader expects them.

    A group whose first line equals the line after its end can move down by one, and the other
    way round. Groups that meet become one; the others end at a blank line if they can, and lie
    as low as they can.
    """
    done: list[Range] = []
    todo = ranges[::-1]
    while todo:
        here = todo.pop()
        old_start, old_end, new_start, new_end = here
        if old_start == old_end:
            lines, start, end = new, new_start, new_end
        elif new_start == new_end:
            lines, start, end = old, old_start, old_end
        else:
            done.append(here)
            continue
        room_up = old_start - (done[-1][1] if done else 0)
        up = 0
        while up < min(room_up, MAX_SLIDE_LINES) and lines[start - up - 1] == lines[end - up - 1]:
            up += 1
        if done and up == room_up:
            before = done.pop()
            todo.append((before[0], old_end - up, before[2], new_end - up))
            continue
        room_down = (todo[-1][0] if todo else len(old)) - old_end
        down = 0
        while down < min(room_down, MAX_SLIDE_LINES) and lines[start + down] == lines[end + down]:
            down += 1
        if todo and down == room_down:
            after = todo.pop()
            todo.append((old_start + down, after[1], new_start + down, after[3]))
            continue
        shift = next(
            (by for by in range(down, -up - 1, -1) if not lines[end + by - 1].strip()), down
        )
        done.append((old_start + shift, old_end + shift, new_start + shift, new_end + shift))
    return done
