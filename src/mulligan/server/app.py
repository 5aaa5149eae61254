"""Build the ASGI application: all routes behind one guard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib import import_module

import apsw
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from mulligan.errors import MulliganError
from mulligan.server.http.access import Access
from mulligan.server.http.errors_json import error_response
from mulligan.server.http.limits import Limits
from mulligan.server.http.security import Guard
from mulligan.server.projects.registry import Registry

MODULES = (
    "v1.projects", "v1.sessions", "v1.review", "v1.checkpoints", "v1.search", "v1.settings",
    "v1.maintenance", "v1.agents", "v1.access", "events", "v1.jobs", "v1.files", "openapi",
    "dialogs.routes", "websocket.connection", "page_routes",
)  # fmt: skip
"""Each has `routes(registry)`. The page is last: its routes match every path."""


def create_app(
    registry: Registry, *, access: Access, host: str | None = None, more: Iterable[BaseRoute] = ()
) -> Starlette:
    """Build the application, which closes `registry` at shutdown.

    `host` is the address to listen on, if that is not loopback; `more` are additional routes.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        registry.start()
        checking = asyncio.create_task(registry.check_projects())
        try:
            yield
        finally:
            checking.cancel()
            await registry.close()

    routes = list(more)
    for name in MODULES:
        routes += import_module(f"mulligan.server.{name}").routes(registry)
    kinds = (
        MulliganError, HTTPException, UnicodeError, apsw.ConstraintError, OSError, Exception,
    )  # fmt: skip
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[
            Middleware(Limits, usage=registry),
            Middleware(Guard, access=access, host=host),
        ],
        exception_handlers=dict.fromkeys(kinds, _answer_with_error),
    )
    app.state.access = access
    return app


async def _answer_with_error(request: Request, problem: Exception) -> Response:
    return error_response(problem)
