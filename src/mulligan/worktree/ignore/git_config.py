"""Git's configuration files, in git's syntax and in git's order, as far as ignoring goes."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from functools import lru_cache

from mulligan.worktree.fs.safe_paths import RESOURCE_ERRORS
from mulligan.worktree.ignore.stat_memo import depends_on

VARIABLES = (
    "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL",
)  # fmt: skip
"""All of the environment that makes a difference here."""
MAX_INCLUDE_DEPTH = 10
"""As in git."""
MAX_INCLUDED_FILES = 100
MAX_CONFIG_BYTES = 4 << 20
"""Of a configuration file and of all that it includes."""
MAX_SECTION_BYTES = 100
SECTIONS = (b"core", b"extensions", b"include")
"""The sections that count here; others are not kept."""


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
    """The settings in force for a repository. A key without a value is true, as in git."""
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


def settings(path: bytes, environ: Mapping[str, str]) -> Iterator[tuple[bytes, bytes | None]]:
    """The settings of a file's `SECTIONS` as (section.key, value), those it includes too.

    Sections and keys come in lower case; the value is None where there is a key only. Ends at
    the first thing that is not in git's syntax. Includes beyond git's depth, or beyond the limits
    above on files and bytes, are skipped.
    """
    files_left, bytes_left = MAX_INCLUDED_FILES, MAX_CONFIG_BYTES

    def walk(path: bytes, within: tuple[bytes, ...]) -> Iterator[tuple[bytes, bytes | None]]:
        nonlocal files_left, bytes_left
        here = os.path.realpath(path)
        data = None if here in within else read(path, limit=bytes_left)
        bytes_left -= len(data or b"")
        for key, value in _parsed(data or b""):
            yield key, value
            may_include = files_left > 0 and len(within) < MAX_INCLUDE_DEPTH
            if key == b"include.path" and value and may_include:
                files_left -= 1
                included = os.path.join(os.path.dirname(here), _expanded(value, environ) or b"")
                yield from walk(included, (*within, here))

    return walk(path, ())


@lru_cache(maxsize=64)
def _parsed(data: bytes) -> tuple[tuple[bytes, bytes | None], ...]:
    """The settings in a configuration file; most scans find the same files again."""
    return tuple(each for each in _parse(data) if each[0].rpartition(b".")[0] in SECTIONS)


def _parse(data: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    # No path can hold a zero byte: a file that does is damaged from there on.
    text = data.partition(b"\0")[0].removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    section = b""
    at = 0
    while at < len(text):
        char = text[at : at + 1]
        if char.isspace():
            at = _end_of(_SPACES, text, at)
        elif char in b"#;":
            at = _line_end(text, at)
        elif char == b"[":
            header = _section(text, at + 1)
            if header is None:
                return
            section, at = header
        else:
            start = at
            at = _end_of(_KEY, text, at)
            key = section + b"." + text[start:at].lower()
            at = _end_of(_BLANKS, text, at)
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
    at = _end_of(_SECTION, text, at)
    name = text[start:at].lower()
    if text[at : at + 1] in (b" ", b"\t"):
        own = _OWN_NAME.match(text, at)
        if own is None:
            return None
        name += b"." + re.sub(rb"\\(.)", rb"\1", own[1])
        at = own.end()
    # Each key is kept with the name before it, and no section that counts has a long one.
    return (name[:MAX_SECTION_BYTES], at + 1) if text[at : at + 1] == b"]" else None


def _value(text: bytes, at: int) -> tuple[bytes, int] | None:
    """The value that begins at the place, without quotes and comment, and where its line ends."""
    value = bytearray()
    spaces = 0  # kept only when something follows them
    quoted = False
    while True:
        run = _end_of(_QUOTED if quoted else _PLAIN, text, at)
        if run > at:
            value += b" " * spaces + text[at:run]
            spaces, at = 0, run
        char = text[at : at + 1]
        at += 1
        if char in (b"", b"\n"):
            return None if quoted else (bytes(value), at)
        if not quoted and char.isspace():
            end = _end_of(_IN_LINE_SPACES, text, at)
            spaces += (end - at + 1) * bool(value)
            at = end
            continue
        if not quoted and char in b"#;":
            return bytes(value), _line_end(text, at)
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


_SPACES = re.compile(rb"\s*")
_BLANKS = re.compile(rb"[ \t]*")
_IN_LINE_SPACES = re.compile(rb"[^\S\n]*")
_KEY = re.compile(rb"[A-Za-z0-9-]*")
_SECTION = re.compile(rb"[A-Za-z0-9.-]*")
_OWN_NAME = re.compile(rb'[ \t]*"((?:[^"\\\n]|\\[^\n])*+)"')
_PLAIN = re.compile(rb'[^\s"\\#;]*')
_QUOTED = re.compile(rb'[^"\\\n]*')
_ESCAPES = {b"t": b"\t", b"b": b"\b", b"n": b"\n", b'"': b'"', b"\\": b"\\"}


def _end_of(run: re.Pattern[bytes], text: bytes, at: int) -> int:
    """Where a run of characters ends that begins at the place; it may be empty."""
    found = run.match(text, at)
    return at if found is None else found.end()


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


def read(path: bytes, *, follow: bool = True, limit: int | None = None) -> bytes | None:
    """The content of a file, or `None` if it is none, cannot be read, or is longer than `limit`."""
    # Non-blocking, so that a pipe in the place of the file cannot hold us up.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    if not follow:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(depends_on(path), flags)
    except (OSError, ValueError) as problem:
        if isinstance(problem, OSError) and problem.errno in RESOURCE_ERRORS:
            raise
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or (limit is not None and status.st_size > limit):
            return None
        pieces = [os.read(descriptor, status.st_size + 1)]
        while pieces[-1]:
            pieces.append(os.read(descriptor, 1 << 16))
        return b"".join(pieces)
    except OSError:
        return None
    finally:
        os.close(descriptor)
