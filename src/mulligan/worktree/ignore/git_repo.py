"""Read a git repository's ignore files, index and HEAD without running git.

Read-only. A file that is missing, unreadable or damaged counts as absent and raises nothing.
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
    """What git would read to ignore paths of a project, apart from files inside its root.

    Without a repository only `global_excludes` can be set.
    """

    outer: tuple[tuple[bytes, bytes], ...]
    """The `.gitignore` files above the root, topmost first: the root's path relative to the
    directory of the file, and the content."""
    info_prefix: bytes
    """The root's path relative to where info/exclude and the global excludes apply."""
    info_exclude: bytes | None
    global_excludes: bytes | None
    index_path: bytes | None
    """The git index of the work tree; the file may not exist yet."""
    prefix: bytes
    """The root's path relative to the top of the work tree; `b""` if it is the top."""


def git_sources(root: bytes, environ: Mapping[str, str] = os.environ) -> GitSources:
    """Find the work tree of an absolute path and read its ignore sources; memoized."""
    key = (root, *[environ.get(name) for name in VARIABLES])
    return _memo.get(key, lambda: _read_sources(root, environ))


_memo = StatMemo[GitSources]()


def _read_sources(root: bytes, environ: Mapping[str, str]) -> GitSources:
    root = _real_path(root)
    repository = work_tree(root)
    if repository is None:
        return GitSources((), b"", None, global_excludes(root, None, environ), None, b"")
    top, (gitdir, commondir) = repository
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


def _real_path(path: bytes) -> bytes:
    """Resolve links; the memo depends on every component, since any may become a link."""
    above = path
    while above != os.path.dirname(above):
        depends_on(above)
        above = os.path.dirname(above)
    return os.path.realpath(path)


def repository_of(path: bytes) -> tuple[bytes, bytes] | None:
    """Return the git directory and common directory of the work tree with this top.

    They differ only in a work tree made by `git worktree add`. None if the path is not the top
    of a work tree.
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
    # Git's own test for a repository.
    if (
        os.path.lexists(depends_on(os.path.join(gitdir, b"HEAD")))
        and os.path.isdir(depends_on(os.path.join(commondir, b"objects")))
        and os.path.isdir(depends_on(os.path.join(commondir, b"refs")))
    ):
        return gitdir, commondir
    return None


def head(root: bytes) -> str | None:
    """Return the commit at HEAD of the directory's repository; `None` before the first one."""
    repository = work_tree(os.path.realpath(root))
    if repository is None:
        return None
    _top, (gitdir, commondir) = repository
    content = (read(os.path.join(gitdir, b"HEAD")) or b"").strip()
    for _step in range(5):
        if not content.startswith(b"ref: "):
            break
        content = _reference(gitdir, commondir, content[5:].strip())
    return content.decode("ascii") if _COMMIT.fullmatch(content) else None


def info_exclude(directory: bytes) -> bytes | None:
    """Return info/exclude, or `b""`, if the directory is the top of a repository."""
    repository = repository_of(directory)
    if repository is None:
        return None
    return read(os.path.join(repository[1], b"info", b"exclude")) or b""


def tracked_paths(index_path: bytes) -> list[bytes]:
    """Return the paths in a git index, as `git ls-files` lists them.

    A submodule is one path. Directory entries of a sparse index are dropped: their files are not
    on disk. With a split index, paths removed since the split are still listed.
    """
    gitdir = os.path.dirname(index_path)
    hash_size = 32 if _uses_sha256(gitdir) else 20
    paths, shared = _index(read(index_path), hash_size)
    if shared is not None:
        paths += _index(read(os.path.join(gitdir, b"sharedindex." + shared)), hash_size)[0]
    return list(dict.fromkeys(path for path in paths if path and not path.endswith(b"/")))


def _index(data: bytes | None, hash_size: int) -> tuple[list[bytes], bytes | None]:
    """Parse an index; return its paths and the id of its shared index, if split."""
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
        return paths, None  # truncated: keep the entries read so far
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
        # Padded with one to eight zeros to a multiple of eight bytes.
        at += (stop - at + 8) & ~7
    return at


def _compressed_entries(data: bytes, count: int, hash_size: int, paths: list[bytes]) -> int:
    """Read the entries of version 4; return where they end.

    Each path strips some bytes from the end of the previous path and adds a suffix.
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
    """Return the id of the shared index from the `link` extension, if any."""
    while at + 8 <= len(data) - hash_size:
        if data[at : at + 4] == b"link":
            shared = data[at + 8 : at + 8 + hash_size]
            return shared.hex().encode() if any(shared) else None
        at += 8 + int.from_bytes(data[at + 4 : at + 8])
    return None


def _reference(gitdir: bytes, commondir: bytes, name: bytes) -> bytes:
    """Return the content of a loose or packed reference; empty if missing."""
    if b".." in name.split(b"/"):
        return b""
    for directory in (gitdir, commondir):
        content = read(os.path.join(directory, name))
        if content is not None:
            return content.strip()
    for line in (read(os.path.join(commondir, b"packed-refs")) or b"").splitlines():
        commit, _space, packed = line.partition(b" ")
        if packed == name:
            return commit
    return b""


def _uses_sha256(gitdir: bytes) -> bool:
    common = read(os.path.join(gitdir, b"commondir"))
    commondir = gitdir if common is None else os.path.join(gitdir, common.rstrip(b"\r\n"))
    values = dict(settings(os.path.join(commondir, b"config"), {}))
    return (values.get(b"extensions.objectformat") or b"").lower() == b"sha256"


def work_tree(root: bytes) -> tuple[bytes, tuple[bytes, bytes]] | None:
    """Return the top of the work tree around a path, and its `repository_of`.

    Like git, does not cross file systems.
    """
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
    """Return whether `path` and all directories up to `top` are on one file system."""
    try:
        device = os.stat(path).st_dev
        while path != top:
            path = os.path.dirname(path)
            if os.stat(path).st_dev != device:
                return False
    except (OSError, ValueError):
        return False
    return True
