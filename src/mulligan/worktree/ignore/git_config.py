"""Read git's configuration files, in git's syntax and order, for the ignore rules."""

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
"""The environment variables that the answers depend on."""
MAX_INCLUDE_DEPTH = 10
"""Git's own limit."""
MAX_INCLUDED_FILES = 100
MAX_CONFIG_BYTES = 4 << 20
"""Limit on a configuration file together with its includes."""
MAX_SECTION_BYTES = 100
SECTIONS = (b"core", b"extensions", b"include")
"""Settings of other sections are dropped."""


def global_excludes(
    top: bytes, repository: tuple[bytes, bytes] | None, environ: Mapping[str, str]
) -> bytes | None:
    """Return the content of core.excludesFile, or of its default."""
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
    """Return the settings of a repository; a key without a value is `true`, as in git."""
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
    """Yield the configuration files in git's order; the last one wins."""
    if not _is_true(_variable(environ, "GIT_CONFIG_NOSYSTEM")):
        yield _variable(environ, "GIT_CONFIG_SYSTEM") or b"/etc/gitconfig"
    override = _variable(environ, "GIT_CONFIG_GLOBAL")
    if override is not None:
        yield override
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
    """Yield (section.key, value) for `SECTIONS` of a file and its includes.

    Sections and keys are in lower case; a key without a value yields None. Stops at the first
    syntax error. Skips includes beyond the limits above.
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
    """Parse a configuration file; cached, since files rarely change between scans."""
    return tuple(each for each in _parse(data) if each[0].rpartition(b".")[0] in SECTIONS)


def _parse(data: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    # A configuration file never holds a zero byte: it is damaged from there on.
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
    """Parse a section header from `at`; return its name and end."""
    start = at
    at = _end_of(_SECTION, text, at)
    name = text[start:at].lower()
    if text[at : at + 1] in (b" ", b"\t"):
        subsection = _SUBSECTION.match(text, at)
        if subsection is None:
            return None
        name += b"." + re.sub(rb"\\(.)", rb"\1", subsection[1])
        at = subsection.end()
    # Every key repeats the section name, so a long one would cost memory per key.
    return (name[:MAX_SECTION_BYTES], at + 1) if text[at : at + 1] == b"]" else None


def _value(text: bytes, at: int) -> tuple[bytes, int] | None:
    """Parse a value from `at`; return it unquoted, and the end of its line."""
    value = bytearray()
    spaces = 0  # trailing spaces are dropped
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
_SUBSECTION = re.compile(rb'[ \t]*"((?:[^"\\\n]|\\[^\n])*+)"')
_PLAIN = re.compile(rb'[^\s"\\#;]*')
_QUOTED = re.compile(rb'[^"\\\n]*')
_ESCAPES = {b"t": b"\t", b"b": b"\b", b"n": b"\n", b'"': b'"', b"\\": b"\\"}


def _end_of(run: re.Pattern[bytes], text: bytes, at: int) -> int:
    """Return the end of a possibly empty run of characters from `at`."""
    match = run.match(text, at)
    return at if match is None else match.end()


def _line_end(text: bytes, at: int) -> int:
    end = text.find(b"\n", at)
    return len(text) if end < 0 else end


def _expanded(path: bytes, environ: Mapping[str, str]) -> bytes | None:
    """Expand `~/` or `~user/`; None if there is no such home."""
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
    """Parse a boolean as git does; None is unset."""
    return value is not None and value.lower() not in (b"", b"0", b"false", b"no", b"off")


def read(path: bytes, *, follow: bool = True, limit: int | None = None) -> bytes | None:
    """Return a regular file's content; `None` if unreadable or over `limit` bytes."""
    # Non-blocking: opening a named pipe would hang.
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
        chunks = [os.read(descriptor, status.st_size + 1)]
        while chunks[-1]:
            chunks.append(os.read(descriptor, 1 << 16))
        return b"".join(chunks)
    except OSError:
        return None
    finally:
        os.close(descriptor)
