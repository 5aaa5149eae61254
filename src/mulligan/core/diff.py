"""Compute line diffs of two byte strings.

Lines end after `\\n` only, keep their newline, and are compared byte for byte, so CRLF, a missing
final newline and binary bytes all count. Always true: lines outside `changed_ranges` are equal in
both versions, pair by pair, so old plus ranges is exactly new.

The algorithm is patience diff:

1. Trim the common head and tail.
2. Split at anchors, lines that occur once on each side, and search each gap again.
3. Search a gap without anchors by Myers' algorithm, in windows.

All steps share one budget. A gap that exceeds it is reported as one replaced block: larger than
necessary, never wrong.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, compress, islice, pairwise
from itertools import count as from_zero
from operator import ne
from typing import NamedTuple

# (old_start, old_end, new_start, new_end), half-open, counted from 0.
Range = tuple[int, int, int, int]
# (old_start, new_start, length) of equal lines.
Run = tuple[int, int, int]

BINARY_PROBE_BYTES = 8192
MAX_DIFF_STEPS = 2_000_000  # about half a second
MAX_WINDOW_EDITS = 256
MAX_MYERS_RETRY_EDITS = 100
MAX_SLIDE_LINES = 1000


def split_lines(data: bytes) -> list[bytes]:
    """Split into lines with their newlines; joined they are `data` again."""
    if b"\r" not in data:
        return data.splitlines(keepends=True)
    *lines, last = data.split(b"\n")
    lines = [line + b"\n" for line in lines]
    if last:
        lines.append(last)
    return lines


def is_binary(data: bytes) -> bool:
    """True if the first 8 KiB hold a NUL, as git decides it."""
    return b"\0" in data[:BINARY_PROBE_BYTES]


def changed_ranges(old: Sequence[bytes], new: Sequence[bytes]) -> list[Range]:
    """Return the differing ranges in order; adjacent ranges are joined."""
    return _slide(_ranges(old, new), old, new)


def compare(
    old: bytes, new: bytes, *, old_name: bytes, new_name: bytes, context: int = 3
) -> tuple[bytes, int, int]:
    """Return the diff as `git diff` writes it, additions and deletions.

    The text begins with the `---` line and is empty if both are equal. Names are written as given
    (`a/path`, `/dev/null`), and quoted as git does.
    """
    if old == new:
        return b"", 0, 0
    out = [b"--- " + _header_name(old_name), b"+++ " + _header_name(new_name)]
    if not old or not new:
        deletions, additions = _count(old), _count(new)
        out.append(b"@@ -%b +%b @@\n" % (_span(0, deletions), _span(0, additions)))
        out.append(_marked(b"-" if old else b"+", old or new))
        return b"".join(out), additions, deletions
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
    """Count the lines of a text."""
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


def _marked(mark: bytes, text: bytes) -> bytes:
    """Put a mark before each line."""
    if not text:
        return b""
    marked = mark + text[:-1].replace(b"\n", b"\n" + mark) + text[-1:]
    # Only the last line of a file can lack its newline.
    return marked if text.endswith(b"\n") else marked + b"\n\\ No newline at end of file\n"


def _span(start: int, end: int) -> bytes:
    """Write a hunk header's range: from 1, with git's forms for 0 and 1 lines."""
    if end - start == 1:
        return b"%d" % end
    return b"%d,%d" % (start + 1 if end > start else start, end - start)


def quoted(name: bytes) -> bytes:
    """Quote a path as git does in a patch, if it needs quoting."""
    if _NEEDS_QUOTING.search(name):
        return b'"' + b"".join(_ESCAPES.get(byte, b"%c" % byte) for byte in name) + b'"'
    return name


def _header_name(name: bytes) -> bytes:
    name = quoted(name)
    # Patch readers end a name at a tab; without one they would stop at the space.
    return name + (b"\t\n" if b" " in name else b"\n")


_NEEDS_QUOTING = re.compile(rb'[\x00-\x1f"\\\x7f]')
_ESCAPES = {byte: b"\\%03o" % byte for byte in (*range(0x20), 0x7F)} | {
    ord(plain): b"\\" + escaped.encode()
    for plain, escaped in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True)
}


def _with_context(ranges: list[Range], context: int) -> Iterator[list[Range]]:
    """Group ranges whose context lines meet."""
    group = ranges[:1]
    for previous, following in pairwise(ranges):
        if following[0] - previous[1] > 2 * context:
            yield group
            group = []
        group.append(following)
    if group:
        yield group


def _ranges(old: Sequence[bytes], new: Sequence[bytes]) -> list[Range]:
    """Return the changed ranges, not yet moved to readable positions."""
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
    """Count equal lines at the head and at the tail."""
    room = min(len(a), len(b))
    head = next(compress(from_zero(), map(ne, a, b)), room)
    backwards = islice(reversed(a), room - head)
    return head, next(compress(from_zero(), map(ne, backwards, reversed(b))), room - head)


def _equal_runs(a: list[int], b: list[int]) -> list[Run]:
    """Return runs of equal lines by patience diff, or by Myers if much shorter."""
    if not a or not b:
        return []
    search = _Search(a, b)
    search.patience()
    runs = sorted(search.runs)
    # A unique line that moved over many repeated ones misleads the anchor search.
    edits = len(a) + len(b) - 2 * sum(length for _, _, length in runs)
    shorter = _myers(a, b, 0, 0, min(edits // 3, MAX_MYERS_RETRY_EDITS), MAX_DIFF_STEPS // 20)
    if shorter.i == len(a) and shorter.j == len(b):
        return shorter.runs
    return runs


class _Search:
    """A patience search: equal runs so far, and the steps left in the budget."""

    def __init__(self, a: list[int], b: list[int]) -> None:
        self.a = a
        self.b = b
        self.runs: list[Run] = []
        self.steps_left = MAX_DIFF_STEPS + 8 * (len(a) + len(b))

    def patience(self) -> None:
        """Split at anchors, gap by gap, without recursion."""
        gaps: list[Range] = [(0, len(self.a), 0, len(self.b))]
        while gaps:
            i, i_end, j, j_end = gaps.pop()
            self.steps_left -= i_end - i + j_end - j
            if self.steps_left < 0:
                return
            anchors = _anchors(self.a, self.b, i, i_end, j, j_end)
            if anchors:
                gaps += self._split(anchors, i, i_end, j, j_end)
            else:
                self._search_gap(i, i_end, j, j_end)

    def _split(
        self, anchors: list[tuple[int, int]], i: int, i_end: int, j: int, j_end: int
    ) -> Iterator[Range]:
        """Extend each anchor both ways while lines are equal; yield the gaps."""
        a, b = self.a, self.b
        for anchor_i, anchor_j in chain(anchors, [(i_end, j_end)]):
            if anchor_i < i:
                continue  # the previous run covers this anchor
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

    def _search_gap(self, i: int, i_end: int, j: int, j_end: int) -> None:
        """Search a gap without anchors by Myers, over the lines on both sides."""
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
        # A window of n edits costs about n * n / 2 steps and advances by at least n lines.
        window = max(16, min(MAX_WINDOW_EDITS, self.steps_left // size))
        while i < len(a) and j < len(b) and self.steps_left > 0:
            part = _myers(a, b, i, j, window, self.steps_left)
            self.steps_left -= part.steps
            runs += part.runs
            i, j = part.i, part.j
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
    """Return the longest rising sequence of lines that occur once on each side."""
    count_a, count_b = Counter(a[i:i_end]), Counter(b[j:j_end])
    unique = {line for line, count in count_a.items() if count == 1 == count_b.get(line)}
    if not unique:
        return []
    place_b = {line: place for place, line in enumerate(b[j:j_end], j) if line in unique}
    pairs = [(place, place_b[line]) for place, line in enumerate(a[i:i_end], i) if line in unique]
    if all(first[1] < second[1] for first, second in pairwise(pairs)):
        return pairs
    # Patience sorting: ends[n] closes the best rising sequence of n + 1 pairs so far.
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


class _MyersResult(NamedTuple):
    """The point (i, j) that a Myers search reached, its equal runs and its cost."""

    i: int
    j: int
    runs: list[Run]
    steps: int


def _myers(
    a: list[int], b: list[int], i0: int, j0: int, max_edits: int, max_steps: int
) -> _MyersResult:
    """Run Myers' greedy search from (i0, j0) within both limits.

    It reaches the end of both lists if the limits allow, else the furthest point.
    """
    i_end, j_end = len(a), len(b)
    base = i0 - j0
    middle = max_edits + 1
    # reach[middle + k] is the furthest i on diagonal k, where k = (i - i0) - (j - j0).
    reach = [i0] * (2 * max_edits + 3)
    rounds: list[list[int]] = []
    steps = 0
    best = (i0, j0, 0)
    for count in range(max_edits + 1):
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
            steps += 1 + j - start
            if i + j > best[0] + best[1] and i <= i_end and j <= j_end:
                best = (i, j, count)
        if (best[0] == i_end and best[1] == j_end) or steps > max_steps:
            break
    runs = _trace_back(rounds, best, i0, j0)
    return _MyersResult(best[0], best[1], runs, steps)


def _trace_back(rounds: list[list[int]], end: tuple[int, int, int], i0: int, j0: int) -> list[Run]:
    """Return the equal runs on the path from (i0, j0) to `end`, in order."""
    base = i0 - j0
    i, j, count = end
    runs: list[Run] = []
    while count:
        k = i - j - base
        # Each round saved the diagonals -count - 1 .. count + 1 as they were at its start.
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
    return runs[::-1]


def _slide(ranges: list[Range], old: Sequence[bytes], new: Sequence[bytes]) -> list[Range]:
    """Move insertions and deletions to where a reader expects them, as git does.

    A range whose first line equals the line after its end can move down by one, and vice versa.
    Ranges that meet are joined. Others end at a blank line if possible, else as low as possible.
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
