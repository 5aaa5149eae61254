"""Detect renames between deleted and added paths, as git does.

Renames are derived, never recorded: equal contents first, then similar texts. Each path is used
once, and the result depends only on the arguments. The work is bounded: files beyond the limits
stay a deletion and an addition.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from mulligan.core.diff import is_binary, split_lines
from mulligan.core.ids import ObjectId

MAX_EXACT_PAIRS = 10_000  # with one content
MAX_COMPARED_BYTES = 1 << 20  # per file
MAX_READ_BYTES = 16 << 20  # per call
MAX_COMPARED_PIECES = 2_000_000  # per call
PIECE_BYTES = 64  # long lines are split, so that one edit does not hide the rest


class Candidate(NamedTuple):
    """A deleted or added path and its content."""

    path: bytes
    id: ObjectId
    size: int


def exact_renames(
    deleted: Iterable[Candidate], added: Iterable[Candidate]
) -> list[tuple[bytes, bytes]]:
    """Return pairs (old path, new path) of equal, non-empty content.

    Among several candidates the same file name wins, then the nearest directory.
    """
    olds: defaultdict[ObjectId, set[bytes]] = defaultdict(set)
    news: defaultdict[ObjectId, set[bytes]] = defaultdict(set)
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
    read: Callable[[ObjectId], bytes | None],
    *,
    threshold: float = 0.5,
    limit: int = 200,
) -> list[tuple[bytes, bytes, float]]:
    """Return triples (old path, new path, similarity) of renamed and edited texts.

    The arguments are the paths that `exact_renames` did not pair. Similarity is the share of bytes
    in common lines, of the larger text. `read` returns the content of an id, or None if it is
    unreadable. At most `limit` paths of each side are compared; shared file names come first.
    """
    deleted, added = list(deleted), list(added)
    olds = _TextReader(read).read_texts(_most_promising(deleted, added, limit))
    news = _TextReader(read).read_texts(_most_promising(added, deleted, limit))
    # A cheap upper bound rules out most texts before pairs are compared.
    news = _possible(news, olds, threshold)
    olds = _possible(olds, news, threshold)
    used_old: set[bytes] = set()
    used_new: set[bytes] = set()
    renames: list[tuple[bytes, bytes, float]] = []
    for negative, _, _, old_path, new_path in sorted(_scored_pairs(olds, news, threshold)):
        if old_path not in used_old and new_path not in used_new:
            used_old.add(old_path)
            used_new.add(new_path)
            renames.append((old_path, new_path, -negative))
    return sorted(renames)


def _pair_paths(olds: set[bytes], news: set[bytes]) -> list[tuple[bytes, bytes]]:
    """Pair paths of one content, equal file names first."""
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
    """Pair the nearest paths first; above the limit, pair in path order."""
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
    """Count the directory names between the common head and the common tail."""
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
    """Return up to `limit` candidates of comparable size, shared file names first."""
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
    """Return the highest similarity that two such sizes allow."""
    return old / new if old < new else new / old


class _Text:
    """A text as unordered pieces: its lines, with long lines split."""

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

    def max_similarity(self, others: set[bytes]) -> float:
        """Return an upper bound of the similarity to any text of these pieces."""
        return sum(map(len, filter(others.__contains__, self.pieces))) / self.size

    @cached_property
    def weights(self) -> dict[bytes, int]:
        """Return the bytes that each distinct piece contributes."""
        return {piece: len(piece) * count for piece, count in Counter(self.pieces).items()}


class _TextReader:
    """Reads each text once, within the byte limit of one side."""

    def __init__(self, read: Callable[[ObjectId], bytes | None]) -> None:
        self._read = read
        self._bytes_left = MAX_READ_BYTES // 2
        self._contents: dict[ObjectId, bytes | None] = {}

    def read_texts(self, candidates: Iterable[Candidate]) -> list[_Text]:
        """Return the candidates that are text."""
        contents = [(candidate.path, self._get(candidate)) for candidate in candidates]
        return [_Text(path, data) for path, data in contents if data]

    def _get(self, candidate: Candidate) -> bytes | None:
        if candidate.id not in self._contents:
            self._contents[candidate.id] = self._load(candidate)
        return self._contents[candidate.id]

    def _load(self, candidate: Candidate) -> bytes | None:
        if candidate.size > self._bytes_left:
            return None
        self._bytes_left -= candidate.size
        data = self._read(candidate.id)
        if not data or is_binary(data):
            return None
        # A conversion of line endings does not make another text.
        return data.replace(b"\r\n", b"\n") if b"\r" in data else data


def _possible(texts: list[_Text], others: Iterable[_Text], threshold: float) -> list[_Text]:
    """Return the texts that may reach the threshold with any of the others."""
    pieces = set[bytes]().union(*(each.pieces for each in others))
    return [each for each in texts if each.max_similarity(pieces) >= threshold]


def _scored_pairs(
    olds: list[_Text], news: list[_Text], threshold: float
) -> Iterator[tuple[float, bool, int, bytes, bytes]]:
    """Yield (-similarity, other name?, distance, old path, new path) of similar texts."""
    pairs = []
    for a in olds:
        for b in news:
            overlap = _overlap(a.size, b.size)
            if overlap >= threshold:
                pairs.append((a.name != b.name, -overlap, a.path, b.path, a, b))
    # Likely pairs come first, in case the budget runs out.
    pairs.sort(key=itemgetter(0, 1, 2, 3))
    pieces_left = MAX_COMPARED_PIECES
    for renamed, _, old_path, new_path, a, b in pairs:
        pieces_left -= min(len(a.pieces), len(b.pieces))
        if pieces_left < 0:
            return
        score = _similarity(a, b)
        if score >= threshold:
            yield -score, renamed, _distance(old_path, new_path), old_path, new_path


def _similarity(a: _Text, b: _Text) -> float:
    shared = a.weights.keys() & b.weights.keys()
    common = sum(map(min, map(a.weights.__getitem__, shared), map(b.weights.__getitem__, shared)))
    return common / max(a.size, b.size)
