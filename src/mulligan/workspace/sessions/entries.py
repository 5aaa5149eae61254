"""Append, page, link and compact the entries of sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mulligan.core.entries import COMPACT_MARKER, TYPES, NewEntry
from mulligan.core.ids import SessionNumber
from mulligan.errors import NotFound, UsageError
from mulligan.journal import append, checkpoints, entries, sessions
from mulligan.journal.entries import EntryRow
from mulligan.journal.sessions import SessionRow
from mulligan.workspace.appending import appending
from mulligan.workspace.open_project import OpenProject

if TYPE_CHECKING:
    from mulligan.workspace.results.sessions import Branch, Entry, EntryPage


MAX_PAGE_ENTRIES = 1_000_000


def add(project: OpenProject, name: str, new: Iterable[NewEntry]) -> list[Entry]:
    """Append entries at the leaf, or below the parent that each names."""
    session = sessions.resolve(project.journal, name)
    first, last = put(project, session.number, new)
    rows = entries.page(
        project.journal, session.number, since=first, limit=max(1, last - first),
        include_compacted=True,
    )  # fmt: skip
    return [entry_result(session, row) for row in rows if row.seq <= last]


def put(project: OpenProject, session: SessionNumber, new: Iterable[NewEntry]) -> tuple[int, int]:
    """Append entries; return the last `seq` before them, and their last `seq`."""
    with project.journal.writing() as db:
        appender = appending(db, session)
        first = appender.seq
        for entry in new:
            appender.append(entry)
        appender.finish()
        return first, appender.seq


def end_call(
    project: OpenProject,
    name: str,
    call: str,
    *,
    status: str,
    output: str | None,
    duration: float | None,
) -> bool:
    """End a running tool call; return True if there was one."""
    session = sessions.resolve(project.journal, name)
    with project.journal.writing() as db:
        return append.end_call(
            db, session.number, call, status=status, output=output, duration=duration
        )


def transcript(
    project: OpenProject,
    name: str,
    *,
    types: Sequence[str],
    since: int,
    limit: int,
    include_compacted: bool,
) -> EntryPage:
    """Return a page of entries of all branches, in order."""
    session = sessions.resolve(project.journal, name)
    check_page(types, limit)
    rows = entries.page(
        project.journal, session.number, types=types, since=since, limit=limit + 1,
        include_compacted=include_compacted,
    )  # fmt: skip
    return _page(session, rows[:limit], more=len(rows) > limit)


def recent(
    project: OpenProject,
    name: str,
    *,
    limit: int,
    before: int | None,
    include_compacted: bool,
    types: Sequence[str] = (),
) -> EntryPage:
    """Return the last entries, in order; `next_seq` continues towards the beginning."""
    from mulligan.workspace.results.sessions import EntryPage

    session = sessions.resolve(project.journal, name)
    check_page(types, limit)
    with_next = entries.recent(
        project.journal, session.number, types=types, before=before, limit=limit + 1,
        include_compacted=include_compacted,
    )  # fmt: skip
    more = len(with_next) > limit
    rows = with_next[1:] if more else with_next
    return EntryPage(
        tuple(entry_result(session, row) for row in rows), more, rows[0].seq if more else None
    )


def path(
    project: OpenProject,
    name: str,
    *,
    types: Sequence[str],
    before: int | None,
    since: int,
    limit: int | None,
    newest: bool,
    leaf: str | None = None,
) -> list[Entry]:
    """Return the entries from the root to the leaf, or to another entry."""
    session = sessions.resolve(project.journal, name)
    check_page(types, MAX_PAGE_ENTRIES if limit is None else limit)
    at = session.leaf
    if leaf is not None:
        at = entries.resolve(project.journal, leaf, session.number).seq
    rows = entries.on_path(
        project.journal, session.number, at, types=types, before=before, since=since,
        limit=limit, newest=newest,
    )  # fmt: skip
    return [entry_result(session, row) for row in rows]


def count(project: OpenProject, name: str, *, include_compacted: bool) -> int:
    session = sessions.resolve(project.journal, name)
    return entries.count(project.journal, session.number, include_compacted=include_compacted)


def branches(project: OpenProject, name: str) -> list[Branch]:
    """Return the branches of the session's tree."""
    from mulligan.workspace.results.sessions import Branch

    session = sessions.resolve(project.journal, name)
    active = {branch for branch, _last in entries.path(
        project.journal, session.number, session.leaf
    )}  # fmt: skip
    branches = []
    for first, parent, last, number in entries.branches(project.journal, session.number):
        rows = [entries.by_seq(project.journal, session.number, seq) for seq in (first, last)]
        above = parent and entries.by_seq(project.journal, session.number, parent)
        assert rows[0] is not None
        assert rows[1] is not None
        branches.append(
            Branch(
                entry_result(session, rows[0]),
                entry_result(session, rows[1]),
                above.id if above else None,
                number,
                first in active,
            )
        )
    return branches


def entry(project: OpenProject, name: str, session: str | None = None) -> Entry:
    """Return the entry with this id, prefix or label, in one session or in all."""
    inside = sessions.resolve(project.journal, session) if session is not None else None
    row = entries.resolve(project.journal, name, inside.number if inside else None)
    return entry_result(inside or _owner(project, row.session), row)


def link(project: OpenProject, name: str, session: str | None, values: dict[str, Any]) -> bool:
    """Link an entry to a checkpoint or a plan item, or mark it compacted."""
    linked = entry(project, name, session)
    owner = sessions.resolve(project.journal, linked.session)
    if values.get("checkpoint") is not None:
        values["checkpoint"] = checkpoints.resolve(project.journal, values["checkpoint"]).id
    with project.journal.writing() as db:
        return append.link(db, owner.number, linked.seq, values)


def label(project: OpenProject, name: str, given: str | None, session: str | None) -> Entry:
    """Label an entry, or remove its label."""
    labelled = entry(project, name, session)
    owner = sessions.resolve(project.journal, labelled.session)
    with project.journal.writing() as db:
        append.set_label(db, owner.number, labelled.seq, given)
    return entry(project, labelled.id, labelled.session)


def compact(
    project: OpenProject, name: str, before: str | int | None, summary: str | None
) -> tuple[int, Entry]:
    """Mark entries before one (else all) as compacted, and append a marker.

    Compacted entries stay searchable, and `goto` still reaches them.
    """
    session = sessions.resolve(project.journal, name)
    limit = before if isinstance(before, int) else None
    if isinstance(before, str):
        limit = entries.resolve(project.journal, before, session.number).seq
    with project.journal.writing() as db:
        appender = appending(db, session.number)
        hidden = append.mark_compacted(
            db, session.number, appender.seq + 1 if limit is None else limit
        )
        data = {"compactedCount": hidden} | ({"summary": summary} if summary else {})
        place = appender.append(NewEntry(COMPACT_MARKER, summary or "", data))
        appender.finish()
    row = entries.by_seq(project.journal, session.number, place.seq)
    assert row is not None
    return hidden, entry_result(session, row)


def mark_compacted(project: OpenProject, name: str, before: int) -> int:
    session = sessions.resolve(project.journal, name)
    with project.journal.writing() as db:
        return append.mark_compacted(db, session.number, before)


def linked_to(
    project: OpenProject, *, checkpoint: str | None, plan_item: str | None
) -> list[Entry]:
    """Return the entries that are linked to a checkpoint or a plan item."""
    rows: list[EntryRow] = []
    if checkpoint is not None:
        row = checkpoints.resolve(project.journal, checkpoint)
        rows += entries.for_checkpoint(project.journal, row.id)
    if plan_item is not None:
        rows += entries.for_plan_item(project.journal, plan_item)
    owners = {row.session: _owner(project, row.session) for row in rows}
    return [entry_result(owners[row.session], row) for row in rows]


def entry_result(session: SessionRow, row: EntryRow) -> Entry:
    from mulligan.workspace.results.sessions import Entry

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
        off_path=row.off_path,
        label=row.label,
        branch=row.branch,
    )


def _page(session: SessionRow, rows: list[EntryRow], *, more: bool) -> EntryPage:
    from mulligan.workspace.results.sessions import EntryPage

    return EntryPage(
        tuple(entry_result(session, row) for row in rows), more, rows[-1].seq if more else None
    )


def check_page(types: Sequence[str], limit: int) -> None:
    unknown = set(types) - set(TYPES)
    if unknown:
        raise UsageError(f"There are no entries of type {', '.join(sorted(unknown))}.")
    if not 1 <= limit <= MAX_PAGE_ENTRIES:
        raise UsageError(f"A page has from one to {MAX_PAGE_ENTRIES:,} rows.")


def _owner(project: OpenProject, number: int) -> SessionRow:
    row = sessions.by_number(project.journal, number)
    if row is None:
        raise NotFound("The session has been deleted.")
    return row
