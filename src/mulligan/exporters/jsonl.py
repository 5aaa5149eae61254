"""Export a session as JSON Lines, complete, for programs and for import.

The first line is the session (`"type": "session"`), each further line an entry with its own type,
in the order of appending, across branches. A parent comes before its children. Lines are ASCII:
names that are not UTF-8 are written with lone surrogates.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mulligan.exporters.records import Entry, Session

FORMAT: Final = "mulligan"
VERSION: Final = 1
DERIVED: Final = ("session", "branch")
"""Fields of an entry that follow from the first line and from the parents."""


def lines(session: Session, entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the lines, each with its newline."""
    head = {"type": "session", "format": FORMAT, "version": VERSION}
    yield _line(head | session.as_json())
    for entry in entries:
        fields = entry.as_json()
        yield _line({name: value for name, value in fields.items() if name not in DERIVED})


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":")) + "\n"
