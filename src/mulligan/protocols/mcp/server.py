"""Serve the Model Context Protocol on stdio with its official SDK.

Only `mulligan mcp` imports this module: the SDK takes longer to load than all of Mulligan.
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
from mulligan.protocols.mcp import resources
from mulligan.protocols.mcp.tools import TOOLS, LazyWorkspace, Tool, ToolResult
from mulligan.protocols.params import convert_params, json_schema
from mulligan.version import __version__

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace

Result = TypeVar("Result")
RESOURCE_NOT_FOUND = -32002
INSTRUCTIONS = (
    "Mulligan keeps checkpoints of this project and can restore any of them. Take a checkpoint "
    "before risky work. To go back, call plan_restore, look at what it would do, then call restore "
    "with its plan. Every restore can be undone."
)


def run(open_workspace: Callable[[bool], Workspace]) -> None:
    """Serve one client until it disconnects."""
    lazy = LazyWorkspace(open_workspace)
    try:
        anyio.run(_serve, lazy)
    finally:
        lazy.close()


def make_server(lazy: LazyWorkspace) -> Server[Any]:
    """Create the server of a project; one request at a time works on the project."""
    one_at_a_time = anyio.CapacityLimiter(1)

    async def work(function: Callable[..., Result], *given: Any) -> Result:
        return await anyio.to_thread.run_sync(partial(function, *given), limiter=one_at_a_time)

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_describe(*item) for item in TOOLS.items()])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]!r}.")
        try:
            return _to_mcp(await work(_call, lazy, tool, params.arguments or {}))
        except Exception as problem:
            return _to_mcp_error(problem)

    async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
        try:
            documents = await work(_list_documents, lazy)
        except MulliganError:
            # A project without a history has nothing to read.
            documents = []
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=each.uri, name=each.name, title=_clean(each.title),
                    description=each.description, mime_type="text/markdown",
                )
                for each in documents
            ]
        )  # fmt: skip

    async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(TEMPLATES))

    async def read_resource(
        ctx: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text = await work(_read_document, lazy, uri)
        except NotFound as problem:
            raise MCPError(RESOURCE_NOT_FOUND, str(problem), {"uri": uri}) from None
        except MulliganError as problem:
            raise MCPError(types.INTERNAL_ERROR, str(problem)) from None
        content = types.TextResourceContents(
            uri=uri, mime_type="text/markdown", text=_clean(text)
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


async def _serve(lazy: LazyWorkspace) -> None:
    server = make_server(lazy)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _describe(name: str, tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=tool.reads_only,
        destructive_hint=tool.destroys,
        idempotent_hint=tool.can_repeat,
        open_world_hint=False,
    )
    return types.Tool(
        name=name, title=tool.title, description=tool.description,
        input_schema=json_schema(tool.params), annotations=hints,
    )  # fmt: skip


def _call(lazy: LazyWorkspace, tool: Tool, given: dict[str, Any]) -> ToolResult:
    return tool.run(lazy, convert_params(tool.params, given))


def _list_documents(lazy: LazyWorkspace) -> list[resources.Document]:
    return resources.list_documents(lazy.workspace())


def _read_document(lazy: LazyWorkspace, uri: str) -> str:
    return resources.read_document(lazy.workspace(), uri)


def _to_mcp(result: ToolResult) -> types.CallToolResult:
    data = _clean(result.data)
    text = json.dumps(data, ensure_ascii=False) if result.text is None else _clean(result.text)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=data
    )


def _to_mcp_error(problem: Exception) -> types.CallToolResult:
    """Return the error as a result, so that the agent reads it and can correct the call."""
    code = problem.code if isinstance(problem, MulliganError) else "failed"
    message = _clean(str(problem) or type(problem).__name__)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=f"{code}: {message}")],
        structured_content={"error": {"code": code, "message": message}},
        is_error=True,
    )


def _clean(value: Any) -> Any:
    """Replace lone surrogates in all texts: names of files may be any bytes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(name): _clean(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each) for each in value]
    return value
