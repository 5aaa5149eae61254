"""What all protocols have in common: the request as a script sees it, and the reply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

JSON = dict[str, Any]

# Round numbers, so that whoever adds them up in a test can see at a glance what was counted.
INPUT_TOKENS = 1000
OUTPUT_TOKENS = 10

_PIECE = 24


class Said(NamedTuple):
    """Words in the name of the user; agents put their own reminders there too."""

    text: str


class Result(NamedTuple):
    """What a tool gave back. Some protocols have no ids: there the order says which call it was."""

    id: str | None
    text: str


class Asked(NamedTuple):
    """A request, reduced to what decides the reply."""

    model: str
    stream: bool
    tools: tuple[str, ...]
    items: tuple[Said | Result, ...]


class ToolCall(NamedTuple):
    """A call in the agent's own terms; text instead of a mapping is for a freeform tool."""

    id: str
    name: str
    arguments: Mapping[str, Any] | str

    @property
    def encoded(self) -> str:
        """The arguments as the text that protocols send them in."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


class Reply(NamedTuple):
    """What the model says next. `id` is its own, and no other reply's."""

    id: str
    model: str
    text: str
    calls: tuple[ToolCall, ...] = ()


def event(data: JSON, name: str = "") -> bytes:
    """One event of a stream of server-sent events."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def pieces(text: str) -> Iterator[str]:
    """The text in parts, so that a client really has to put it together."""
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def words(content: Any) -> str:
    """The text in a message's content, which is text itself or a list of parts that hold some."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return words(content.get("text", content.get("content", "")))
    return "\n".join(words(each) for each in content or ())
