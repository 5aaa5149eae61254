"""Shapes: a foreign value as what it should be, or as nothing; and entries in a row.

What a log holds may have any shape. Reading code asks for the shape that it needs and gets an
empty one where the log has something else, so that it never has to look first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mulligan.core.entries import NewEntry
from mulligan.importers.lines import string


class Untakeable(Exception):
    """A line or a row that cannot become an entry. Its text is the reason of the `Problem`."""


def filled(value: object) -> str | None:
    """A text that holds something, with the blanks around it taken off."""
    return string(value).strip() or None


def number(value: object) -> float | None:
    """A number that is not negative: a count, a size, a time."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value >= 0 else None


def present(**values: object) -> dict[str, Any]:
    """Those of the values that say something: neither None nor an empty text, list or object."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def chained(id: str, parent: str | None, entries: Iterable[NewEntry]) -> Iterator[NewEntry]:
    """Entries that come from one place in the log, one below the other: `id`, `id:1`, `id:2`…"""
    for number, entry in enumerate(entries):
        own = f"{id}:{number}" if number else id
        yield entry._replace(id=own, parent=parent)
        parent = own
