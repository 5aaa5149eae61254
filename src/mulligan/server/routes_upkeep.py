"""Looking after projects: doctor, settings; and verify, gc, forget and import, which take long."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypedDict

from starlette.routing import BaseRoute

from mulligan.server.api import Section
from mulligan.server.hub import Hub
from mulligan.server.shapes import LARGEST, About
from mulligan.workspace.importing import Imported, import_logs, importer
from mulligan.workspace.results import Finding, Progress
from mulligan.workspace.settings import section_of
from mulligan.workspace.workspace import Workspace

section = Section("upkeep")
Count = Annotated[int | None, About("", 0, LARGEST)]


class Findings(TypedDict):
    findings: list[Finding]


class SettingsRow(TypedDict):
    """What is in force: from the home's config.toml, what was set here, and .mulligan.toml."""

    max_file_size: int
    guard: bool
    guard_file_size: int
    guard_total_size: int
    keep_on_commit: bool
    tell_rejections: bool
    strict: bool


class SettingsBody(NamedTuple):
    max_file_size: Count = None
    guard: bool | None = None
    guard_file_size: Count = None
    guard_total_size: Count = None
    keep_on_commit: bool | None = None
    tell_rejections: bool | None = None
    strict: bool | None = None


class VerifyBody(NamedTuple):
    repair: Annotated[bool, About("Strike what is damaged, so that it is stored anew.")] = False


class GcBody(NamedTuple):
    dry_run: Annotated[bool, About("Only say what would be freed.")] = False


class ForgetBody(NamedTuple):
    keep_last: Annotated[int | None, About("All but the last so many.", 1, LARGEST)] = None
    older_than: Annotated[float | None, About("Those older than so many seconds.", 0)] = None
    max_bytes: Annotated[int | None, About("The oldest, until it fits.", 0, LARGEST)] = None
    dry_run: Annotated[bool, About("Only say what would be dropped.")] = False


class ImportBody(NamedTuple):
    agent: str
    again: Annotated[bool, About("Logs that have not changed, too.")] = False


class Begun(TypedDict):
    """Work that goes on; ask for the job, or follow the events."""

    job: str


@section.get("/projects/{project}/doctor", "What is wrong here, and how to mend it")
def doctor(workspace: Workspace) -> Findings:
    return {"findings": workspace.doctor()}


@section.get("/projects/{project}/settings", "The settings that are in force")
def settings(workspace: Workspace) -> SettingsRow:
    found = workspace.settings
    return {
        "max_file_size": found.limits.file_bytes,
        "guard": found.limits.guard,
        "guard_file_size": found.limits.guard_bytes,
        "guard_total_size": found.limits.guard_total,
        "keep_on_commit": found.keep_on_commit,
        "tell_rejections": found.tell_rejections,
        "strict": found.strict,
    }


@section.on("PATCH", "/projects/{project}/settings", "Change settings")
def change_settings(workspace: Workspace, body: SettingsBody) -> SettingsRow:
    values: dict[str, dict[str, Any]] = {}
    for name, value in body._asdict().items():
        if value is not None:
            values.setdefault(section_of(name), {})[name] = value
    workspace.change_settings(values)
    return settings(workspace)


@section.post("/projects/{project}/verify", "Re-read and re-hash everything", status=202)
def verify(hub: Hub, project: str, body: VerifyBody) -> Begun:
    def work(workspace: Workspace) -> Any:
        return workspace.verify(repair=body.repair)

    return {"job": hub.begin("verify", project, work).job}


@section.post("/projects/{project}/gc", "Free what nothing needs any more", status=202)
def gc(hub: Hub, project: str, body: GcBody) -> Begun:
    def work(workspace: Workspace) -> Any:
        return workspace.gc(dry_run=body.dry_run)

    return {"job": hub.begin("gc", project, work).job}


@section.post("/projects/{project}/forget", "Drop old checkpoints", status=202)
def forget(hub: Hub, project: str, body: ForgetBody) -> Begun:
    def work(workspace: Workspace) -> Any:
        return workspace.forget(**body._asdict())

    return {"job": hub.begin("forget", project, work).job}


@section.post("/import", "Take in sessions from an agent's logs", status=202)
def take_in(hub: Hub, body: ImportBody) -> Begun:
    importer(body.agent)  # An agent that nobody knows is told at once.

    def work(progress: Progress) -> Imported:
        return import_logs(hub.home, body.agent, again=body.again, progress=progress)

    return {"job": hub.begin_elsewhere("import", work).job}


def routes(hub: Hub) -> list[BaseRoute]:
    return section.routes(hub)
