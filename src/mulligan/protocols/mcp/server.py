"""The Model Context Protocol on stdin and stdout, by its official SDK.

Only `mulligan mcp` imports this: the SDK takes longer to load than all of Mulligan.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from mulligan.errors import MulliganError, NotFound
from mulligan.protocols.arguments import schema, taken
from mulligan.protocols.mcp import resources
from mulligan.protocols.mcp.tools import TOOLS, LazyWorkspace, Said, Tool
from mulligan.version import __version__

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace

Answer = TypeVar("Answer")
NOT_FOUND = -32002
INSTRUCTIONS = (
    "Mulligan keeps checkpoints of this project and can bring any of them back. Take a checkpoint "
    "before risky work. To go back, call plan_restore, look at what it would do, then restore "
    "with its plan. Every restore can be undone."
)


def run(opening: Callable[[bool], Workspace]) -> None:
    """Serves one client until it leaves."""
    place = LazyWorkspace(opening)
    try:
        anyio.run(_serve, place)
    finally:
        place.close()


def make_server(place: LazyWorkspace) -> Server[Any]:
    """The server over a project; one request after another touches the project."""
    turn = anyio.CapacityLimiter(1)

    async def work(verb: Callable[..., Answer], *given: Any) -> Answer:
        return await anyio.to_thread.run_sync(partial(verb, *given), limiter=turn)

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(*item) for item in TOOLS.items()])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:80]!r}.")
        try:
            return _result(await work(_called, place, tool, params.arguments or {}))
        except Exception as problem:
            return _failed(problem)

    async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
        try:
            found = await work(_documents, place)
        except MulliganError:
            # A project without a history has nothing to read.
            found = []
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=each.uri, name=each.name, title=_clean(each.title),
                    description=each.about, mime_type="text/markdown",
                )
                for each in found
            ]
        )  # fmt: skip

    async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(TEMPLATES))

    async def read_resource(
        ctx: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            found = await work(_document, place, uri)
        except NotFound as problem:
            raise MCPError(NOT_FOUND, str(problem), {"uri": uri}) from None
        except MulliganError as problem:
            raise MCPError(types.INTERNAL_ERROR, str(problem)) from None
        content = types.TextResourceContents(
            uri=uri, mime_type="text/markdown", text=_clean(found)
        )  # fmt: skip
        return types.ReadResourceResult(contents=[content])

    return Server(
        "mulligan", version=__version__, title="Mulligan", instructions=INSTRUCTIONS,
        on_list_tools=list_tools, on_call_tool=call_tool, on_list_resources=list_resources,
        on_list_resource_templates=list_templates, on_read_resource=read_resource,
    )  # fmt: skip


TEMPLATES = (
    types.ResourceTemplate(
        uri_template=f"{resources.SESSION}{{id}}", name="session",
        description="A session of an agent, as Markdown", mime_type="text/markdown",
    ),
    types.ResourceTemplate(
        uri_template=f"{resources.CHECKPOINT}{{id}}", name="checkpoint",
        description="A checkpoint and its files, as Markdown", mime_type="text/markdown",
    ),
)  # fmt: skip


async def _serve(place: LazyWorkspace) -> None:
    server = make_server(place)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _described(name: str, tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=tool.reads_only,
        destructive_hint=tool.destroys,
        idempotent_hint=tool.can_repeat,
        open_world_hint=False,
    )
    return types.Tool(
        name=name, title=tool.title, description=tool.about, input_schema=schema(tool.arguments),
        annotations=hints,
    )  # fmt: skip


def _called(place: LazyWorkspace, tool: Tool, given: dict[str, Any]) -> Said:
    return tool.run(place, **taken(tool.arguments, given))


def _documents(place: LazyWorkspace) -> list[resources.Document]:
    return resources.documents(place.workspace())


def _document(place: LazyWorkspace, uri: str) -> str:
    return resources.read(place.workspace(), uri)


def _result(said: Said) -> types.CallToolResult:
    data = _clean(said.data)
    words = json.dumps(data, ensure_ascii=False) if said.words is None else _clean(said.words)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=words)], structured_content=data
    )


def _failed(problem: Exception) -> types.CallToolResult:
    """What went wrong, for the agent to read and to do better."""
    code = problem.code if isinstance(problem, MulliganError) else "failed"
    message = _clean(str(problem) or type(problem).__name__)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=f"{code}: {message}")],
        structured_content={"error": {"code": code, "message": message}},
        is_error=True,
    )


def _clean(value: Any) -> Any:
    """The same without what is no Unicode text: names of files may be any bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(name): _clean(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    return value
