"""Read the entries that a search found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mulligan.journal.db import Database


class HitRow(NamedTuple):
    """An entry to show as a hit, with its session."""

    number: int
    session: str
    title: str
    agent: str
    entry: str
    seq: int
    type: str
    created_at: str
    branch: int
    content: str
    data: dict[str, Any] | None


class CandidateRow(NamedTuple):
    """An entry to filter; `content` and `data` are empty unless they were asked for."""

    number: int
    created_at: str
    is_compacted: bool
    type: str
    content: str
    data: dict[str, Any] | None


def hit_rows(journal: Database, numbers: Iterable[int]) -> dict[int, HitRow]:
    """Return entries by number; deleted ones are left out."""
    sql = (
        "SELECT e.number, s.id, s.title, s.agent, e.id, e.seq, e.type, e.created_at, e.branch, "
        "e.content, e.data FROM json_each(?) j JOIN entries e ON e.number = j.value "
        "JOIN sessions s ON s.number = e.session"
    )
    rows = journal.rows(sql, json.dumps(list(numbers)))
    return {row[0]: HitRow._make((*row[:-1], _data(row[-1]))) for row in rows}


def candidate_rows(
    journal: Database, numbers: Iterable[int], *, with_text: bool
) -> Iterator[CandidateRow]:
    """Yield entries; deleted ones are left out."""
    text = "e.content, e.data" if with_text else "'', NULL"
    sql = (
        f"SELECT e.number, e.created_at, e.is_compacted, e.type, {text} "
        "FROM json_each(?) j JOIN entries e ON e.number = j.value"
    )
    for *row, data in journal.rows(sql, json.dumps(list(numbers))):
        yield CandidateRow._make((*row, _data(data)))


def _data(stored: str | None) -> dict[str, Any] | None:
    data = json.loads(stored) if stored else None
    return data if isinstance(data, dict) else None
