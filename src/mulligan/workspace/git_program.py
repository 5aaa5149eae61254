"""Run the git program on repositories that may be hostile. No other module starts git.

A repository's configuration can name programs: hooks, filters, a file system monitor, a pager, and
of a partial clone the command that fetches missing objects. None of them runs:

1. Git never searches for a repository: `--git-dir` is always given, and a repository that lies
   among the tracked files is not looked at (`safe.bareRepository`).
2. Git sees none of the caller's `GIT_*` variables, and neither the user's nor the system's
   configuration.
3. Hooks and the monitor are switched off, and every transport is forbidden
   (`GIT_ALLOW_PROTOCOL`), so that a fetch fails before it starts a program. Git 2.44 and later do
   not even try (`GIT_NO_LAZY_FETCH`).
4. To read a work tree (`Reader`) git gets a git directory of our own, with an allow-list of
   settings in it: the repository's configuration is not read by git at all. The objects stay where
   they are; the index is a copy, since `git diff` writes to it.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mulligan.errors import Unsupported
from mulligan.worktree.ignore import git_repo
from mulligan.worktree.ignore.git_config import effective, read

TIMEOUT_S = 60

SAFE_OPTIONS = (
    "--no-pager", "--no-replace-objects", "--literal-pathspecs",
    "-c", "safe.bareRepository=explicit",
    "-c", f"core.hooksPath={os.devnull}",
    "-c", "core.fsmonitor=false",
    "-c", f"core.attributesFile={os.devnull}",
    "-c", "core.alternateRefsCommand=false",
    "-c", "core.sshCommand=false",
    "-c", "core.gitProxy=",
    "-c", "credential.helper=",
    "-c", "protocol.allow=never",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "submodule.recurse=false",
)  # fmt: skip

SAFE_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_ASKPASS": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_EDITOR": "false",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_SSH_COMMAND": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
DROPPED = re.compile(r"GIT_|SSH_|PAGER$|EDITOR$|VISUAL$")
"""Variables of the caller that git does not see."""

HARMLESS_SETTINGS = (
    b"core.autocrlf", b"core.checkstat", b"core.eol", b"core.filemode", b"core.ignorecase",
    b"core.precomposeunicode", b"core.sparsecheckout", b"core.sparsecheckoutcone",
    b"core.symlinks", b"core.trustctime", b"extensions.objectformat",
)  # fmt: skip
"""Settings that a `Reader` copies: how files are compared, nothing that runs."""
HARMLESS_VALUE = re.compile(rb"[A-Za-z0-9]{1,20}")
COPIED_FILES = (b"shallow", b"info/attributes", b"info/sparse-checkout")

Word = str | bytes


def command(git_dir: str | bytes, arguments: Sequence[Word]) -> list[Word]:
    """Return the command line of git for one repository; raise `Unsupported` without git."""
    return [_program(), *SAFE_OPTIONS, b"--git-dir=" + os.fsencode(git_dir), *arguments]


def environment() -> dict[str, str]:
    """Return the caller's environment without variables that redirect git or start programs."""
    kept = {name: value for name, value in os.environ.items() if not DROPPED.match(name)}
    return kept | SAFE_ENVIRONMENT


def run(
    git_dir: str | bytes, arguments: Sequence[Word], *, timeout: float = TIMEOUT_S
) -> subprocess.CompletedProcess[bytes]:
    """Run git on one repository; raise `Unsupported` without git."""
    return subprocess.run(
        command(git_dir, arguments),
        cwd="/",
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )


def start(git_dir: str | bytes, arguments: Sequence[Word]) -> subprocess.Popen[bytes]:
    """Start git with a pipe to write to; output is dropped, except for errors."""
    return subprocess.Popen(
        command(git_dir, arguments),
        cwd="/",
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def git_directory(folder: str) -> str | None:
    """Return the git directory of a work tree or bare repository.

    Parent directories are not searched.
    """
    path = os.path.realpath(os.fsencode(folder))
    repository = git_repo.repository_of(path)
    if repository is not None:
        return os.fsdecode(repository[0])
    is_bare = os.path.lexists(os.path.join(path, b"HEAD")) and all(
        os.path.isdir(os.path.join(path, name)) for name in (b"objects", b"refs")
    )
    return os.fsdecode(path) if is_bare else None


class Reader:
    """Queries git about the commits and the work tree that contain a folder."""

    def __init__(self, git_dir: bytes, work_tree: bytes, objects: bytes, prefix: bytes) -> None:
        self._git_dir = git_dir
        self._work_tree = work_tree
        self._objects = objects
        self.prefix = prefix
        """The folder's path in the work tree: empty, or with a trailing slash."""

    def ask(self, arguments: Sequence[bytes], *, timeout: float) -> bytes | None:
        """Return git's output; None if git fails, times out, or is missing."""
        words = [b"--work-tree=" + self._work_tree, *arguments]
        try:
            done = subprocess.run(
                command(self._git_dir, words),
                cwd=self._work_tree,
                env=environment() | {"GIT_OBJECT_DIRECTORY": os.fsdecode(self._objects)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=timeout,
                check=False,
            )
        except (OSError, ValueError, subprocess.SubprocessError, Unsupported):
            return None
        return done.stdout if done.returncode == 0 else None


@contextmanager
def reader(root: bytes) -> Iterator[Reader | None]:
    """Make a `Reader` for the work tree that contains a folder; None if there is none."""
    root = os.path.realpath(root)
    work_tree = git_repo.work_tree(root)
    if work_tree is None:
        yield None
        return
    top, (git_dir, common_dir) = work_tree
    prefix = b"" if root == top else os.path.relpath(root, top) + b"/"
    with tempfile.TemporaryDirectory(prefix="mulligan-git-") as scratch:
        made = os.path.join(os.fsencode(scratch), b"git")
        _make_git_directory(made, top, git_dir, common_dir)
        yield Reader(made, top, os.path.join(common_dir, b"objects"), prefix)


def _make_git_directory(made: bytes, top: bytes, git_dir: bytes, common_dir: bytes) -> None:
    for name in (b"refs", b"objects", b"info"):
        os.makedirs(os.path.join(made, name))
    _write(made, b"HEAD", b"ref: refs/heads/unused\n")
    values = effective((git_dir, common_dir), os.environ)
    lines = [b"[core]\n\trepositoryformatversion = 1\n\tbare = false\n"]
    for key in HARMLESS_SETTINGS:
        value = values.get(key)
        if value is not None and HARMLESS_VALUE.fullmatch(value):
            section, _dot, name = key.partition(b".")
            lines.append(b"[%b]\n\t%b = %b\n" % (section, name, value))
    _write(made, b"config", b"".join(lines))
    for name in COPIED_FILES:
        content = read(os.path.join(git_dir, name)) or read(os.path.join(common_dir, name))
        if content is not None:
            _write(made, name, content)
    for name in (b"index", *_shared_indexes(git_dir)):
        _copy(os.path.join(git_dir, name), os.path.join(made, name))


def _shared_indexes(git_dir: bytes) -> list[bytes]:
    try:
        return [name for name in os.listdir(git_dir) if name.startswith(b"sharedindex.")]
    except OSError:
        return []


def _write(folder: bytes, name: bytes, content: bytes) -> None:
    with open(os.path.join(folder, name), "xb") as file:
        file.write(content)


def _copy(source: bytes, target: bytes) -> None:
    """Copy a regular file with its times, because git's index compares them."""
    try:
        fd = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return
        with open(target, "xb") as copy:
            shutil.copyfileobj(file, copy)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _program() -> str:
    """Return git's full path: a relative entry of PATH would be searched in the project."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, "git")
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise Unsupported("There is no git on this machine. Install git, then try again.")
