"""Read entries: in pages, along the path to a leaf, by id.

A session's entries have consecutive numbers, so a page is a range. A branch is an unforked stretch
of a session's tree, named by the `seq` of its first entry, so even a long path is a short list of
branches.
"""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from mulligan.core.coverage import storable
from mulligan.core.ids import CheckpointId, EntryId, SessionNumber
from mulligan.errors import Ambiguous, NotFound
from mulligan.journal.db import Database
from mulligan.journal.entry_numbers import MAX_SEQ, entry_number, session_range

COLUMNS = (
    "e.session, e.seq, e.id, p.id, e.branch, e.type, e.created_at, e.content, e.data, e.model, "
    "e.checkpoint, e.plan_item, e.is_compacted, e.off_path, l.label"
)
FROM = (
    "entries e LEFT JOIN entries p ON p.number = (e.session << 32) | e.parent "
    "LEFT JOIN labels l ON l.entry = e.number"
)


class EntryRow(NamedTuple):
    """An entry's row; `session` is the session's number, `parent` an entry's id."""

    session: SessionNumber
    seq: int
    id: EntryId
    parent: EntryId | None
    branch: int
    type: str
    created_at: str
    content: str
    data: dict[str, Any] | None
    model: str | None
    checkpoint: CheckpointId | None
    plan_item: str | None
    is_compacted: bool
    off_path: bool
    label: str | None


def page(
    db: Database,
    session: SessionNumber,
    *,
    types: Sequence[str] = (),
    since: int = 0,
    limit: int = 50,
    include_compacted: bool = False,
) -> list[EntryRow]:
    """Return entries of all branches after a `seq`, in order."""
    where, values = _filters(types, include_compacted)
    _first, end = session_range(session)
    sql = (
        f"SELECT {COLUMNS} FROM {FROM} WHERE e.number > ? AND e.number < ? {where} "
        "ORDER BY e.number LIMIT ?"
    )
    rows = db.rows(sql, entry_number(session, since), end, *values, limit)
    return [_row(row) for row in rows]


def recent(
    db: Database,
    session: SessionNumber,
    *,
    types: Sequence[str] = (),
    before: int | None = None,
    limit: int = 50,
    include_compacted: bool = False,
) -> list[EntryRow]:
    """Return the last entries of all branches before a `seq`, in order."""
    where, values = _filters(types, include_compacted)
    end = entry_number(session, MAX_SEQ if before is None else before)
    sql = (
        f"SELECT {COLUMNS} FROM {FROM} WHERE e.number > ? AND e.number < ? {where} "
        "ORDER BY e.number DESC LIMIT ?"
    )
    rows = db.rows(sql, entry_number(session, 0), end, *values, limit)
    return [_row(row) for row in reversed(rows)]


def count(db: Database, session: SessionNumber, *, include_compacted: bool = True) -> int:
    where = "" if include_compacted else "AND NOT is_compacted"
    sql = f"SELECT count(*) FROM entries WHERE session = ? {where}"
    return int(db.row(sql, session)[0])


def path(db: Database, session: SessionNumber, leaf: int | None) -> list[tuple[int, int]]:
    """Return (branch, last seq) from the root to an entry."""
    branches = []
    while leaf is not None:
        sql = "SELECT branch FROM entries WHERE number = ?"
        branch = db.row(sql, entry_number(session, leaf))[0]
        branches.append((branch, leaf))
        sql = "SELECT parent FROM entries WHERE number = ?"
        leaf = db.row(sql, entry_number(session, branch))[0]
    return branches[::-1]


def on_path(
    db: Database,
    session: SessionNumber,
    leaf: int | None,
    *,
    types: Sequence[str] = (),
    before: int | None = None,
    since: int = 0,
    limit: int | None = None,
    newest: bool = False,
) -> list[EntryRow]:
    """Return entries on the path to a leaf, in order; `newest` takes the last ones."""
    branches = path(db, session, leaf)
    where, values = _filters(types, True)
    order = "DESC" if newest else "ASC"
    rows: list[EntryRow] = []
    for branch, last in reversed(branches) if newest else branches:
        top = last if before is None else min(last, before - 1)
        if top <= since or top < branch:
            continue
        sql = (
            f"SELECT {COLUMNS} FROM {FROM} WHERE e.session = ? AND e.branch = ? AND e.number > ? "
            f"AND e.number <= ? {where} ORDER BY e.number {order} LIMIT ?"
        )
        rest = -1 if limit is None else limit - len(rows)
        low, high = entry_number(session, since), entry_number(session, top)
        rows += [_row(row) for row in db.rows(sql, session, branch, low, high, *values, rest)]
        if limit is not None and len(rows) >= limit:
            break
    return rows[::-1] if newest else rows


def branches(db: Database, session: SessionNumber) -> list[tuple[int, int | None, int, int]]:
    """Return each branch as (first seq, parent's seq, last seq, number of entries)."""
    sql = (
        "SELECT b.branch, f.parent, b.last & 0xFFFFFFFF, b.entries FROM "
        "(SELECT branch, max(number) AS last, count(*) AS entries FROM entries WHERE session = ?1 "
        " GROUP BY branch) b JOIN entries f ON f.number = (?1 << 32) | b.branch ORDER BY b.branch"
    )
    return [tuple(row) for row in db.rows(sql, session)]


def by_seq(db: Database, session: SessionNumber, seq: int) -> EntryRow | None:
    sql = f"SELECT {COLUMNS} FROM {FROM} WHERE e.number = ?"
    return _one(db.row(sql, entry_number(session, seq)))


def by_id(db: Database, session: SessionNumber, id: str) -> EntryRow | None:
    sql = f"SELECT {COLUMNS} FROM {FROM} WHERE e.session = ? AND e.id = ?"
    return _one(db.row(sql, session, id))


def resolve(db: Database, name: str, session: SessionNumber | None = None) -> EntryRow:
    """Return the entry with this id, unambiguous prefix, label, or `#` and `seq`."""
    name = storable(name)
    if name.startswith("#") and session is not None and name[1:].isascii() and name[1:].isdigit():
        entry = by_seq(db, session, int(name[1:][:12]))
        if entry is not None:
            return entry
    rows = _named(db, name, session) or _with_prefix(db, name, session)
    if len(rows) == 1:
        return _row(rows[0])
    if rows:
        ids = ", ".join(dict.fromkeys(row[2] for row in rows))
        reason = "it is in several sessions, as forks share entries" if "," not in ids else ids
        raise Ambiguous(f"Entry {name} matches several ({reason}); give more, or name the session.")
    raise NotFound(f"There is no entry {name!r} here; `mulligan tree` shows them.")


def _named(db: Database, name: str, session: SessionNumber | None) -> list[Any]:
    """Return up to three rows whose id, or else label, is exactly `name`."""
    where, values = _in_session(session)
    for test in ("e.id = ?", "l.label = ?"):
        rows = db.rows(f"SELECT {COLUMNS} FROM {FROM} WHERE {where} {test} LIMIT 3", *values, name)
        if rows:
            return rows + (_shadowed(db, name, rows) if session is None else [])
    return []


def _with_prefix(db: Database, name: str, session: SessionNumber | None) -> list[Any]:
    """Return rows whose id begins with `name`; a part after `:` must be its end."""
    where, values = _in_session(session)
    begin, colon, part = name.partition(":")
    end = colon + part
    sql = (
        f"SELECT {COLUMNS} FROM {FROM} WHERE {where} substr(e.id, 1, ?) = ? "
        "AND (? = '' OR substr(e.id, -?) = ?) LIMIT 30"
    )
    rows = db.rows(sql, *values, len(begin), begin, end, len(end), end) if begin else []
    if not colon and len({row[2].partition(":")[0] for row in rows}) == 1:
        # All come from one line of a log: its first entry stands for the line.
        return [row for row in rows if ":" not in row[2]] or rows[:1]
    return rows


def _in_session(session: SessionNumber | None) -> tuple[str, list[int]]:
    return ("e.session = ? AND", [session]) if session is not None else ("", [])


def _shadowed(db: Database, name: str, rows: list[Any]) -> list[Any]:
    """Return entries recorded here that imported entries of this exact name would hide.

    Ids and labels of imported logs are foreign, so they must not capture a name.
    """
    recorded = "SELECT 1 FROM sessions WHERE number = ? AND source IS NULL"
    if any(db.row(recorded, row[0]) for row in rows):
        return []
    sql = (
        f"SELECT {COLUMNS} FROM {FROM} JOIN sessions s ON s.number = e.session WHERE "
        "s.source IS NULL AND (substr(e.id, 1, ?1) = ?2 OR l.label = ?2) LIMIT 2"
    )
    return db.rows(sql, len(name), name)


def for_checkpoint(db: Database, checkpoint: str) -> list[EntryRow]:
    sql = f"SELECT {COLUMNS} FROM {FROM} WHERE e.checkpoint = ? ORDER BY e.number"
    return [_row(row) for row in db.rows(sql, checkpoint)]


def for_plan_item(db: Database, plan_item: str) -> list[EntryRow]:
    sql = f"SELECT {COLUMNS} FROM {FROM} WHERE e.plan_item = ? ORDER BY e.number"
    return [_row(row) for row in db.rows(sql, plan_item)]


def count_all(db: Database) -> int:
    """Return the number of entries of all sessions."""
    return int(db.row("SELECT count(*) FROM entries")[0])


def seqs_on_path(
    db: Database, session: SessionNumber, leaf: int | None, types: Sequence[str]
) -> list[int]:
    """Return the `seq` of each entry of some types on the path to a leaf, in order."""
    where, values = _filters(types, True)
    sql = (
        "SELECT e.seq FROM entries e WHERE e.session = ? AND e.branch = ? AND e.number <= ? "
        f"{where} ORDER BY e.number"
    )
    return [
        seq
        for branch, last in path(db, session, leaf)
        for (seq,) in db.rows(sql, session, branch, entry_number(session, last), *values)
    ]


def count_prompts(db: Database, session: SessionNumber, leaf: int) -> int:
    """Return the number of the user's messages on the path to a leaf."""
    sql = (
        "SELECT count(*) FROM entries WHERE session = ? AND branch = ? AND number <= ? "
        "AND type = 'user_input'"
    )
    return sum(
        db.row(sql, session, branch, entry_number(session, last))[0]
        for branch, last in path(db, session, leaf)
    )


def first_prompt(db: Database, session: SessionNumber) -> str | None:
    """Return the text of a session's first message of the user."""
    sql = (
        "SELECT content FROM entries WHERE session = ? AND type = 'user_input' "
        "ORDER BY number LIMIT 1"
    )
    row = db.row(sql, session)
    return row[0] if row else None


def recorded_prompts(db: Database, session: SessionNumber) -> list[tuple[str, EntryId]]:
    """Return (text, id) of the user's messages that have a checkpoint, oldest first."""
    sql = (
        "SELECT content, id FROM entries WHERE session = ? AND type = 'user_input' "
        "AND checkpoint IS NOT NULL ORDER BY number"
    )
    return [(content, id) for content, id in db.rows(sql, session)]


def last_seq(db: Database, session: SessionNumber, *, but: Sequence[str]) -> int | None:
    """Return the `seq` of the last entry on any path, types in `but` aside."""
    marks = ", ".join("?" * len(but))
    sql = (
        f"SELECT max(seq) FROM entries WHERE session = ? AND NOT off_path AND type NOT IN ({marks})"
    )
    last: int | None = db.row(sql, session, *but)[0]
    return last


def any_after(db: Database, session: SessionNumber, seq: int, types: Sequence[str]) -> bool:
    """True if an entry of some types on any path comes after a `seq`."""
    where, values = _filters(types, True)
    sql = f"SELECT 1 FROM entries e WHERE e.session = ? AND e.seq > ? AND NOT e.off_path {where}"
    return db.row(f"{sql} LIMIT 1", session, seq, *values) is not None


def _filters(types: Sequence[str], include_compacted: bool) -> tuple[str, list[str]]:
    where = "" if include_compacted else "AND NOT e.is_compacted"
    if types:
        where += f" AND e.type IN ({', '.join('?' * len(types))})"
    return where, list(types)


def _one(row: Any) -> EntryRow | None:
    return _row(row) if row else None


def _row(row: Any) -> EntryRow:
    data, compacted, off_path = row[8], row[12], row[13]
    parsed = None if data is None else json.loads(data)
    values = (*row[:8], parsed, *row[9:12], bool(compacted), bool(off_path), row[14])
    return EntryRow(*values)
