"""Query the journal for what the index lacks: times, checkpoints, text without words."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from mulligan.core.ids import CheckpointId, SessionNumber
from mulligan.journal.db import Database
from mulligan.journal.entry_numbers import entry_number, seq_of, session_of, session_range

MAX_SCANNED_ENTRIES = 10_000


def containing(
    journal: Database, literal: str, sessions: Mapping[int, tuple[int, int]] | None
) -> list[tuple[int, float]]:
    """Scan the newest entries for text without words, such as `=>`."""
    escaped = json.dumps(literal)[1:-1]
    sql = (
        "SELECT number, instr(content, ?) OR instr(data, ?) FROM entries "
        "WHERE number >= ? AND number < ? ORDER BY number DESC LIMIT ?"
    )
    hits: list[tuple[int, float]] = []
    ranges = [(0, 1 << 62)] if sessions is None else sorted(sessions.values(), reverse=True)
    entries_left = MAX_SCANNED_ENTRIES
    for low, high in ranges:
        rows = journal.rows(sql, literal, escaped, low, high, entries_left)
        hits += [(number, 0.0) for number, matches in rows if matches]
        entries_left -= len(rows)
        if entries_left <= 0:
            break
    return hits


def times_of(journal: Database, numbers: Iterable[int]) -> dict[int, str]:
    """Return the times of entries; deleted ones are left out."""
    sql = "SELECT e.number, e.created_at FROM json_each(?) j JOIN entries e ON e.number = j.value"
    return dict(journal.rows(sql, json.dumps(list(numbers))))


def newest_of(journal: Database, numbers: Iterable[int], count: int) -> list[int]:
    """Narrow entries, given newest first, to those that may be among the newest `count`.

    Times only increase within a session, so the newest entry of each session decides which
    sessions count.
    """
    sessions: dict[int, list[int]] = defaultdict(list)
    for number in numbers:
        sessions[session_of(number)].append(number)
    last = times_of(journal, (each[0] for each in sessions.values()))
    newest = sorted(((time, number) for number, time in last.items()), reverse=True)[:count]
    return [each for _, number in newest for each in sessions[session_of(number)][:count]]


def session_times(
    journal: Database, session: int | None, agent: str | None
) -> list[tuple[SessionNumber, str, str]]:
    """Return (session, first time, last time) of sessions with entries, all or chosen."""
    sql = (
        "SELECT s.number, (SELECT created_at FROM entries WHERE number > s.number << 32 "
        "ORDER BY number LIMIT 1), (SELECT created_at FROM entries "
        "WHERE number < (s.number + 1) << 32 ORDER BY number DESC LIMIT 1) FROM sessions s "
        "WHERE (?1 IS NULL OR s.number = ?1) AND (?2 IS NULL OR s.agent = ?2) "
        "AND EXISTS (SELECT 1 FROM entries WHERE session = s.number)"
    )
    return journal.rows(sql, session, agent)


def first_at(journal: Database, session: SessionNumber, moment: str) -> int:
    """Return the number of a session's first entry at or after a moment, by bisection."""
    sql = (
        "SELECT number, created_at FROM entries WHERE number >= ? AND number < ? "
        "ORDER BY number LIMIT 1"
    )
    low, end = session_range(session)
    high = journal.row("SELECT max(number) FROM entries WHERE number < ?", end)[0] + 1
    while low < high:
        middle = (low + high) // 2
        row = journal.row(sql, middle, high)
        if row is None or row[1] >= moment:
            high = middle
        else:
            low = row[0] + 1
    return low


class NearestCheckpoints:
    """Finds the checkpoint nearest to an entry, among those of some sessions' entries."""

    def __init__(self, journal: Database, sessions: Collection[int]) -> None:
        self._journal = journal
        # Most entries have no checkpoint, so only that index is read.
        sql = (
            "SELECT number, branch, checkpoint FROM entries INDEXED BY entries_checkpoint "
            "WHERE checkpoint IS NOT NULL AND number >> 32 IN (SELECT value FROM json_each(?))"
        )
        self._branches: dict[tuple[int, int], list[tuple[int, CheckpointId]]] = defaultdict(list)
        for number, branch, checkpoint in journal.rows(sql, json.dumps(sorted(sessions))):
            self._branches[session_of(number), branch].append((seq_of(number), checkpoint))
        for checkpoints in self._branches.values():
            checkpoints.sort()
        self._sessions = {session for session, _ in self._branches}

    def find(self, session: SessionNumber, branch: int, seq: int) -> CheckpointId | None:
        """Return the last checkpoint on the path to an entry."""
        sql = (
            "SELECT p.branch, p.seq FROM entries f "
            "JOIN entries p ON p.number = (f.session << 32) | f.parent WHERE f.number = ?"
        )
        while session in self._sessions:
            checkpoints = self._branches.get((session, branch), [])
            position = bisect_right(checkpoints, seq, key=lambda each: each[0])
            if position:
                return checkpoints[position - 1][1]
            parent = self._journal.row(sql, entry_number(session, branch))
            if parent is None:
                return None
            branch, seq = parent
        return None
