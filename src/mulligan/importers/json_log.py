"""Read logs that consist of JSON objects, one per line or one per file.

Nothing here trusts the file. A line is parsed whole or becomes a `Problem`, and never stops the
reading: not invalid UTF-8 or JSON, not nesting that would exhaust the stack, not a line larger
than memory should hold. Parsed values can be written as JSON and UTF-8 again: they hold no lone
surrogates and no infinities.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from mulligan.importers.records import Problem

MAX_RECORD_BYTES: Final = 64 << 20
"""Limits a line, a file or a value; images and whole files are stored in lines."""

MAX_JSON_DEPTH: Final = 100

INCOMPLETE_LAST_LINE: Final = "The last line is not complete yet."

_BOM: Final = b"\xef\xbb\xbf"


def read_json_lines(path: str) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
    """Yield the objects of a file with their line numbers, from 1; skip empty lines.

    Raises OSError if the file itself cannot be read.
    """
    for number, line in read_lines(path):
        if isinstance(line, str):
            yield number, Problem(path, number, line)
            continue
        if number == 1:
            line = line.removeprefix(_BOM)
        if not line.strip():
            continue
        value = parse_object(line)
        if isinstance(value, dict):
            yield number, value
        else:
            reason = value if line.endswith(b"\n") else INCOMPLETE_LAST_LINE
            yield number, Problem(path, number, reason)


def read_lines(path: str) -> Iterator[tuple[int, bytes | str]]:
    """Yield the lines of a file with their numbers, from 1; an error text for an oversized one.

    Raises OSError if the file itself cannot be read.
    """
    with open_log(path) as file:
        number = 0
        while line := file.readline(MAX_RECORD_BYTES + 1):
            number += 1
            if len(line) <= MAX_RECORD_BYTES:
                yield number, line
                continue
            while not line.endswith(b"\n") and (line := file.readline(1 << 20)):
                pass
            yield number, f"The line is longer than {MAX_RECORD_BYTES >> 20} MiB."


def read_json_file(path: str, *, list_as: str | None = None) -> dict[str, Any] | Problem:
    """Read a file that is one JSON object; wrap a bare list in an object under `list_as`.

    Raises OSError if the file itself cannot be read.
    """
    with open_log(path) as file:
        content = file.read(MAX_RECORD_BYTES + 1).removeprefix(_BOM)
    if len(content) > MAX_RECORD_BYTES:
        return Problem(path, 1, f"The file is larger than {MAX_RECORD_BYTES >> 20} MiB.")
    if list_as is not None and content.lstrip().startswith(b"["):
        content = b'{"%b": %b}' % (list_as.encode(), content)
    value = parse_object(content)
    return value if isinstance(value, dict) else Problem(path, 1, value)


def open_log(path: str) -> BinaryIO:
    """Open a regular file for reading; refuse pipes and devices without blocking."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return os.fdopen(descriptor, "rb")


def parse_object(data: bytes | str) -> dict[str, Any] | str:
    """Parse a JSON object; return the reason as text if `data` is none."""
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        return f"Not UTF-8 at byte {error.start}."
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        return f"Not JSON: {error.msg.lower()} at character {error.pos}."
    except RecursionError:
        return f"Nested deeper than {MAX_JSON_DEPTH} levels."
    except ValueError:  # Python limits the digits of an integer
        return "Not JSON: a number is too long."
    if not isinstance(value, dict):
        return "Not a JSON object."
    if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _is_deeper(value, MAX_JSON_DEPTH):
        return f"Nested deeper than {MAX_JSON_DEPTH} levels."
    return _replace_surrogates(value) if _ESCAPED_SURROGATE.search(text) else value


_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _parse_constant(_: str) -> None:
    """Read NaN and the infinities as null: some programs write them, though JSON has none."""


def _parse_float(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


_DECODER: Final = json.JSONDecoder(parse_constant=_parse_constant, parse_float=_parse_float)


def _is_deeper(value: object, limit: int) -> bool:
    """Return True if containers nest deeper than `limit`; works without recursion."""
    level: list[Any] = [value]
    for _ in range(limit + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which cannot be encoded as UTF-8."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace_surrogates(inner) for inner in value]
    if isinstance(value, dict):
        return {
            _replace_surrogates(name): _replace_surrogates(inner) for name, inner in value.items()
        }
    return value
