"""Search and figures, in one project or in all of them."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypedDict

from starlette.routing import BaseRoute

from mulligan.errors import UsageError
from mulligan.server.api import Router
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import About
from mulligan.server.v1.projects import Limit
from mulligan.workspace.search.search import Filters, SearchResult, search, search_everywhere
from mulligan.workspace.search.tool_stats import Stats, Which, stats, stats_everywhere
from mulligan.workspace.workspace import Workspace

section = Router("search")
Project = Annotated[str | None, About("Only this project; all of them otherwise.")]


class SearchQuery(NamedTuple):
    q: Annotated[str, About("Words that must all be there.")] = ""
    project: Project = None
    session: Annotated[str | None, About("Only this session; say its project too.")] = None
    agent: str | None = None
    type: Annotated[tuple[str, ...], About("Only entries of these types.")] = ()
    path: Annotated[str | None, About("Only what is about a file, a folder or a glob.")] = None
    since: Annotated[str | None, About("Only from this time on.")] = None
    before: Annotated[str | None, About("Only before this time.")] = None
    limit: Limit = 50
    offset: Annotated[int, About("How many to pass over.", 0, 100_000)] = 0
    raw: Annotated[bool, About("The text is a query in the syntax of FTS5.")] = False
    as_you_type: Annotated[bool, About("The last word may be the beginning of one.")] = False


class StatsQuery(NamedTuple):
    project: Project = None
    by: Annotated[tuple[str, ...], About("tool, agent, session, hour, day or month.")] = ("tool",)
    since: str | None = None
    before: str | None = None
    agent: str | None = None
    session: str | None = None
    tool: str | None = None


class StatsRow(TypedDict):
    """Beside these, a value for each name in `by`. Durations are in milliseconds."""

    calls: int
    success: int
    failure: int
    unknown: int
    success_rate: float | None
    average_ms: float | None
    p95_ms: float | None


@section.get("/search", "Find what was said and done")
async def found(hub: Registry, query: SearchQuery) -> SearchResult:
    filters: Filters = {
        "agent": query.agent,
        "types": query.type,
        "after": query.since,
        "before": query.before,
        "path": query.path,
        "raw": query.raw,
        "as_you_type": query.as_you_type,
    }
    page: dict[str, Any] = {"limit": query.limit, "offset": query.offset}
    _check(query.project, query.session)
    if query.project is None:
        return await hub.call(
            search_everywhere, hub.home, query.q, progress=hub.progress, **page, **filters
        )

    def in_one(workspace: Workspace) -> SearchResult:
        return search(workspace.project, query.q, session=query.session, **page, **filters)

    return await hub.work(query.project, in_one)


@section.get("/stats", "Which tools agents used, and how that went")
async def figures(hub: Registry, query: StatsQuery) -> Stats:
    which: Which = {
        "after": query.since,
        "before": query.before,
        "agent": query.agent,
        "tool": query.tool,
    }
    _check(query.project, query.session)
    if query.project is None:
        return await hub.call(stats_everywhere, hub.home, query.by, **which)

    def in_one(workspace: Workspace) -> Stats:
        return stats(workspace.project, query.by, session=query.session, **which)

    return await hub.work(query.project, in_one)


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)


def _check(project: str | None, session: str | None) -> None:
    if session is not None and project is None:
        raise UsageError("Say which project the session is in.")
