"""`mulligan mcp`"""

from __future__ import annotations

from mulligan.cli.group import command
from mulligan.cli.output import Output
from mulligan.errors import Unsupported
from mulligan.workspace.workspace import Workspace, open_workspace


@command(
    "mcp",
    examples="""
mulligan mcp
mulligan mcp -C ~/code/site
""",
)
def mcp_command(out: Output) -> None:
    """Offer checkpoints, restore, undo and search as tools of the Model Context Protocol.

    Speaks on stdin and stdout; an agent starts it, as with `claude mcp add mulligan -- mulligan
    mcp`. What changes files wants a plan first.
    """
    try:
        from mulligan.protocols.mcp.server import run
    except ModuleNotFoundError as problem:
        raise Unsupported(
            f"The package {problem.name} is missing; install it with `pip install mulligan[mcp]`."
        ) from None

    def opening(create: bool) -> Workspace:
        return open_workspace(out.base, create=create, allow_any_root=out.any_root)

    run(opening)
