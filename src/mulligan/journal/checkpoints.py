"""Checkpoints: trees with a name, a kind and a time."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apsw

from mulligan.errors import Ambiguous, NotFound
from mulligan.journal.db import PREFIX_MIN_CHARACTERS, Database

Id = bytes
IMPORTED = "imported"
FILES = "files"
PARTIAL = (IMPORTED, FILES)
"""Kinds that hold some files, and say nothing about the disk as a whole."""
MADE_BY_RESTORE = ("safety", "restored")
NOT_TAKEN = (*MADE_BY_RESTORE, "step", *PARTIAL)
TAKEN = f"kind NOT IN {NOT_TAKEN}"
AT_A_TIME = 16
LISTED = (
    f"(kind IN ('initial', 'turn', 'manual', '{IMPORTED}') "
    "OR id IN (SELECT after FROM operations WHERE kind = 'restore'))"
)
"""What clients see as a session's checkpoints: taken by it, or restored to."""
KEPT_FOR_UNDO = "Kept because undo needs it"


class CheckpointRow(NamedTuple):
    """A checkpoint as the journal keeps it. `tree`, `guarded` and `coverage` name objects."""

    id: str
    tree: Id
    guarded: Id
    coverage: Id
    complete: bool
    kind: str
    message: str
    created_at: str
    files: int
    bytes: int
    session: str | None = None
    entry: str | None = None
    max_file_size: int = 0
    """The size limit that it was taken with, in bytes."""


COLUMNS = ", ".join(CheckpointRow._fields)


def insert(db: apsw.Connection, checkpoint: CheckpointRow) -> None:
    """Adds a checkpoint, inside the caller's transaction."""
    db.execute(
        f"INSERT INTO checkpoints ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", checkpoint
    )


def insert_at_its_time(db: apsw.Connection, checkpoint: CheckpointRow) -> None:
    """Adds a checkpoint of the past before those that are later, inside the caller's transaction.

    The later ones move up by one, and with them what is counted from their positions.
    """
    sql = "SELECT seq FROM checkpoints WHERE created_at > ? ORDER BY seq LIMIT 1"
    row = db.execute(sql, (checkpoint.created_at,)).fetchone()
    if row is None:
        insert(db, checkpoint)
        return
    later = row[0]
    # In two steps, for a number must be free before it is given away.
    db.execute("UPDATE checkpoints SET seq = -seq WHERE seq >= ?", (later,))
    insert(db, checkpoint)
    db.execute("UPDATE checkpoints SET seq = ? WHERE id = ?", (later, checkpoint.id))
    db.execute("UPDATE checkpoints SET seq = 1 - seq WHERE seq < 0")
    db.execute("UPDATE forced SET since = since + 1 WHERE since >= ?", (later,))


def latest(db: Database) -> CheckpointRow | None:
    """The last of the whole project that was made here."""
    sql = f"SELECT {COLUMNS} FROM checkpoints WHERE kind NOT IN {PARTIAL} ORDER BY seq DESC LIMIT 1"
    return _one(db.row(sql))


def last_made(db: Database) -> CheckpointRow | None:
    """The last that was made here, of the whole project or of some files."""
    sql = f"SELECT {COLUMNS} FROM checkpoints WHERE kind != ? ORDER BY seq DESC LIMIT 1"
    return _one(db.row(sql, IMPORTED))


def position(db: Database, id: str) -> int:
    """Where a checkpoint stands in the order in which all were made; 0 if it is gone."""
    row = db.row("SELECT seq FROM checkpoints WHERE id = ?", id)
    return int(row[0]) if row else 0


def first_after(db: Database, place: int) -> CheckpointRow | None:
    """The first of the whole project that was made here after the one at a position."""
    sql = f"""
        SELECT {COLUMNS} FROM checkpoints WHERE seq > ? AND kind NOT IN {PARTIAL}
        ORDER BY seq LIMIT 1
    """
    return _one(db.row(sql, place))


def last_taken(db: Database, back: int = 0) -> CheckpointRow | None:
    """The latest checkpoint that somebody took, or so many before it.

    Those that are made on the way do not count: what was there before a restore, what it arrived
    at, and what a turn arrived at. Nor do partial ones.
    """
    sql = f"SELECT {COLUMNS} FROM checkpoints WHERE {TAKEN} ORDER BY seq DESC LIMIT 1 OFFSET ?"
    return _one(db.row(sql, back))


def newest_first(
    db: Database, limit: int | None = None, before: str | None = None
) -> list[CheckpointRow]:
    """All of them, or so many, or those that came before another."""
    where, values = "", []
    if before is not None:
        where, values = "WHERE seq < (SELECT seq FROM checkpoints WHERE id = ?)", [before]
    sql = f"SELECT {COLUMNS} FROM checkpoints {where} ORDER BY seq DESC LIMIT ?"
    return [_row(row) for row in db.rows(sql, *values, -1 if limit is None else limit)]


def each_newest_first(db: Database) -> Iterator[CheckpointRow]:
    """All of them, read as they are needed: mostly the first few tell enough."""
    sql = f"""
        SELECT seq, {COLUMNS} FROM checkpoints WHERE seq < ? ORDER BY seq DESC LIMIT {AT_A_TIME}
    """
    last = 1 << 62
    while rows := db.rows(sql, last):
        for row in rows:
            yield _row(row[1:])
        last = rows[-1][0]


def size_limit_of_turns(db: Database, sessions: Iterable[int]) -> int:
    """The largest size limit that the last turns of sessions began with; 0 if there are none."""
    sql = (
        "SELECT c.max_file_size FROM checkpoints c JOIN sessions s ON s.id = c.session "
        "WHERE s.number = ? AND c.kind = 'turn' ORDER BY c.seq DESC LIMIT 1"
    )
    found = [db.row(sql, number) for number in sessions]
    return max((row[0] for row in found if row), default=0)


def largest_size_limit(db: Database) -> int:
    """The largest size limit that any checkpoint was taken with."""
    return int(db.row("SELECT max(max_file_size) FROM checkpoints")[0] or 0)


def count(db: Database) -> int:
    return int(db.row("SELECT count(*) FROM checkpoints")[0])


def by_id(db: Database, id: str) -> CheckpointRow | None:
    return _one(db.row(f"SELECT {COLUMNS} FROM checkpoints WHERE id = ?", id))


def is_prefix(db: Database, name: str) -> bool:
    """True if checkpoints are likely to be named by this beginning of their ids."""
    if len(name) < PREFIX_MIN_CHARACTERS:
        return False
    sql = "SELECT 1 FROM checkpoints WHERE substr(id, 1, ?) = ? AND id <> ? LIMIT 1"
    return db.row(sql, len(name), name, name) is not None


def by_tree(db: Database, tree: Id) -> CheckpointRow | None:
    """The latest checkpoint of a tree, whoever took it."""
    sql = f"SELECT {COLUMNS} FROM checkpoints WHERE tree = ? ORDER BY seq DESC LIMIT 1"
    return _one(db.row(sql, tree))


def resolve(db: Database, name: str) -> CheckpointRow:
    """The checkpoint with this id or unambiguous prefix.

    `@` is the latest that somebody took, `@2` two before it.
    """
    if name.startswith("@"):
        return _back(db, name)
    if name and name.isascii() and name.isprintable():
        exact = by_id(db, name)
        if exact is not None:
            return exact
        # Text is compared as text: a name with wildcards in it is just a name that fits nothing.
        sql = f"SELECT {COLUMNS} FROM checkpoints WHERE substr(id, 1, ?) = ? ORDER BY seq DESC"
        found = db.rows(sql, len(name), name)
        if len(found) == 1:
            return _row(found[0])
        if found:
            few = ", ".join(row[0] for row in found[:3])
            raise Ambiguous(
                f"Checkpoint {name} matches {len(found)} ({few}…); give more characters."
            )
    raise NotFound(f"There is no checkpoint {name!r} here; `mulligan log` lists them.")


def delete(db: apsw.Connection, ids: list[str]) -> None:
    db.executemany("DELETE FROM checkpoints WHERE id = ?", [(id,) for id in ids])


def make_anonymous(db: apsw.Connection, id: str, new_id: str) -> None:
    """Take a checkpoint from its owner; operations still find its trees, under another id."""
    db.execute("UPDATE entries SET checkpoint = NULL WHERE checkpoint = ?", (id,))
    db.execute(
        "UPDATE checkpoints SET id = ?, message = ?, session = NULL, entry = NULL WHERE id = ?",
        (new_id, KEPT_FOR_UNDO, id),
    )
    for column in ("before", "after", "target"):
        db.execute(f"UPDATE operations SET {column} = ? WHERE {column} = ?", (new_id, id))


def hand_over(db: apsw.Connection, session: str, number: int) -> None:
    """Give a session's checkpoints to the sessions whose entries link them, forks mostly."""
    db.execute(
        "UPDATE checkpoints SET session = (SELECT s.id FROM entries e JOIN sessions s "
        "ON s.number = e.session WHERE e.checkpoint = checkpoints.id AND e.session <> ?1 "
        "ORDER BY e.number LIMIT 1) WHERE session = ?2 AND EXISTS (SELECT 1 FROM entries e "
        "WHERE e.checkpoint = checkpoints.id AND e.session <> ?1)",
        (number, session),
    )


def listed(db: Database, session: str) -> list[CheckpointRow]:
    """The checkpoints that a session took, and those that it was restored to, oldest first."""
    sql = f"SELECT {COLUMNS} FROM checkpoints WHERE session = ? AND {LISTED} ORDER BY seq"
    return [_row(row) for row in db.rows(sql, session)]


def count_listed(db: Database, session: str, last: int | None) -> int:
    """Count the listed checkpoints that a session took here, up to `seq` = `last`.

    The one it began with is not counted.
    """
    sql = (
        f"SELECT count(*) FROM checkpoints WHERE session = ? AND {LISTED} "
        "AND kind NOT IN ('initial', ?) AND seq <= ?"
    )
    return int(db.row(sql, session, IMPORTED, (1 << 62) if last is None else last)[0])


def with_shared(db: Database, session: str, number: int) -> list[tuple[int, CheckpointRow]]:
    """A session's checkpoints and those of the one it was forked from, with `seq`, oldest first."""
    sql = (
        f"SELECT seq, {COLUMNS} FROM checkpoints WHERE session = ? OR id IN (SELECT checkpoint "
        "FROM entries WHERE session = ? AND checkpoint IS NOT NULL) ORDER BY seq"
    )
    return [(row[0], _row(row[1:])) for row in db.rows(sql, session, number)]


def of_session(db: Database, session: str) -> list[str]:
    """The ids of all checkpoints that belong to a session."""
    return [id for (id,) in db.rows("SELECT id FROM checkpoints WHERE session = ?", session)]


def _back(db: Database, name: str) -> CheckpointRow:
    steps = name[1:] or "0"
    if not (steps.isascii() and steps.isdigit() and len(steps) < 10):
        raise NotFound(
            f"There is no checkpoint {name!r}; write @ for the latest, @1 for the one before."
        )
    found = last_taken(db, int(steps))
    if found is None:
        total = int(db.row(f"SELECT count(*) FROM checkpoints WHERE {TAKEN}")[0])
        if not total:
            raise NotFound("There is no checkpoint yet; `mulligan checkpoint` takes one.")
        oldest = f"@{total - 1}" if total > 1 else "@"
        raise NotFound(f"{name} is too far back: the oldest checkpoint is {oldest}.")
    return found


def _one(row: Any) -> CheckpointRow | None:
    return _row(row) if row else None


def _row(row: Any) -> CheckpointRow:
    id, tree, guarded, coverage, complete, *rest = row
    return CheckpointRow(id, tree, guarded, coverage, bool(complete), *rest)
