"""Types as the wire sees them: what a request may hold, and what JSON Schema says of both ways.

A request's parameters and body are declared as named tuples; from the same declaration comes
the check of what arrives, and the schema in the OpenAPI document. What a verb answers with is a
named tuple too, and `Shape` says where its JSON differs from its fields.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NotRequired,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from mulligan.errors import UsageError

LARGEST = (1 << 63) - 1
SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", bytes: "string"}
WORDS = {"string": "text", "integer": "a whole number", "number": "a number",
         "boolean": "true or false"}  # fmt: skip


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """The types of a shape's parts, which are asked for with every request."""
    return get_type_hints(kind, include_extras=True)


class About(NamedTuple):
    """What is to be known of a field beyond its type. Stands in an `Annotated`."""

    text: str = ""
    least: int | None = None
    most: int | None = None


class Written(Protocol):
    """What says itself how it goes as JSON."""

    def as_json(self) -> dict[str, Any]: ...


Value = TypeVar("Value", bound=Written)
More = TypeVar("More", bound=Mapping[str, Any])


class With(NamedTuple, Generic[Value, More]):
    """A value whose JSON has some fields more."""

    value: Value
    more: More

    def as_json(self) -> dict[str, Any]:
        return self.value.as_json() | {name: plain(each) for name, each in self.more.items()}


class Shape(NamedTuple):
    """Where a value's JSON differs from its fields."""

    renamed: Mapping[str, str] = {}
    added: Mapping[str, Any] = {}
    hidden: tuple[str, ...] = ()
    sometimes: Mapping[str, Any] = {}


AS_IT_IS = Shape()


def plain(found: Any) -> Any:
    """An answer down to what JSON knows. A named tuple would go as a list, so it is asked."""
    if hasattr(found, "as_json"):
        return found.as_json()
    if isinstance(found, dict):
        return {name: plain(each) for name, each in found.items()}
    return [plain(each) for each in found] if isinstance(found, list | tuple) else found


def from_query(kind: type, given: Mapping[str, list[str]]) -> Any:
    """Parameters of an address as the named tuple that declares them; raises `UsageError`."""
    hints = hints_of(kind)
    _no_others(kind, given, "parameter")
    values: dict[str, Any] = {}
    for name, texts in given.items():
        hint, _ = bare(hints[_field(name)])
        if get_origin(hint) is tuple:
            inner = get_args(hint)[0]
            values[_field(name)] = tuple(_from_text(inner, each, name) for each in texts)
        elif len(texts) > 1:
            raise UsageError(f"The parameter {name} was given more than once.")
        else:
            values[_field(name)] = _from_text(hints[_field(name)], texts[0], name)
    return _made(kind, values, "parameter")


def from_json(kind: Any, given: Any, where: str = "The body") -> Any:
    """A value of a declared type; raises `UsageError` that says what is wrong, and where."""
    hint, about = bare(kind)
    if hint is Any:
        return given
    origin = get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        if given is None and type(None) in get_args(hint):
            return None
        choices = [each for each in get_args(hint) if each is not type(None)]
        for choice in choices[:-1]:
            try:
                return from_json(choice, given, where)
            except UsageError:
                continue
        return from_json(Annotated[choices[-1], about or About()], given, where)
    if origin is Literal:
        if given not in get_args(hint) or isinstance(given, bool):
            raise UsageError(f"{where} must be one of {', '.join(map(str, get_args(hint)))}.")
        return given
    if origin is tuple:
        if not isinstance(given, list):
            raise UsageError(f"{where} must be a list.")
        inner = get_args(hint)[0]
        return tuple(from_json(inner, each, f"{where}[{at}]") for at, each in enumerate(given))
    if origin is dict or hint is dict:
        if not isinstance(given, dict):
            raise UsageError(f"{where} must be an object.")
        inner = get_args(hint)[1] if get_args(hint) else Any
        return {name: from_json(inner, each, f"{where}.{name}") for name, each in given.items()}
    if _is_record(hint):
        if not isinstance(given, dict):
            raise UsageError(f"{where} must be an object.")
        hints = hints_of(hint)
        _no_others(hint, given, "field")
        made = {_field(name): from_json(hints[_field(name)], each, name)
                for name, each in given.items()}  # fmt: skip
        return _made(hint, made, "field")
    return _simple(hint, given, where, about)


def known_part(kind: Any, given: Any) -> Any:
    """A value without the fields that its declared type has no place for."""
    hint, _ = bare(kind)
    if _is_record(hint) and isinstance(given, dict):
        hints = hints_of(hint)
        known = {name: each for name, each in given.items() if _field(name) in hints}
        return {name: known_part(hints[_field(name)], each) for name, each in known.items()}
    if get_origin(hint) is tuple and isinstance(given, list):
        return [known_part(get_args(hint)[0], each) for each in given]
    return given


def bare(hint: Any) -> tuple[Any, About | None]:
    """A type without what is said about it, and that."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        return inner, next((each for each in notes if isinstance(each, About)), None)
    return hint, None


class Schemas:
    """JSON Schemas of types, each record once, under its name, in `components`."""

    def __init__(self, shapes: Mapping[type, Shape | type]) -> None:
        self.components: dict[str, Any] = {}
        self._shapes = shapes
        self._names: dict[str, Any] = {}
        self._asked = self._tolerant = False

    def asked(self, hint: Any, *, tolerant: bool = False) -> dict[str, Any]:
        """The schema of what a request holds: it need not have all fields, nor may it have more.

        Unless it is `tolerant`: then others are passed over.
        """
        self._asked, self._tolerant = True, tolerant
        try:
            return self.of(hint)
        finally:
            self._asked = False

    def of(self, hint: Any) -> dict[str, Any]:
        """The schema of a type, or a reference to it."""
        if get_origin(hint) is Annotated:
            return self._annotated(hint)
        if get_origin(hint) is NotRequired:
            return self.of(get_args(hint)[0])
        if hint is Any:
            return {}
        if hint is None or hint is type(None):
            return {"type": "null"}
        origin = get_origin(hint)
        if origin in (types.UnionType, typing.Union):
            return _union([self.of(each) for each in get_args(hint)])
        if origin is Literal:
            return {"enum": list(get_args(hint))}
        if origin is With:
            return {"allOf": [self.of(each) for each in get_args(hint)]}
        if origin in (tuple, list):
            return {"type": "array", "items": self.of(get_args(hint)[0])}
        if origin is dict or hint is dict:
            inner = get_args(hint)[1] if get_args(hint) else Any
            return {"type": "object", "additionalProperties": self.of(inner)}
        if hint in SIMPLE:
            return {"type": SIMPLE[hint]}
        return self._record(hint)

    def fields(self, kind: type) -> list[tuple[str, dict[str, Any], bool]]:
        """Name, schema and necessity of each field."""
        hints = hints_of(kind)
        optional = _defaults(kind)
        return [
            (
                name.rstrip("_"),
                self._with_default(hint, name, optional),
                name not in optional and get_origin(hint) is not NotRequired,
            )
            for name, hint in hints.items()
        ]

    def _with_default(self, hint: Any, name: str, optional: Mapping[str, Any]) -> dict[str, Any]:
        found = self.of(hint)
        given = optional.get(name)
        if given is not None and isinstance(given, str | int | float) and "$ref" not in found:
            found = found | {"default": given}
        return found

    def _annotated(self, hint: Any) -> dict[str, Any]:
        inner, *notes = get_args(hint)
        found = self.of(inner)
        for note in notes:
            if isinstance(note, About):
                found = _described(found, note)
        return found

    def _record(self, hint: Any) -> dict[str, Any]:
        name = hint.__name__.lstrip("_")
        known = self._names.setdefault(name, hint)
        assert known is hint, f"two types are named {name}"
        if name not in self.components:
            self.components[name] = {}  # It may refer to itself.
            shape = self._shapes.get(hint, AS_IT_IS)
            if not isinstance(shape, Shape):
                hint, shape = shape, AS_IT_IS
            self.components[name] = self._object(hint, shape)
        return {"$ref": f"#/components/schemas/{name}"}

    def _object(self, hint: Any, shape: Shape) -> dict[str, Any]:
        asked = self._asked
        properties: dict[str, Any] = {}
        required = []
        for name, schema, needed in self.fields(hint):
            if name in shape.hidden:
                continue
            shown = shape.renamed.get(name, name)
            properties[shown] = schema if asked else _without_default(schema)
            # An answer has even those fields that have a default.
            if needed or (not asked and name in _defaults(hint)):
                required.append(shown)
        for name, added in shape.added.items():
            properties[name] = self.of(added)
            required.append(name)
        for name, added in shape.sometimes.items():
            properties[name] = self.of(added)
        found: dict[str, Any] = {"type": "object"}
        text = (hint.__doc__ or "").strip()
        if text and not text.startswith(f"{hint.__name__}("):
            found["description"] = " ".join(text.split())
        found["properties"] = properties
        if required:
            found["required"] = required
        if asked and not self._tolerant:
            found["additionalProperties"] = False
        return found


def _from_text(hint: Any, text: str, where: str) -> Any:
    """A value from the text of a parameter; an empty one is as good as none where none is fine."""
    inner, about = bare(hint)
    choices = get_args(inner) if get_origin(inner) in (types.UnionType, typing.Union) else (inner,)
    if type(None) in choices:
        if not text:
            return None
        choices = tuple(each for each in choices if each is not type(None))
    kind, nested = bare(choices[0])
    about = about or nested
    if kind is bool:
        known = {"true": True, "1": True, "": True, "false": False, "0": False}
        if text not in known:
            raise UsageError(f"{where} must be true or false.")
        return known[text]
    if kind in (int, float):
        digits = text.removeprefix("-")
        if kind is int and not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            raise UsageError(f"{where} must be a whole number.")
        try:
            return _simple(kind, kind(text), where, about)
        except ValueError:
            raise UsageError(f"{where} must be a number.") from None
    return from_json(kind, text, where)


def _simple(hint: Any, given: Any, where: str, about: About | None) -> Any:
    name = SIMPLE[hint]
    fits = isinstance(given, (int, float) if hint is float else hint)
    if not fits or (isinstance(given, bool) and hint is not bool):
        raise UsageError(f"{where} must be {WORDS[name]}.")
    if hint is float:
        if not math.isfinite(given):
            raise UsageError(f"{where} must be a number.")
        if about is not None and about.least is not None and given < about.least:
            raise UsageError(f"{where} must be at least {about.least}.")
        return float(given)
    if hint is int:
        least = about.least if about is not None and about.least is not None else -LARGEST
        most = about.most if about is not None and about.most is not None else LARGEST
        if not least <= given <= most:
            raise UsageError(f"{where} must be between {least} and {most}.")
    if hint is str and "\0" in given:
        raise UsageError(f"{where} holds a NUL.")
    return given


def _made(kind: Any, values: dict[str, Any], word: str) -> Any:
    missing = [name.rstrip("_") for name in hints_of(kind)
               if name not in values and name not in _defaults(kind)]  # fmt: skip
    if missing:
        raise UsageError(f"The {word} {missing[0]} is missing.")
    return kind(**values)


def _no_others(kind: type, given: Mapping[str, Any], word: str) -> None:
    known = [name.rstrip("_") for name in hints_of(kind)]
    for name in given:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "there is none"
            raise UsageError(f"There is no {word} {_short(name)!r}; {there}.")


def _field(name: str) -> str:
    """`from` is a word of Python's own; its field is `from_`."""
    return f"{name}_" if name == "from" else name


def _short(name: str) -> str:
    return name if len(name) <= 50 else f"{name[:50]}…"


def _defaults(kind: Any) -> dict[str, Any]:
    return getattr(kind, "_field_defaults", {})


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def _union(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    if all(set(each) == {"type"} for each in schemas):
        return {"type": [each["type"] for each in schemas]}
    return {"anyOf": schemas}


def _described(schema: dict[str, Any], about: About) -> dict[str, Any]:
    found: dict[str, Any] = {"allOf": [schema]} if "$ref" in schema else dict(schema)
    if about.text:
        found["description"] = about.text
    if about.least is not None:
        found["minimum"] = about.least
    if about.most is not None:
        found["maximum"] = about.most
    return found


def _without_default(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in schema.items() if name != "default"}
