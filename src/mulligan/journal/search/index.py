"""Maintain the full-text index of entries, derived from the journal.

Appending entries does not touch it: before a search the index catches up with the journal's
events. It is contentless, so the text of a hit is read from the journal. A damaged index, or one of
another format or journal, is rebuilt; that loses nothing. It is FTS5 with the tokenizer
`porter unicode61`: "run" finds "running".
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TypeVar

import apsw

from mulligan.core.entries import TOOL_CALL
from mulligan.errors import Busy, Corrupt, MulliganError, NotWritable, OutOfSpace
from mulligan.journal.db import Database
from mulligan.journal.entry_numbers import entry_number, session_range
from mulligan.journal.search.texts import Columns, columns_of, kind

FORMAT = 1
TOKENIZER = "porter unicode61"
SCHEMA = f"""
    CREATE VIRTUAL TABLE words USING fts5(content, tool, path, diff, kind,
      content='', contentless_delete=1, tokenize='{TOKENIZER}');
    -- Bytes collected in memory before a write: merging many small segments is slower.
    INSERT INTO words (words, rank) VALUES ('hashsize', 16777216);
    CREATE TABLE state (
      format INTEGER NOT NULL,
      event INTEGER,               -- the last indexed event; null before the first walk
      mark TEXT,                   -- the content of that event, to recognise another journal
      walked INTEGER               -- last entry of the first walk so far; null after it
    );
    INSERT INTO state (format) VALUES ({FORMAT});
"""
COLUMN_WEIGHTS = "10.0, 2.0, 4.0, 1.0, 0.0"
MAX_RANKED_ENTRIES = 10_000
"""Only the newest matches are ranked; a word in more entries says little."""

BATCH_ENTRIES = 10_000
BATCH_BYTES = 16 << 20
PAGE_BYTES = 4096
"""Larger than the journal's pages, because large segments are written at once."""

CHECKPOINT_PAGES = 4_000

Progress = Callable[[str, int, int | None], None]
Lock = Callable[[], AbstractContextManager[None]]
Result = TypeVar("Result")


class State(NamedTuple):
    """How far the index follows the journal; `event` is `None` at the start."""

    event: int | None
    mark: str | None
    walked: int | None


class Index:
    """The open index of one journal. Use it from one thread at a time."""

    def __init__(self, path: str, lock: Lock) -> None:
        """`lock` keeps other processes from opening or replacing the file meanwhile."""
        self.path, self._lock = path, lock
        with lock():
            self._open()

    def close(self) -> None:
        self._db.close()

    @property
    def is_current(self) -> bool:
        """False if another process has replaced the file."""
        return _inode(self.path) == self._inode

    def use(self, work: Callable[[Index], Result]) -> Result:
        """Call `work` with the index; rebuild it once if it is damaged."""
        try:
            try:
                return work(self)
            except _Damaged:
                self.replace()
                return work(self)
        except _Damaged as problem:
            raise Corrupt(
                f"{self.path} was damaged twice in a row ({problem}); check the disk."
            ) from None

    def replace(self) -> None:
        """Replace the index by an empty one, unless another process has done so."""
        with self._lock():
            self._db.close()
            if self.is_current:
                _remove(self.path)
            self._open()

    def clear(self) -> None:
        """Empty the index; the next `catch_up` indexes everything again."""
        with self._detect_damage(), self._db.writing() as db:
            db.execute("INSERT INTO words (words) VALUES ('delete-all')")
            db.execute("UPDATE state SET event = NULL, mark = NULL, walked = NULL")

    def catch_up(self, journal: Database, progress: Progress) -> None:
        """Index the journal's events since the last call.

        Each batch is committed with its new state: an interrupted run continues from there, and
        two processes at once share the work.
        """
        total: int | None = None
        done = 0
        while True:
            state = self._state()
            if state.event is None or not _belongs_to(state, journal):
                self._start_walk(journal, state)
                continue
            if state.walked is not None:
                if total is None:
                    total = int(journal.row("SELECT count(*) FROM entries")[0])
                numbers, after = _walk(journal, state)
                deleted_sessions: set[int] = set()
            else:
                numbers, deleted_sessions, after = _follow_events(journal, state)
                if after == state:
                    return
            rows = list(_read(journal, numbers))
            missing = set(numbers) - {number for number, _, _ in rows}
            self._write_batch(state, after, rows, missing, deleted_sessions)
            done += len(numbers)
            progress("Indexing", done, max(total, done) if total is not None else None)

    def matches(
        self, expression: str, sessions: Mapping[int, tuple[int, int]] | None
    ) -> list[tuple[int, float]] | None:
        """Return (number, score) of matching entries, newest first; higher is better.

        `sessions` limits the search to half-open ranges of entry numbers. The result is `None` if
        another process has begun to rebuild the index since `catch_up`.
        """
        where, values = "", []
        if sessions is not None and len(sessions) == 1:
            low, high = next(iter(sessions.values()))
            where, values = "AND rowid >= ? AND rowid < ?", [low, high]
        elif sessions is not None:
            where = (
                "AND EXISTS (SELECT 1 FROM temp.chosen c WHERE c.session = words.rowid >> 32 "
                "AND words.rowid >= c.low AND words.rowid < c.high)"
            )
        sql = (
            f"SELECT rowid, -bm25(words, {COLUMN_WEIGHTS}) FROM words WHERE words MATCH ? {where} "
            "ORDER BY rowid DESC LIMIT ?"
        )
        with self._detect_damage():
            self._fill_chosen(sessions or {})
            self._db.rows("BEGIN")
            try:
                complete = self._db.row("SELECT event IS NOT NULL AND walked IS NULL FROM state")[0]
                rows = (
                    self._db.rows(sql, expression, *values, MAX_RANKED_ENTRIES) if complete else []
                )
            finally:
                self._db.rows("ROLLBACK")
        return rows if complete else None

    def _open(self) -> None:
        if os.path.exists(self.path) and not os.path.getsize(self.path):
            # Give a truncated file a new inode, so that other processes notice.
            _remove(self.path)
        try:
            self._db = _connect(self.path)
        except (Busy, OutOfSpace, NotWritable):
            raise
        except (MulliganError, apsw.SQLError):
            _remove(self.path)
            self._db = _connect(self.path)
        self._inode = _inode(self.path)

    def _state(self) -> State:
        with self._detect_damage():
            row = self._db.row("SELECT event, mark, walked FROM state")
        if row is None:
            raise _Damaged("its state is missing")
        return State(*row)

    def _start_walk(self, journal: Database, before: State) -> None:
        """Follow events from now on; a walk indexes the entries before them."""
        if before.event is not None:
            self.clear()
            before = State(None, None, None)
        sql = "SELECT number, kind, session, subject FROM events ORDER BY number DESC LIMIT 1"
        newest = journal.row(sql)
        after = State(newest[0], _mark(newest), 0) if newest else State(0, None, 0)
        self._write_batch(before, after, (), (), ())

    def _write_batch(
        self,
        before: State,
        after: State,
        rows: Iterable[tuple[int, str, Columns]],
        missing: Iterable[int],
        deleted_sessions: Iterable[int],
    ) -> None:
        """Commit one batch, unless another process has moved on from `before`."""
        sql = (
            "INSERT OR REPLACE INTO words (rowid, content, tool, path, diff, kind) "
            "VALUES (?,?,?,?,?,?)"
        )
        with self._detect_damage(), self._db.writing() as db:
            if db.execute("SELECT event, mark, walked FROM state").fetchone() != before:
                return
            for session in deleted_sessions:
                db.execute(
                    "DELETE FROM words WHERE rowid >= ? AND rowid < ?", session_range(session)
                )
            db.executemany("DELETE FROM words WHERE rowid = ?", [(number,) for number in missing])
            db.executemany(sql, ((number, *columns, kind(type)) for number, type, columns in rows))
            db.execute("UPDATE state SET event = ?, mark = ?, walked = ?", after)

    def _fill_chosen(self, sessions: Mapping[int, tuple[int, int]]) -> None:
        """Put ranges of entry numbers into a temporary table, for a join."""
        self._db.rows(
            "CREATE TEMP TABLE IF NOT EXISTS chosen (session INTEGER PRIMARY KEY, low, high)"
        )
        self._db.rows("DELETE FROM temp.chosen")
        chosen = json.dumps([(number, *limits) for number, limits in sessions.items()])
        self._db.rows(
            "INSERT INTO temp.chosen "
            "SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)",
            chosen,
        )

    @contextmanager
    def _detect_damage(self) -> Iterator[None]:
        """Raise `_Damaged` for errors of the index; errors of the journal are not caught."""
        try:
            yield
        except (Busy, OutOfSpace, NotWritable):
            raise
        except (MulliganError, apsw.SQLError) as problem:
            raise _Damaged(str(problem)) from problem


def _connect(path: str) -> Database:
    db = Database(path, (SCHEMA,), page_bytes=PAGE_BYTES)
    # Commits lost in a power loss are derived from the journal again.
    db.rows("PRAGMA synchronous = NORMAL")
    db.rows(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    row = db.row("SELECT format FROM state")
    if row is None or row[0] != FORMAT:
        db.close()
        raise Corrupt(f"{path} has another format.")
    return db


def _remove(path: str) -> None:
    for end in ("-wal", "-shm", "-journal", ""):
        if os.path.lexists(path + end):
            os.unlink(path + end)


def _inode(path: str) -> int | None:
    return os.stat(path).st_ino if os.path.exists(path) else None


def _belongs_to(state: State, journal: Database) -> bool:
    """True if the journal's event at `state` is the one that was indexed."""
    if state.event == 0:
        return True
    sql = "SELECT number, kind, session, subject FROM events WHERE number = ?"
    row = journal.row(sql, state.event)
    return row is not None and _mark(row) == state.mark


def _mark(event: Sequence[Any]) -> str:
    return json.dumps(event)


def _walk(journal: Database, state: State) -> tuple[list[int], State]:
    """Return the next batch of entries of the first walk, and the new state."""
    sql = (
        "SELECT number, octet_length(content) + ifnull(octet_length(data), 0) FROM entries "
        "WHERE number > ? ORDER BY number LIMIT ?"
    )
    numbers: list[int] = []
    size = 0
    for number, length in journal.rows(sql, state.walked, BATCH_ENTRIES):
        numbers.append(number)
        size += length
        if size > BATCH_BYTES:
            break
    return numbers, state._replace(walked=numbers[-1] if numbers else None)


def _follow_events(journal: Database, state: State) -> tuple[list[int], set[int], State]:
    """Return entries and deleted sessions of the next events, and the new state."""
    sql = (
        "SELECT v.number, v.kind, v.session, v.subject, e.type, "
        "octet_length(e.content) + ifnull(octet_length(e.data), 0) FROM events v "
        "LEFT JOIN entries e ON v.kind IN ('entry', 'entry_changed') "
        "AND e.number = (v.session << 32) | v.subject "
        "WHERE v.number > ? ORDER BY v.number LIMIT ?"
    )
    numbers: dict[int, None] = {}
    deleted_sessions: set[int] = set()
    size = 0
    for *event, type, length in journal.rows(sql, state.event, BATCH_ENTRIES):
        _, event_kind, session, subject = event
        if event_kind == "session_deleted":
            deleted_sessions.add(session)
        # The only change of an entry that affects its words is a tool call's output.
        elif event_kind == "entry" or (event_kind == "entry_changed" and type == TOOL_CALL):
            number = entry_number(session, subject)
            if number not in numbers:
                numbers[number] = None
                size += length or 0
        state = state._replace(event=event[0], mark=_mark(event))
        if size > BATCH_BYTES:
            break
    return list(numbers), deleted_sessions, state


def _read(journal: Database, numbers: Sequence[int]) -> Iterator[tuple[int, str, Columns]]:
    sql = (
        "SELECT e.number, e.type, e.content, e.data FROM json_each(?) j "
        "JOIN entries e ON e.number = j.value"
    )
    for number, type, content, data in journal.rows(sql, json.dumps(numbers)):
        yield number, type, columns_of(type, content, json.loads(data) if data else None)


class _Damaged(Exception):
    """The index cannot be read."""
