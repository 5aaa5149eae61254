"""Git's configuration files, in git's syntax and in git's order, as far as ignoring goes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from functools import lru_cache

from mulligan.worktree.fs.safe_paths import OUT_OF_MEANS
from mulligan.worktree.ignore.stat_memo import consult

VARIABLES = (
    "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL",
)  # fmt: skip
"""All of the environment that makes a difference here."""


def global_excludes(
    top: bytes, repository: tuple[bytes, bytes] | None, environ: Mapping[str, str]
) -> bytes | None:
    """The content of the file that core.excludesFile names, or of the one it stands for."""
    home = _variable(environ, "HOME")
    xdg = _variable(environ, "XDG_CONFIG_HOME") or (home and os.path.join(home, b".config"))
    path = os.path.join(xdg, b"git", b"ignore") if xdg else None
    for file in _config_files(home, xdg, repository, environ):
        for key, value in settings(file, environ):
            if key == b"core.excludesfile" and value is not None:
                path = _expanded(value, environ)
    return read(os.path.join(top, path)) if path else None


def effective(
    repository: tuple[bytes, bytes] | None, environ: Mapping[str, str]
) -> dict[bytes, bytes]:
    """The settings in force for a repository, without sections that have a name of their own.

    A key without a value is true, as in git.
    """
    home = _variable(environ, "HOME")
    xdg = _variable(environ, "XDG_CONFIG_HOME") or (home and os.path.join(home, b".config"))
    return {
        key: b"true" if value is None else value
        for file in _config_files(home, xdg, repository, environ)
        for key, value in settings(file, environ)
    }


def _config_files(
    home: bytes | None,
    xdg: bytes | None,
    repository: tuple[bytes, bytes] | None,
    environ: Mapping[str, str],
) -> Iterator[bytes]:
    """The configuration files in git's order: a later one wins."""
    if not _is_true(_variable(environ, "GIT_CONFIG_NOSYSTEM")):
        yield _variable(environ, "GIT_CONFIG_SYSTEM") or b"/etc/gitconfig"
    only = _variable(environ, "GIT_CONFIG_GLOBAL")
    if only is not None:
        yield only
    else:
        if xdg:
            yield os.path.join(xdg, b"git", b"config")
        if home:
            yield os.path.join(home, b".gitconfig")
    if repository is not None:
        gitdir, commondir = repository
        local = os.path.join(commondir, b"config")
        yield local
        if _is_true(dict(settings(local, environ)).get(b"extensions.worktreeconfig", b"")):
            yield os.path.join(gitdir, b"config.worktree")


def settings(
    path: bytes, environ: Mapping[str, str], within: tuple[bytes, ...] = ()
) -> Iterator[tuple[bytes, bytes | None]]:
    """The settings of a configuration file as (section.key, value), those it includes too.

    Sections and keys come in lower case; the value is None where there is a key only. Ends at
    the first thing that is not in git's syntax.
    """
    data = read(path)
    if data is None or len(within) > 10 or (within and os.path.realpath(path) in within):
        return
    for key, value in _parsed(data):
        yield key, value
        if key == b"include.path" and value:
            here = os.path.realpath(path)
            included = os.path.join(os.path.dirname(here), _expanded(value, environ) or b"")
            yield from settings(included, environ, (*within, here))


@lru_cache(maxsize=64)
def _parsed(data: bytes) -> tuple[tuple[bytes, bytes | None], ...]:
    """The settings in a configuration file; most looks find the same files again."""
    return tuple(_parse(data))


def _parse(data: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    # No path can hold a zero byte: a file that does is damaged from there on.
    text = data.partition(b"\0")[0].removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    section = b""
    at = 0
    while at < len(text):
        char = text[at : at + 1]
        if char.isspace():
            at += 1
        elif char in b"#;":
            at = _line_end(text, at)
        elif char == b"[":
            header = _section(text, at + 1)
            if header is None:
                return
            section, at = header
        else:
            start = at
            while text[at : at + 1].isalnum() or text[at : at + 1] == b"-":
                at += 1
            key = section + b"." + text[start:at].lower()
            while text[at : at + 1] in (b" ", b"\t"):
                at += 1
            if start == at:
                return
            if text[at : at + 1] in (b"\n", b"", b"#", b";"):
                yield key, None
            elif text[at : at + 1] == b"=":
                parsed = _value(text, at + 1)
                if parsed is None:
                    return
                value, at = parsed
                yield key, value
            else:
                return


def _section(text: bytes, at: int) -> tuple[bytes, int] | None:
    """The name of the section whose header begins at the place, and where the header ends."""
    start = at
    while text[at : at + 1].isalnum() or text[at : at + 1] in (b"-", b"."):
        at += 1
    name = text[start:at].lower()
    if text[at : at + 1] in (b" ", b"\t"):
        at += len(text[at:]) - len(text[at:].lstrip(b" \t"))
        if text[at : at + 1] != b'"':
            return None
        name += b"."
        at += 1
        while text[at : at + 1] != b'"':
            at += text[at : at + 1] == b"\\"
            if text[at : at + 1] in (b"", b"\n"):
                return None
            name += text[at : at + 1]
            at += 1
        at += 1
    return (name, at + 1) if text[at : at + 1] == b"]" else None


def _value(text: bytes, at: int) -> tuple[bytes, int] | None:
    """The value that begins at the place, without quotes and comment, and where its line ends."""
    value = b""
    spaces = 0  # kept only when something follows them
    quoted = False
    while True:
        char = text[at : at + 1]
        at += 1
        if char in (b"", b"\n"):
            return None if quoted else (value, at)
        if not quoted and char.isspace():
            spaces += bool(value)
            continue
        if not quoted and char in b"#;":
            return value, _line_end(text, at)
        value += b" " * spaces
        spaces = 0
        if char == b'"':
            quoted = not quoted
        elif char == b"\\":
            escaped = text[at : at + 1]
            at += 1
            if escaped == b"\n":
                continue
            if escaped not in _ESCAPES:
                return None
            value += _ESCAPES[escaped]
        else:
            value += char


_ESCAPES = {b"t": b"\t", b"b": b"\b", b"n": b"\n", b'"': b'"', b"\\": b"\\"}


def _line_end(text: bytes, at: int) -> int:
    end = text.find(b"\n", at)
    return len(text) if end < 0 else end


def _expanded(path: bytes, environ: Mapping[str, str]) -> bytes | None:
    """The path with `~/` or `~user/` replaced; None if there is no such home."""
    if not path.startswith(b"~"):
        return path
    if path[1:2] in (b"", b"/"):
        home = _variable(environ, "HOME")
        return home + path[1:] if home else None
    path = os.path.expanduser(path)
    return None if path.startswith(b"~") else path


def _variable(environ: Mapping[str, str], name: str) -> bytes | None:
    value = environ.get(name)
    return None if value is None else os.fsencode(value)


def _is_true(value: bytes | None) -> bool:
    """Git's idea of a boolean; a key without a value, None among settings, is not asked here."""
    return value is not None and value.lower() not in (b"", b"0", b"false", b"no", b"off")


def read(path: bytes, *, follow: bool = True) -> bytes | None:
    """The content of a file, or `None` if it is none or cannot be read."""
    # Non-blocking, so that a pipe in the place of the file cannot hold us up.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    if not follow:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(consult(path), flags)
    except (OSError, ValueError) as problem:
        if isinstance(problem, OSError) and problem.errno in OUT_OF_MEANS:
            raise
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        pieces = [os.read(descriptor, status.st_size + 1)]
        while pieces[-1]:
            pieces.append(os.read(descriptor, 1 << 16))
        return b"".join(pieces)
    except OSError:
        return None
    finally:
        os.close(descriptor)
