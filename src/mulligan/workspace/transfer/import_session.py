"""Write the records of a log to one session, without duplicates."""

from __future__ import annotations

import os
from typing import Any

import apsw

from mulligan.clock import now_ns
from mulligan.core.coverage import decode_path
from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    FILE_EDIT,
    LEAF,
    TOOL_CALL,
    USER_INPUT,
    NewEntry,
)
from mulligan.core.times import rfc3339
from mulligan.errors import UsageError
from mulligan.importers.records import (
    CallEnded,
    Compacted,
    Label,
    Leaf,
    Problem,
    ReadContent,
    Record,
    Session,
    SessionSettings,
    Snapshot,
    Source,
)
from mulligan.journal import append, checkpoints, entries, sessions, tool_calls
from mulligan.journal.append import Appender
from mulligan.journal.db import Database
from mulligan.journal.sessions import SessionRow
from mulligan.workspace.appending import appending
from mulligan.workspace.attribution.turns import shortened
from mulligan.workspace.project.location import ProjectLocation
from mulligan.workspace.transfer.import_claims import OWN
from mulligan.workspace.transfer.import_snapshots import Snapshots, Taken


class Target:
    """The session that records are written to."""

    def __init__(
        self,
        journal: Database,
        project: ProjectLocation,
        source: Source,
        record: Session,
        agent: str,
        claimed: str,
    ) -> None:
        """`claimed` is the session's id in the log, which may belong to another session here."""
        self._journal, self.project, self._source = journal, project, source
        self._agent = agent
        self.session, self.claimed = record.id, claimed
        self._now = rfc3339(now_ns())
        self._written = min(self._now, _modified(source.path) or self._now)
        self.entries = 0
        self.problems: list[Problem] = []
        self._prompts_by_text: dict[str, list[str]] | None = None
        self._calls: dict[str, dict[str, Any]] | None = None
        self._names: dict[str, str] = {}
        with journal.writing() as db:
            self._row = self._session(db, record)

    def write(self, batch: list[Record]) -> None:
        with self._journal.writing() as db:
            appender = appending(db, self._row.number, lenient=True)
            appender.names = self._names
            for record in batch:
                try:
                    self._write_record(db, appender, record)
                except UsageError as problem:
                    self.problems.append(Problem(self._source.path, 0, str(problem)))
            appender.finish()

    def take(self, snapshot: Snapshot, into: Snapshots, content: ReadContent) -> Taken:
        """Make a checkpoint of file contents that the log holds."""
        return into.take(snapshot, self._row, content, self._path)

    def _write_record(self, db: apsw.Connection, appender: Appender, record: Record) -> None:
        number = self._row.number
        if isinstance(record, NewEntry):
            if self._row.source is None and self._was_recorded(db, appender, record):
                return
            if record.id is None or appender.find(record.id) is None:
                self._append(db, appender, self._adapted(record))
                self.entries += 1
                if record.type == USER_INPUT and not self._row.title and not record.off_path:
                    self._title(db, record.content)
            elif record.type == TOOL_CALL and record.data and not record.off_path:
                self._update_call(db, record)
        elif isinstance(record, CallEnded):
            changed = append.end_call(
                db, number, record.call, status=record.status, output=record.output,
                duration=record.duration,
            )  # fmt: skip
            if not changed and self._row.source is None:
                # The log is more reliable than the hooks about how a call ended.
                tool_calls.correct_outcome(db, number, record.call, record.status, record.duration)
        elif isinstance(record, Compacted):
            place = appender.find(record.before)
            if place is not None:
                append.mark_compacted(db, number, place.seq, but=self._unmentioned_prompts(db))
        elif isinstance(record, Leaf) and self._row.source is not None:
            appender.move_leaf(record.id)
        elif isinstance(record, Label):
            place = appender.find(record.entry)
            if place is not None:
                append.set_label(db, number, place.seq, record.label)
        elif isinstance(record, SessionSettings) and self._row.source is not None:
            sessions.update(db, number, {"agent": record.agent, **record.values})
        elif isinstance(record, Session):
            self._row = self._session(db, record._replace(id=self.session))

    def _was_recorded(self, db: apsw.Connection, appender: Appender, record: NewEntry) -> bool:
        """True if hooks have recorded this entry already, under another id.

        The n-th message with some text in the log is the n-th one with that text here. A call is
        identified by the agent's own id, else by its name and input.
        """
        if record.id is None or appender.find(record.id) is not None:
            return False
        if record.type == USER_INPUT and not record.off_path:
            same = self._prompts(db).get(clean(record.content).strip())
            if same:
                self._names[record.id] = same.pop(0)
                return True
        if record.type == TOOL_CALL and record.data:
            known = self._find_call(db, record.data)
            if known is not None:
                self._names[record.id] = known
                self._update_call(db, record._replace(id=known))
                return True
        return False

    def _prompts(self, db: apsw.Connection) -> dict[str, list[str]]:
        """Return the ids of messages that hooks recorded, by text."""
        if self._prompts_by_text is None:
            self._prompts_by_text = {}
            for content, id in entries.recorded_prompts(self._journal, self._row.number):
                self._prompts_by_text.setdefault(content.strip(), []).append(id)
        return self._prompts_by_text

    def _unmentioned_prompts(self, db: apsw.Connection) -> list[str]:
        """Return recorded messages that the log has not mentioned yet.

        An agent may compact its log after a new message has arrived; that message is not compacted.
        """
        if self._row.source is not None:
            return []
        return [id for ids in self._prompts(db).values() for id in ids]

    def _find_call(self, db: apsw.Connection, data: dict[str, Any]) -> str | None:
        """Return the entry of a call that hooks recorded."""
        if self._calls is None:
            calls = tool_calls.data_of_calls(self._journal, self._row.number)
            self._calls = {
                id: data if "call" not in data else {"call": data["call"]}
                for id, data in calls.items()
            }
        for id, known in self._calls.items():
            if "call" in known:
                if known["call"] == data.get("call"):
                    return id
            elif (known.get("name"), known.get("input")) == (data.get("name"), data.get("input")):
                # The agent's hooks do not report the call's id; the log does.
                self._calls[id] = {"call": data.get("call")}
                tool_calls.set_call_id(db, self._row.number, id, data.get("call"))
                return id
        return None

    def _append(self, db: apsw.Connection, appender: Appender, entry: NewEntry) -> None:
        """Append an entry: to an imported session as the log says, to a recorded one at its end.

        The user may have moved back in the session before the agent wrote the last lines of its
        turn: these go to that turn's branch, and the leaf stays.
        """
        if self._row.source is not None:
            appender.append(entry)
            return
        left = appender.find(entry.parent) if entry.parent not in (None, LEAF) else None
        entry = self._attach_to_leaf(db, appender, entry)
        gone_back = left is not None and appender.leaf is not None and left.seq > appender.leaf.seq
        if left is not None and gone_back and entry.parent == LEAF and entry.type != USER_INPUT:
            appender.append_to_branch(entry, left)
        else:
            appender.append(entry)

    def _attach_to_leaf(self, db: apsw.Connection, appender: Appender, entry: NewEntry) -> NewEntry:
        """Move a late entry of the log to the leaf, instead of starting a branch.

        Only a message that continues from an earlier entry is a fork.
        """
        if entry.off_path or appender.leaf is None or entry.parent == LEAF:
            return entry
        if entry.parent is None:
            return entry._replace(parent=LEAF)
        place = appender.find(entry.parent)
        if place is None or place.off_path or place.seq == appender.leaf.seq:
            return entry
        since = [USER_INPUT]
        if entry.type == USER_INPUT:
            since += [ASSISTANT_OUTPUT, TOOL_CALL]
        went_on = entries.any_after(self._journal, self._row.number, place.seq, since)
        return entry if went_on else entry._replace(parent=LEAF)

    def _update_call(self, db: apsw.Connection, record: NewEntry) -> None:
        """End a call that was still running when its log was last read."""
        data = record.data or {}
        append.end_call(
            db, self._row.number, record.id or "", status=data.get("status", "pending"),
            output=data.get("output"), duration=data.get("duration"),
        )  # fmt: skip

    def _title(self, db: apsw.Connection, message: str) -> None:
        title = _title_of(message)
        if title:
            sessions.update(db, self._row.number, {"title": title})
            self._row = self._row._replace(title=title)

    def _session(self, db: apsw.Connection, record: Session) -> SessionRow:
        """Return the session, creating it if needed, and fill in columns from the log."""
        given = {
            "title": record.title,
            "model": record.model,
            "mode": record.mode,
            "directory": record.directory,
            "forked_from": record.forked_from,
            "updated_at": record.updated_at and self._not_in_future(record.updated_at),
        }
        known = {name: clean(value) for name, value in given.items() if value}
        row = sessions.by_id(self._journal, record.id)
        if row is None:
            values = known | {"agent": self._agent, "status": "stopped"}
            values["source"] = clean(self._source.path)
            moment = self._not_in_future(record.created_at or self._now)
            sessions.insert(db, record.id, moment, values)
        else:
            new = {
                name: value
                for name, value in known.items()
                if name == "updated_at" or not getattr(row, name)
            }
            if "title" in known and self._is_derived_title(row):
                new["title"] = known["title"]
            if new:
                sessions.update(db, row.number, new)
        stored = sessions.by_id(self._journal, record.id)
        assert stored is not None
        return stored

    def _is_derived_title(self, row: SessionRow) -> bool:
        """True if the session's title is its first message."""
        first = entries.first_prompt(self._journal, row.number)
        return first is not None and row.title in (_title_of(first), shortened(first))

    def _not_in_future(self, moment: str) -> str:
        """Return the time, or that of the log's last write if it is in the future."""
        return moment if moment <= self._now else self._written

    def _adapted(self, entry: NewEntry) -> NewEntry:
        """Adapt an entry: valid links, times not in the future, project-relative paths."""
        if entry.created_at is not None and entry.created_at > self._now:
            data = (entry.data or {}) | {"at": entry.created_at}
            entry = entry._replace(created_at=self._written, data=data)
        if entry.checkpoint and checkpoints.by_id(self._journal, entry.checkpoint) is None:
            entry = entry._replace(checkpoint=None)
        if self._agent == OWN:
            # Our own exports have project-relative paths already.
            return entry
        if entry.type != FILE_EDIT or not entry.data or not entry.data.get("path"):
            return entry
        data = dict(entry.data)
        for name in ("path", "old_path"):
            if isinstance(data.get(name), str):
                data[name] = self._path(data[name])
        return entry._replace(data=data)

    def _path(self, path: str) -> str:
        root = decode_path(self.project.root)
        base = self._row.directory or root
        full = os.path.normpath(os.path.join(base, path))
        start = root.rstrip("/") + "/"
        return full[len(start) :] if full.startswith(start) else full


def _title_of(message: str) -> str:
    first = next((line.strip() for line in message.splitlines() if line.strip()), "")
    return shortened(clean(first))


def clean(value: str) -> str:
    """Replace lone surrogates, which SQLite refuses."""
    return value.encode("utf-8", "replace").decode()


def _modified(path: str) -> str | None:
    try:
        return rfc3339(os.stat(path).st_mtime_ns)
    except (OSError, ValueError):
        return None
