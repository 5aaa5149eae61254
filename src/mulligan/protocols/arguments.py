"""What a command or a tool takes: declared once, checked when it is called, told as JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from mulligan.errors import UsageError

TEXT: Final = "text"
TEXTS: Final = "texts"
FLAG: Final = "flag"
NUMBER: Final = "number"
OBJECT: Final = "object"

WORDS = {TEXT: "text", TEXTS: "a list of texts", FLAG: "true or false",
         NUMBER: "a whole number", OBJECT: "an object"}  # fmt: skip
SCHEMAS: dict[str, dict[str, Any]] = {
    TEXT: {"type": "string"},
    TEXTS: {"type": "array", "items": {"type": "string"}},
    FLAG: {"type": "boolean"},
    NUMBER: {"type": "integer", "minimum": 0},
    OBJECT: {"type": "object"},
}
LARGEST = (1 << 53) - 1
"""The largest whole number that every program with JSON knows exactly."""


class Argument(NamedTuple):
    """One argument. What is not required and not given is `default`; null is as good as nothing."""

    name: str
    kind: str = TEXT
    about: str = ""
    required: bool = False
    default: Any = None


def taken(arguments: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by their Python names; raises `UsageError` for what does not fit.

    Others than those declared are passed over: clients send more than is needed.
    """
    found = {}
    for argument in arguments:
        value = given.get(argument.name)
        if value is None:
            if argument.required:
                raise UsageError(f"{argument.name} is missing.")
            value = argument.default
        elif not _fits(argument.kind, value):
            raise UsageError(f"{argument.name} must be {WORDS[argument.kind]}.")
        found[python_name(argument.name)] = value
    return found


def schema(arguments: Sequence[Argument]) -> dict[str, Any]:
    """The same, for whoever wants to know beforehand."""
    properties = {}
    for argument in arguments:
        described = dict(SCHEMAS[argument.kind])
        if argument.about:
            described["description"] = argument.about
        if argument.default is not None:
            described["default"] = argument.default
        properties[argument.name] = described
    found: dict[str, Any] = {"type": "object", "properties": properties}
    required = [argument.name for argument in arguments if argument.required]
    return found | ({"required": required} if required else {})


def python_name(name: str) -> str:
    """`fromEntryId` as `from_entry_id`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _fits(kind: str, value: Any) -> bool:
    if kind == TEXT:
        return isinstance(value, str)
    if kind == TEXTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if kind == FLAG:
        return isinstance(value, bool)
    if kind == OBJECT:
        return isinstance(value, dict)
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
