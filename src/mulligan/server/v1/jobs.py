"""Long work: how far it is, and ending it."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, cast

from starlette.routing import BaseRoute

from mulligan.server.api import Router
from mulligan.server.projects.jobs import Job
from mulligan.server.projects.registry import Registry

section = Router("jobs")


class Problem(TypedDict):
    code: str
    message: str


class JobRow(TypedDict):
    """`result` is what the verb answered, once it is done; `error` why it failed."""

    job: str
    kind: str
    project: str | None
    state: Literal["running", "done", "failed", "cancelled"]
    stage: str
    done: int
    total: int | None
    result: Any
    error: Problem | None


class JobRows(TypedDict):
    jobs: list[JobRow]


@section.get("/jobs", "All jobs of this server that are not forgotten")
def listed(hub: Registry) -> JobRows:
    return {"jobs": [_row(job) for job in hub.jobs.all()]}


@section.get("/jobs/{job}", "How far a job is")
def one(hub: Registry, job: str) -> JobRow:
    return _row(hub.jobs.get(job))


@section.on("DELETE", "/jobs/{job}", "End a job")
def cancel(hub: Registry, job: str) -> JobRow:
    return _row(hub.jobs.cancel(job))


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)


def _row(job: Job) -> JobRow:
    return cast("JobRow", job.as_json())
