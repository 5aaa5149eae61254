"""Check the parameters of MCP tools and RPC commands, declared as msgspec Structs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from mulligan.errors import UsageError

MAX_INTEGER = (1 << 53) - 1
"""The largest integer that every JSON parser reads exactly."""

MISSING = "Object missing required field "
"""How msgspec's error begins for a required field that is absent."""

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]


class Params(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a tool or command; this class itself has none."""


P = TypeVar("P", bound=Params)


def convert_params(kind: type[P], given: Mapping[str, Any]) -> P:
    """Convert a JSON object to `kind`; raise `UsageError` naming the field that does not fit.

    Null counts as absent. Unknown fields are ignored, because clients send more than is needed.
    """
    values = {name: given.get(name) for name in kind.__struct_encode_fields__}
    try:
        return msgspec.convert(
            {name: value for name, value in values.items() if value is not None}, kind
        )
    except msgspec.ValidationError as problem:
        raise UsageError(_error_text(str(problem))) from None
    except UnicodeEncodeError as problem:
        # msgspec fails so on a lone surrogate in a field that is no text.
        fields = ", ".join(name for name, value in values.items() if _contains(value, problem))
        raise UsageError(f"{fields}: expected Unicode text.") from None


def json_schema(kind: type[Params]) -> dict[str, Any]:
    """Return the JSON Schema of `kind` as one object, without `$ref`."""
    _roots, components = msgspec.json.schema_components([kind])
    schema: dict[str, Any] = components[kind.__name__]
    return schema


def _error_text(text: str) -> str:
    """Put the field first: "limit: expected `int`, got `str`."."""
    if text.startswith(MISSING):
        return f"{text.removeprefix(MISSING).strip('`')} is missing."
    expected, _at, field = text.partition(" - at `$.")
    return f"{field.rstrip('`')}: {expected[0].lower()}{expected[1:]}."


def _contains(value: Any, problem: UnicodeEncodeError) -> bool:
    return repr(problem.object)[1:-1] in repr(value)
