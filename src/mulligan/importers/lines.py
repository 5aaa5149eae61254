"""Lines: reading logs that hold one JSON object a line, and the times in them.

Nothing here trusts the file. A line is taken whole or named as a `Problem`, and never ends the
reading: neither bytes that are not UTF-8 or not JSON, nor nesting that would exhaust the stack,
nor a line larger than memory should be spent on. What comes out can be written as JSON and as
UTF-8 again: no lone surrogates, no infinities.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

from mulligan.core.times import nanoseconds, rfc3339
from mulligan.importers.records import Problem

LINE_LIMIT: Final = 64 << 20
"""Pictures and whole files come in lines; nothing that anybody wants to read is longer."""

DEPTH_LIMIT: Final = 100

HALF_WRITTEN: Final = "The last line is not complete yet."


def json_lines(path: str) -> Iterator[tuple[int, dict[str, Any] | Problem]]:
    """The objects of a file with their line numbers, counted from 1; empty lines are left out.

    Raises OSError when the file itself cannot be read.
    """
    with open_log(path) as file:
        number = 0
        while line := file.readline(LINE_LIMIT + 1):
            number += 1
            if len(line) > LINE_LIMIT:
                _skip_line(file)
                reason = f"The line is longer than {LINE_LIMIT >> 20} MiB."
                yield number, Problem(path, number, reason)
                continue
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            value = parse(line)
            if isinstance(value, dict):
                yield number, value
            elif line.endswith(b"\n"):
                yield number, Problem(path, number, value)
            else:
                yield number, Problem(path, number, HALF_WRITTEN)


def json_file(path: str, *, list_as: str | None = None) -> dict[str, Any] | Problem:
    """A file that is one JSON object as a whole; a bare list becomes its only field, `list_as`.

    Raises OSError when the file itself cannot be read.
    """
    with open_log(path) as file:
        content = file.read(LINE_LIMIT + 1).removeprefix(b"\xef\xbb\xbf")
    if len(content) > LINE_LIMIT:
        return Problem(path, 1, f"The file is larger than {LINE_LIMIT >> 20} MiB.")
    if list_as is not None and content.lstrip().startswith(b"["):
        content = b'{"%b": %b}' % (list_as.encode(), content)
    value = parse(content)
    return value if isinstance(value, dict) else Problem(path, 1, value)


def open_log(path: str) -> BinaryIO:
    """A regular file, opened for reading; a pipe or a device is refused and never waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return os.fdopen(descriptor, "rb")


def parse(data: bytes | str) -> dict[str, Any] | str:
    """The JSON object that `data` is, or why it is none."""
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        return f"Not UTF-8 at byte {error.start}."
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        return f"Not JSON: {error.msg.lower()} at character {error.pos}."
    except RecursionError:
        return f"Nested deeper than {DEPTH_LIMIT} levels."
    except ValueError:  # a number of more digits than Python turns into one
        return "Not JSON: a number is too long."
    if not isinstance(value, dict):
        return "Not a JSON object."
    if text.count("[") + text.count("{") > DEPTH_LIMIT and _deeper(value, DEPTH_LIMIT):
        return f"Nested deeper than {DEPTH_LIMIT} levels."
    return _repaired(value) if _ESCAPED_SURROGATE.search(text) else value


def moment(value: object) -> str | None:
    """A time in our format from RFC 3339 text, or from seconds or milliseconds since the epoch.

    Microseconds and nanoseconds are told by their size as well. `None` for everything else.
    """
    if isinstance(value, str):
        try:
            since = nanoseconds(value.strip())
        except (ValueError, OverflowError):
            return None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            return None
        unit = next((unit for below, unit in _UNITS if value < below), None)
        if unit is None:
            return None
        since = int(value * unit) if isinstance(value, int) else round(value * 1000) * unit // 1000
    else:
        return None
    # Older than the epoch or beyond four-digit years: not a time, and it would not sort as text.
    return rfc3339(since) if 0 < since < _LATEST else None


def string(value: object) -> str:
    """The value if it is text, else the empty text."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


_UNITS: Final = ((1e11, 1_000_000_000), (1e14, 1_000_000), (1e17, 1_000), (1e20, 1))
_LATEST: Final = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) * 1_000_000_000
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _skip_line(file: BinaryIO) -> None:
    while (piece := file.readline(1 << 20)) and not piece.endswith(b"\n"):
        pass


def _nothing(_: str) -> None:
    """NaN and the infinities are not JSON, though some write them."""


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


_DECODER: Final = json.JSONDecoder(parse_constant=_nothing, parse_float=_finite)


def _deeper(value: object, limit: int) -> bool:
    """Whether containers are nested deeper than `limit`, level by level, without recursion."""
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


def _repaired(value: Any) -> Any:
    """The value with lone surrogates replaced: they are half a character that nothing can write."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_repaired(inner) for inner in value]
    if isinstance(value, dict):
        return {_repaired(name): _repaired(inner) for name, inner in value.items()}
    return value
