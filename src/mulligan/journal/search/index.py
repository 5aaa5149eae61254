"""Search: an index of what entries say, derived from the journal and kept in a file of its own.

Appending entries costs nothing here: before a search the index catches up with the journal's
events. It holds no text, only where which words stand, so what a hit says is read from the
journal. An index that is damaged, of another format or about another journal is made again; that
loses nothing. FTS5 does the work, with the tokenizer `porter unicode61`: "run" finds "running".
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
from mulligan.journal.search.texts import Columns, columns_of, kind

FORMAT = 1
TOKENIZER = "porter unicode61"
SCHEMA = f"""
    CREATE VIRTUAL TABLE words USING fts5(content, tool, path, diff, kind,
      content='', contentless_delete=1, tokenize='{TOKENIZER}');
    -- What is collected in memory before it is written: merging many small parts takes longer.
    INSERT INTO words (words, rank) VALUES ('hashsize', 16777216);
    CREATE TABLE state (
      format INTEGER NOT NULL,
      event INTEGER,               -- the last event that was taken in; null before the first walk
      mark TEXT,                   -- what that event was, to tell another journal from this one
      walked INTEGER               -- how far the first walk through all entries is; null after it
    );
    INSERT INTO state (format) VALUES ({FORMAT});
"""
WEIGHTS = "10.0, 2.0, 4.0, 1.0, 0.0"
MAX_RANKED_ENTRIES = 10_000
"""So many of the newest matches are ranked: a word that is in every entry says little anyway."""

BATCH_ENTRIES = 10_000
BATCH_BYTES = 16 << 20
PAGE_BYTES = 4096
"""Large parts are written at a time, and none of them alone: larger pages than the journal's."""

WAL_PAGES = 4_000

Progress = Callable[[str, int, int | None], None]
Alone = Callable[[], AbstractContextManager[None]]
Answer = TypeVar("Answer")


class State(NamedTuple):
    """How far the index has come. `event` is `None` before anything was read."""

    event: int | None
    mark: str | None
    walked: int | None


class Index:
    """The index of one journal, opened. Use it from one thread at a time."""

    def __init__(self, path: str, alone: Alone) -> None:
        """`alone` keeps other processes from opening or replacing it at the same time."""
        self.path, self._alone = path, alone
        with alone():
            self._open()

    def close(self) -> None:
        self._db.close()

    @property
    def is_current(self) -> bool:
        """Whether it is still the one at its path: another process may have made it anew."""
        return _inode(self.path) == self._inode

    def use(self, work: Callable[[Index], Answer]) -> Answer:
        """Does some work with it; an index that turns out damaged is made again first."""
        try:
            try:
                return work(self)
            except _Damaged:
                self.replace()
                return work(self)
        except _Damaged as problem:
            raise Corrupt(
                f"{self.path} was damaged twice in a row ({problem}); look at the disk."
            ) from None

    def replace(self) -> None:
        """Makes the index anew, unless another process has done so since this one opened it."""
        with self._alone():
            self._db.close()
            if self.is_current:
                _remove(self.path)
            self._open()

    def clear(self) -> None:
        """Forgets everything; the next `catch_up` begins at the beginning."""
        with self._own(), self._db.writing() as db:
            db.execute("INSERT INTO words (words) VALUES ('delete-all')")
            db.execute("UPDATE state SET event = NULL, mark = NULL, walked = NULL")

    def catch_up(self, journal: Database, progress: Progress) -> None:
        """Takes in what happened in the journal since the last time.

        In batches, each committed with how far it goes: what is interrupted goes on from there,
        and two processes that do this at once share the work.
        """
        total: int | None = None
        done = 0
        while True:
            state = self._state()
            if state.event is None or not _is_about(state, journal):
                self._begin(journal, state)
                continue
            if state.walked is not None:
                if total is None:
                    total = int(journal.row("SELECT count(*) FROM entries")[0])
                numbers, after = _walk(journal, state)
                gone: set[int] = set()
            else:
                numbers, gone, after = _follow(journal, state)
                if after == state:
                    return
            rows = list(_read(journal, numbers))
            missing = set(numbers) - {number for number, _, _ in rows}
            self._take_in(state, after, rows, missing, gone)
            done += len(numbers)
            progress("Indexing", done, max(total, done) if total is not None else None)

    def matches(
        self, expression: str, sessions: Mapping[int, tuple[int, int]] | None
    ) -> list[tuple[int, float]] | None:
        """The entries that match, the last first, each with its score: more is better.

        `sessions` limits them to some sessions, and there to numbers from one to before another.
        `None` if somebody has begun to make the index anew since it caught up.
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
            f"SELECT rowid, -bm25(words, {WEIGHTS}) FROM words WHERE words MATCH ? {where} "
            "ORDER BY rowid DESC LIMIT ?"
        )
        with self._own():
            self._choose(sessions or {})
            self._db.rows("BEGIN")
            try:
                whole = self._db.row("SELECT event IS NOT NULL AND walked IS NULL FROM state")[0]
                rows = self._db.rows(sql, expression, *values, MAX_RANKED_ENTRIES) if whole else []
            finally:
                self._db.rows("ROLLBACK")
        return rows if whole else None

    def _open(self) -> None:
        if os.path.exists(self.path) and not os.path.getsize(self.path):
            # Somebody has cut it; for who still has it open it would stay in use.
            _remove(self.path)
        try:
            self._db = _opened(self.path)
        except (Busy, OutOfSpace, NotWritable):
            raise
        except (MulliganError, apsw.SQLError):
            _remove(self.path)
            self._db = _opened(self.path)
        self._inode = _inode(self.path)

    def _state(self) -> State:
        with self._own():
            row = self._db.row("SELECT event, mark, walked FROM state")
        if row is None:
            raise _Damaged("it does not say how far it is")
        return State(*row)

    def _begin(self, journal: Database, before: State) -> None:
        """From here on events count; what was there before them is found by a walk."""
        if before.event is not None:
            self.clear()
            before = State(None, None, None)
        sql = "SELECT number, kind, session, subject FROM events ORDER BY number DESC LIMIT 1"
        newest = journal.row(sql)
        after = State(newest[0], _mark(newest), 0) if newest else State(0, None, 0)
        self._take_in(before, after, (), (), ())

    def _take_in(
        self,
        before: State,
        after: State,
        rows: Iterable[tuple[int, str, Columns]],
        missing: Iterable[int],
        gone: Iterable[int],
    ) -> None:
        """One batch, unless another process has gone on from the same state meanwhile."""
        sql = (
            "INSERT OR REPLACE INTO words (rowid, content, tool, path, diff, kind) "
            "VALUES (?,?,?,?,?,?)"
        )
        with self._own(), self._db.writing() as db:
            if db.execute("SELECT event, mark, walked FROM state").fetchone() != before:
                return
            for session in gone:
                low, high = session << 32, (session + 1) << 32
                db.execute("DELETE FROM words WHERE rowid >= ? AND rowid < ?", (low, high))
            db.executemany("DELETE FROM words WHERE rowid = ?", [(number,) for number in missing])
            db.executemany(sql, ((number, *columns, kind(type)) for number, type, columns in rows))
            db.execute("UPDATE state SET event = ?, mark = ?, walked = ?", after)

    def _choose(self, sessions: Mapping[int, tuple[int, int]]) -> None:
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
    def _own(self) -> Iterator[None]:
        """Tells damage to the index from damage to the journal, which is not ours to mend."""
        try:
            yield
        except (Busy, OutOfSpace, NotWritable):
            raise
        except (MulliganError, apsw.SQLError) as problem:
            raise _Damaged(str(problem)) from problem


def _opened(path: str) -> Database:
    db = Database(path, (SCHEMA,), page_bytes=PAGE_BYTES)
    # Nothing is lost with the last commits: the journal still has what they were made from.
    db.rows("PRAGMA synchronous = NORMAL")
    db.rows(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
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


def _is_about(state: State, journal: Database) -> bool:
    """Whether this is the journal that the index was made from: its last event is as remembered."""
    if state.event == 0:
        return True
    sql = "SELECT number, kind, session, subject FROM events WHERE number = ?"
    row = journal.row(sql, state.event)
    return row is not None and _mark(row) == state.mark


def _mark(event: Sequence[Any]) -> str:
    return json.dumps(event)


def _walk(journal: Database, state: State) -> tuple[list[int], State]:
    """The next entries of the first walk, in the order of their numbers."""
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


def _follow(journal: Database, state: State) -> tuple[list[int], set[int], State]:
    """The entries that the next events touch, and the sessions that were deleted."""
    sql = (
        "SELECT v.number, v.kind, v.session, v.subject, e.type, "
        "octet_length(e.content) + ifnull(octet_length(e.data), 0) FROM events v "
        "LEFT JOIN entries e ON v.kind IN ('entry', 'entry_changed') "
        "AND e.number = (v.session << 32) | v.subject "
        "WHERE v.number > ? ORDER BY v.number LIMIT ?"
    )
    numbers: dict[int, None] = {}
    gone: set[int] = set()
    size = 0
    for *event, type, length in journal.rows(sql, state.event, BATCH_ENTRIES):
        _, happened, session, subject = event
        if happened == "session_deleted":
            gone.add(session)
        # Of an entry that changes later only a tool call's data is searched.
        elif happened == "entry" or (happened == "entry_changed" and type == TOOL_CALL):
            number = (session << 32) | subject
            if number not in numbers:
                numbers[number] = None
                size += length or 0
        state = state._replace(event=event[0], mark=_mark(event))
        if size > BATCH_BYTES:
            break
    return list(numbers), gone, state


def _read(journal: Database, numbers: Sequence[int]) -> Iterator[tuple[int, str, Columns]]:
    sql = (
        "SELECT e.number, e.type, e.content, e.data FROM json_each(?) j "
        "JOIN entries e ON e.number = j.value"
    )
    for number, type, content, data in journal.rows(sql, json.dumps(numbers)):
        yield number, type, columns_of(type, content, json.loads(data) if data else None)


class _Damaged(Exception):
    """The index cannot be used as it is."""
