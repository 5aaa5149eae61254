"""Random trees with nasty ignore files: git and Mulligan must leave out exactly the same files."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mulligan.worktree.ignore.git_repo import git_sources
from mulligan.worktree.ignore.scope import Scope, root_scope

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")

NAMES = [
    *(b"a", b"b", b"ab", b"ba", b"aab", b"abab", b"a.b", b"b.o", b".a", b"A", b"x", b"x1"),
    *(b" a", b"a ", b"a  b", b"a\\", b"\\a", b"[a]", b"[a", b"a]", b"!a", b"#a", b"a\nb", b"\n"),
    *(b"*", b"**", b"a*b", b"?", b"-", b"^", b"a-b", b"]", b"\xff", b"\xc3\xa9", b"a\r", b"\t"),
]
ATOMS = [
    *(b"a", b"b", b"ab", b"x", b".", b"A", b"*", b"*", b"**", b"***", b"?", b"/", b"/", b"/"),
    *(b"**/", b"/**", b"/**/", b"[ab]", b"[!a]", b"[^ab]", b"[a-b]", b"[]a]", b"[!]a]", b"[a-]"),
    *(b"[-a]", b"[a", b"[", b"]", b"[[:alpha:]]", b"[[:space:][:digit:]]", b"[![:punct:]]"),
    *(b"[[:nope:]]", b"[[:a]", b"[a/b]", b"[*-?]", b"[\\]a]", b"[a\\-b]", b"[b-a]", b"[\\", b"\\"),
    *(b"\\*", b"\\?", b"\\[", b"\\/", b"\\a", b"\\\\", b" ", b"\\ ", b"!", b"#", b"\\!", b"\\#"),
    *(b"\t", b"\r", b"\xff", b"\xc3\xa9", b"-", b"^", b"\0"),
]
ENVIRONMENT = {"PATH": os.environ.get("PATH", ""), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


@pytest.mark.parametrize("seed", range(60))
def test_git_and_mulligan_ignore_the_same_files(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


def check(seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    top = os.path.join(os.fsencode(folder), b"top")
    files = build(rng, top)
    (folder / "home").mkdir()
    config = folder / "home" / "config"
    config.write_text(f'[core]\n\texcludesFile = "{folder}/home/excludes" ; as ever\n')
    (folder / "home" / "excludes").write_bytes(ignore_file(rng, files))
    environ = ENVIRONMENT | {"HOME": str(folder / "home"), "GIT_CONFIG_GLOBAL": str(config)}

    everything = listed_by_git(top, environ)
    assert listed_by_mulligan(top, environ) == everything

    # The same seen from a folder somewhere in the work tree, unless it is itself left out.
    inner = sorted({os.path.dirname(path) for path in everything} - {b""})
    if inner:
        project = os.path.join(top, rng.choice(inner))
        assert listed_by_mulligan(project, environ) == listed_by_git(project, environ)


def build(rng: random.Random, top: bytes) -> list[bytes]:
    """Make a repository without commits: some trees of files, with ignore files among them.

    Several small trees tell more than one large one, in which a single line such as `*` hides
    what all the others do.
    """
    for folder in (b"objects", b"refs", b"info"):
        os.makedirs(os.path.join(top, b".git", folder))
    write(os.path.join(top, b".git/HEAD"), b"ref: refs/heads/main\n")
    files = [path for tree in rng.sample(NAMES, 10) for path in grow(rng, top, tree)]
    if rng.random() < 0.5:
        write(os.path.join(top, b".gitignore"), ignore_file(rng, files))
    write(os.path.join(top, b".git/info/exclude"), ignore_file(rng, files))
    return files


def grow(rng: random.Random, top: bytes, tree: bytes) -> list[bytes]:
    names = rng.sample(NAMES, 5)
    files: list[bytes] = []
    folders = [tree]
    os.mkdir(os.path.join(top, tree))
    for _ in range(rng.randint(0, 5)):
        folder = os.path.join(rng.choice(folders), rng.choice(names))
        if folder not in folders:
            folders.append(folder)
            os.mkdir(os.path.join(top, folder))
    for folder in folders:
        for name in rng.sample(names, rng.randint(1, 4)):
            path = os.path.join(folder, name)
            if path not in folders:
                write(os.path.join(top, path), b"")
                files.append(path)
    for folder in {tree, rng.choice(folders)}:
        start = len(folder) + 1
        below = [path[start:] for path in files if path.startswith(folder + b"/")]
        write(os.path.join(top, folder, b".gitignore"), ignore_file(rng, below))
    return files


def ignore_file(rng: random.Random, paths: list[bytes]) -> bytes:
    lines = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if paths and rng.random() < 0.7:
            line = bent(rng, rng.choice(paths))
        else:
            line = b"".join(rng.choices(ATOMS, k=rng.randint(1, 6)))
        lines.append(
            rng.choice((b"", b"", b"", b"!", b"/"))
            + line
            + rng.choice((b"", b"", b"", b"/", b" ", b"\\", b"\\  "))
            + rng.choice((b"\n", b"\n", b"\r\n"))
        )
    data = rng.choice((b"", b"", b"", b"\xef\xbb\xbf")) + b"".join(lines)
    return data if rng.random() < 0.8 else data.rstrip(b"\n")


def bent(rng: random.Random, path: bytes) -> bytes:
    """A pattern that has a chance to match the path, or one near it."""
    parts = path.split(b"/")
    if rng.random() < 0.4:
        parts = parts[rng.randrange(len(parts)) :]
    for at, part in enumerate(parts):
        cut = rng.randint(0, len(part))
        wild = rng.choice((b"*", b"**", b"?", b"\\", bracket(rng), bracket(rng)))
        kind = rng.randrange(8)
        if kind == 0:
            parts[at] = rng.choice((b"*", b"**", b"***", b"?"))
        elif kind == 1:
            parts[at] = part[:cut] + wild
        elif kind == 2:
            parts[at] = wild + part[cut:]
        elif kind == 3:
            parts[at] = part[:cut] + wild + part[cut + 1 :]
        elif kind == 4:
            parts[at] = part + rng.choice((b"/**", b"**", b"\\"))
    return rng.choice((b"/", b"/", b"/", b"**/", b"/**/", b"\\/", b"**\\/")).join(parts)


def bracket(rng: random.Random) -> bytes:
    pieces = (b"a", b"b", b"A-z", b"!-/", b"]", b"-", b"\\", b"\\]", b"[", b":", b"[:graph:]", b"/")
    inside = b"".join(rng.choices(pieces, k=rng.randint(1, 3)))
    return b"[" + rng.choice((b"", b"", b"!", b"^")) + inside + b"]"


def listed_by_git(folder: bytes, environ: dict[str, str]) -> set[bytes]:
    command = ["git", "ls-files", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, check=True)
    return set(done.stdout.split(b"\0")) - {b""}


def listed_by_mulligan(root: bytes, environ: dict[str, str]) -> set[bytes]:
    sources = git_sources(root, environ)
    scope = root_scope(
        outer=sources.outer,
        info_prefix=sources.info_prefix,
        info_exclude=sources.info_exclude,
        global_excludes=sources.global_excludes,
        gitignore=read(os.path.join(root, b".gitignore")),
        defaults=False,
    )
    return set(walk(root, b"", scope))


def walk(root: bytes, folder: bytes, scope: Scope) -> Iterator[bytes]:
    for entry in os.scandir(os.path.join(root, folder)):
        is_dir = entry.is_dir(follow_symlinks=False)
        if scope.decide(entry.name, is_dir):
            continue
        path = os.path.join(folder, entry.name)
        if is_dir:
            gitignore = read(os.path.join(entry.path, b".gitignore"))
            yield from walk(root, path, scope.enter(entry.name, gitignore=gitignore))
        else:
            yield path


def read(path: bytes) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def write(path: bytes, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
