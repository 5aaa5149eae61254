"""Looking after projects: doctor; and verify, gc, forget and import, which take long."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypedDict

from starlette.routing import BaseRoute

from mulligan.server.api import Router
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import LARGEST, About
from mulligan.workspace.results.files import Finding, Progress
from mulligan.workspace.transfer.import_logs import ImportResult, import_logs, importer
from mulligan.workspace.workspace import Workspace

section = Router("upkeep")


class Findings(TypedDict):
    findings: list[Finding]


class VerifyBody(NamedTuple):
    repair: Annotated[bool, About("Strike what is damaged, so that it is stored anew.")] = False


class GcBody(NamedTuple):
    dry_run: Annotated[bool, About("Only say what would be freed.")] = False


class ForgetBody(NamedTuple):
    keep_last: Annotated[int | None, About("All but the last so many.", 1, LARGEST)] = None
    older_than: Annotated[float | None, About("Those older than so many seconds.", 0)] = None
    max_bytes: Annotated[int | None, About("The oldest, until it fits.", 0, LARGEST)] = None
    session: Annotated[str | None, About("Only those of a session.")] = None
    dry_run: Annotated[bool, About("Only say what would be dropped.")] = False


class ImportBody(NamedTuple):
    agent: str
    again: Annotated[bool, About("Logs that have not changed, too.")] = False


class Begun(TypedDict):
    """Work that goes on; ask for the job, or follow the events."""

    job: str


@section.get("/projects/{project}/doctor", "What is wrong here, and how to mend it")
def doctor(workspace: Workspace) -> Findings:
    return {"findings": workspace.maintenance.doctor()}


@section.post("/projects/{project}/verify", "Re-read and re-hash everything", status=202)
def verify(hub: Registry, project: str, body: VerifyBody) -> Begun:
    def work(workspace: Workspace) -> Any:
        return workspace.maintenance.verify(repair=body.repair)

    return {"job": hub.begin("verify", project, work).job}


@section.post("/projects/{project}/gc", "Free what nothing needs any more", status=202)
def gc(hub: Registry, project: str, body: GcBody) -> Begun:
    def work(workspace: Workspace) -> Any:
        return workspace.maintenance.gc(dry_run=body.dry_run)

    return {"job": hub.begin("gc", project, work).job}


@section.post("/projects/{project}/forget", "Drop old checkpoints", status=202)
def forget(hub: Registry, project: str, body: ForgetBody) -> Begun:
    def work(workspace: Workspace) -> Any:
        return workspace.maintenance.forget(**body._asdict())

    return {"job": hub.begin("forget", project, work).job}


@section.post("/import", "Take in sessions from an agent's logs", status=202)
def take_in(hub: Registry, body: ImportBody) -> Begun:
    importer(body.agent)  # An agent that nobody knows is told at once.

    def work(progress: Progress) -> ImportResult:
        return import_logs(hub.home, body.agent, again=body.again, progress=progress)

    return {"job": hub.begin_elsewhere("import", work).job}


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)
