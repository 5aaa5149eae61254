"""Git: checkpoints as commits, in the form that `git fast-import` reads.

Each commit holds the tree of a checkpoint, by the author `mulligan` at the checkpoint's time. The
same checkpoints give the same commits, so that a later export of a session that went on only adds
to its branches. Git keeps links, the executable bit and names of any bytes;
other modes become one of its two, and folders without files are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from mulligan.core import tree
from mulligan.core.times import nanoseconds
from mulligan.core.tree import EMPTY_ID, LINK, Entry, Load
from mulligan.exporters.reading import harmless

AUTHOR: Final = b"mulligan <mulligan@localhost>"
Read = Callable[[bytes], Iterable[bytes]]
"""Gives the content of a file in pieces."""


class Commit(NamedTuple):
    """A checkpoint as it is to be committed; `parents` are positions of earlier commits."""

    checkpoint: str
    tree: bytes
    message: str
    created_at: str
    branch: str
    parents: tuple[int, ...] = ()


class Unkept(NamedTuple):
    """Paths that git cannot hold: folders without files, and names that it keeps for itself."""

    empty_folders: tuple[bytes, ...]
    refused: tuple[bytes, ...]


def stream(
    commits: Sequence[Commit], heads: Mapping[str, int], prefix: str, load: Load, read: Read
) -> Iterator[bytes]:
    """The commits, and each branch at the position of its last one, below `prefix`."""
    yield b"feature done\n"
    marks: dict[bytes, int] = {}
    places: list[int] = []
    number = 0
    for commit in commits:
        before = commits[commit.parents[0]].tree if commit.parents else EMPTY_ID
        gone, held = _changes(before, commit.tree, load)
        for _path, entry in held:
            if entry.id not in marks:
                number += 1
                marks[entry.id] = number
                yield b"blob\nmark :%d\ndata %d\n" % (number, entry.size)
                yield from read(entry.id)
                yield b"\n"
        number += 1
        yield _head(commit, prefix, number)
        for word, parent in zip((b"from", b"merge"), commit.parents, strict=False):
            yield b"%b :%d\n" % (word, places[parent])
        places.append(number)
        yield from (b"D %b\n" % _name(path) for path in gone)
        for path, entry in held:
            yield b"M %b :%d %b\n" % (_mode(entry), marks[entry.id], _name(path))
        yield b"\n"
    for branch, position in heads.items():
        yield b"reset refs/heads/%b\nfrom :%d\n\n" % (
            f"{prefix}{branch}".encode(), places[position],
        )  # fmt: skip
    yield b"done\n"


def unkept(trees: Iterable[bytes], load: Load) -> Unkept:
    """What of these trees git cannot hold."""
    known: dict[bytes, tuple[frozenset[bytes], frozenset[bytes]]] = {}
    empty: set[bytes] = set()
    refused: set[bytes] = set()
    for root in dict.fromkeys(trees):
        found = _unkept(root, load, known)
        empty |= found[0]
        refused |= found[1]
    return Unkept(tuple(sorted(empty)), tuple(sorted(refused)))


def _unkept(
    root: bytes, load: Load, known: dict[bytes, tuple[frozenset[bytes], frozenset[bytes]]]
) -> tuple[frozenset[bytes], frozenset[bytes]]:
    """By folder, and each folder once: most are the same from one tree to the next."""
    if root in known:
        return known[root]
    empty: set[bytes] = set()
    refused: set[bytes] = set()
    for entry in load(root):
        if not _is_allowed(entry.name):
            refused.add(entry.name)
        elif entry.is_directory and not entry.files:
            empty.add(entry.name)
        elif entry.is_directory:
            below = _unkept(entry.id, load, known)
            empty |= {tree.join(entry.name, path) for path in below[0]}
            refused |= {tree.join(entry.name, path) for path in below[1]}
    known[root] = frozenset(empty), frozenset(refused)
    return known[root]


def _changes(
    before: bytes, after: bytes, load: Load
) -> tuple[list[bytes], list[tuple[bytes, Entry]]]:
    """Paths that are no file any more, and files that are new or different."""
    gone: list[bytes] = []
    held: list[tuple[bytes, Entry]] = []
    for path, old, new in tree.differences(before, after, load):
        if not all(map(_is_allowed, path.split(b"/"))):
            continue
        if new is not None and not new.is_directory:
            held.append((path, new))
        elif old is not None and not old.is_directory:
            gone.append(path)
    return gone, held


def _head(commit: Commit, prefix: str, mark: int) -> bytes:
    moment = b"%b %d +0000" % (AUTHOR, nanoseconds(commit.created_at) // 1_000_000_000)
    words = f"{harmless(commit.message)}\n\nMulligan-Checkpoint: {commit.checkpoint}\n"
    message = words.encode("utf-8", "replace")
    return b"commit refs/heads/%b\nmark :%d\nauthor %b\ncommitter %b\ndata %d\n%b\n" % (
        f"{prefix}{commit.branch}".encode(), mark, moment, moment, len(message), message,
    )  # fmt: skip


def _mode(entry: Entry) -> bytes:
    if entry.kind == LINK:
        return b"120000"
    return b"100755" if entry.mode & 0o100 else b"100644"


def _name(path: bytes) -> bytes:
    """In quotes always: then no byte of a name means anything."""
    path = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + path + b'"'


def _is_allowed(name: bytes) -> bool:
    return name.lower() != b".git"
