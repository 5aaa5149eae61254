"""Export checkpoints as commits, in the format of `git fast-import`.

Each commit holds the tree of a checkpoint, by the author `mulligan` at the checkpoint's time. The
same checkpoints give the same commits, so exporting a session again later only adds to its
branches. Git keeps symlinks, the executable bit and names of any bytes; other modes become one of
its two file modes, and empty folders are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from mulligan.core import tree
from mulligan.core.times import nanoseconds
from mulligan.core.tree import EMPTY_ID, LINK, Entry, Load
from mulligan.exporters.pieces import sanitize_text

AUTHOR: Final = b"mulligan <mulligan@localhost>"
Read = Callable[[bytes], Iterable[bytes]]
"""Read the content of a file in pieces."""


class Commit(NamedTuple):
    """A checkpoint to commit. `parents` are indexes of earlier commits."""

    checkpoint: str
    tree: bytes
    message: str
    created_at: str
    branch: str
    parents: tuple[int, ...] = ()


class UnsupportedPaths(NamedTuple):
    """Paths that git cannot hold: empty folders, and names that git reserves."""

    empty_folders: tuple[bytes, ...]
    refused: tuple[bytes, ...]


def stream(
    commits: Sequence[Commit], heads: Mapping[str, int], prefix: str, load: Load, read: Read
) -> Iterator[bytes]:
    """Yield the commits, then set each branch, below `prefix`, to its last commit."""
    yield b"feature done\n"
    blob_marks: dict[bytes, int] = {}
    commit_marks: list[int] = []
    mark = 0
    for commit in commits:
        parent_tree = commits[commit.parents[0]].tree if commit.parents else EMPTY_ID
        deleted, written = _changes(parent_tree, commit.tree, load)
        for _path, entry in written:
            if entry.id not in blob_marks:
                mark += 1
                blob_marks[entry.id] = mark
                yield b"blob\nmark :%d\ndata %d\n" % (mark, entry.size)
                yield from read(entry.id)
                yield b"\n"
        mark += 1
        yield _commit_header(commit, prefix, mark)
        for command, parent in zip((b"from", b"merge"), commit.parents, strict=False):
            yield b"%b :%d\n" % (command, commit_marks[parent])
        commit_marks.append(mark)
        yield from (b"D %b\n" % _quote(path) for path in deleted)
        for path, entry in written:
            yield b"M %b :%d %b\n" % (_mode(entry), blob_marks[entry.id], _quote(path))
        yield b"\n"
    for branch, index in heads.items():
        ref = f"refs/heads/{prefix}{branch}".encode()
        yield b"reset %b\nfrom :%d\n\n" % (ref, commit_marks[index])
    yield b"done\n"


def find_unsupported(trees: Iterable[bytes], load: Load) -> UnsupportedPaths:
    """Find the paths in these trees that git cannot hold."""
    cache: dict[bytes, _Unsupported] = {}
    empty: set[bytes] = set()
    reserved: set[bytes] = set()
    for root in dict.fromkeys(trees):
        empty_below, reserved_below = _find_in_tree(root, load, cache)
        empty |= empty_below
        reserved |= reserved_below
    return UnsupportedPaths(tuple(sorted(empty)), tuple(sorted(reserved)))


_Unsupported = tuple[frozenset[bytes], frozenset[bytes]]  # empty folders, reserved names


def _find_in_tree(root: bytes, load: Load, cache: dict[bytes, _Unsupported]) -> _Unsupported:
    """Search each folder once: most are the same from one tree to the next."""
    if root in cache:
        return cache[root]
    empty: set[bytes] = set()
    reserved: set[bytes] = set()
    for entry in load(root):
        if not _is_allowed(entry.name):
            reserved.add(entry.name)
        elif entry.is_directory and not entry.files:
            empty.add(entry.name)
        elif entry.is_directory:
            empty_below, reserved_below = _find_in_tree(entry.id, load, cache)
            empty |= {tree.join(entry.name, path) for path in empty_below}
            reserved |= {tree.join(entry.name, path) for path in reserved_below}
    cache[root] = frozenset(empty), frozenset(reserved)
    return cache[root]


def _changes(
    before: bytes, after: bytes, load: Load
) -> tuple[list[bytes], list[tuple[bytes, Entry]]]:
    """Return deleted paths, and files that are new or different."""
    deleted: list[bytes] = []
    written: list[tuple[bytes, Entry]] = []
    for path, old, new in tree.differences(before, after, load):
        if not all(map(_is_allowed, path.split(b"/"))):
            continue
        if new is not None and not new.is_directory:
            written.append((path, new))
        elif old is not None and not old.is_directory:
            deleted.append(path)
    return deleted, written


def _commit_header(commit: Commit, prefix: str, mark: int) -> bytes:
    author = b"%b %d +0000" % (AUTHOR, nanoseconds(commit.created_at) // 1_000_000_000)
    text = f"{sanitize_text(commit.message)}\n\nMulligan-Checkpoint: {commit.checkpoint}\n"
    message = text.encode("utf-8", "replace")
    return b"commit refs/heads/%b\nmark :%d\nauthor %b\ncommitter %b\ndata %d\n%b\n" % (
        f"{prefix}{commit.branch}".encode(), mark, author, author, len(message), message,
    )  # fmt: skip


def _mode(entry: Entry) -> bytes:
    if entry.kind == LINK:
        return b"120000"
    return b"100755" if entry.mode & 0o100 else b"100644"


def _quote(path: bytes) -> bytes:
    """Quote a path, so that none of its bytes has a meaning in the stream."""
    path = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + path + b'"'


def _is_allowed(name: bytes) -> bool:
    return name.lower() != b".git"
