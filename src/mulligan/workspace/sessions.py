"""Sessions and their entries: made, listed, appended to, read, labelled, compacted, deleted."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import apsw

from mulligan.core.coverage import words
from mulligan.core.entries import COMPACT_MARKER, STATUSES, TYPES, NewEntry
from mulligan.core.times import just_after
from mulligan.errors import NotFound, UsageError
from mulligan.journal import append, checkpoints, entries, sessions
from mulligan.journal.append import Appender
from mulligan.journal.entries import EntryRow
from mulligan.journal.sessions import SessionRow
from mulligan.journal.views import View
from mulligan.workspace import checkpoints as taking
from mulligan.workspace.observe import observing
from mulligan.workspace.process import identity, is_gone
from mulligan.workspace.session_results import Branch, Entry, EntryPage, Session, SessionPage

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace

PAGE = 50
LARGEST_PAGE = 1_000_000
SETTABLE = frozenset({
    "title", "agent", "model", "mode", "status", "memory", "auto_approve_commands",
    "auto_approve_sensitive_edits", "sensitive_file_patterns", "directory",
})  # fmt: skip


def create(
    workspace: Workspace, *, id: str | None, checkpoint: bool, values: Any, process: int | None = 0
) -> Session:
    """A new session, with a checkpoint of how the project was when it began.

    `process` is who runs it: once that one is gone, the session counts as stopped. 0 is nobody.
    """
    given = _checked(values)
    if process != 0:
        given["process"] = identity(process)
    given.setdefault("directory", workspace.root)
    with workspace.locked():
        if id is not None and sessions.by_id(workspace.journal, id) is not None:
            raise UsageError(f"There is a session {id} already.")
        new = words(id) if id else taking.new_id()
        if not checkpoint:
            with workspace.journal.writing() as db:
                number = _insert(db, new, given)
            return result(workspace, _row(workspace, number))
        with observing(workspace) as now:
            now.commit()
            with workspace.journal.writing() as db:
                number = _insert(db, new, given)
                row = now.checkpoint(db, kind="initial", message="Session begins", session=new)
                now.record(db, kind="new_session", after=row, session=new, changes={number: View()})
        workspace.save_cache()
    return result(workspace, _row(workspace, number))


def get(workspace: Workspace, name: str) -> Session:
    return result(workspace, sessions.resolve(workspace.journal, name))


def listed(
    workspace: Workspace,
    *,
    limit: int,
    offset: int,
    cursor: str | None,
    status: str | None,
    agent: str | None,
) -> SessionPage:
    """Sessions by the time of their last change, newest first."""
    _check_page((), limit)
    if not 0 <= offset < 1 << 62:
        raise UsageError("An offset is not negative, nor beyond all bounds.")
    found = sessions.newest_first(
        workspace.journal, limit=limit + 1, offset=offset, after=_cursor(cursor), status=status,
        agent=agent,
    )  # fmt: skip
    rows, more = found[:limit], len(found) > limit
    return SessionPage(
        tuple(result(workspace, row) for row in rows),
        more,
        f"{rows[-1].updated_at}/{rows[-1].number}" if more else None,
        offset + limit if more else None,
    )


def change(workspace: Workspace, name: str, values: Any) -> Session:
    """Changes what can be changed of a session."""
    given = _checked(values)
    row = sessions.resolve(workspace.journal, name)
    with workspace.journal.writing() as db:
        sessions.update(db, row.number, given | {"updated_at": just_after(None, time.time_ns())})
    return result(workspace, _row(workspace, row.number))


def delete(workspace: Workspace, name: str) -> Session:
    """Drops a session with all that belongs to it, its checkpoints too. `gc` frees the rest.

    The latest checkpoint stays, and those that the next undo needs: they speak of the project.
    """
    from mulligan.workspace.upkeep import needed

    with workspace.locked():
        row = sessions.resolve(workspace.journal, name)
        keep = needed(workspace)
        # A fork shares what its path leads through: that is not this session's alone.
        gone = [
            each
            for (each,) in workspace.journal.rows(
                "SELECT id FROM checkpoints WHERE session = ? AND NOT EXISTS (SELECT 1 FROM "
                "entries e WHERE e.checkpoint = checkpoints.id AND e.session <> ?)",
                row.id, row.number,
            )
            if each not in keep
        ]  # fmt: skip
        found = result(workspace, row)
        with workspace.journal.writing() as db:
            sessions.delete(db, row.number)
            checkpoints.delete(db, gone)
    return found


def delete_all(workspace: Workspace) -> int:
    """Drops every session of the project; gives how many."""
    names = [row.id for row in sessions.newest_first(workspace.journal)]
    for name in names:
        delete(workspace, name)
    return len(names)


def stop_the_dead(workspace: Workspace) -> None:
    """Sessions whose process is gone are stopped: no crash leaves one running for ever."""
    gone = [
        row.number
        for row in sessions.with_process(workspace.journal, STATUSES[:-1])
        if row.process is not None and is_gone(row.process)
    ]
    if gone:
        with workspace.journal.writing() as db:
            for number in gone:
                sessions.update(db, number, {"status": "stopped", "process": None})


def add(workspace: Workspace, name: str, new: Iterable[NewEntry]) -> list[Entry]:
    """Appends entries at the leaf, or wherever each says."""
    session = sessions.resolve(workspace.journal, name)
    with workspace.journal.writing() as db:
        appender = appending(db, session.number)
        first = appender.seq
        for entry in new:
            appender.append(entry)
        appender.finish()
        last = appender.seq
    found = entries.page(
        workspace.journal, session.number, since=first, limit=max(1, last - first),
        include_compacted=True,
    )  # fmt: skip
    return [entry_result(session, row) for row in found if row.seq <= last]


def appending(db: apsw.Connection, session: int, *, lenient: bool = False) -> Appender:
    """An appender with the clock and the ids that all of them use."""
    return Appender(db, session, new_id=taking.new_id, now=time.time_ns, lenient=lenient)


def end_call(
    workspace: Workspace,
    name: str,
    call: str,
    *,
    status: str,
    output: str | None,
    duration: float | None,
) -> bool:
    """A running tool call has ended; gives whether there was one to end."""
    session = sessions.resolve(workspace.journal, name)
    with workspace.journal.writing() as db:
        return append.end_call(
            db, session.number, call, status=status, output=output, duration=duration
        )


def transcript(
    workspace: Workspace,
    name: str,
    *,
    types: Sequence[str],
    since: int,
    limit: int,
    include_compacted: bool,
) -> EntryPage:
    """A page of all entries in the order in which they were appended, whatever their branch."""
    session = sessions.resolve(workspace.journal, name)
    _check_page(types, limit)
    found = entries.page(
        workspace.journal, session.number, types=types, since=since, limit=limit + 1,
        include_compacted=include_compacted,
    )  # fmt: skip
    return _page(session, found[:limit], more=len(found) > limit)


def recent(
    workspace: Workspace, name: str, *, limit: int, before: int | None, include_compacted: bool
) -> EntryPage:
    """The last entries, in order; `next_seq` goes on towards the beginning."""
    session = sessions.resolve(workspace.journal, name)
    _check_page((), limit)
    found = entries.recent(
        workspace.journal, session.number, before=before, limit=limit + 1,
        include_compacted=include_compacted,
    )  # fmt: skip
    more = len(found) > limit
    rows = found[1:] if more else found
    return EntryPage(
        tuple(entry_result(session, row) for row in rows), more, rows[0].seq if more else None
    )


def path(
    workspace: Workspace,
    name: str,
    *,
    types: Sequence[str],
    before: int | None,
    since: int,
    limit: int | None,
    newest: bool,
    leaf: str | None = None,
) -> list[Entry]:
    """The entries from the root to the leaf, or to another entry: the conversation as it stands."""
    session = sessions.resolve(workspace.journal, name)
    _check_page(types, LARGEST_PAGE if limit is None else limit)
    at = session.leaf
    if leaf is not None:
        at = entries.resolve(workspace.journal, leaf, session.number).seq
    found = entries.on_path(
        workspace.journal, session.number, at, types=types, before=before, since=since,
        limit=limit, newest=newest,
    )  # fmt: skip
    return [entry_result(session, row) for row in found]


def count(workspace: Workspace, name: str, *, include_compacted: bool) -> int:
    session = sessions.resolve(workspace.journal, name)
    return entries.count(workspace.journal, session.number, include_compacted=include_compacted)


def branches(workspace: Workspace, name: str) -> list[Branch]:
    """The session's tree, as its unforked stretches."""
    session = sessions.resolve(workspace.journal, name)
    active = {branch for branch, _last in entries.path(
        workspace.journal, session.number, session.leaf
    )}  # fmt: skip
    found = []
    for first, parent, last, number in entries.branches(workspace.journal, session.number):
        rows = [entries.by_seq(workspace.journal, session.number, seq) for seq in (first, last)]
        above = parent and entries.by_seq(workspace.journal, session.number, parent)
        assert rows[0] is not None
        assert rows[1] is not None
        found.append(
            Branch(
                entry_result(session, rows[0]),
                entry_result(session, rows[1]),
                above.id if above else None,
                number,
                first in active,
            )
        )
    return found


def entry(workspace: Workspace, name: str, session: str | None = None) -> Entry:
    """The entry with this id, prefix or label, in one session or in all."""
    inside = sessions.resolve(workspace.journal, session) if session is not None else None
    row = entries.resolve(workspace.journal, name, inside.number if inside else None)
    return entry_result(inside or _row(workspace, row.session), row)


def link(workspace: Workspace, name: str, session: str | None, values: dict[str, Any]) -> bool:
    """Links an entry to a checkpoint or a plan item, or hides it."""
    found = entry(workspace, name, session)
    owner = sessions.resolve(workspace.journal, found.session)
    if values.get("checkpoint") is not None:
        values["checkpoint"] = checkpoints.resolve(workspace.journal, values["checkpoint"]).id
    with workspace.journal.writing() as db:
        return append.link(db, owner.number, found.seq, values)


def label(workspace: Workspace, name: str, given: str | None, session: str | None) -> Entry:
    """Gives an entry a name to return to, or takes it away."""
    found = entry(workspace, name, session)
    owner = sessions.resolve(workspace.journal, found.session)
    with workspace.journal.writing() as db:
        append.set_label(db, owner.number, found.seq, given)
    return entry(workspace, found.id, found.session)


def compact(
    workspace: Workspace, name: str, before: str | int | None, summary: str | None
) -> tuple[int, Entry]:
    """Hides what came before an entry (else everything), and leaves a marker that says so.

    What is hidden stays searchable and can be returned to.
    """
    session = sessions.resolve(workspace.journal, name)
    limit = before if isinstance(before, int) else None
    if isinstance(before, str):
        limit = entries.resolve(workspace.journal, before, session.number).seq
    with workspace.journal.writing() as db:
        appender = appending(db, session.number)
        hidden = append.mark_compacted(
            db, session.number, appender.seq + 1 if limit is None else limit
        )
        data = {"compactedCount": hidden} | ({"summary": summary} if summary else {})
        place = appender.append(NewEntry(COMPACT_MARKER, summary or "", data))
        appender.finish()
    row = entries.by_seq(workspace.journal, session.number, place.seq)
    assert row is not None
    return hidden, entry_result(session, row)


def mark_compacted(workspace: Workspace, name: str, before: int) -> int:
    session = sessions.resolve(workspace.journal, name)
    with workspace.journal.writing() as db:
        return append.mark_compacted(db, session.number, before)


def linked_to(
    workspace: Workspace, *, checkpoint: str | None, plan_item: str | None
) -> list[Entry]:
    """The entries that belong to a checkpoint, or to a plan item."""
    found: list[EntryRow] = []
    if checkpoint is not None:
        row = checkpoints.resolve(workspace.journal, checkpoint)
        found += entries.for_checkpoint(workspace.journal, row.id)
    if plan_item is not None:
        found += entries.for_plan_item(workspace.journal, plan_item)
    owners = {row.session: _row(workspace, row.session) for row in found}
    return [entry_result(owners[row.session], row) for row in found]


def entry_result(session: SessionRow, row: EntryRow) -> Entry:
    return Entry(
        id=row.id,
        session=session.id,
        seq=row.seq,
        parent=row.parent,
        type=row.type,
        created_at=row.created_at,
        content=row.content,
        data=row.data,
        model=row.model,
        checkpoint=row.checkpoint,
        plan_item=row.plan_item,
        is_compacted=row.is_compacted,
        aside=row.aside,
        label=row.label,
        branch=row.branch,
    )


def result(workspace: Workspace, row: SessionRow) -> Session:
    leaf = None
    if row.leaf is not None:
        found = workspace.journal.row(
            "SELECT id FROM entries WHERE number = ?", (row.number << 32) | row.leaf
        )
        leaf = found[0] if found else None
    return Session(
        id=row.id,
        agent=row.agent,
        title=row.title,
        model=row.model,
        mode=row.mode,
        project=workspace.root,
        directory=row.directory,
        status=row.status,
        leaf=leaf,
        memory=row.memory,
        auto_approve_commands=row.auto_approve_commands,
        auto_approve_sensitive_edits=row.auto_approve_sensitive_edits,
        sensitive_file_patterns=row.sensitive_file_patterns,
        forked_from=row.forked_from,
        source=row.source,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _row(workspace: Workspace, number: int) -> SessionRow:
    row = sessions.by_number(workspace.journal, number)
    if row is None:
        raise NotFound("The session is not there any more.")
    return row


def _insert(db: apsw.Connection, id: str, values: dict[str, Any]) -> int:
    return sessions.insert(db, id, just_after(None, time.time_ns()), values)


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in values.items() if value is not None}
    unknown = set(given) - SETTABLE
    if unknown:
        raise UsageError(f"A session has no {', '.join(sorted(unknown))} to set.")
    if given.get("status", STATUSES[0]) not in STATUSES:
        raise UsageError(f"A session's status is one of {', '.join(STATUSES)}.")
    for name in ("title", "agent", "memory", "model", "mode", "directory"):
        if name in given:
            given[name] = words(str(given[name]))
    for name in ("auto_approve_commands", "auto_approve_sensitive_edits"):
        if not isinstance(given.get(name, False), bool | int):
            raise UsageError(f"A session's {name} is true or false.")
    patterns = given.get("sensitive_file_patterns", {})
    if not isinstance(patterns, dict) or not all(
        isinstance(pattern, str) and isinstance(allowed, bool)
        for pattern, allowed in patterns.items()
    ):
        raise UsageError("A session's sensitive_file_patterns say true or false of each pattern.")
    return given


def _cursor(cursor: str | None) -> tuple[str, int] | None:
    if cursor is None:
        return None
    moment, _slash, number = cursor.rpartition("/")
    if not moment or not number.isascii() or not number.isdigit() or len(number) > 18:
        raise UsageError(f"{cursor!r} is not a cursor that a page of sessions gave.")
    return moment, int(number)


def _check_page(types: Sequence[str], limit: int) -> None:
    unknown = set(types) - set(TYPES)
    if unknown:
        raise UsageError(f"There are no entries of type {', '.join(sorted(unknown))}.")
    if not 1 <= limit <= LARGEST_PAGE:
        raise UsageError(f"A page has from one to {LARGEST_PAGE:,} rows.")


def _page(session: SessionRow, rows: list[EntryRow], *, more: bool) -> EntryPage:
    return EntryPage(
        tuple(entry_result(session, row) for row in rows), more, rows[-1].seq if more else None
    )
