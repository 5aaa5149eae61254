"""What git's own files say about a folder, read without git on the machine.

Only reads, and never raises because of what it finds: a file that is missing, unreadable or
damaged counts as absent, and the answer is made of what is left.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from typing import NamedTuple

from mulligan.worktree.ignore.git_config import VARIABLES, global_excludes, read, settings
from mulligan.worktree.ignore.stat_memo import StatMemo, depends_on

_COMMIT = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class GitSources(NamedTuple):
    """All that git would consult about a project's root, apart from the files inside the root.

    Without a repository only `global_excludes` can be there.
    """

    outer: tuple[tuple[bytes, bytes], ...]
    """The `.gitignore` files above the root, topmost first: the path of the root as seen from
    the directory of the file, and the content."""
    info_prefix: bytes
    """The directory from which info/exclude and the global excludes count sees the root here."""
    info_exclude: bytes | None
    global_excludes: bytes | None
    index_path: bytes | None
    """The index of the work tree to which the root belongs; the file may not exist yet."""
    prefix: bytes
    """The path of the root below the top of the work tree, `b""` if it is the top."""


def git_sources(root: bytes, environ: Mapping[str, str] = os.environ) -> GitSources:
    """Find the work tree that the root belongs to, and read what it says about ignoring.

    The root is an absolute path.
    """
    question = (root, *[environ.get(name) for name in VARIABLES])
    return _found.get(question, lambda: _find(root, environ))


_found = StatMemo[GitSources]()


def _find(root: bytes, environ: Mapping[str, str]) -> GitSources:
    root = _without_links(root)
    found = work_tree(root)
    if found is None:
        return GitSources((), b"", None, global_excludes(root, None, environ), None, b"")
    top, (gitdir, commondir) = found
    prefix = b"" if root == top else os.path.relpath(root, top)
    parts = prefix.split(b"/") if prefix else []
    outer = []
    for depth in range(len(parts)):
        # Git does not follow a .gitignore that is a symlink.
        content = read(os.path.join(top, *parts[:depth], b".gitignore"), follow=False)
        if content is not None:
            outer.append((b"/".join(parts[depth:]), content))
    return GitSources(
        outer=tuple(outer),
        info_prefix=prefix,
        info_exclude=read(os.path.join(commondir, b"info", b"exclude")),
        global_excludes=global_excludes(top, (gitdir, commondir), environ),
        index_path=os.path.join(gitdir, b"index"),
        prefix=prefix,
    )


def _without_links(path: bytes) -> bytes:
    """The path as it really is: each folder on it may become a link, or lead elsewhere."""
    above = path
    while above != os.path.dirname(above):
        depends_on(above)
        above = os.path.dirname(above)
    return os.path.realpath(path)


def repository_of(path: bytes) -> tuple[bytes, bytes] | None:
    """The git directory and the common directory of a work tree with its top at the path.

    They differ only in a work tree made by `git worktree add`. None if the path is not the top
    of a work tree; the directories above it are not looked at.
    """
    gitdir = os.path.join(path, b".git")
    try:
        is_file = stat.S_ISREG(os.stat(depends_on(gitdir)).st_mode)
    except (OSError, ValueError):
        return None
    if is_file:
        link = read(gitdir)
        if link is None or not link.startswith(b"gitdir: "):
            return None
        gitdir = os.path.normpath(os.path.join(path, link[8:].rstrip(b"\r\n")))
    common = read(os.path.join(gitdir, b"commondir"))
    commondir = gitdir
    if common is not None:
        commondir = os.path.normpath(os.path.join(gitdir, common.rstrip(b"\r\n")))
    # What git itself asks for: a folder that merely has the name is not a repository.
    if (
        os.path.lexists(depends_on(os.path.join(gitdir, b"HEAD")))
        and os.path.isdir(depends_on(os.path.join(commondir, b"objects")))
        and os.path.isdir(depends_on(os.path.join(commondir, b"refs")))
    ):
        return gitdir, commondir
    return None


def head(root: bytes) -> str | None:
    """The commit that the repository of a folder stands at; `None` before the first one."""
    found = work_tree(os.path.realpath(root))
    if found is None:
        return None
    _top, (gitdir, commondir) = found
    content = (read(os.path.join(gitdir, b"HEAD")) or b"").strip()
    for _step in range(5):
        if not content.startswith(b"ref: "):
            break
        content = _reference(gitdir, commondir, content[5:].strip())
    return content.decode("ascii") if _COMMIT.fullmatch(content) else None


def info_exclude(directory: bytes) -> bytes | None:
    """The info/exclude of the repository whose top this directory is; empty without such a file."""
    found = repository_of(directory)
    if found is None:
        return None
    return read(os.path.join(found[1], b"info", b"exclude")) or b""


def tracked_paths(index_path: bytes) -> list[bytes]:
    """The paths in a git index, each once and as `git ls-files` would list them.

    A submodule is one path. Directories that a sparse index keeps in place of their files are
    left out: their files are not on disk. With a split index, paths that were removed since it
    was split are still listed.
    """
    folder = os.path.dirname(index_path)
    hash_size = 32 if _uses_sha256(folder) else 20
    paths, shared = _index(read(index_path), hash_size)
    if shared is not None:
        paths += _index(read(os.path.join(folder, b"sharedindex." + shared)), hash_size)[0]
    return list(dict.fromkeys(path for path in paths if path and not path.endswith(b"/")))


def _index(data: bytes | None, hash_size: int) -> tuple[list[bytes], bytes | None]:
    """The paths of an index as they stand there, and the name of the one that has the rest."""
    paths: list[bytes] = []
    if data is None or len(data) < 12 or data[:4] != b"DIRC":
        return paths, None
    version = int.from_bytes(data[4:8])
    count = int.from_bytes(data[8:12])
    try:
        if version == 4:
            end = _compressed_entries(data, count, hash_size, paths)
        elif version in (2, 3):
            end = _padded_entries(data, count, hash_size, paths)
        else:
            return paths, None
    except (IndexError, ValueError):
        return paths, None  # the file ends too early: what was read until then counts
    return paths, _shared_index(data, end, hash_size)


def _padded_entries(data: bytes, count: int, hash_size: int, paths: list[bytes]) -> int:
    """Read the entries of versions 2 and 3; return where they end."""
    flags_at = 40 + hash_size
    at = 12
    end = len(data) - hash_size
    for _ in range(count):
        high = data[at + flags_at]
        start = at + flags_at + (4 if high & 0x40 else 2)
        length = (high & 0x0F) << 8 | data[at + flags_at + 1]
        if length == 0xFFF:  # or longer
            length = data.index(b"\0", start) - start
        stop = start + length
        if stop > end:
            raise ValueError
        paths.append(data[start:stop])
        # One to eight zeros, so that entries are a multiple of eight long.
        at += (stop - at + 8) & ~7
    return at


def _compressed_entries(data: bytes, count: int, hash_size: int, paths: list[bytes]) -> int:
    """Read the entries of version 4; return where they end.

    Each path says how many bytes to take off the end of the one before, and what to add.
    """
    flags_at = 40 + hash_size
    at = 12
    path = b""
    for _ in range(count):
        flags = at + flags_at
        start = flags + (4 if data[flags] & 0x40 else 2)
        byte = data[start]
        strip = byte & 0x7F
        start += 1
        while byte & 0x80:
            byte = data[start]
            strip = (strip + 1) << 7 | byte & 0x7F
            start += 1
        stop = data.index(b"\0", start)
        if strip > len(path):
            raise ValueError
        path = path[: len(path) - strip] + data[start:stop]
        paths.append(path)
        at = stop + 1
    return at


def _shared_index(data: bytes, at: int, hash_size: int) -> bytes | None:
    """The name of the file that holds the rest of the entries, if the index is split."""
    while at + 8 <= len(data) - hash_size:
        if data[at : at + 4] == b"link":
            shared = data[at + 8 : at + 8 + hash_size]
            return shared.hex().encode() if any(shared) else None
        at += 8 + int.from_bytes(data[at + 4 : at + 8])
    return None


def _reference(gitdir: bytes, commondir: bytes, name: bytes) -> bytes:
    """What a reference says, loose or packed; empty for one that is not there."""
    if b".." in name.split(b"/"):
        return b""
    for folder in (gitdir, commondir):
        content = read(os.path.join(folder, name))
        if content is not None:
            return content.strip()
    for line in (read(os.path.join(commondir, b"packed-refs")) or b"").splitlines():
        commit, _space, packed = line.partition(b" ")
        if packed == name:
            return commit
    return b""


def _uses_sha256(gitdir: bytes) -> bool:
    common = read(os.path.join(gitdir, b"commondir"))
    folder = gitdir if common is None else os.path.join(gitdir, common.rstrip(b"\r\n"))
    values = dict(settings(os.path.join(folder, b"config"), {}))
    return (values.get(b"extensions.objectformat") or b"").lower() == b"sha256"


def work_tree(root: bytes) -> tuple[bytes, tuple[bytes, bytes]] | None:
    """The top of the work tree that holds the root, on the same file system as git wants it."""
    top = root
    while True:
        repository = repository_of(top)
        if repository is not None:
            return (top, repository) if _is_on_one_file_system(root, top) else None
        above = os.path.dirname(top)
        if above == top:
            return None
        top = above


def _is_on_one_file_system(path: bytes, top: bytes) -> bool:
    """Whether that is so of a path and all folders above it, up to one of them."""
    try:
        device = os.stat(path).st_dev
        while path != top:
            path = os.path.dirname(path)
            if os.stat(path).st_dev != device:
                return False
    except (OSError, ValueError):
        return False
    return True
