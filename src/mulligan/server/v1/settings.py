"""What a person can set: the settings of a project, and what is left out of its checkpoints; and
how much room everything takes."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypedDict

from starlette.routing import BaseRoute

from mulligan.server.api import Router
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import LARGEST, About
from mulligan.workspace.excludes import Excludes, excludes, write_excludes
from mulligan.workspace.maintenance.disk_usage import HomeSizes, Sizes, sizes, sizes_of
from mulligan.workspace.results.files import RestoreResult
from mulligan.workspace.settings.settings import origins, section_of
from mulligan.workspace.trust import ProjectRuleFile, accept_one, revoke, rule_files
from mulligan.workspace.workspace import Workspace

section = Router("settings")
Count = Annotated[int | None, About("", 0, LARGEST)]


class SettingsRow(TypedDict):
    """What is in force, by name. Sizes are in bytes; of the rules by which to forget, 0 is none.

    `origins` says where each that is not the default comes from: `home` is its config.toml, `set`
    what was set here, `project` the .mulligan.toml in it, which wins.
    """

    max_file_size: int
    guard: bool
    guard_file_size: int
    guard_total_size: int
    keep_on_commit: bool
    tell_rejections: bool
    strict: bool
    keep_last: int
    keep_days: int
    keep_size: int
    origins: dict[str, str]


class SettingsBody(NamedTuple):
    max_file_size: Count = None
    guard: bool | None = None
    guard_file_size: Count = None
    guard_total_size: Count = None
    keep_on_commit: bool | None = None
    tell_rejections: bool | None = None
    strict: bool | None = None
    keep_last: Count = None
    keep_days: Count = None
    keep_size: Count = None
    take_back: Annotated[tuple[str, ...], About("Names; what was set here no longer counts.")] = ()


class ExcludesBody(NamedTuple):
    text: Annotated[str, About("The whole `.mulliganignore`; without any text it is deleted.")]
    version: Annotated[str | None, About("Of the one that was read; null if there was none.")]


class RuleFiles(TypedDict):
    """The rule files of a project that weaken something or are broken."""

    files: list[ProjectRuleFile]


class TrustBody(NamedTuple):
    path: Annotated[str, About("Of the rule file, below the project's top.")]
    sha256: Annotated[str, About("Of the content that was read.")]


class ProjectSizes(TypedDict):
    """`objects` is how many the packs hold, `stored` the bytes that these take there."""

    sizes: Sizes
    objects: int
    stored: int


@section.get("/projects/{project}/settings", "The settings that are in force")
def settings(workspace: Workspace) -> SettingsRow:
    project = workspace.project.location
    found: Any = workspace.settings.as_json()
    found["origins"] = origins(workspace.project.home, project.root, project.directory)
    row: SettingsRow = found
    return row


@section.on("PATCH", "/projects/{project}/settings", "Change settings")
def change_settings(workspace: Workspace, body: SettingsBody) -> SettingsRow:
    given = body._asdict()
    changes = dict.fromkeys(given.pop("take_back"))
    changes |= {name: value for name, value in given.items() if value is not None}
    values: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        values.setdefault(section_of(name), {})[name] = value
    workspace.change_settings(values)
    return settings(workspace)


@section.get("/projects/{project}/excludes", "What is left out of checkpoints, and by which rule")
def left_out(workspace: Workspace) -> Excludes:
    return excludes(workspace.project)


@section.on("PUT", "/projects/{project}/excludes", "Write the project's `.mulliganignore`")
def leave_out(workspace: Workspace, body: ExcludesBody) -> RestoreResult:
    return write_excludes(workspace.project, body.text, body.version)


@section.get("/projects/{project}/trust", "The project's own rules, and which are accepted")
def trusted(workspace: Workspace) -> RuleFiles:
    return {"files": rule_files(workspace.project)}


@section.post("/projects/{project}/trust", "Accept what one of the project's own files weakens")
def trust(workspace: Workspace, body: TrustBody) -> RuleFiles:
    accept_one(workspace.project, body.path, body.sha256)
    return trusted(workspace)


@section.on("DELETE", "/projects/{project}/trust", "Accept none of the project's own rules")
def distrust(workspace: Workspace) -> RuleFiles:
    revoke(workspace.project)
    return trusted(workspace)


@section.get("/projects/{project}/sizes", "How much room one project takes, and for what")
def project_sizes(workspace: Workspace) -> ProjectSizes:
    objects, stored = workspace.project.store.index.count()
    return {"sizes": sizes_of(workspace.project.location), "objects": objects, "stored": stored}


@section.get("/sizes", "How much room each project takes, the largest first")
def all_sizes(hub: Registry) -> HomeSizes:
    return sizes(hub.home)


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)
