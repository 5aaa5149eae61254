"""Find the entries that say which tree the project's files had."""

from __future__ import annotations

from typing import Any, NamedTuple

from mulligan.core.entries import FILE_EDIT, STEP_SNAPSHOT, TOOL_CALL, TOOL_RESULT, USER_INPUT
from mulligan.core.ids import CheckpointId, SessionNumber
from mulligan.journal.db import Database
from mulligan.journal.entry_numbers import entry_number

COLUMNS = (
    "seq, checkpoint, coalesce(data ->> 'snapshotTreeHash', data ->> 'preRollbackTreeHash', "
    "data ->> 'tree')"
)
MAY_CHANGE_FILES = (TOOL_CALL, TOOL_RESULT, FILE_EDIT, USER_INPUT)


class EntryTree(NamedTuple):
    """The files at an entry: a checkpoint's id, or a tree's id in hexadecimal."""

    seq: int
    checkpoint: CheckpointId | None
    tree: str | None


def last_on_branch(
    db: Database, session: SessionNumber, branch: int, last: int, *, any_type: bool
) -> EntryTree | None:
    """Return the last entry of a branch, up to `seq` = `last`, that names its files.

    Without `any_type` only messages, ends of turns and points before a rollback count.
    """
    row: Any = db.row(
        f"SELECT {COLUMNS} FROM entries WHERE session = ? AND branch = ? AND number <= ? AND "
        "(checkpoint IS NOT NULL OR data ->> 'tree' IS NOT NULL OR data ->> "
        "'snapshotTreeHash' IS NOT NULL OR data ->> 'preRollbackTreeHash' IS NOT NULL) AND "
        "(? OR type IN ('user_input', 'step_snapshot', 'unrevert_point')) "
        "ORDER BY number DESC LIMIT 1",
        session, branch, entry_number(session, last), any_type,
    )  # fmt: skip
    return EntryTree(*row) if row else None


def end_of_turn(db: Database, session: SessionNumber, branch: int, seq: int) -> EntryTree | None:
    """Return the end of a turn, if no entry between `seq` and it can have changed files."""
    types = (*MAY_CHANGE_FILES, STEP_SNAPSHOT)
    row: Any = db.row(
        f"SELECT type, {COLUMNS} FROM entries WHERE session = ? AND branch = ? AND number > ? AND "
        f"type IN ({', '.join('?' * len(types))}) ORDER BY number LIMIT 1",
        session, branch, entry_number(session, seq), *types,
    )  # fmt: skip
    return EntryTree(*row[1:]) if row and row[0] == STEP_SNAPSHOT else None
