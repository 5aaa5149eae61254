"""What the requests of the WebSocket do in a project, or in several. Runs in threads."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from typing import Any

from mulligan.core.coverage import text
from mulligan.core.entries import SYSTEM_MESSAGE, NewEntry
from mulligan.errors import MulliganError, NotFound, UsageError
from mulligan.journal import entries, sessions
from mulligan.server import project_lookup
from mulligan.server.registry import Hub, open_project
from mulligan.server.websocket import shapes
from mulligan.server.websocket.payloads import (
    CreatePoint,
    CreateSession,
    FileQuery,
    InvalidPayload,
    RecentQuery,
    RestoreBody,
    SearchAllQuery,
    SearchQuery,
    TranscriptQuery,
)
from mulligan.workspace.project import Project, known_projects
from mulligan.workspace.search.search import Hit, search_everywhere
from mulligan.workspace.sessions.entries import entry_result
from mulligan.workspace.workspace import Workspace

LISTED = 100
EDITS = 1000


def all_sessions(hub: Hub, only: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for project in _projects(hub, only):
        try:
            with project_lookup.journal_of(hub, project) as journal:
                rows = sessions.newest_first(journal, limit=LISTED)
        except (MulliganError, OSError):
            continue
        found += [shapes.session_row(project, row) for row in rows]
    found.sort(key=lambda each: str(each["updatedAt"]), reverse=True)
    return found[:LISTED]


def session(workspace: Workspace, id: str) -> dict[str, Any]:
    return shapes.session(workspace.session(id))


def delete_session(workspace: Workspace, id: str) -> bool:
    workspace.delete_session(id)
    return True


def create_session(workspace: Workspace, given: CreateSession) -> dict[str, Any]:
    # Who runs it is not known here, and it must not end with the server.
    made = workspace.new_session(
        agent=given.agent, title=given.title, status=given.status, process=0
    )
    return shapes.session(made)


def transcript(workspace: Workspace, given: TranscriptQuery) -> dict[str, Any]:
    page = workspace.transcript(
        given.session_id, types=given.types or shapes.SHOWN, since=given.since_seq,
        limit=given.limit, include_compacted=given.include_compacted,
    )  # fmt: skip
    found = {"entries": [shapes.entry(each) for each in page.entries], "hasMore": page.has_more}
    return found | ({"nextSeq": page.next_seq} if page.has_more else {})


def recent(workspace: Workspace, given: RecentQuery) -> list[dict[str, Any]]:
    page = workspace.recent(
        given.session_id, limit=given.limit, include_compacted=True, types=shapes.SHOWN
    )
    return [shapes.entry(each) for each in page.entries]


def search(workspace: Workspace, given: SearchQuery) -> list[dict[str, Any]]:
    hits = workspace.search(given.query, session=given.session_id, limit=given.limit).hits
    return [_hit(hit, workspace.entry(hit.entry, hit.session)) for hit in hits]


def search_all(hub: Hub, given: SearchAllQuery) -> list[dict[str, Any]]:
    hits = search_everywhere(hub.home, given.query, limit=given.limit, progress=hub.progress).hits
    projects = {text(project.root): project for project in known_projects(hub.home)}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for root in dict.fromkeys(hit.project for hit in hits):
        with project_lookup.journal_of(hub, projects[root]) as journal:
            for hit in (each for each in hits if each.project == root):
                session = sessions.by_id(journal, hit.session)
                row = session and entries.by_id(journal, session.number, hit.entry)
                if session is not None and row is not None:
                    found[hit.session, hit.entry] = _hit(hit, entry_result(session, row))
    keys = [(hit.session, hit.entry) for hit in hits]
    return [found[key] for key in keys if key in found]


def _hit(hit: Hit, entry: Any) -> dict[str, Any]:
    """`rank` is as SQLite has it: the smaller the better."""
    return {"entry": shapes.entry(entry), "snippet": hit.snippet, "rank": -hit.score}


def file_edits(workspace: Workspace, id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    since: int | None = 0
    while since is not None:
        page = workspace.file_edits(id, since=since, limit=EDITS)
        found += [shapes.entry(each) for each in page.entries]
        since = page.next_seq if page.has_more else None
    return found


def points(workspace: Workspace, id: str) -> list[dict[str, Any]]:
    return [
        shapes.restore_point(workspace.find(name), id, entry)
        for name, entry in points_of(workspace, id)
    ]


def points_of(workspace: Workspace, session: str) -> list[tuple[str, str | None]]:
    """The checkpoints of a session, newest first: its own, and those that its entries name."""
    row = sessions.resolve(workspace.journal, session)
    sql = (
        "SELECT c.id, (SELECT id FROM entries e WHERE e.checkpoint = c.id AND e.session = ?1 "
        "ORDER BY e.number LIMIT 1) AS linked FROM checkpoints c WHERE c.session = ?2 "
        "OR linked IS NOT NULL ORDER BY c.seq DESC"
    )
    return [(name, entry) for name, entry in workspace.journal.rows(sql, row.number, row.id)]


def _point(workspace: Workspace, id: str) -> dict[str, Any]:
    linked = next(iter(workspace.entries_of(checkpoint=id)), None)
    session, entry = (linked.session, linked.id) if linked is not None else (None, None)
    return shapes.restore_point(workspace.find(id), session, entry)


def point_with_files(workspace: Workspace, id: str) -> dict[str, Any]:
    files = [shapes.file(each) for each in workspace.entries(id) if each.kind != "directory"]
    return _point(workspace, id) | {"files": files}


def create_point(workspace: Workspace, given: CreatePoint) -> dict[str, Any]:
    """A checkpoint of the whole project; `files` are kept from then on even where ignored."""
    entry = given.transcript_entry_id
    if entry is not None:
        # Looked for first: a name that is none makes no checkpoint.
        entry = workspace.entry(entry, given.session_id).id
    made = workspace.checkpoint(
        given.description, include=list(_paths(given.files)), session=given.session_id
    )
    if entry is not None:
        workspace.link_entry(entry, given.session_id, checkpoint=made.id)
    return _point(workspace, made.id)


def delete_point(workspace: Workspace, id: str) -> bool:
    return bool(workspace.forget_checkpoints(id).forgotten)


def restore(workspace: Workspace, given: RestoreBody) -> dict[str, Any]:
    """Brings the files back. What a session had is in a backup point, and it pauses."""
    if given.target_dir and os.path.realpath(given.target_dir) != workspace.root:
        raise UsageError(
            f"{given.target_dir} is not the project of this restore point, {workspace.root}; "
            "nothing was written."
        )
    point = _point(workspace, given.restore_point_id)
    known = {each.path for each in workspace.entries(point["id"])} if given.files else set()
    files = [path for path in given.files if path in known]
    skipped = [path for path in given.files if path not in known]
    if given.files and not files:
        return {"restoredFiles": [], "skippedFiles": skipped, "deletedFiles": []}
    session = point["sessionId"]
    # Without turns nobody can tell the user's work from the agent's: then all is as asked.
    force = given.force or (session is not None and not _has_turns(workspace, session))
    if given.dry_run:
        return _outcome(workspace.plan_restore(point["id"], files, force=force), skipped)
    done = workspace.restore(point["id"], files, force=force, session=session)
    if session is not None and done.operation is not None:
        workspace.change_session(session, status="paused")
        words = f"Restored to {point['id']}: {point['description']}"
        data = {"kind": "restore", "backup": done.safety_checkpoint}
        workspace.append(session, NewEntry(SYSTEM_MESSAGE, words, data))
    return _outcome(done, skipped) | {"backupPointId": done.safety_checkpoint}


def _has_turns(workspace: Workspace, session: str) -> bool:
    sql = "SELECT 1 FROM operations WHERE session = ? AND kind = 'begin_turn' LIMIT 1"
    return workspace.journal.row(sql, session) is not None


def _outcome(done: Any, skipped: list[str]) -> dict[str, Any]:
    return {
        "restoredFiles": list(done.restored),
        "skippedFiles": [*skipped, *(each.path for each in done.skipped)],
        "deletedFiles": list(done.deleted),
    }


def file_at(workspace: Workspace, given: FileQuery) -> str | None:
    try:
        content = workspace.read(given.restore_point_id, given.file_path)
    except NotFound:
        return None
    return base64.b64encode(content).decode("ascii")


def gc(hub: Hub, only: str | None) -> dict[str, int]:
    removed = freed = 0
    for project in _projects(hub, only):
        workspace = hub.if_open(project.id)
        if workspace is not None:
            done = workspace.gc()
        else:
            with open_project(project, hub, watch=False) as opened:
                done = opened.gc()
        removed += done.removed
        freed += done.freed_bytes
    return {"removed": removed, "freedBytes": freed}


def entry(workspace: Workspace, session: str, seq: int) -> Any:
    row = sessions.resolve(workspace.journal, session)
    found = entries.by_seq(workspace.journal, row.number, seq)
    if found is None:
        raise NotFound(f"Session {session} has no entry {seq}.")
    return entry_result(row, found)


def _projects(hub: Hub, only: str | None) -> list[Project]:
    """The projects that have a journal: one, or all."""
    return [
        project
        for project in known_projects(hub.home)
        if only in (None, project.id) and os.path.exists(project.path("journal.sqlite"))
    ]


def _paths(given: tuple[Any, ...]) -> Iterator[str]:
    for each in given:
        path = each.get("path") if isinstance(each, dict) else each
        if not isinstance(path, str):
            raise InvalidPayload("`files` is a list of paths.")
        yield path
