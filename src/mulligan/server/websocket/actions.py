"""Handle the requests of the WebSocket, in worker threads."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from typing import Any

from starlette.websockets import WebSocket

from mulligan.core.coverage import decode_path
from mulligan.core.entries import RUNNING
from mulligan.errors import MulliganError, NotFound
from mulligan.journal import checkpoints, entries, sessions
from mulligan.server.http.peer import client_process
from mulligan.server.projects import lookup
from mulligan.server.projects.registry import Registry, open_project
from mulligan.server.websocket import shapes
from mulligan.server.websocket.payloads import (
    CreateSession,
    FileQuery,
    RecentQuery,
    SearchAllQuery,
    SearchQuery,
    TranscriptQuery,
)
from mulligan.workspace.project.location import ProjectLocation, known_projects
from mulligan.workspace.search.search import Hit, search_everywhere
from mulligan.workspace.sessions.entries import entry_result
from mulligan.workspace.workspace import Workspace

DEFAULT_PAGE_ROWS = 100
DEFAULT_PAGE_EDITS = 1000


def all_sessions(registry: Registry, only: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for project in _projects(registry, only):
        try:
            with lookup.journal_of(registry, project) as journal:
                rows = sessions.newest_first(journal, limit=DEFAULT_PAGE_ROWS)
        except (MulliganError, OSError):
            continue
        found += [shapes.session_row(project, row) for row in rows]
    found.sort(key=lambda each: str(each["updatedAt"]), reverse=True)
    return found[:DEFAULT_PAGE_ROWS]


def session(workspace: Workspace, id: str) -> dict[str, Any]:
    return shapes.session(workspace.sessions.get(id))


def delete_session(workspace: Workspace, id: str) -> bool:
    workspace.sessions.delete(id)
    return True


def clear_sessions(workspace: Workspace, confirm: str | None) -> dict[str, Any]:
    """Return the count and the confirmation word; with that word, delete all sessions."""
    done = workspace.sessions.clear(confirm)
    told = {"cleared": done.cleared, "count": done.sessions, "projectPath": workspace.root}
    if not done.cleared:
        return told | {"confirm": done.confirm}
    return told | {"sessions": [], "hasMore": False, "nextOffset": None}


def create_session(workspace: Workspace, given: CreateSession, socket: WebSocket) -> dict[str, Any]:
    # The session must outlive the server.
    process = client_process(socket) if given.status == RUNNING else 0
    made = workspace.sessions.create(
        agent=given.agent, title=given.title, status=given.status, process=process
    )
    return shapes.session(made)


def transcript(workspace: Workspace, given: TranscriptQuery) -> dict[str, Any]:
    page = workspace.sessions.transcript(
        given.session_id, types=given.types or shapes.SHOWN, since=given.since_seq,
        limit=given.limit, include_compacted=given.include_compacted,
    )  # fmt: skip
    found = {"entries": [shapes.entry(each) for each in page.entries], "hasMore": page.has_more}
    return found | ({"nextSeq": page.next_seq} if page.has_more else {})


def recent(workspace: Workspace, given: RecentQuery) -> list[dict[str, Any]]:
    page = workspace.sessions.recent(
        given.session_id, limit=given.limit, include_compacted=True, types=shapes.SHOWN
    )
    return [shapes.entry(each) for each in page.entries]


def search(workspace: Workspace, given: SearchQuery) -> list[dict[str, Any]]:
    hits = workspace.search(
        given.query, session=given.session_id, limit=given.limit, raw=given.raw
    ).hits
    return [_hit(hit, workspace.sessions.entry(hit.entry, hit.session)) for hit in hits]


def search_all(registry: Registry, given: SearchAllQuery) -> list[dict[str, Any]]:
    hits = search_everywhere(
        registry.home, given.query, limit=given.limit, progress=registry.progress, raw=given.raw
    ).hits
    projects = {decode_path(project.root): project for project in known_projects(registry.home)}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for root in dict.fromkeys(hit.project for hit in hits):
        with lookup.journal_of(registry, projects[root]) as journal:
            for hit in (each for each in hits if each.project == root):
                session = sessions.by_id(journal, hit.session)
                row = session and entries.by_id(journal, session.number, hit.entry)
                if session is not None and row is not None:
                    found[hit.session, hit.entry] = _hit(hit, entry_result(session, row))
    keys = [(hit.session, hit.entry) for hit in hits]
    return [found[key] for key in keys if key in found]


def _hit(hit: Hit, entry: Any) -> dict[str, Any]:
    """Convert a search hit; `rank` is as in SQLite: smaller is better."""
    return {"entry": shapes.entry(entry), "snippet": hit.snippet, "rank": -hit.score}


def file_edits(workspace: Workspace, id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    since: int | None = 0
    while since is not None:
        page = workspace.sessions.file_edits(id, since=since, limit=DEFAULT_PAGE_EDITS)
        found += [shapes.entry(each) for each in page.entries]
        since = page.next_seq if page.has_more else None
    return found


def points(workspace: Workspace, id: str) -> list[dict[str, Any]]:
    return [
        shapes.restore_point(workspace.find(name), id, entry)
        for name, entry in points_of(workspace, id)
    ]


def points_of(workspace: Workspace, session: str) -> Sequence[tuple[str, str | None]]:
    """List the checkpoints of a session and of its entries, newest first."""
    row = sessions.resolve(workspace.project.journal, session)
    return checkpoints.with_entries(workspace.project.journal, row.id, row.number)


def point(workspace: Workspace, id: str) -> dict[str, Any]:
    linked = next(iter(workspace.sessions.linked_entries(checkpoint=id)), None)
    session, entry = (linked.session, linked.id) if linked is not None else (None, None)
    return shapes.restore_point(workspace.find(id), session, entry)


def point_with_files(workspace: Workspace, id: str) -> dict[str, Any]:
    files = [shapes.file(each) for each in workspace.entries(id) if each.kind != "directory"]
    return point(workspace, id) | {"files": files}


def delete_point(workspace: Workspace, id: str) -> bool:
    return bool(workspace.maintenance.forget_checkpoints(id).forgotten)


def file_at(workspace: Workspace, given: FileQuery) -> str | None:
    try:
        content = workspace.read(given.restore_point_id, given.file_path)
    except NotFound:
        return None
    return base64.b64encode(content).decode("ascii")


def gc(registry: Registry, only: str | None) -> dict[str, int]:
    removed = freed = 0
    for project in _projects(registry, only):
        workspace = registry.if_open(project.id)
        if workspace is not None:
            done = workspace.maintenance.gc()
        else:
            with open_project(project, registry) as opened:
                done = opened.maintenance.gc()
        removed += done.removed
        freed += done.freed_bytes
    return {"removed": removed, "freedBytes": freed}


def entry(workspace: Workspace, session: str, seq: int) -> Any:
    row = sessions.resolve(workspace.project.journal, session)
    found = entries.by_seq(workspace.project.journal, row.number, seq)
    if found is None:
        raise NotFound(f"Session {session} has no entry {seq}.")
    return entry_result(row, found)


def _projects(registry: Registry, only: str | None) -> list[ProjectLocation]:
    """List the projects that have a journal: one, or all."""
    return [
        project
        for project in known_projects(registry.home)
        if only in (None, project.id) and os.path.exists(project.path("journal.sqlite"))
    ]
