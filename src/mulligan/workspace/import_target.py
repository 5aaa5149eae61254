"""One session that an import writes to: what a log says is added, and nothing is said twice."""

from __future__ import annotations

import os
import time
from typing import Any

import apsw

from mulligan.core.coverage import text
from mulligan.core.entries import FILE_EDIT, TOOL_CALL, USER_INPUT, NewEntry
from mulligan.core.times import just_after
from mulligan.errors import UsageError
from mulligan.importers.records import (
    Compacted,
    Ended,
    Kept,
    Label,
    Leaf,
    Problem,
    Record,
    Session,
    Source,
)
from mulligan.journal import append, checkpoints, sessions
from mulligan.journal.append import Appender
from mulligan.journal.db import Database
from mulligan.journal.sessions import SessionRow
from mulligan.workspace.home import Project
from mulligan.workspace.sessions import appending
from mulligan.workspace.turns import shortened

OWN = "mulligan"
"""Exports of our own count paths from the project already."""


class Target:
    """The session that records go to."""

    def __init__(
        self, journal: Database, project: Project, source: Source, record: Session, agent: str
    ) -> None:
        self._journal, self._project, self._source = journal, project, source
        self._agent = agent
        self.session = record.id
        self.entries = 0
        self.problems: list[Problem] = []
        self._said: dict[str, list[str]] | None = None
        self._names: dict[str, str] = {}
        with journal.writing() as db:
            self._row = self._session(db, record)

    def write(self, batch: list[Record]) -> None:
        with self._journal.writing() as db:
            appender = appending(db, self._row.number, lenient=True)
            appender.names = self._names
            for record in batch:
                try:
                    self._one(db, appender, record)
                except UsageError as problem:
                    self.problems.append(Problem(self._source.path, 0, str(problem)))
            appender.finish()

    def _one(self, db: apsw.Connection, appender: Appender, record: Record) -> None:
        number = self._row.number
        if isinstance(record, NewEntry):
            if self._row.source is None and self._was_recorded(db, appender, record):
                return
            if record.id is None or appender.find(record.id) is None:
                appender.append(self._fitted(record))
                self.entries += 1
                if record.type == USER_INPUT and not self._row.title and not record.aside:
                    self._title(db, record.content)
            elif record.type == TOOL_CALL and record.data and not record.aside:
                self._catch_up(db, record)
        elif isinstance(record, Ended):
            append.end_call(
                db, number, record.call, status=record.status, output=record.output,
                duration=record.duration,
            )  # fmt: skip
        elif isinstance(record, Compacted):
            place = appender.find(record.before)
            if place is not None:
                append.mark_compacted(db, number, place.seq)
        elif isinstance(record, Leaf) and self._row.source is not None:
            appender.stand_at(record.id)
        elif isinstance(record, Label):
            place = appender.find(record.entry)
            if place is not None:
                append.set_label(db, number, place.seq, record.label)
        elif isinstance(record, Kept) and self._row.source is not None:
            sessions.update(db, number, {"agent": record.agent, **record.values})
        elif isinstance(record, Session):
            self._row = self._session(db, record)

    def _was_recorded(self, db: apsw.Connection, appender: Appender, record: NewEntry) -> bool:
        """Whether a session that is recorded as it happens has this already, by another id.

        The n-th message with some text in the log is the n-th one with that text here.
        """
        if record.id is None or appender.find(record.id) is not None:
            return False
        if record.type == USER_INPUT and not record.aside:
            if self._said is None:
                self._said = {}
                rows: Any = db.execute(
                    "SELECT content, id FROM entries WHERE session = ? AND type = 'user_input' "
                    "AND checkpoint IS NOT NULL ORDER BY number",
                    (self._row.number,),
                ).fetchall()
                for content, id in rows:
                    self._said.setdefault(content.strip(), []).append(id)
            same = self._said.get(clean(record.content).strip())
            if same:
                self._names[record.id] = same.pop(0)
                return True
        return False

    def _catch_up(self, db: apsw.Connection, record: NewEntry) -> None:
        """A call that was running when its log was last read may have ended since."""
        data = record.data or {}
        append.end_call(
            db, self._row.number, record.id or "", status=data.get("status", "pending"),
            output=data.get("output"), duration=data.get("duration"),
        )  # fmt: skip

    def _title(self, db: apsw.Connection, message: str) -> None:
        first = next((line.strip() for line in message.splitlines() if line.strip()), "")
        if first:
            sessions.update(db, self._row.number, {"title": shortened(clean(first))})
            self._row = self._row._replace(title=first)

    def _session(self, db: apsw.Connection, record: Session) -> SessionRow:
        """The session, made if it is new; what the log knows and it does not is added."""
        given = {
            "title": record.title,
            "model": record.model,
            "mode": record.mode,
            "directory": record.directory,
            "forked_from": record.forked_from,
            "updated_at": record.updated_at,
        }
        known = {name: clean(value) for name, value in given.items() if value}
        row = sessions.by_id(self._journal, record.id)
        if row is None:
            values = known | {"agent": self._agent, "status": "stopped"}
            values["source"] = clean(self._source.path)
            moment = record.created_at or just_after(None, time.time_ns())
            sessions.insert(db, record.id, moment, values)
        else:
            new = {
                name: value
                for name, value in known.items()
                if name in ("title", "updated_at") or not getattr(row, name)
            }
            if row.source is None:
                # What was recorded as it happened knows better than the log.
                new.pop("title", None)
            if new:
                sessions.update(db, row.number, new)
        found = sessions.by_id(self._journal, record.id)
        assert found is not None
        return found

    def _fitted(self, entry: NewEntry) -> NewEntry:
        """The entry with links that lead somewhere, and paths as the project knows them."""
        if entry.checkpoint and checkpoints.by_id(self._journal, entry.checkpoint) is None:
            entry = entry._replace(checkpoint=None)
        if self._agent == OWN:
            return entry
        if entry.type != FILE_EDIT or not entry.data or not entry.data.get("path"):
            return entry
        data = dict(entry.data)
        for name in ("path", "old_path"):
            if isinstance(data.get(name), str):
                data[name] = self._path(data[name])
        return entry._replace(data=data)

    def _path(self, path: str) -> str:
        root = text(self._project.root)
        base = self._row.directory or root
        full = os.path.normpath(os.path.join(base, path))
        start = root.rstrip("/") + "/"
        return full[len(start) :] if full.startswith(start) else full


def clean(value: str) -> str:
    """Text that any database takes."""
    return value.encode("utf-8", "replace").decode()
