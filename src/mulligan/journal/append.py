"""Append entries to sessions, and change what may change later."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import apsw

from mulligan.core.coverage import storable
from mulligan.core.entries import CALL_STATES, ENDED, LEAF, TOOL_CALL, TYPES, NewEntry
from mulligan.core.ids import SessionNumber
from mulligan.core.times import just_after, nanoseconds, rfc3339
from mulligan.errors import NotFound, UsageError
from mulligan.journal.entry_numbers import entry_number, seq_of, session_range
from mulligan.journal.sessions import LATER

MIN_RECORDED_SHIFT_NS = 1_000_000_000
MAX_ENTRY_CHARACTERS = 64 << 20
LATEST_TIME = "9999-12-31T00:00:00.000Z"
"""Later times are refused, because the next entry needs a later time still."""


class EntryPosition(NamedTuple):
    """The position of an entry in its session's tree."""

    seq: int
    branch: int
    off_path: bool


class Appender:
    """Appends entries to one session, inside the caller's transaction.

    It reads the session's leaf once, so that each further entry costs one insert.
    """

    def __init__(
        self,
        db: apsw.Connection,
        session: SessionNumber,
        *,
        new_id: Callable[[], str],
        now: Callable[[], int],
        lenient: bool = False,
    ) -> None:
        """With `lenient`, as imports need it, an entry of unknown parent goes below the leaf.

        `names` maps other names of entries to their ids.
        """
        self._db, self._session = db, session
        self._new_id, self._now, self._lenient = new_id, now, lenient
        sql = "SELECT agent, leaf FROM sessions WHERE number = ?"
        row: Any = db.execute(sql, (session,)).fetchone()
        if row is None:
            raise NotFound("The session has been deleted.")
        self._agent, leaf = row
        newest = db.execute(
            "SELECT seq, created_at FROM entries WHERE number > ? AND number < ? "
            "ORDER BY number DESC LIMIT 1",
            session_range(session),
        ).fetchone()
        self.seq: int = newest[0] if newest else 0
        self.last_time: str | None = newest[1] if newest else None
        self.leaf = self._position(leaf) if leaf is not None else None
        self._clock_time: str | None = None  # of the last entry, if it had no time of its own
        self._tips: dict[int, int] = {}
        self.names: dict[str, str] = {}

    def append(self, entry: NewEntry) -> EntryPosition:
        """Append one entry; it becomes the leaf unless it is off_path."""
        position = self._add(entry, self._parent(entry))
        if not entry.off_path:
            self.leaf = position
        return position

    def append_to_branch(self, entry: NewEntry, of: EntryPosition) -> EntryPosition:
        """Append one entry at the tip of a branch; the leaf stays."""
        return self._add(entry, self._position(self._tip(of.branch)))

    def _add(self, entry: NewEntry, parent: EntryPosition | None) -> EntryPosition:
        if entry.type not in TYPES:
            raise UsageError(f"There is no entry type {entry.type!r}.")
        self.seq += 1
        moment, data = self._moment(entry)
        branch = self.seq
        if parent is not None and parent.off_path == entry.off_path:
            branch = parent.branch if self._tip(parent.branch) == parent.seq else self.seq
        number = entry_number(self._session, self.seq)
        self._insert(
            "INSERT INTO entries (number, session, seq, id, parent, branch, type, created_at, "
            "content, data, model, checkpoint, plan_item, is_compacted, off_path) "
            "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                number, self._session, self.seq, _clean(entry.id) if entry.id else self._new_id(),
                parent.seq if parent else None, branch, entry.type, moment, _clean(entry.content),
                None if data is None else _dump(data), entry.model, entry.checkpoint,
                entry.plan_item, entry.is_compacted, entry.off_path,
            ),
        )  # fmt: skip
        if entry.type == TOOL_CALL:
            self._insert_tool_event(number, moment, data or {})
        self._tips[branch] = self.seq
        self.last_time = moment
        return EntryPosition(self.seq, branch, entry.off_path)

    def finish(self) -> None:
        """Store the session's leaf and its time of change."""
        leaf = self.leaf.seq if self.leaf else None
        self._db.execute(
            f"UPDATE sessions SET leaf = ?, updated_at = {LATER} WHERE number = ?",
            (leaf, self._clock_time or self.last_time or "", self._session),
        )

    def move_leaf(self, id: str | None) -> None:
        """Move the leaf to an entry, for the next entries."""
        self.leaf = None if id is None else self.find(id)

    def find(self, id: str) -> EntryPosition | None:
        """Return the position of the entry with this id."""
        sql = "SELECT seq, branch, off_path FROM entries WHERE session = ? AND id = ?"
        row = self._db.execute(sql, (self._session, self.names.get(id, id))).fetchone()
        return EntryPosition(row[0], row[1], bool(row[2])) if row else None

    def _parent(self, entry: NewEntry) -> EntryPosition | None:
        if entry.parent is None:
            return None
        if entry.parent == LEAF:
            return self.leaf
        parent = self.find(entry.parent)
        if parent is None and not self._lenient:
            raise NotFound(f"There is no entry {entry.parent!r} in this session.")
        return parent or self.leaf

    def _moment(self, entry: NewEntry) -> tuple[str, dict[str, Any] | None]:
        """Return a time after the last entry's, and the data with the true time."""
        if entry.created_at is None:
            now = self._now()
            self._clock_time = rfc3339(now)
            moment = just_after(self.last_time, now)
            return moment, _with_own_time(entry.data, moment, self._clock_time)
        self._clock_time = None
        try:
            moment = just_after(self.last_time, nanoseconds(entry.created_at))
        except (ValueError, OverflowError) as problem:
            raise UsageError(f"{entry.created_at!r} is not a time; give RFC 3339.") from problem
        if moment >= LATEST_TIME:
            raise UsageError(f"{entry.created_at} is after the latest allowed time, {LATEST_TIME}.")
        return moment, _with_own_time(entry.data, moment, entry.created_at)

    def _insert(self, sql: str, values: tuple[Any, ...]) -> None:
        try:
            self._db.execute(sql, values)
        except apsw.ConstraintError as problem:
            self.seq -= 1
            if "FOREIGN KEY" in str(problem):
                raise NotFound(f"There is no checkpoint {values[11]!r} to link to.") from problem
            raise UsageError(f"This session already has an entry {values[3]!r}.") from problem

    def _tip(self, branch: int) -> int:
        """Return the `seq` of a branch's last entry."""
        if branch not in self._tips:
            sql = "SELECT max(number) FROM entries WHERE session = ? AND branch = ?"
            row: Any = self._db.execute(sql, (self._session, branch)).fetchone()
            self._tips[branch] = seq_of(row[0])
        return self._tips[branch]

    def _position(self, seq: int) -> EntryPosition:
        sql = "SELECT seq, branch, off_path FROM entries WHERE number = ?"
        row: Any = self._db.execute(sql, (entry_number(self._session, seq),)).fetchone()
        return EntryPosition(row[0], row[1], bool(row[2]))

    def _insert_tool_event(self, number: int, moment: str, data: dict[str, Any]) -> None:
        state = data.get("status")
        self._db.execute(
            "INSERT INTO tool_events (entry, session, agent, tool, created_at, success, duration, "
            "error_type) VALUES (?,?,?,?,?,?,?,?)",
            (
                number, self._session, self._agent, str(data.get("name", "")), moment,
                *_outcome(state, data.get("duration")),
            ),
        )  # fmt: skip


def end_call(
    db: apsw.Connection,
    session: SessionNumber,
    call: str,
    *,
    status: str,
    output: str | None = None,
    duration: float | None = None,
) -> bool:
    """Set the status of an unfinished tool call; return True if it changed.

    `call` is the agent's own id of the call, or the entry's id. A finished call stays as it is.
    """
    if status not in CALL_STATES:
        raise UsageError(
            f"A tool call cannot be {status!r}; it is one of {', '.join(CALL_STATES)}."
        )
    row = _find_call(db, session, _clean(call))
    if row is None:
        return False
    number, data = row[0], json.loads(row[1] or "{}")
    if data.get("status") in ENDED or data.get("status") == status:
        return False
    data["status"] = status
    if output is not None:
        data["output"] = _clean(output)
    if duration is not None:
        data["duration"] = duration
    db.execute("UPDATE entries SET data = ? WHERE number = ?", (_dump(data), number))
    db.execute(
        "UPDATE tool_events SET success = ?, duration = ?, error_type = ? WHERE entry = ?",
        (*_outcome(status, duration), number),
    )
    return True


def _find_call(db: apsw.Connection, session: SessionNumber, call: str) -> Any:
    """Return number and data of a tool call's entry; the agent's id is tried first."""
    sql = (
        "SELECT number, data FROM entries WHERE session = ? AND type = 'tool_call' "
        "AND data ->> 'call' = ? ORDER BY number DESC LIMIT 1"
    )
    row = db.execute(sql, (session, call)).fetchone()
    if row is None:
        sql = "SELECT number, data FROM entries WHERE session = ? AND id = ? AND type = 'tool_call'"
        row = db.execute(sql, (session, call)).fetchone()
    return row


def end_open_calls(db: apsw.Connection, session: SessionNumber) -> int:
    """Mark unfinished tool calls as errors; return how many."""
    sql = (
        "SELECT e.id FROM tool_events t JOIN entries e ON e.number = t.entry "
        "WHERE t.session = ? AND t.success IS NULL"
    )
    open_calls = db.execute(sql, (session,)).fetchall()
    return sum(end_call(db, session, str(id), status="error") for (id,) in open_calls)


def link(db: apsw.Connection, session: SessionNumber, seq: int, values: Mapping[str, Any]) -> bool:
    """Set the checkpoint, plan item or compaction flag of an entry."""
    names = {"checkpoint", "plan_item", "is_compacted"}
    if set(values) - names:
        raise UsageError(f"Only {', '.join(sorted(names))} of an entry can change.")
    if not values:
        return False
    sets = ", ".join(f"{name} = ?" for name in values)
    number = entry_number(session, seq)
    db.execute(f"UPDATE entries SET {sets} WHERE number = ?", (*values.values(), number))
    return db.changes() > 0


def mark_compacted(
    db: apsw.Connection, session: SessionNumber, before: int, *, but: Collection[str] = ()
) -> int:
    """Mark entries before a `seq` as compacted, except `but`; return how many changed."""
    db.execute(
        "UPDATE entries SET is_compacted = 1 WHERE number > ? AND number < ? AND NOT is_compacted "
        "AND id NOT IN (SELECT value FROM json_each(?))",
        (entry_number(session, 0), entry_number(session, before), json.dumps(list(but))),
    )
    return db.changes()


def copy(
    db: apsw.Connection, source: SessionNumber, target: SessionNumber, path: list[tuple[int, int]]
) -> int:
    """Copy the entries of a path to an empty session; return how many."""
    names = "id, type, created_at, content, data, model, checkpoint, plan_item, is_compacted"
    db.execute(
        "INSERT INTO entries (number, session, seq, parent, branch, off_path, "
        f"{names}) SELECT (?1 << 32) | place, ?1, place, nullif(place - 1, 0), 1, 0, {names} FROM "
        "(SELECT e.*, row_number() OVER (ORDER BY e.seq) AS place FROM json_each(?3) part "
        "JOIN entries e ON e.session = ?2 AND e.branch = part.value ->> 0 "
        "AND e.number <= (?2 << 32) | (part.value ->> 1))",
        (target, source, json.dumps(path)),
    )
    copied = db.changes()
    # A call that is still running in the source never ends in the copy.
    db.execute(
        "UPDATE entries SET data = json_set(data, '$.status', 'error') WHERE session = ? AND "
        "type = 'tool_call' AND data ->> 'status' IN ('pending', 'running')",
        (target,),
    )
    db.execute(
        "INSERT INTO labels SELECT copy.number, labels.label FROM labels JOIN entries origin ON "
        "origin.number = labels.entry JOIN entries copy ON copy.session = ? AND copy.id = "
        "origin.id WHERE origin.session = ?",
        (target, source),
    )
    return copied


def set_label(db: apsw.Connection, session: SessionNumber, seq: int, label: str | None) -> None:
    """Label an entry, or remove its label; a label moves from another entry."""
    number = entry_number(session, seq)
    if label:
        db.execute(
            "DELETE FROM labels WHERE entry >> 32 = ? AND label = ?", (session, _clean(label))
        )
        db.execute("INSERT OR REPLACE INTO labels VALUES (?, ?)", (number, _clean(label)))
    else:
        db.execute("DELETE FROM labels WHERE entry = ?", (number,))


def _outcome(status: str | None, duration: Any) -> tuple[bool | None, float | None, str | None]:
    if status not in ENDED:
        return None, None, None
    took = float(duration) if isinstance(duration, int | float) else None
    return status == ENDED[0], took, None if status == ENDED[0] else "tool_error"


def _dump(data: dict[str, Any]) -> str:
    try:
        return json.dumps(data, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise UsageError(f"The data of an entry must be JSON: {problem}.") from problem


def _with_own_time(data: dict[str, Any] | None, moment: str, given: str) -> dict[str, Any] | None:
    """Add the given time to the data if the entry's is much later."""
    if nanoseconds(moment) - nanoseconds(given) < MIN_RECORDED_SHIFT_NS:
        return data
    return (data or {}) | {"at": given}


def _clean(content: str) -> str:
    """Replace lone surrogates, which SQLite refuses; raise `UsageError` if too long."""
    if len(content) > MAX_ENTRY_CHARACTERS:
        raise UsageError(
            f"An entry of {len(content):,} characters is too long; "
            f"at most {MAX_ENTRY_CHARACTERS:,} are kept."
        )
    return storable(content)
