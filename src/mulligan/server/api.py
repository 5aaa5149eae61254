"""One declaration of each request, from which come its route, its check and its documentation.

    section = Section("sessions")

    @section.get("/projects/{project}/sessions", "The sessions of a project, newest first")
    def listed(workspace: Workspace, query: ListedQuery) -> SessionPage:
        return workspace.sessions.list(limit=query.limit)

What a function asks for, it gets by name: `hub`, `workspace` (of the project in the path), parts
of the path, `query` and `body` as the named tuples that their types say, and `request`. Plain
functions run in a thread; a coroutine runs on the loop. What they return goes out as JSON, unless
it is a `Response`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, get_type_hints

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mulligan.server.http.errors_json import Json, query_of, read_json
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import from_json, from_query, known_part, plain

Verb = TypeVar("Verb", bound=Callable[..., Any])
IN_PATH = re.compile(r"{(\w+)}")


class Endpoint(NamedTuple):
    """A request that can be made. `status` is that of success.

    A tolerant one passes over parameters and fields that it does not know.
    """

    method: str
    path: str
    summary: str
    verb: Callable[..., Any]
    tag: str
    status: int = 200
    content: str = "application/json"
    tolerant: bool = False

    @property
    def hints(self) -> dict[str, Any]:
        return get_type_hints(self.verb, include_extras=True)

    @property
    def in_path(self) -> list[str]:
        return IN_PATH.findall(self.path)

    @property
    def query(self) -> Any:
        """The type of its parameters, if it has any."""
        return self.hints.get("query")

    @property
    def body(self) -> Any:
        """The type of its body, if it has one."""
        return self.hints.get("body")

    @property
    def result(self) -> Any:
        return self.hints.get("return")

    @property
    def opens(self) -> bool:
        """Whether it works on a project."""
        return "workspace" in self.hints


class Router:
    """Some endpoints that belong together."""

    def __init__(self, tag: str, prefix: str = "/api/v1", *, tolerant: bool = False) -> None:
        self.tag = tag
        self.endpoints: list[Endpoint] = []
        self._prefix, self._tolerant = prefix, tolerant

    def get(self, path: str, summary: str, **more: Any) -> Callable[[Verb], Verb]:
        return self.on("GET", path, summary, **more)

    def post(self, path: str, summary: str, **more: Any) -> Callable[[Verb], Verb]:
        return self.on("POST", path, summary, **more)

    def on(self, method: str, path: str, summary: str, **more: Any) -> Callable[[Verb], Verb]:
        """Declares an endpoint."""

        def declare(verb: Verb) -> Verb:
            self.endpoints.append(
                Endpoint(
                    method, self._prefix + path, summary, verb, self.tag,
                    tolerant=self._tolerant, **more,
                )
            )  # fmt: skip
            return verb

        return declare

    def routes(self, hub: Registry) -> list[BaseRoute]:
        return [route(hub, endpoint) for endpoint in self.endpoints]


def route(hub: Registry, endpoint: Endpoint) -> Route:
    """The route of an endpoint: reads what was asked, runs the verb, writes what it answered."""
    query, body = endpoint.query, endpoint.body
    wanted = set(inspect.signature(endpoint.verb).parameters)
    in_path = [name for name in endpoint.in_path if name in wanted]
    is_async = inspect.iscoroutinefunction(endpoint.verb)

    def asked(kind: Any, found: Any) -> Any:
        return known_part(kind, found) if endpoint.tolerant else found

    async def answer(request: Request) -> Response:
        given: dict[str, Any] = {name: request.path_params[name] for name in in_path}
        if query is not None:
            given["query"] = from_query(query, asked(query, query_of(request.scope)))
        if body is not None:
            given["body"] = from_json(body, asked(body, await read_json(request)))
        if "hub" in wanted:
            given["hub"] = hub
        if "request" in wanted:
            given["request"] = request
        if is_async:
            if "workspace" in wanted:
                given["workspace"] = await hub.workspace(request.path_params["project"])
            found = await endpoint.verb(**given)
        elif "workspace" in wanted:
            found = await hub.work(request.path_params["project"], in_thread, **given)
        else:
            found = await hub.call(in_thread, **given)
        if endpoint.method != "GET":
            hub.wake()
        return written(found)

    def in_thread(**given: Any) -> Response:
        """Run the verb and encode its answer, off the event loop."""
        return written(endpoint.verb(**given))

    def written(found: Any) -> Response:
        return found if isinstance(found, Response) else Json(plain(found), endpoint.status)

    return Route(endpoint.path, answer, methods=[endpoint.method])
