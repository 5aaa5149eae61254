"""Checkpoints: taken, listed, read, restored, dropped."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypedDict

from starlette.routing import BaseRoute

from mulligan.server.api import Router
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import About
from mulligan.server.v1.projects import Limit
from mulligan.workspace.results.files import (
    Checkpoint,
    Forgotten,
    RestoreResult,
    TreeEntry,
)
from mulligan.workspace.workspace import Workspace

section = Router("checkpoints")


class CheckpointsQuery(NamedTuple):
    limit: Limit = 50
    before: Annotated[str | None, About("A checkpoint; older ones are given.")] = None


class Checkpoints(TypedDict):
    """Newest first; go on with `next_before`."""

    checkpoints: list[Checkpoint]
    has_more: bool
    next_before: str | None


class CheckpointBody(NamedTuple):
    message: str = ""
    include: Annotated[tuple[str, ...], About("Paths to keep from now on, even ignored.")] = ()


class RestoreBody(NamedTuple):
    paths: Annotated[tuple[str, ...], About("Only these files and folders.")] = ()
    preview: Annotated[bool, About("Only say what would happen.")] = False
    keep_dirty: Annotated[bool, About("Leave what is in no checkpoint.")] = False
    force: Annotated[bool, About("Overwrite what the user changed since.")] = False


class Files(TypedDict):
    files: list[TreeEntry]


@section.get("/projects/{project}/checkpoints", "The checkpoints, newest first")
def listed(workspace: Workspace, query: CheckpointsQuery) -> Checkpoints:
    found = workspace.log(query.limit + 1, query.before)
    more = len(found) > query.limit
    found = found[: query.limit]
    return {
        "checkpoints": found,
        "has_more": more,
        "next_before": found[-1].id if more else None,
    }


@section.post("/projects/{project}/checkpoints", "Take a checkpoint", status=201)
def take(workspace: Workspace, body: CheckpointBody) -> Checkpoint:
    return workspace.checkpoint(body.message, include=body.include)


@section.get("/projects/{project}/checkpoints/{checkpoint}", "One checkpoint")
def one(workspace: Workspace, checkpoint: str) -> Checkpoint:
    return workspace.find(checkpoint)


@section.on("DELETE", "/projects/{project}/checkpoints/{checkpoint}", "Drop a checkpoint")
def drop(workspace: Workspace, checkpoint: str) -> Forgotten:
    return workspace.maintenance.forget_checkpoints(checkpoint)


@section.get("/projects/{project}/checkpoints/{checkpoint}/files", "Everything in a checkpoint")
def files(workspace: Workspace, checkpoint: str) -> Files:
    return {"files": workspace.entries(checkpoint)}


@section.post("/projects/{project}/checkpoints/{checkpoint}/restore", "Go back to a checkpoint")
def restore(workspace: Workspace, checkpoint: str, body: RestoreBody) -> RestoreResult:
    return workspace.restore(
        checkpoint, body.paths, keep_dirty=body.keep_dirty, force=body.force, preview=body.preview
    )


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)
