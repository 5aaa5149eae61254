"""Projects: which there are, what changed in one since its last checkpoint, its operations."""

from __future__ import annotations

import os
from typing import Annotated, NamedTuple, TypedDict

from starlette.routing import BaseRoute

from mulligan.core.coverage import decode_lossy
from mulligan.errors import Busy, NotWritable, OutOfSpace
from mulligan.server.api import Router
from mulligan.server.projects.registry import ProjectRow, Registry
from mulligan.server.schema import LARGEST, About, With
from mulligan.version import __version__
from mulligan.workspace.project.location import is_imported
from mulligan.workspace.results.files import FileChange, Operation, RestoreResult, Status
from mulligan.workspace.results.review import PendingStats
from mulligan.workspace.workspace import Workspace

section = Router("projects")

Limit = Annotated[int, About("How many at most.", 1, 1000)]


class Health(TypedDict):
    """That the server is there."""

    ok: bool
    version: str
    pid: int
    home: str
    started_at: str


class Projects(TypedDict):
    projects: list[ProjectRow]


class OpenProject(NamedTuple):
    path: Annotated[str, About("A folder, from the root of the file system on.")]


class DiffQuery(NamedTuple):
    from_: Annotated[str | None, About("A checkpoint; without, the one of the status.")] = None
    to: Annotated[str | None, About("A checkpoint; without, the disk.")] = None
    path: Annotated[tuple[str, ...], About("Only these files and folders.")] = ()
    stat: Annotated[bool, About("Without the differences themselves.")] = False


class Patch(TypedDict):
    """The difference as git writes it."""

    patch: str


class Diff(TypedDict):
    files: list[With[FileChange, Patch]]


class OperationsQuery(NamedTuple):
    limit: Limit = 50
    before: Annotated[int | None, About("An operation; older ones are given.", 0, LARGEST)] = None


class Operations(TypedDict):
    """Newest first; go on with `next_before`."""

    operations: list[Operation]
    has_more: bool
    next_before: int | None


class UndoBody(NamedTuple):
    force: Annotated[bool, About("Overwrite what others changed since.")] = False
    keep_dirty: Annotated[bool, About("Leave what is in no checkpoint.")] = False
    preview: Annotated[bool, About("Only say what would happen.")] = False
    expect: Annotated[int | None, About("This operation, or nothing.", 0, LARGEST)] = None


@section.get("/health", "Whether the server is there")
def health(hub: Registry) -> Health:
    return {
        "ok": True,
        "version": __version__,
        "pid": os.getpid(),
        "home": hub.home,
        "started_at": hub.started_at,
    }


@section.get("/projects", "All projects, the one that was used last first")
def projects(hub: Registry) -> Projects:
    return {"projects": [_with_pending(hub, row) for row in hub.listed()]}


@section.post("/projects", "Open the project that a folder lies in, known or new")
def open_project(hub: Registry, body: OpenProject) -> ProjectRow:
    found = hub.opened_at(os.path.join("/", body.path))
    return _with_pending(hub, hub.described(found.workspace.project.location.id))


@section.get("/projects/{project}", "One project, with what waits for a decision")
def project(hub: Registry, project: str) -> ProjectRow:
    row = hub.described(project)
    if "pending" not in row:
        row["pending"] = pending_stats(hub.opened(project))
    return row


@section.get("/projects/{project}/status", "What changed since the last checkpoint")
def status(workspace: Workspace) -> Status:
    return workspace.status()


@section.get("/projects/{project}/diff", "The differences between checkpoints, or with the disk")
def diff(workspace: Workspace, query: DiffQuery) -> Diff:
    found = workspace.diff(query.from_, query.to, query.path)
    return {"files": [_change(each, stat=query.stat) for each in found]}


@section.get("/projects/{project}/operations", "What was done, newest first")
def operations(workspace: Workspace, query: OperationsQuery) -> Operations:
    found = workspace.operations(query.limit + 1, query.before)
    more = len(found) > query.limit
    found = found[: query.limit]
    return {
        "operations": found,
        "has_more": more,
        "next_before": found[-1].number if more else None,
    }


@section.post("/projects/{project}/undo", "Take back the last operation that changed something")
def undo(workspace: Workspace, body: UndoBody) -> RestoreResult:
    return workspace.undo(
        force=body.force, keep_dirty=body.keep_dirty, preview=body.preview, expect=body.expect
    )


@section.post("/projects/{project}/redo", "Take back the last undo")
def redo(workspace: Workspace, body: UndoBody) -> RestoreResult:
    return workspace.redo(
        force=body.force, keep_dirty=body.keep_dirty, preview=body.preview, expect=body.expect
    )


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)


def pending_stats(workspace: Workspace) -> dict[str, PendingStats]:
    """What waits for a decision; nothing of what only logs tell of, or where nothing can be written
    because another process is at work or the disk is full or read-only."""
    if is_imported(workspace.project.location) or not os.path.isdir(
        workspace.project.location.root
    ):
        return {}
    try:
        return workspace.review.stats()
    except (Busy, NotWritable, OutOfSpace):
        return {}


def _with_pending(hub: Registry, row: ProjectRow) -> ProjectRow:
    opened = hub.if_open(row["project"]) if "pending" not in row else None
    if opened is not None:
        row["pending"] = pending_stats(opened)
    return row


def _change(change: FileChange, *, stat: bool) -> With[FileChange, Patch]:
    if stat:
        return With(change._replace(diff=None, base_content=None), {"patch": ""})
    return With(change, {"patch": decode_lossy(change.patch)})
