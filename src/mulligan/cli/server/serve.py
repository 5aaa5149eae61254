"""`mulligan serve`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output
from mulligan.server.lifecycle.server_file import Address
from mulligan.workspace.project.location import home_directory

if TYPE_CHECKING:
    from mulligan.server.lifecycle.serve import PageAddress


@command(
    "serve",
    examples="""
mulligan serve                    until Ctrl-C; says where
mulligan serve --port 8737        on that port
mulligan serve --json             one line of JSON when it listens
mulligan serve --token-file ~/.mulligan-token    the same token at every start
""",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="By default a free one.")
@click.option("--socket", "path", metavar="PATH", help="A unix socket, beside the home's own.")
@click.option("--host", metavar="ADDRESS", help="Listen there, not on loopback. Think twice.")
@click.option(
    "--idle",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="Stop when nobody has asked for anything for so long.",
)
@click.option("--token-file", metavar="FILE", help="Keep the token there from start to start.")
def serve(
    out: Output,
    port: int,
    path: str | None,
    host: str | None,
    idle: float | None,
    token_file: str | None,
) -> None:
    """Serve all projects of this home to programs and to a browser.

    Only on this machine. Programs need the token in the home's server.token, a new one with each
    start; the address for a browser works once, for five minutes: `mulligan up` prints another.
    """
    from mulligan.server.lifecycle.serve import serve as run

    def ready(address: Address, page_address: PageAddress) -> None:
        if out.as_json:
            out.data(
                {
                    "url": address.url,
                    "socket": address.socket,
                    "pid": address.pid,
                    "started_at": address.started_at,
                }
            )
        out.say(f"Listening; open {page_address(None)} in a browser. Ctrl-C ends it.")

    if host is not None:
        warning = click.style("Warning: ", fg="red", bold=True)
        out.say(
            f"{warning}{host} may be reached from other machines. Whoever gets the token, which "
            "travels unencrypted, can read and change every project of this home."
        )
    run(
        home_directory(), host=host, port=port, path=path, idle=idle, ready=ready,
        project=_project(out), token_file=token_file,
    )  # fmt: skip
    out.say("Ended; everything is in order.")


def _project(out: Output) -> str | None:
    """The project that `-C` names, for requests that name none."""
    if out.directory is None:
        return None
    with out.workspace(create=True) as workspace:
        return workspace.project.location.id
