"""How a person gets to the page: an address with a one-time code in it."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypedDict

from starlette.requests import Request
from starlette.routing import BaseRoute

from mulligan.server.api import Router
from mulligan.server.http.access import CODE_SECONDS, Access
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import About

section = Router("access")


class PageBody(NamedTuple):
    project: Annotated[str | None, About("The project that the page is to show.")] = None


class PageAddress(TypedDict):
    """Open it in a browser: it works once, for `expires_in` seconds."""

    page: str
    expires_in: int


@section.post("/page-address", "Make a one-time address of the page; not with a cookie", status=201)
async def page_address(request: Request, body: PageBody) -> PageAddress:
    access: Access = request.app.state.access
    return {"page": access.page_address(body.project), "expires_in": CODE_SECONDS}


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)
