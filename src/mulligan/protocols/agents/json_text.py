"""Changing a JSON file as a careful person would: a few lines, and the rest stays as it is.

The text is read for where its values stand; comments and commas at the end, which some agents
allow, are passed over. Edits are made in the text itself, so order, spaces and whatever nobody
asked about stay byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

_GAP = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_INDENT = re.compile(r"\n([ \t]+)\S")
_DECODER = json.JSONDecoder()

Path = tuple[str, ...]


class Value(NamedTuple):
    """A value and where it stands. `keys` are where the names of an object's `parts` begin."""

    start: int
    end: int
    content: Any
    names: tuple[str, ...] = ()
    keys: tuple[int, ...] = ()
    parts: tuple[Value, ...] = ()

    def at(self, path: Path) -> Value | None:
        """What stands at a path of names; `None` if nothing does."""
        here: Value | None = self
        for name in path:
            if here is None or name not in here.names:
                return None
            # Of a name that comes twice, the last counts.
            here = here.parts[len(here.names) - 1 - here.names[::-1].index(name)]
        return here


def read(text: str) -> Value:
    """The values of a text; raises `ValueError` where it is no JSON, or nested too deep."""
    try:
        found = _value(text, _skip(text, 0))
    except RecursionError as problem:
        raise ValueError("It is nested too deep.") from problem
    if _skip(text, found.end) != len(text):
        raise ValueError(f"There is more at character {found.end} than one value.")
    return found


def appended(text: str, path: Path, item: Any) -> str:
    """The text with one more item in the list at a path, which is made if it is not there.

    Raises `ValueError` if something else than objects and a list stands there.
    """
    top = read(text)
    depth = 0
    here = top
    while depth < len(path):
        if not isinstance(here.content, dict):
            raise ValueError(f"{'.'.join(path[:depth]) or 'The whole'} is not an object.")
        below = here.at(path[depth : depth + 1])
        if below is None:
            made: Any = [item]
            for name in reversed(path[depth + 1 :]):
                made = {name: made}
            return _inserted(text, here, depth, f"{json.dumps(path[depth])}: ", made)
        here, depth = below, depth + 1
    if not isinstance(here.content, list):
        raise ValueError(f"{'.'.join(path)} is not a list.")
    return _inserted(text, here, depth, "", item)


def replaced(text: str, value: Value, depth: int, new: Any) -> str:
    """The text with another value in the place of one."""
    return text[: value.start] + _shown(text, new, depth) + text[value.end :]


def without(text: str, path: Path, unwanted: Callable[[Any], bool]) -> str:
    """The text without some items of the list at a path; what is empty then goes with them."""
    found = read(text).at(path)
    if found is None or not isinstance(found.content, list):
        return text
    at = [index for index, item in enumerate(found.content) if unwanted(item)]
    if at and len(at) == len(found.content):
        return _pruned(text, path)
    for index in reversed(at):
        text = cut(text, found, index)
    return text


def _pruned(text: str, path: Path) -> str:
    """The text without the member at a path, and without the objects that only held that."""
    above = read(text).at(path[:-1])
    assert above is not None
    if len(above.names) == 1 and len(path) > 1:
        return _pruned(text, path[:-1])
    return cut(text, above, above.names.index(path[-1]))


def cut(text: str, container: Value, index: int) -> str:
    """Takes a part out, with one of the commas beside it."""
    starts = container.keys or tuple(part.start for part in container.parts)
    if len(container.parts) == 1:
        return text[: container.start + 1] + text[container.end - 1 :]
    if index:
        return text[: container.parts[index - 1].end] + text[container.parts[index].end :]
    return text[: starts[0]] + text[starts[1] :]


def _inserted(text: str, container: Value, depth: int, name: str, item: Any) -> str:
    inside = text[container.start : container.end]
    step, line = _step(text), _line(text)
    if container.parts:
        end = container.parts[-1].end
        if "\n" not in inside:
            return f"{text[:end]}, {name}{json.dumps(item, ensure_ascii=False)}{text[end:]}"
        gap = f",{line}{step * (depth + 1)}"
        return text[:end] + gap + name + _shown(text, item, depth + 1) + text[end:]
    gap, last = f"{line}{step * (depth + 1)}", f"{line}{step * depth}"
    opening, closing = text[: container.start + 1], text[container.end - 1 :]
    comments = text[container.start + 1 : container.end - 1].rstrip()
    return opening + comments + gap + name + _shown(text, item, depth + 1) + last + closing


def _shown(text: str, value: Any, depth: int) -> str:
    """A value as the rest of the file is written."""
    step = _step(text)
    lines = json.dumps(value, indent=step, ensure_ascii=False).split("\n")
    return f"{_line(text)}{step * depth}".join(lines)


def _line(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _step(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _skip(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    assert found is not None
    return found.end()


def _value(text: str, at: int) -> Value:
    if text[at : at + 1] == "{":
        return _object(text, at)
    if text[at : at + 1] == "[":
        return _list(text, at)
    try:
        content, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as problem:
        raise ValueError(f"There is no value at character {at}.") from problem
    return Value(at, end, content)


def _object(text: str, start: int) -> Value:
    names, keys, parts = [], [], []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        name = _value(text, at)
        colon = _skip(text, name.end)
        if not isinstance(name.content, str) or text[colon : colon + 1] != ":":
            raise ValueError(f"There is no name at character {at}.")
        value = _value(text, _skip(text, colon + 1))
        names.append(name.content)
        keys.append(at)
        parts.append(value)
        at = _next(text, value.end, "}")
    content = dict(zip(names, (part.content for part in parts), strict=True))
    return Value(start, at + 1, content, tuple(names), tuple(keys), tuple(parts))


def _list(text: str, start: int) -> Value:
    parts = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        parts.append(_value(text, at))
        at = _next(text, parts[-1].end, "]")
    return Value(start, at + 1, [part.content for part in parts], parts=tuple(parts))


def _next(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise ValueError(f"A comma is missing at character {at}.")
    return at
