"""What a search asks of the journal itself, beside the index: times, checkpoints, odd texts."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping

from mulligan.journal.db import Database

MAX_SCANNED_ENTRIES = 10_000
"""So many of the newest entries are looked at for text without a word in it, such as `=>`."""


def containing(
    journal: Database, literal: str, sessions: Mapping[int, tuple[int, int]] | None
) -> list[tuple[int, float]]:
    """The newest entries that hold exactly this text; for text that has no word to look up."""
    escaped = json.dumps(literal)[1:-1]
    sql = (
        "SELECT number, instr(content, ?) OR instr(data, ?) FROM entries "
        "WHERE number >= ? AND number < ? ORDER BY number DESC LIMIT ?"
    )
    found: list[tuple[int, float]] = []
    limits = [(0, 1 << 62)] if sessions is None else sorted(sessions.values(), reverse=True)
    left = MAX_SCANNED_ENTRIES
    for low, high in limits:
        rows = journal.rows(sql, literal, escaped, low, high, left)
        found += [(number, 0.0) for number, matches in rows if matches]
        left -= len(rows)
        if left <= 0:
            break
    return found


def times_of(journal: Database, numbers: Iterable[int]) -> dict[int, str]:
    """When some entries were made; those that are gone have no time."""
    sql = "SELECT e.number, e.created_at FROM json_each(?) j JOIN entries e ON e.number = j.value"
    return dict(journal.rows(sql, json.dumps(list(numbers))))


def newest_of(journal: Database, numbers: Iterable[int], count: int) -> list[int]:
    """Among some entries, in falling order, all that may be one of the newest so many.

    Times only ever increase within a session: so one of each session is asked for its time, and
    only those sessions count that are among the newest themselves.
    """
    sessions: dict[int, list[int]] = defaultdict(list)
    for number in numbers:
        sessions[number >> 32].append(number)
    last = times_of(journal, (each[0] for each in sessions.values()))
    newest = sorted(((time, number) for number, time in last.items()), reverse=True)[:count]
    return [each for _, number in newest for each in sessions[number >> 32][:count]]


def first_at(journal: Database, session: int, moment: str) -> int:
    """The number of a session's first entry that is not before a moment."""
    sql = (
        "SELECT number, created_at FROM entries WHERE number >= ? AND number < ? "
        "ORDER BY number LIMIT 1"
    )
    last = journal.row("SELECT max(number) FROM entries WHERE number < ?", (session + 1) << 32)[0]
    low, high = session << 32, last + 1
    while low < high:
        middle = (low + high) // 2
        row = journal.row(sql, middle, high)
        if row is None or row[1] >= moment:
            high = middle
        else:
            low = row[0] + 1
    return low


class Returns:
    """The checkpoints of some sessions' entries, and which of them is nearest to an entry."""

    def __init__(self, journal: Database, chosen: set[int]) -> None:
        self._journal = journal
        # By the index of checkpoints alone: most entries have none.
        sql = (
            "SELECT number, branch, checkpoint FROM entries INDEXED BY entries_checkpoint "
            "WHERE checkpoint IS NOT NULL AND number >> 32 IN (SELECT value FROM json_each(?))"
        )
        self._branches: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
        for number, branch, checkpoint in journal.rows(sql, json.dumps(sorted(chosen))):
            self._branches[number >> 32, branch].append((number & 0xFFFFFFFF, checkpoint))
        for marks in self._branches.values():
            marks.sort()
        self._sessions = {session for session, _ in self._branches}

    def nearest(self, session: int, branch: int, seq: int) -> str | None:
        """The checkpoint of the entry itself, or of the nearest one before it on its path."""
        sql = (
            "SELECT p.branch, p.seq FROM entries f "
            "JOIN entries p ON p.number = (f.session << 32) | f.parent WHERE f.number = ?"
        )
        while session in self._sessions:
            marks = self._branches.get((session, branch), [])
            place = bisect_right(marks, seq, key=lambda mark: mark[0])
            if place:
                return marks[place - 1][1]
            above = self._journal.row(sql, (session << 32) | branch)
            if above is None:
                return None
            branch, seq = above
        return None
