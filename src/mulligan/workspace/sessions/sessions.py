"""Create, list, change and delete sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from mulligan.clock import now_ns
from mulligan.core.coverage import storable
from mulligan.core.entries import STATUSES
from mulligan.core.times import just_after
from mulligan.errors import NotFound, UsageError
from mulligan.journal import checkpoints, sessions
from mulligan.journal.sessions import SessionRow
from mulligan.journal.views import View
from mulligan.workspace.attribution.observation import observing
from mulligan.workspace.new_id import new_id
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.project.process import current_status, is_dead, runs
from mulligan.workspace.sessions.entries import check_page
from mulligan.workspace.snapshot.drop import drop

if TYPE_CHECKING:
    from mulligan.workspace.results.sessions import Session, SessionPage

DEFAULT_PAGE_SESSIONS = 50
SETTABLE = frozenset({
    "title", "agent", "model", "mode", "status", "memory", "auto_approve_commands",
    "auto_approve_sensitive_edits", "sensitive_file_patterns", "directory",
})  # fmt: skip


def create(
    project: OpenProject,
    *,
    id: str | None,
    checkpoint: bool,
    values: Any,
    process: str | int | None = 0,
) -> Session:
    """Create a session, with a checkpoint of the project as it is.

    `process` runs the session: once it is gone, the session counts as stopped. 0 is unknown.
    """
    given = _checked(values) | runs(process)
    given.setdefault("directory", project.root)
    with project.locked():
        if id is not None and sessions.by_id(project.journal, id) is not None:
            raise UsageError(f"There is already a session {id}.")
        new = storable(id) if id else new_id()
        if not checkpoint:
            with project.journal.writing() as db:
                number = _insert(db, new, given)
            return result(project, row_of(project, number))
        with observing(project) as now:
            now.commit()
            with project.journal.writing() as db:
                number = _insert(db, new, given)
                row = now.checkpoint(db, kind="initial", message="Session begins", session=new)
                now.record(db, kind="new_session", after=row, session=new, changes={number: View()})
        project.save_cache()
    return result(project, row_of(project, number))


def get(project: OpenProject, name: str) -> Session:
    return result(project, sessions.resolve(project.journal, name))


def listed(
    project: OpenProject,
    *,
    limit: int,
    offset: int,
    cursor: str | None,
    status: str | None,
    agent: str | None,
) -> SessionPage:
    """Return sessions by time of change, newest first."""
    from mulligan.workspace.results.sessions import SessionPage

    check_page((), limit)
    if not 0 <= offset < 1 << 62:
        raise UsageError("The offset must be at least 0 and below 2**62.")
    with_next = sessions.newest_first(
        project.journal, limit=limit + 1, offset=offset, after=_cursor(cursor), status=status,
        agent=agent,
    )  # fmt: skip
    rows, more = with_next[:limit], len(with_next) > limit
    return SessionPage(
        tuple(result(project, row) for row in rows),
        more,
        f"{rows[-1].updated_at}/{rows[-1].number}" if more else None,
        offset + limit if more else None,
    )


def change(
    project: OpenProject, name: str, values: Any, *, process: str | int | None = 0
) -> Session:
    """Change columns of a session."""
    given = _checked(values) | runs(process)
    row = sessions.resolve(project.journal, name)
    with project.journal.writing() as db:
        sessions.update(db, row.number, given | {"updated_at": just_after(None, now_ns())})
    return result(project, row_of(project, row.number))


def delete(project: OpenProject, name: str) -> Session:
    """Delete a session with its entries and checkpoints; `gc` frees the objects.

    Trees that the next undo needs stay, as checkpoints without a session.
    """
    with project.locked():
        row = sessions.resolve(project.journal, name)
        deleted = result(project, row)
        _delete(project, [row])
    return deleted


def delete_all(project: OpenProject) -> int:
    """Delete every session of the project; return how many."""
    with project.locked():
        rows = sessions.newest_first(project.journal)
        _delete(project, rows)
    return len(rows)


def _delete(project: OpenProject, rows: list[SessionRow]) -> None:
    """Delete sessions in one transaction. The caller holds the lock."""
    with project.journal.writing() as db:
        for row in rows:
            # A fork shares the checkpoints on its path.
            checkpoints.give_to_forks(db, row.id, row.number)
            sessions.delete(db, row.number)
            drop(project, db, checkpoints.of_session(project.journal, row.id))


def stop_dead_sessions(project: OpenProject) -> None:
    """Mark sessions as stopped whose process is gone."""
    gone = [row for row in sessions.with_process(project.journal, STATUSES[:-1]) if is_dead(row)]
    if gone:
        with project.journal.writing() as db:
            for row in gone:
                sessions.stop(db, row)


def result(project: OpenProject, row: SessionRow) -> Session:
    from mulligan.workspace.results.sessions import Session

    return Session(
        id=row.id,
        agent=row.agent,
        title=row.title,
        model=row.model,
        mode=row.mode,
        project=project.root,
        directory=row.directory,
        status=current_status(row),
        leaf=row.leaf_id,
        memory=row.memory,
        auto_approve_commands=row.auto_approve_commands,
        auto_approve_sensitive_edits=row.auto_approve_sensitive_edits,
        sensitive_file_patterns=row.sensitive_file_patterns,
        forked_from=row.forked_from,
        source=row.source,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def row_of(project: OpenProject, number: int) -> SessionRow:
    row = sessions.by_number(project.journal, number)
    if row is None:
        raise NotFound("The session has been deleted.")
    return row


def _insert(db: apsw.Connection, id: str, values: dict[str, Any]) -> int:
    return sessions.insert(db, id, just_after(None, now_ns()), values)


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in values.items() if value is not None}
    unknown = set(given) - SETTABLE
    if unknown:
        raise UsageError(f"A session has no {', '.join(sorted(unknown))} to set.")
    if given.get("status", STATUSES[0]) not in STATUSES:
        raise UsageError(f"A session's status is one of {', '.join(STATUSES)}.")
    for name in ("title", "agent", "memory", "model", "mode", "directory"):
        if name in given:
            given[name] = storable(str(given[name]))
    for name in ("auto_approve_commands", "auto_approve_sensitive_edits"):
        if not isinstance(given.get(name, False), bool | int):
            raise UsageError(f"A session's {name} is true or false.")
    patterns = given.get("sensitive_file_patterns", {})
    if not isinstance(patterns, dict) or not all(
        isinstance(pattern, str) and isinstance(allowed, bool)
        for pattern, allowed in patterns.items()
    ):
        raise UsageError("sensitive_file_patterns maps each pattern to true or false.")
    return given


def _cursor(cursor: str | None) -> tuple[str, int] | None:
    if cursor is None:
        return None
    moment, _slash, number = cursor.rpartition("/")
    if not moment or not number.isascii() or not number.isdigit() or len(number) > 18:
        raise UsageError(f"{cursor!r} is not a cursor of a session page.")
    return moment, int(number)
