"""Store and find checkpoints: trees with an id, a kind and a time."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apsw

from mulligan.core.ids import CheckpointId, EntryId, ObjectId, SessionId, SessionNumber, TreeId
from mulligan.errors import Ambiguous, NotFound
from mulligan.journal.db import PREFIX_MIN_CHARACTERS, Database

IMPORTED = "imported"
FILES = "files"
PARTIAL = (IMPORTED, FILES)
"""Kinds that hold some files, and say nothing about the others."""
MADE_BY_RESTORE = ("safety", "restored")
NOT_TAKEN = (*MADE_BY_RESTORE, "step", *PARTIAL)
TAKEN = f"kind NOT IN {NOT_TAKEN}"
BATCH_ROWS = 16
LISTED = (
    f"(kind IN ('initial', 'turn', 'manual', '{IMPORTED}') "
    "OR id IN (SELECT after FROM operations WHERE kind = 'restore'))"
)
"""The checkpoints of a session that clients see: taken by it, or restored to."""
KEPT_FOR_UNDO = "Kept because undo needs it"


class CheckpointRow(NamedTuple):
    """A checkpoint's row; `guarded` is the tree of guarded files."""

    id: CheckpointId
    tree: TreeId
    guarded: TreeId
    coverage: ObjectId
    complete: bool
    kind: str
    message: str
    created_at: str
    files: int
    bytes: int
    session: str | None = None
    entry: str | None = None
    max_file_size: int = 0
    """The size limit that was in effect, in bytes."""


COLUMNS = ", ".join(CheckpointRow._fields)


def insert(db: apsw.Connection, checkpoint: CheckpointRow) -> None:
    """Add a checkpoint, inside the caller's transaction."""
    db.execute(
        f"INSERT INTO checkpoints ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", checkpoint
    )


def insert_at_its_time(db: apsw.Connection, checkpoint: CheckpointRow) -> None:
    """Insert a checkpoint in order of time, inside the caller's transaction.

    The `seq` of later checkpoints, and of all references to them, grows by one.
    """
    sql = "SELECT seq FROM checkpoints WHERE created_at > ? ORDER BY seq LIMIT 1"
    row = db.execute(sql, (checkpoint.created_at,)).fetchone()
    if row is None:
        insert(db, checkpoint)
        return
    later = row[0]
    # In two steps, because `seq` is unique at every moment.
    db.execute("UPDATE checkpoints SET seq = -seq WHERE seq >= ?", (later,))
    insert(db, checkpoint)
    db.execute("UPDATE checkpoints SET seq = ? WHERE id = ?", (later, checkpoint.id))
    db.execute("UPDATE checkpoints SET seq = 1 - seq WHERE seq < 0")
    db.execute("UPDATE forced SET since = since + 1 WHERE since >= ?", (later,))


def latest(db: Database) -> CheckpointRow | None:
    """Return the newest checkpoint of the whole project that was recorded here."""
    sql = f"SELECT {COLUMNS} FROM checkpoints WHERE kind NOT IN {PARTIAL} ORDER BY seq DESC LIMIT 1"
    return _one(db.row(sql))


def last_made(db: Database) -> CheckpointRow | None:
    """Return the newest checkpoint that was recorded here, partial or not."""
    sql = f"SELECT {COLUMNS} FROM checkpoints WHERE kind != ? ORDER BY seq DESC LIMIT 1"
    return _one(db.row(sql, IMPORTED))


def position(db: Database, id: str) -> int:
    """Return the `seq` of a checkpoint; 0 if it was deleted."""
    row = db.row("SELECT seq FROM checkpoints WHERE id = ?", id)
    return int(row[0]) if row else 0


def first_after(db: Database, seq: int) -> CheckpointRow | None:
    """Return the first checkpoint of the whole project after a `seq`."""
    sql = f"""
        SELECT {COLUMNS} FROM checkpoints WHERE seq > ? AND kind NOT IN {PARTIAL}
        ORDER BY seq LIMIT 1
    """
    return _one(db.row(sql, seq))


def last_taken(db: Database, back: int = 0) -> CheckpointRow | None:
    """Return the newest checkpoint taken by a user or agent, or `back` before it.

    Checkpoints that restores and turns make on their own do not count, nor do partial ones.
    """
    sql = f"SELECT {COLUMNS} FROM checkpoints WHERE {TAKEN} ORDER BY seq DESC LIMIT 1 OFFSET ?"
    return _one(db.row(sql, back))


def newest_first(
    db: Database, limit: int | None = None, before: str | None = None
) -> list[CheckpointRow]:
    """Return checkpoints, at most `limit`, older than `before`."""
    where, values = "", []
    if before is not None:
        where, values = "WHERE seq < (SELECT seq FROM checkpoints WHERE id = ?)", [before]
    sql = f"SELECT {COLUMNS} FROM checkpoints {where} ORDER BY seq DESC LIMIT ?"
    return [_row(row) for row in db.rows(sql, *values, -1 if limit is None else limit)]


def each_newest_first(db: Database) -> Iterator[CheckpointRow]:
    """Yield all checkpoints, read in small batches: most callers need only a few."""
    sql = f"""
        SELECT seq, {COLUMNS} FROM checkpoints WHERE seq < ? ORDER BY seq DESC LIMIT {BATCH_ROWS}
    """
    last = 1 << 62
    while rows := db.rows(sql, last):
        for row in rows:
            yield _row(row[1:])
        last = rows[-1][0]


def size_limit_of_turns(db: Database, sessions: Iterable[int]) -> int:
    """Return the largest size limit of the sessions' last turns; 0 without turns."""
    sql = (
        "SELECT c.max_file_size FROM checkpoints c JOIN sessions s ON s.id = c.session "
        "WHERE s.number = ? AND c.kind = 'turn' ORDER BY c.seq DESC LIMIT 1"
    )
    rows = [db.row(sql, number) for number in sessions]
    return max((row[0] for row in rows if row), default=0)


def largest_size_limit(db: Database) -> int:
    """Return the largest size limit of any checkpoint."""
    return int(db.row("SELECT max(max_file_size) FROM checkpoints")[0] or 0)


def count(db: Database) -> int:
    return int(db.row("SELECT count(*) FROM checkpoints")[0])


def by_id(db: Database, id: str) -> CheckpointRow | None:
    return _one(db.row(f"SELECT {COLUMNS} FROM checkpoints WHERE id = ?", id))


def first_of_session(db: Database, session: str, kinds: tuple[str, ...]) -> CheckpointRow | None:
    """Return a session's first checkpoint of these kinds."""
    marks = ", ".join("?" * len(kinds))
    sql = (
        f"SELECT {COLUMNS} FROM checkpoints WHERE session = ? AND kind IN ({marks}) "
        "ORDER BY seq LIMIT 1"
    )
    return _one(db.row(sql, session, *kinds))


def of_first_prompt(db: Database, session: SessionNumber) -> CheckpointRow | None:
    """Return the checkpoint of a session's first message that has one."""
    sql = (
        f"SELECT {COLUMNS} FROM checkpoints WHERE id = (SELECT checkpoint FROM entries WHERE "
        "session = ? AND type = 'user_input' AND checkpoint IS NOT NULL ORDER BY number LIMIT 1)"
    )
    return _one(db.row(sql, session))


def with_entries(
    db: Database, session: SessionId, number: SessionNumber
) -> list[tuple[CheckpointId, EntryId | None]]:
    """Return (checkpoint, first linked entry) of a session and of its entries, newest first."""
    sql = (
        "SELECT c.id, (SELECT id FROM entries e WHERE e.checkpoint = c.id AND e.session = ?1 "
        "ORDER BY e.number LIMIT 1) AS linked FROM checkpoints c WHERE c.session = ?2 "
        "OR linked IS NOT NULL ORDER BY c.seq DESC"
    )
    return [(id, entry) for id, entry in db.rows(sql, number, session)]


def is_prefix(db: Database, name: str) -> bool:
    """True if `name` is a proper prefix of a checkpoint's id."""
    if len(name) < PREFIX_MIN_CHARACTERS:
        return False
    sql = "SELECT 1 FROM checkpoints WHERE substr(id, 1, ?) = ? AND id <> ? LIMIT 1"
    return db.row(sql, len(name), name, name) is not None


def by_tree(db: Database, tree: bytes) -> CheckpointRow | None:
    """Return the newest checkpoint of a tree, of any kind."""
    sql = f"SELECT {COLUMNS} FROM checkpoints WHERE tree = ? ORDER BY seq DESC LIMIT 1"
    return _one(db.row(sql, tree))


def resolve(db: Database, name: str) -> CheckpointRow:
    """Return the checkpoint with this id or unambiguous prefix.

    `@` is `last_taken`, `@2` two before it.
    """
    if name.startswith("@"):
        return _relative(db, name)
    if name and name.isascii() and name.isprintable():
        exact = by_id(db, name)
        if exact is not None:
            return exact
        # Not LIKE: wildcards in a name must not match.
        sql = f"SELECT {COLUMNS} FROM checkpoints WHERE substr(id, 1, ?) = ? ORDER BY seq DESC"
        rows = db.rows(sql, len(name), name)
        if len(rows) == 1:
            return _row(rows[0])
        if rows:
            few = ", ".join(row[0] for row in rows[:3])
            raise Ambiguous(
                f"Checkpoint {name} matches {len(rows)} ({few}…); give more characters."
            )
    raise NotFound(f"There is no checkpoint {name!r} here; `mulligan log` lists them.")


def delete(db: apsw.Connection, ids: Iterable[str]) -> None:
    db.executemany("DELETE FROM checkpoints WHERE id = ?", [(id,) for id in ids])


def make_anonymous(db: apsw.Connection, id: str, new_id: str) -> None:
    """Detach a checkpoint from its session, under a new id that operations refer to."""
    db.execute("UPDATE entries SET checkpoint = NULL WHERE checkpoint = ?", (id,))
    db.execute(
        "UPDATE checkpoints SET id = ?, message = ?, session = NULL, entry = NULL WHERE id = ?",
        (new_id, KEPT_FOR_UNDO, id),
    )
    for column in ("before", "after", "target"):
        db.execute(f"UPDATE operations SET {column} = ? WHERE {column} = ?", (new_id, id))


def give_to_forks(db: apsw.Connection, session: SessionId, number: SessionNumber) -> None:
    """Give a session's checkpoints to other sessions whose entries link them."""
    db.execute(
        "UPDATE checkpoints SET session = (SELECT s.id FROM entries e JOIN sessions s "
        "ON s.number = e.session WHERE e.checkpoint = checkpoints.id AND e.session <> ?1 "
        "ORDER BY e.number LIMIT 1) WHERE session = ?2 AND EXISTS (SELECT 1 FROM entries e "
        "WHERE e.checkpoint = checkpoints.id AND e.session <> ?1)",
        (number, session),
    )


def listed(db: Database, session: str) -> list[CheckpointRow]:
    """Return the listed checkpoints of a session, oldest first."""
    sql = f"SELECT {COLUMNS} FROM checkpoints WHERE session = ? AND {LISTED} ORDER BY seq"
    return [_row(row) for row in db.rows(sql, session)]


def count_listed(db: Database, session: str, last: int | None) -> int:
    """Count the listed checkpoints that a session took here, up to `seq` = `last`.

    Its initial checkpoint is not counted.
    """
    sql = (
        f"SELECT count(*) FROM checkpoints WHERE session = ? AND {LISTED} "
        "AND kind NOT IN ('initial', ?) AND seq <= ?"
    )
    return int(db.row(sql, session, IMPORTED, (1 << 62) if last is None else last)[0])


def with_shared(
    db: Database, session: SessionId, number: SessionNumber
) -> list[tuple[int, CheckpointRow]]:
    """Return (seq, checkpoint) of a session and of the entries it shares with its origin."""
    sql = (
        f"SELECT seq, {COLUMNS} FROM checkpoints WHERE session = ? OR id IN (SELECT checkpoint "
        "FROM entries WHERE session = ? AND checkpoint IS NOT NULL) ORDER BY seq"
    )
    return [(row[0], _row(row[1:])) for row in db.rows(sql, session, number)]


def of_session(db: Database, session: str) -> list[CheckpointId]:
    """Return the ids of all checkpoints of a session."""
    return [id for (id,) in db.rows("SELECT id FROM checkpoints WHERE session = ?", session)]


def _relative(db: Database, name: str) -> CheckpointRow:
    """Resolve `@` and `@N`."""
    steps = name[1:] or "0"
    if not (steps.isascii() and steps.isdigit() and len(steps) < 10):
        raise NotFound(
            f"There is no checkpoint {name!r}; write @ for the latest, @1 for the one before."
        )
    checkpoint = last_taken(db, int(steps))
    if checkpoint is None:
        total = int(db.row(f"SELECT count(*) FROM checkpoints WHERE {TAKEN}")[0])
        if not total:
            raise NotFound("There is no checkpoint yet; `mulligan checkpoint` takes one.")
        oldest = f"@{total - 1}" if total > 1 else "@"
        raise NotFound(f"{name} is too far back: the oldest checkpoint is {oldest}.")
    return checkpoint


def _one(row: Any) -> CheckpointRow | None:
    return _row(row) if row else None


def _row(row: Any) -> CheckpointRow:
    id, tree, guarded, coverage, complete, *rest = row
    return CheckpointRow(id, tree, guarded, coverage, bool(complete), *rest)
