"""Write logs, read them with an importer, and pick records out of the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from mulligan.core.entries import NewEntry
from mulligan.importers.records import Importer, Record, Session, Source

T = TypeVar("T")


def write_jsonl(path: Path, *lines: Any) -> Path:
    """Write one line per value: text as it is, everything else as JSON."""
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    return write_text(path, "".join(f"{text}\n" for text in texts))


def write_json(path: Path, value: Any) -> Path:
    """Write text as it is, everything else as JSON."""
    return write_text(path, value if isinstance(value, str) else json.dumps(value))


def write_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read_log(importer: Importer, path: Path, part: str = "") -> list[Record]:
    return list(importer.read(Source(str(path), part)))


def of(records: list[Record], kind: type[T]) -> list[T]:
    """Return the records of one type."""
    return [record for record in records if isinstance(record, kind)]


def entries(records: list[Record]) -> list[NewEntry]:
    return of(records, NewEntry)


def shape(records: list[Record]) -> list[tuple[str | None, str | None, str]]:
    """Return id, parent and type of each entry."""
    return [(entry.id, entry.parent, entry.type) for entry in entries(records)]


def texts(records: list[Record]) -> list[tuple[str, str]]:
    """Return type and content of each entry."""
    return [(entry.type, entry.content) for entry in entries(records)]


def last_session(records: list[Record]) -> Session:
    return of(records, Session)[-1]
