"""Entries, read back: in pages, along the path to a leaf, by id.

An entry's number is its session's number and its `seq` in one, so a session's entries lie
together and a page is a range. An unforked stretch of a session's tree is a branch, named by the
`seq` of its first entry: the path to the root is a short list of branches, however long it is.
"""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from mulligan.errors import Ambiguous, NotFound
from mulligan.journal.db import Database

COLUMNS = (
    "e.session, e.seq, e.id, p.id, e.branch, e.type, e.created_at, e.content, e.data, e.model, "
    "e.checkpoint, e.plan_item, e.is_compacted, e.off_path, l.label"
)
FROM = (
    "entries e LEFT JOIN entries p ON p.number = (e.session << 32) | e.parent "
    "LEFT JOIN labels l ON l.entry = e.number"
)


class EntryRow(NamedTuple):
    """An entry as the journal keeps it; `session` is the session's number."""

    session: int
    seq: int
    id: str
    parent: str | None
    branch: int
    type: str
    created_at: str
    content: str
    data: dict[str, Any] | None
    model: str | None
    checkpoint: str | None
    plan_item: str | None
    is_compacted: bool
    off_path: bool
    label: str | None


def page(
    db: Database,
    session: int,
    *,
    types: Sequence[str] = (),
    since: int = 0,
    limit: int = 50,
    include_compacted: bool = False,
) -> list[EntryRow]:
    """Entries of all branches after a `seq`, in order."""
    where, values = _filters(types, include_compacted)
    low, high = (session << 32) | max(0, min(since, 0xFFFFFFFF)), (session + 1) << 32
    sql = (
        f"SELECT {COLUMNS} FROM {FROM} WHERE e.number > ? AND e.number < ? {where} "
        "ORDER BY e.number LIMIT ?"
    )
    return [_row(row) for row in db.rows(sql, low, high, *values, limit)]


def recent(
    db: Database,
    session: int,
    *,
    types: Sequence[str] = (),
    before: int | None = None,
    limit: int = 50,
    include_compacted: bool = False,
) -> list[EntryRow]:
    """The last entries of all branches before a `seq`, in order."""
    where, values = _filters(types, include_compacted)
    end = 0xFFFFFFFF if before is None else max(0, min(before, 0xFFFFFFFF))
    sql = (
        f"SELECT {COLUMNS} FROM {FROM} WHERE e.number > ? AND e.number < ? {where} "
        "ORDER BY e.number DESC LIMIT ?"
    )
    found = db.rows(sql, session << 32, (session << 32) | end, *values, limit)
    return [_row(row) for row in reversed(found)]


def count(db: Database, session: int, *, include_compacted: bool = True) -> int:
    where = "" if include_compacted else "AND NOT is_compacted"
    sql = f"SELECT count(*) FROM entries WHERE session = ? {where}"
    return int(db.row(sql, session)[0])


def path(db: Database, session: int, leaf: int | None) -> list[tuple[int, int]]:
    """The way from the root to an entry: branches, each with the `seq` up to which it belongs."""
    found = []
    while leaf is not None:
        row = db.row("SELECT branch FROM entries WHERE number = ?", (session << 32) | leaf)
        found.append((row[0], leaf))
        parent = db.row("SELECT parent FROM entries WHERE number = ?", (session << 32) | row[0])
        leaf = parent[0]
    return found[::-1]


def on_path(
    db: Database,
    session: int,
    leaf: int | None,
    *,
    types: Sequence[str] = (),
    before: int | None = None,
    since: int = 0,
    limit: int | None = None,
    newest: bool = False,
) -> list[EntryRow]:
    """Entries on the way to a leaf, in order; `newest` takes the last ones where they are many."""
    way = path(db, session, leaf)
    where, values = _filters(types, True)
    order = "DESC" if newest else "ASC"
    found: list[EntryRow] = []
    for branch, last in reversed(way) if newest else way:
        top = last if before is None else min(last, before - 1)
        if top <= since or top < branch:
            continue
        sql = (
            f"SELECT {COLUMNS} FROM {FROM} WHERE e.session = ? AND e.branch = ? AND e.number > ? "
            f"AND e.number <= ? {where} ORDER BY e.number {order} LIMIT ?"
        )
        rest = -1 if limit is None else limit - len(found)
        low, high = (session << 32) | max(0, since), (session << 32) | top
        found += [_row(row) for row in db.rows(sql, session, branch, low, high, *values, rest)]
        if limit is not None and len(found) >= limit:
            break
    return found[::-1] if newest else found


def branches(db: Database, session: int) -> list[tuple[int, int | None, int, int]]:
    """Every branch: its first `seq`, the `seq` it springs from, its last, and how many entries."""
    sql = (
        "SELECT b.branch, f.parent, b.last & 0xFFFFFFFF, b.entries FROM "
        "(SELECT branch, max(number) AS last, count(*) AS entries FROM entries WHERE session = ?1 "
        " GROUP BY branch) b JOIN entries f ON f.number = (?1 << 32) | b.branch ORDER BY b.branch"
    )
    return [tuple(row) for row in db.rows(sql, session)]


def by_seq(db: Database, session: int, seq: int) -> EntryRow | None:
    sql = f"SELECT {COLUMNS} FROM {FROM} WHERE e.number = ?"
    return _one(db.row(sql, (session << 32) | seq))


def by_id(db: Database, session: int, id: str) -> EntryRow | None:
    sql = f"SELECT {COLUMNS} FROM {FROM} WHERE e.session = ? AND e.id = ?"
    return _one(db.row(sql, session, id))


def resolve(db: Database, name: str, session: int | None = None) -> EntryRow:
    """The entry with this id, an unambiguous prefix of it, a label, or `#` and its `seq`."""
    name = name.encode("utf-8", "replace").decode()
    where, values = ("e.session = ? AND", [session]) if session is not None else ("", [])
    if name.startswith("#") and session is not None and name[1:].isascii() and name[1:].isdigit():
        found = by_seq(db, session, min(int(name[1:][:12]), 0xFFFFFFFF))
        if found is not None:
            return found
    for test in ("e.id = ?", "l.label = ?"):
        rows = db.rows(f"SELECT {COLUMNS} FROM {FROM} WHERE {where} {test} LIMIT 3", *values, name)
        if rows:
            rows += _taken_from(db, name, rows) if session is None else []
            break
    else:
        begin, colon, part = name.partition(":")
        test = "substr(e.id, 1, ?) = ? AND (? = '' OR substr(e.id, -?) = ?)"
        sql = f"SELECT {COLUMNS} FROM {FROM} WHERE {where} {test} LIMIT 30"
        end = colon + part
        rows = db.rows(sql, *values, len(begin), begin, end, len(end), end) if begin else []
        if not colon and len({row[2].partition(":")[0] for row in rows}) == 1:
            # Several entries of one line: the line is named by its first.
            rows = [row for row in rows if ":" not in row[2]] or rows[:1]
    if len(rows) == 1:
        return _row(rows[0])
    if rows:
        few = ", ".join(dict.fromkeys(row[2] for row in rows))
        where = "it is in several sessions, as forks share entries" if "," not in few else few
        raise Ambiguous(f"Entry {name} matches several ({where}); give more, or name the session.")
    raise NotFound(f"There is no entry {name!r} here; `mulligan tree` shows them.")


def _taken_from(db: Database, name: str, rows: list[Any]) -> list[Any]:
    """Entries recorded here that go by a name which imported ones claim as a whole.

    Ids and labels of a log are foreign words: they must not take a name away.
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
