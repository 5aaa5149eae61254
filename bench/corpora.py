"""The trees that are measured, and the changes made to them.

A corpus is a folder full of source-like text with skewed sizes, a few binaries, and nested
directories of twenty to a hundred files. It is made from a seed alone, once, and kept in a cache
folder; every contestant gets its own copy. A change (edits, additions, deletions) is planned from
a label and the tree it meets, so every contestant meets the same bytes in the same order, and each
change can say afterwards whether it was really undone.

This module writes in the cache folder and in the copies made from it, nowhere else.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

# Part of the cache's folder name: raise it when a corpus would come out differently.
VERSION = 1

# Long ago, so that no contestant has to treat a copied file as just written.
_MODIFIED = 1_600_000_000

_BINARY_SHARE = 0.02
_LARGEST = 512 * 1024
_FILES_PER_DIRECTORY = (20, 100)
_IGNORED_BYTES = 2_000


@dataclass(frozen=True)
class Corpus:
    """What a tree holds: so many files of so many bytes, and what lies beside them."""

    name: str
    files: int
    bytes: int
    ignored: int = 0
    large: int = 0
    large_bytes: int = 50_000_000

    def describe(self) -> str:
        text = f"{self.name}: {self.files:,} files, {self.bytes / 1e6:.0f} MB"
        if self.ignored:
            text += f", {self.ignored:,} ignored files"
        if self.large:
            text += f", {self.large} binaries of {self.large_bytes / 1e6:.0f} MB"
        return text


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus("S", 500, 5_000_000),
        Corpus("M", 10_000, 104_000_000),
        Corpus("L", 100_000, 830_000_000, ignored=30_000),
        Corpus("B", 10_000, 104_000_000, large=10),
    )
}


@dataclass(frozen=True)
class Tree:
    """A corpus on disk, and the paths that changes may choose from."""

    root: Path
    texts: list[str]
    large: list[str]


@dataclass(frozen=True)
class Change:
    """New content by path (None deletes), and what was there before (None: nothing)."""

    after: dict[str, bytes | None]
    before: dict[str, bytes | None]
    edited: list[str] = field(default_factory=list)

    def apply(self, root: Path, only: str | None = None) -> None:
        for path, content in self.after.items():
            if only in (None, path):
                _put(root / path, content)

    def not_undone(self, root: Path, only: str | None = None) -> list[str]:
        """The paths that differ from what they were before the change."""
        return [
            path
            for path, content in self.before.items()
            if only in (None, path) and _get(root / path) != content
        ]


def make(corpus: Corpus, cache: Path) -> Tree:
    """Return the corpus from the cache, making it first where it is missing."""
    home = cache / f"corpus-{corpus.name}-v{VERSION}"
    listing = home / "corpus.json"
    if not listing.exists() or json.loads(listing.read_text())["corpus"] != asdict(corpus):
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        texts, large = _write(corpus, home / "tree")
        # Written last: a corpus without its listing is unfinished and is made again.
        listing.write_text(json.dumps({"corpus": asdict(corpus), "texts": texts, "large": large}))
    facts = json.loads(listing.read_text())
    return Tree(home / "tree", facts["texts"], facts["large"])


def copy(tree: Tree, destination: Path) -> Tree:
    """Copy a tree with its times; hard links would let one contestant's edits reach another."""
    subprocess.run(
        ["cp", "-a", "--reflink=auto", str(tree.root), str(destination)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return Tree(destination, tree.texts, tree.large)


def plan(tree: Tree, label: str, *, edits: int, adds: int = 0, deletes: int = 0) -> Change:
    """Plan a change of the tree as it is now: the same label and tree give the same change."""
    rng = random.Random(f"change-{label}")
    lines = _lines()
    chosen = rng.sample(tree.texts, edits + deletes)
    after: dict[str, bytes | None] = {}
    before: dict[str, bytes | None] = {}
    for path in chosen[:edits]:
        content = (tree.root / path).read_bytes()
        before[path] = content
        after[path] = _edited(content, rng, lines, label)
    for path in chosen[edits:]:
        before[path] = (tree.root / path).read_bytes()
        after[path] = None
    for number in range(adds):
        beside = rng.choice(tree.texts)
        path = str(Path(beside).parent / f"added_{label}_{number}.py").removeprefix("./")
        before[path] = None
        after[path] = _text(rng, lines, rng.randint(500, 12_000), path)
    return Change(after, before, chosen[:edits])


def change_one_byte(path: Path) -> None:
    """Flip one byte in the middle of a file, in place."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 0xFF]))


def _write(corpus: Corpus, root: Path) -> tuple[list[str], list[str]]:
    # The seed leaves out what lies beside the files, so that B holds M's very files.
    rng = random.Random(f"corpus-{VERSION}-{corpus.files}-{corpus.bytes}")
    lines = _lines()
    root.mkdir()
    (root / ".gitignore").write_text("node_modules/\nbuild/\n*.log\n")
    texts: list[str] = []
    sizes = _sizes(rng, corpus.files, corpus.bytes)
    for directory, count in _directories(rng, corpus.files):
        (root / directory).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            size = next(sizes)
            if rng.random() < _BINARY_SHARE:
                path = f"{directory}/image_{number}.png"
                content = rng.randbytes(size)
            else:
                path = f"{directory}/{_name(rng)}_{number}.{rng.choice(('py', 'ts', 'c', 'md'))}"
                content = _text(rng, lines, size, path)
                texts.append(path)
            (root / path).write_bytes(content)
    for number in range(corpus.ignored):
        folder = root / ("node_modules", "build")[number % 2] / f"package_{number // 60}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"index_{number}.js").write_bytes(_text(rng, lines, _IGNORED_BYTES, str(number)))
    large = [f"data/large_{number}.bin" for number in range(corpus.large)]
    for path in large:
        (root / path).parent.mkdir(exist_ok=True)
        _write_large(root / path, rng, corpus.large_bytes)
    for directory_path, _, names in os.walk(root):
        for name in names:
            os.utime(os.path.join(directory_path, name), (_MODIFIED, _MODIFIED))
        os.utime(directory_path, (_MODIFIED, _MODIFIED))
    return texts, large


def _directories(rng: random.Random, files: int) -> Iterator[tuple[str, int]]:
    """Nested directories and how many files each one holds, until all files have a place."""
    parents = ["src", "lib", "tests"]
    depth = dict.fromkeys(parents, 1)
    number = 0
    while files:
        parent = rng.choice(parents)
        directory = f"{parent}/{_name(rng)}_{number}"
        number += 1
        depth[directory] = depth[parent] + 1
        if depth[directory] < 7:
            parents.append(directory)
        count = min(files, rng.randint(*_FILES_PER_DIRECTORY))
        files -= count
        yield directory, count


def _sizes(rng: random.Random, files: int, total: int) -> Iterator[int]:
    """Skewed sizes (most small, some large) that add up to about the total."""
    drawn = [min(rng.lognormvariate(0, 1.3), 60.0) for _ in range(files)]
    scale = total / sum(drawn)
    return iter([max(20, min(_LARGEST, int(size * scale))) for size in drawn])


def _write_large(path: Path, rng: random.Random, size: int) -> None:
    """Noise and records in turn, so that every part compresses by about two, as media do.

    In turn at every kilobyte: a changed byte must not happen to lie where all is repetition.
    """
    block = 1024
    with path.open("wb") as file:
        for start in range(0, size, 2 * block):
            record = rng.randbytes(32)
            piece = rng.randbytes(block) + record * (block // len(record))
            file.write(piece[: size - start])


# Each pair of letters is a syllable.
_LETTERS = "albacodeenfegrhoinjokalumenoorpaquresotaunvewixe"
_SYLLABLES = [_LETTERS[at : at + 2] for at in range(0, len(_LETTERS), 2)]
_SHAPES = (
    "    {a} = {b}.{c}({d}, {e})",
    "    if {a} is not None and {b}.{c}({d}):",
    "        return {a}({b}, {c}={d})",
    "    for {a} in {b}.{c}:",
    "        self.{a}.{b} = {c}[{d}]",
    "def {a}_{b}({c}, {d}, {e}):",
    "    # The {a} of {b} follows {c} until {d} ends.",
    '        raise {a}(f"{b} {{{c}}} not in {d}")',
    "    const {a} = await {b}.{c}({d});",
    "    }} else if ({a}->{b} == {c}) {{",
    "",
    "    }}",
)


def _name(rng: random.Random) -> str:
    return "".join(rng.choices(_SYLLABLES, k=rng.randint(1, 3)))


_pool: list[str] = []


def _lines() -> list[str]:
    """Lines of source that the texts are drawn from, made once from their own seed."""
    if not _pool:
        rng = random.Random(f"lines-{VERSION}")
        names = [_name(rng) for _ in range(1_500)]
        # Common names come up far more often than rare ones, as in real code.
        weights = [1 / (rank + 5) for rank in range(len(names))]
        for _ in range(20_000):
            a, b, c, d, e = rng.choices(names, weights, k=5)
            _pool.append(rng.choice(_SHAPES).format(a=a, b=b, c=c, d=d, e=e))
    return _pool


def _text(rng: random.Random, lines: list[str], size: int, title: str) -> bytes:
    """Source-like text of just this size, drawn from one stretch of the lines."""
    start = rng.randrange(len(lines) - 2_000)
    stretch = lines[start : start + rng.randint(400, 2_000)]
    chosen = rng.choices(stretch, k=size // 20 + 1)
    return (f"# {title}\n" + "\n".join(chosen)).encode()[: size - 1] + b"\n"


def _edited(content: bytes, rng: random.Random, lines: list[str], label: str) -> bytes:
    """Replace one line, and now and then put in a few more, as a small edit does."""
    old = content.split(b"\n")
    at = rng.randrange(len(old))
    new = [f"{rng.choice(lines)}  # {label} {rng.randrange(10**6)}".encode()]
    new += [line.encode() for line in rng.choices(lines, k=rng.choice((0, 0, 2, 5)))]
    return b"\n".join([*old[:at], *new, *old[at + 1 :]])


def _put(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)


def _get(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
