"""The OpenAPI document, made from the declarations of the endpoints, and a page to read it on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html import escape
from importlib import import_module
from typing import Any, TypedDict

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from mulligan.core.coverage import Coverage
from mulligan.server.api import Endpoint, Router
from mulligan.server.http.errors_json import Json
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import Schemas, Shape
from mulligan.server.v1.search import StatsRow
from mulligan.version import __version__
from mulligan.workspace.maintenance import disk_usage
from mulligan.workspace.results import files, review, sessions
from mulligan.workspace.search import search, tool_stats

MODULES = (
    "v1.projects", "v1.sessions", "v1.review", "v1.checkpoints", "v1.files", "v1.search",
    "v1.settings", "v1.maintenance", "v1.agents", "v1.access", "v1.jobs", "events",
    "dialogs.routes",
)  # fmt: skip
MEANINGS = {
    "400": "The request makes no sense: usage, refused_root.",
    "401": "The token is missing or wrong: unauthorized.",
    "403": "Another page, or by another name than the server's: forbidden.",
    "404": "No such thing: not_found, nothing_to_undo.",
    "408": "The body came too slowly: too_slow.",
    "409": "A name fits several, or work would be lost: ambiguous, would_lose_work.",
    "413": "Too large: too_large.",
    "416": "No such part of the file: range.",
    "423": "Another process holds the project: busy.",
    "429": "Too much is going on: too_many.",
    "500": "Something is wrong with what is stored, or here: corrupt, newer_format, "
    "not_writable, failed.",
    "501": "This cannot work here: unsupported.",
    "507": "The disk is full: out_of_space.",
}
NAMES = {status: f"Error{status}" for status in MEANINGS}


class ErrorInside(TypedDict):
    """`code` is one word for programs, `message` a sentence for people."""

    code: str
    message: str


class Error(TypedDict):
    """What every error looks like."""

    error: ErrorInside


class PathAndReason(TypedDict):
    path: str
    reason: str


class ExcludedRow(TypedDict):
    path: str
    files: int
    reason: str


class PassedOverRow(TypedDict):
    """A rule or settings file of the project that is not in effect, or only in part."""

    path: str
    reason: str
    broken: bool


class CoverageRow(TypedDict):
    """What a checkpoint holds, and by name what it does not."""

    complete: bool
    skipped: list[PathAndReason]
    excluded: list[ExcludedRow]
    guarded: int
    passed_over: list[PassedOverRow]


class StatsTable(TypedDict):
    """The calls of tools, counted by something."""

    by: list[str]
    rows: list[StatsRow]
    total: StatsRow
    problems: list[str]


COUNTS = {"additions": int, "deletions": int}
SHAPES: dict[type, Shape | type] = {
    Coverage: CoverageRow,
    files.Checkpoint: Shape(
        renamed={"id": "checkpoint"}, hidden=("changes",), sometimes={"changes": files.Changes}
    ),
    files.FileChange: Shape(hidden=("patch",)),
    files.Operation: Shape(renamed={"number": "operation"}),
    files.Verified: Shape(added={"clean": bool}),
    sessions.Session: Shape(renamed={"id": "session"}),
    sessions.Entry: Shape(renamed={"id": "entry"}),
    review.PendingHunk: Shape(renamed={"id": "hunk"}, added=COUNTS),
    review.PendingFile: Shape(added=COUNTS),
    review.Review: Shape(added=COUNTS | {"total": int}),
    search.Hit: Shape(added={"snippet": str}, hidden=("pieces",)),
    tool_stats.Stats: StatsTable,
    disk_usage.Sizes: Shape(added={"total": int}),
}
"""Where the JSON of an answer differs from the fields of its type."""


def routes(hub: Registry) -> list[BaseRoute]:
    return [
        Route("/api/v1/openapi.json", _document, methods=["GET"]),
        Route("/api/docs", _reference, methods=["GET"]),
        Route("/api/docs.css", _style, methods=["GET"]),
    ]


def endpoints() -> Iterator[Endpoint]:
    """Every endpoint that was declared, in the order of reading."""
    for name in MODULES:
        section: Router = import_module(f"mulligan.server.{name}").section
        yield from section.endpoints


@cache
def document() -> dict[str, Any]:
    """The whole document."""
    schemas = Schemas(SHAPES)
    paths: dict[str, Any] = {}
    for endpoint in endpoints():
        described = _operation(endpoint, schemas)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = described
    error = {"application/json": {"schema": schemas.of(Error)}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Mulligan",
            "version": __version__,
            "description": "Sessions, checkpoints, review and search of a Mulligan home.",
        },
        "security": [{"bearer": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "responses": {
                NAMES[status]: {"description": meaning, "content": error}
                for status, meaning in MEANINGS.items()
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "mulligan_PORT"},
            },
        },
    }


def _operation(endpoint: Endpoint, schemas: Schemas) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in endpoint.in_path
    ]
    if endpoint.query is not None:
        for name, schema, needed in schemas.fields(endpoint.query):
            text = schema.pop("description", "")
            found = {"name": name, "in": "query", "required": needed, "schema": schema}
            parameters.append(found | ({"description": text} if text else {}))
    described: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.tag}_{endpoint.verb.__name__}",
        "tags": [endpoint.tag],
        "parameters": parameters,
    }
    if endpoint.body is not None:
        content = {
            "application/json": {"schema": schemas.asked(endpoint.body, tolerant=endpoint.tolerant)}
        }
        required = any(needed for _, _, needed in schemas.fields(endpoint.body))
        described["requestBody"] = {"required": required, "content": content}
    described["responses"] = _success(endpoint, schemas) | {
        status: {"$ref": f"#/components/responses/{NAMES[status]}"}
        for status in sorted(_failures(endpoint))
    }
    return described


def _success(endpoint: Endpoint, schemas: Schemas) -> dict[str, Any]:
    if endpoint.content == "application/json":
        content: dict[str, Any] = {endpoint.content: {"schema": schemas.of(endpoint.result)}}
        return {str(endpoint.status): {"description": endpoint.summary, "content": content}}
    if endpoint.content == "text/event-stream":
        return {"200": {"description": endpoint.summary, "content": {endpoint.content: {}}}}
    kinds: dict[str, Any] = {endpoint.content: {}, "text/plain": {}}
    return {
        "200": {"description": endpoint.summary, "content": kinds},
        "206": {"description": "The part that was asked for.", "content": kinds},
        "304": {"description": "Nothing has changed."},
    }


def _failures(endpoint: Endpoint) -> set[str]:
    """Every status that it may fail with, from what it takes and does."""
    found = {"400", "401", "403", "404", "429", "500"}
    if endpoint.body is not None:
        found |= {"408", "413"}
    if endpoint.in_path or endpoint.query is not None:
        found |= {"409", "423", "501", "507"}
    if endpoint.tag == "files":
        found |= {"413", "416"}
    return found | ({"423", "501", "507"} if endpoint.method != "GET" else set())


async def _document(request: Request) -> Response:
    return Json(document())


async def _reference(request: Request) -> Response:
    return HTMLResponse(_reference_page())


async def _style(request: Request) -> Response:
    return Response(STYLE, media_type="text/css")


@cache
def _reference_page() -> str:
    found = document()
    parts = []
    tag = None
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            if operation["tags"][0] != tag:
                tag = operation["tags"][0]
                parts.append(f"<h2>{escape(tag.capitalize())}</h2>")
            parts.append(_shown(method.upper(), path, operation))
    parts.append("<h2>Types</h2>")
    for name, schema in found["components"]["schemas"].items():
        text = escape(schema.get("description", ""))
        rows = "".join(
            f"<tr><td><code>{escape(field)}</code></td><td>{_kind(each)}</td>"
            f"<td>{escape(each.get('description', ''))}</td></tr>"
            for field, each in schema.get("properties", {}).items()
        )
        parts.append(f'<h3 id="{name}">{name}</h3><p>{text}</p><table>{rows}</table>')
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Mulligan: HTTP</title>'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" '
        f'href="/api/docs.css"><main><h1>Mulligan {__version__}: HTTP</h1><p>As a document for '
        'programs: <a href="/api/v1/openapi.json">openapi.json</a>. Every request needs the token, '
        f"as <code>Authorization: Bearer …</code>.</p>{''.join(parts)}</main></html>"
    )


def _shown(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{_kind(each['schema'])}"
        f"{', required' if each['required'] else ''}</td>"
        f"<td>{escape(each.get('description', ''))}</td></tr>"
        for each in operation["parameters"]
        if each["in"] == "query"
    )
    lines = [f"<table>{rows}</table>"] if rows else []
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        lines.append(f"<p>Body: {_kind(schema)}</p>")
    for status, answer in operation["responses"].items():
        content = answer.get("content", {}).get("application/json")
        if status.startswith("2") and content:
            lines.append(f"<p>{status}: {_kind(content['schema'])}</p>")
    return (
        f'<h3 id="{operation["operationId"]}"><b>{method}</b> <code>{escape(path)}</code></h3>'
        f"<p>{escape(operation['summary'])}.</p>{''.join(lines)}"
    )


def _kind(schema: dict[str, Any]) -> str:
    """A type in few words, with a link to where it is described."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{name}">{name}</a>'
    for several, word in (("allOf", " and "), ("anyOf", " or ")):
        if several in schema:
            return word.join(_kind(each) for each in schema[several])
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    kind = schema.get("type", "anything")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; border-bottom: 1px solid #8886; }
h3 { margin: 2rem 0 0; font-size: 1rem; }
h3 b { display: inline-block; min-width: 4.5rem; }
p { margin: .25rem 0; }
table { border-collapse: collapse; margin: .5rem 0; font-size: .9rem; }
td { padding: .15rem .8rem .15rem 0; vertical-align: top; }
code { font-family: ui-monospace, monospace; }
"""
