"""Renames: which deleted path went on as which added one.

A rename is derived, never recorded: equal contents first, then similar texts. Each path is used
once, the answer depends only on what was handed in, and the work has an end: whatever is too
much to compare stays a deletion and an addition, which is always true as well.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from mulligan.core.diff import is_binary, split_lines

MAX_EXACT_PAIRS = 10_000  # pairs of paths with one content that are weighed against each other
MAX_COMPARED_BYTES = 1 << 20  # bytes of a text that is compared
MAX_READ_BYTES = 16 << 20  # bytes that one call reads
MAX_COMPARED_PIECES = 2_000_000  # pieces that one call compares
PIECE_BYTES = (
    64  # bytes; long lines are compared in pieces, so that one edit does not hide the rest
)


class Candidate(NamedTuple):
    """A path that disappeared or appeared, and its content."""

    path: bytes
    id: bytes
    size: int


def exact_renames(
    deleted: Iterable[Candidate], added: Iterable[Candidate]
) -> list[tuple[bytes, bytes]]:
    """Pairs (old path, new path) with the same content, empty files left out.

    Where several fit, the same file name wins, then the nearest directory.
    """
    olds: defaultdict[bytes, set[bytes]] = defaultdict(set)
    news: defaultdict[bytes, set[bytes]] = defaultdict(set)
    for candidates, paths in ((deleted, olds), (added, news)):
        for candidate in candidates:
            if candidate.size > 0:
                paths[candidate.id].add(candidate.path)
    pairs: list[tuple[bytes, bytes]] = []
    for id in sorted(olds.keys() & news.keys()):
        pairs += _pair_paths(olds[id], news[id])
    return sorted(pairs)


def similar_renames(
    deleted: Iterable[Candidate],
    added: Iterable[Candidate],
    read: Callable[[bytes], bytes | None],
    *,
    threshold: float = 0.5,
    limit: int = 200,
) -> list[tuple[bytes, bytes, float]]:
    """Triples (old path, new path, similarity) of texts that were renamed and edited.

    Hand in what `exact_renames` left over. Similarity is the share of bytes in lines that both
    have, of the larger text: 1.0 is the same lines. `read` gives the content of an id, or None
    when it cannot. At most `limit` paths of each side are considered, those first whose file
    name is on both sides.
    """
    deleted, added = list(deleted), list(added)
    olds = _Texts(read).all(_most_promising(deleted, added, limit))
    news = _Texts(read).all(_most_promising(added, deleted, limit))
    # Most of those that are like none of the other side can be told at a glance.
    news = _possible(news, olds, threshold)
    olds = _possible(olds, news, threshold)
    pairs = []
    for a in olds:
        for b in news:
            overlap = _overlap(a.size, b.size)
            if overlap >= threshold:
                pairs.append((a.name != b.name, -overlap, a.path, b.path, a, b))
    # The likely pairs come first, so that they are compared when the work runs out.
    pairs.sort(key=itemgetter(0, 1, 2, 3))
    work = MAX_COMPARED_PIECES
    scored: list[tuple[float, bool, int, bytes, bytes]] = []
    for renamed, _, old_path, new_path, a, b in pairs:
        work -= min(len(a.pieces), len(b.pieces))
        if work < 0:
            break
        score = _similarity(a, b)
        if score >= threshold:
            scored.append((-score, renamed, _distance(old_path, new_path), old_path, new_path))
    used_old: set[bytes] = set()
    used_new: set[bytes] = set()
    found: list[tuple[bytes, bytes, float]] = []
    for negative, _, _, old_path, new_path in sorted(scored):
        if old_path not in used_old and new_path not in used_new:
            used_old.add(old_path)
            used_new.add(new_path)
            found.append((old_path, new_path, -negative))
    return sorted(found)


def _pair_paths(olds: set[bytes], news: set[bytes]) -> list[tuple[bytes, bytes]]:
    """Pairs paths of one content: those with the same file name first."""
    by_name: defaultdict[bytes, tuple[list[bytes], list[bytes]]] = defaultdict(lambda: ([], []))
    for path in sorted(olds):
        by_name[_basename(path)][0].append(path)
    for path in sorted(news):
        by_name[_basename(path)][1].append(path)
    pairs = [pair for name in sorted(by_name) for pair in _nearest(*by_name[name])]
    rest_old = olds.difference(old for old, _ in pairs)
    rest_new = news.difference(new for _, new in pairs)
    return pairs + _nearest(sorted(rest_old), sorted(rest_new))


def _nearest(olds: list[bytes], news: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The nearest pairs first; of thousands of equal files, simply in order of their paths."""
    if len(olds) * len(news) > MAX_EXACT_PAIRS:
        return list(zip(olds, news, strict=False))
    pairs: dict[bytes, bytes] = {}
    used: set[bytes] = set()
    for _, old, new in sorted((_distance(old, new), old, new) for old in olds for new in news):
        if old not in pairs and new not in used:
            pairs[old] = new
            used.add(new)
    return list(pairs.items())


def _distance(old: bytes, new: bytes) -> int:
    """How many directory names differ, after the common first and the common last ones."""
    a, b = old.split(b"/")[:-1], new.split(b"/")[:-1]
    room = min(len(a), len(b))
    head = 0
    while head < room and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < room - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    return len(a) + len(b) - 2 * (head + tail)


def _basename(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _most_promising(
    candidates: Iterable[Candidate], others: Iterable[Candidate], limit: int
) -> list[Candidate]:
    names = {_basename(other.path) for other in others}
    texts = {
        candidate.path: candidate
        for candidate in candidates
        if 0 < candidate.size <= MAX_COMPARED_BYTES
    }
    return sorted(
        texts.values(),
        key=lambda candidate: (_basename(candidate.path) not in names, candidate.path),
    )[:limit]


def _overlap(old: int, new: int) -> float:
    """The most that two contents of these sizes can have in common."""
    return old / new if old < new else new / old


class _Text:
    """A text in pieces, in no order: its lines, and the parts of long ones."""

    def __init__(self, path: bytes, data: bytes) -> None:
        self.path = path
        self.name = _basename(path)
        self.size = len(data)
        self.pieces = split_lines(data)
        if max(map(len, self.pieces)) > PIECE_BYTES:
            long = [line for line in self.pieces if len(line) > PIECE_BYTES]
            self.pieces = [line for line in self.pieces if len(line) <= PIECE_BYTES]
            for line in long:
                self.pieces += [
                    line[at : at + PIECE_BYTES] for at in range(0, len(line), PIECE_BYTES)
                ]

    def at_most(self, others: set[bytes]) -> float:
        """How similar this can be to any text that is made of these pieces."""
        return sum(map(len, filter(others.__contains__, self.pieces))) / self.size

    @cached_property
    def weights(self) -> dict[bytes, int]:
        """How many bytes of the text each piece makes."""
        return {piece: len(piece) * count for piece, count in Counter(self.pieces).items()}


class _Texts:
    """Each text is read once, up to some bytes."""

    def __init__(self, read: Callable[[bytes], bytes | None]) -> None:
        self._read = read
        self._left = MAX_READ_BYTES // 2
        self._known: dict[bytes, bytes | None] = {}

    def all(self, candidates: Iterable[Candidate]) -> list[_Text]:
        """Those of them that are texts."""
        found = [(candidate.path, self._get(candidate)) for candidate in candidates]
        return [_Text(path, data) for path, data in found if data]

    def _get(self, candidate: Candidate) -> bytes | None:
        if candidate.id not in self._known:
            self._known[candidate.id] = self._load(candidate)
        return self._known[candidate.id]

    def _load(self, candidate: Candidate) -> bytes | None:
        if candidate.size > self._left:
            return None
        self._left -= candidate.size
        data = self._read(candidate.id)
        if not data or is_binary(data):
            return None
        # A text is still the same text when only its line ends were converted.
        return data.replace(b"\r\n", b"\n") if b"\r" in data else data


def _possible(texts: list[_Text], others: Iterable[_Text], threshold: float) -> list[_Text]:
    pieces = set[bytes]().union(*(each.pieces for each in others))
    return [each for each in texts if each.at_most(pieces) >= threshold]


def _similarity(a: _Text, b: _Text) -> float:
    shared = a.weights.keys() & b.weights.keys()
    common = sum(map(min, map(a.weights.__getitem__, shared), map(b.weights.__getitem__, shared)))
    return common / max(a.size, b.size)
