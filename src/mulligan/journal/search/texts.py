"""Extract the searchable texts of an entry: messages, tools, paths, diffs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from mulligan.core.coverage import storable
from mulligan.core.entries import TOOL_CALL, TOOL_RESULT

TOOL_DATA = ("name", "input", "output")
PATH_KEY = re.compile(r"path|file|notebook", re.IGNORECASE)
MAX_PATH_CHARACTERS = 4096
OPEN, CLOSE = "\2", "\3"
"""Marks around matches; `clean` removes them from all texts."""

REMOVED_CHARACTERS = ("\0", OPEN, CLOSE)
TERMINAL_COLOURS = re.compile("\x1b\\[[0-9;:?]*[@-~]")


class Columns(NamedTuple):
    """The searchable texts of an entry, one for each column of the index."""

    content: str = ""
    tool: str = ""
    path: str = ""
    diff: str = ""


def columns_of(type: str, content: str, data: Mapping[str, Any] | None) -> Columns:
    """Return the searchable texts of an entry."""
    is_tool = type in (TOOL_CALL, TOOL_RESULT)
    if not data:
        return Columns(tool=clean(content)) if is_tool else Columns(clean(content))
    message, tool = [content], []
    if is_tool:
        message, tool = [], [content, *_strings([data.get(name) for name in TOOL_DATA])]
    message += _strings(data.get("summary"))
    diff = _strings(data.get("diff"))
    return Columns(_joined(message), _joined(tool), _joined(paths_of(data)), _joined(diff))


def paths_of(data: Mapping[str, Any] | None) -> list[str]:
    """Return the paths of an edit and of a tool's input."""
    data = data or {}
    paths = [data[name] for name in ("path", "old_path") if isinstance(data.get(name), str)]
    pending = [data.get("input")]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            for name, value in each.items():
                if isinstance(value, dict | list) and not PATH_KEY.search(name):
                    pending.append(value)
                elif PATH_KEY.search(name):
                    paths += [path for path in _strings(value) if _may_be_path(path)]
        elif isinstance(each, list):
            pending += each
    return list(dict.fromkeys(paths))


def clean(text: str) -> str:
    """Remove what FTS5 cannot store or mark: NUL, marks, lone surrogates, colour codes."""
    for character in REMOVED_CHARACTERS:
        text = text.replace(character, " ")
    if "\x1b" in text:
        # A colour code would become part of the word next to it.
        text = TERMINAL_COLOURS.sub("", text)
    return storable(text)


def kind(type: str) -> str:
    """Return an entry's type as one word that no text contains."""
    return f"mulliganentry{type.replace('_', '')}"


def _joined(texts: list[str]) -> str:
    return clean("\n".join(filter(None, texts))) if texts else ""


def _strings(value: Any) -> list[str]:
    """Return every text and number in a JSON value, in order."""
    if value is None:
        return []
    strings: list[str] = []
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            strings.append(each)
        elif isinstance(each, dict):
            pending += reversed(each.values())
        elif isinstance(each, list):
            pending += reversed(each)
        elif isinstance(each, int | float) and not isinstance(each, bool):
            strings.append(str(each))
    return strings


def _may_be_path(text: str) -> bool:
    return 0 < len(text) <= MAX_PATH_CHARACTERS and "\n" not in text
