"""The texts of an entry, as they are searched: what was said, what tools did, paths, diffs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from mulligan.core.entries import TOOL_CALL, TOOL_RESULT

TOOL_DATA = ("name", "input", "output")
PATH_KEY = re.compile(r"path|file|notebook", re.IGNORECASE)
LONGEST_PATH = 4096
OPEN, CLOSE = "\2", "\3"
"""Around what matched, while a text is being marked; no text that is searched holds them."""

UNSEEN = ("\0", OPEN, CLOSE)
COLOURS = re.compile("\x1b\\[[0-9;:?]*[@-~]")


class Columns(NamedTuple):
    """What of an entry is searched, by where it comes from."""

    content: str = ""
    tool: str = ""
    path: str = ""
    diff: str = ""


def columns_of(type: str, content: str, data: Mapping[str, Any] | None) -> Columns:
    """The texts of an entry: what was said, what tools were given and gave, paths, differences."""
    is_tool = type in (TOOL_CALL, TOOL_RESULT)
    if not data:
        return Columns(tool=clean(content)) if is_tool else Columns(clean(content))
    said, tool = [content], []
    if is_tool:
        said, tool = [], [content, *_strings([data.get(name) for name in TOOL_DATA])]
    said += _strings(data.get("summary"))
    return Columns(
        _joined(said), _joined(tool), _joined(paths_of(data)), _joined(_strings(data.get("diff")))
    )


def paths_of(data: Mapping[str, Any] | None) -> list[str]:
    """The files that an entry is about, as it names them: an edit's, and a tool's input's."""
    data = data or {}
    found = [data[name] for name in ("path", "old_path") if isinstance(data.get(name), str)]
    given = [data.get("input")]
    while given:
        each = given.pop()
        if isinstance(each, dict):
            for name, value in each.items():
                if isinstance(value, dict | list) and not PATH_KEY.search(name):
                    given.append(value)
                elif PATH_KEY.search(name):
                    found += [path for path in _strings(value) if _may_be_path(path)]
        elif isinstance(each, list):
            given += each
    return list(dict.fromkeys(found))


def clean(text: str) -> str:
    """Text that FTS5 takes as it is, and that can be marked: no NUL, no half characters.

    Without a terminal's colours too, which would otherwise grow together with words.
    """
    for character in UNSEEN:
        text = text.replace(character, " ")
    if "\x1b" in text:
        text = COLOURS.sub("", text)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def kind(type: str) -> str:
    """A type as one word of the index, and one that nobody else would use."""
    return f"mulliganentry{type.replace('_', '')}"


def _joined(texts: list[str]) -> str:
    return clean("\n".join(filter(None, texts))) if texts else ""


def _strings(value: Any) -> list[str]:
    """Every text and number in a value, however deep."""
    if value is None:
        return []
    found: list[str] = []
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, dict):
            left += reversed(each.values())
        elif isinstance(each, list):
            left += reversed(each)
        elif isinstance(each, int | float) and not isinstance(each, bool):
            found.append(str(each))
    return found


def _may_be_path(text: str) -> bool:
    return 0 < len(text) <= LONGEST_PATH and "\n" not in text
