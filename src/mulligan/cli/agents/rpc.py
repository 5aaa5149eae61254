"""`mulligan rpc`"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace


@command(
    "rpc",
    examples="""
mulligan rpc
mulligan rpc --session 7f3k
mulligan rpc -C ~/code/site
""",
)
@click.option("--session", metavar="SESSION", help="The session to begin with; else the last.")
def rpc(out: Output, session: str | None) -> None:
    """Answer commands that come as lines of JSON, for programs.

    One line is one command; one line is its answer. It ends with its input.
    """
    from mulligan.protocols.rpc.lines import serve
    from mulligan.protocols.rpc.rpc_session import RpcSession

    def opening() -> Workspace:
        from mulligan.workspace.workspace import open_workspace

        return open_workspace(out.base, allow_any_root=out.any_root)

    connection = RpcSession(opening, session)
    try:
        serve(connection, sys.stdin.buffer, sys.stdout.buffer)
    finally:
        connection.close()
