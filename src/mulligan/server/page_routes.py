"""Serve the built page (the folder `page`)."""

from __future__ import annotations

import os
import re

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from mulligan.errors import NotFound
from mulligan.server.projects.registry import Registry

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page")
HASHED = re.compile(r"[.-][0-9A-Za-z_-]{8,}\.\w+$")
A_YEAR = "private, max-age=31536000, immutable"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".map": "application/json",
}
MISSING = (
    "The page is not part of this build. In a checkout, build it with `python hatch_build.py`. "
    "Everything else works: see /api/docs.\n"
)


def routes(registry: Registry) -> list[BaseRoute]:
    return [
        Route("/", front, methods=["GET"]),
        Route("/{path:path}", asset, methods=["GET"]),
    ]


async def front(request: Request) -> Response:
    """Serve the page."""
    return await _page()


async def asset(request: Request) -> Response:
    """Serve a file of the page; other paths without an extension get the page itself."""
    path = request.path_params["path"]
    if path.startswith("api/"):
        raise NotFound("There is nothing at this address.")
    found = (await to_thread.run_sync(_files)).get(path)
    if found is not None:
        headers = {"cache-control": A_YEAR if HASHED.search(path) else "no-cache"}
        return FileResponse(found, headers=headers, media_type=_type(path))
    if "." in path.rpartition("/")[2]:
        raise NotFound("There is nothing at this address.")
    return await _page()


async def _page() -> Response:
    index = (await to_thread.run_sync(_files)).get("index.html")
    if index is None:
        return PlainTextResponse(MISSING)
    return FileResponse(index, headers={"cache-control": "no-cache"}, media_type=_type(index))


def _type(path: str) -> str:
    return TYPES.get(os.path.splitext(path)[1], "application/octet-stream")


def _files() -> dict[str, str]:
    """Map names to the page's files, so that no request becomes a path."""
    return {
        os.path.relpath(os.path.join(folder, name), FOLDER): os.path.join(folder, name)
        for folder, _folders, names in os.walk(FOLDER)
        for name in names
    }
