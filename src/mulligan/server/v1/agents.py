"""What agents' hooks tell: recorded here, no hook waits for the engine to be loaded."""

from __future__ import annotations

from starlette.routing import BaseRoute

from mulligan.core.hook_events import HookEvent, HookReply
from mulligan.errors import UsageError
from mulligan.server.api import Router
from mulligan.server.projects.registry import Registry
from mulligan.workspace import hooks
from mulligan.workspace.workspace import Workspace

section = Router("agents")


@section.post("/happened", "Record what an agent's hook tells of")
async def happened(hub: Registry, body: HookEvent) -> HookReply:
    try:
        told = HookEvent.from_json(body.as_json())
    except ValueError as problem:
        raise UsageError(str(problem)) from problem
    opened = await hub.open_path(told.directory, automatic=True)

    def record(workspace: Workspace) -> HookReply:
        return hooks.record_event(workspace.project, told)

    return await hub.work(opened.project.location.id, record)


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)
