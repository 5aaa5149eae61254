"""JSON Lines: everything that a session holds, one object a line, for programs and for import.

The first line is the session (`"type": "session"`), each further one an entry with its own type,
in the order in which they were appended, whatever their branch. A parent comes before its
children. Lines are ASCII: names that are not UTF-8 are written with lone surrogates.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mulligan.exporters.records import Entry, Session

FORMAT: Final = "mulligan"
VERSION: Final = 1
DERIVED: Final = ("session", "branch")
"""Of an entry: the one is in the first line, the other follows from the parents."""


def lines(session: Session, entries: Iterable[Entry]) -> Iterator[str]:
    """The lines, each with its end."""
    head = {"type": "session", "format": FORMAT, "version": VERSION}
    yield _line(head | session.as_json())
    for entry in entries:
        content = entry.as_json()
        yield _line({name: each for name, each in content.items() if name not in DERIVED})


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":")) + "\n"
