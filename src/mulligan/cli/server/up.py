"""`mulligan up`"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, escape_text, plural, uncovered
from mulligan.errors import MulliganError, UsageError
from mulligan.server.lifecycle.page_files import write_page_file
from mulligan.server.lifecycle.server_file import Address, ask, running
from mulligan.workspace.project.location import home_directory

if TYPE_CHECKING:
    from mulligan.server.lifecycle.serve import PageAddress

SECONDS_TO_OPEN = 30.0


@command(
    "up",
    examples="""
mulligan up                       protect this project, and open the page
mulligan up ~/code/site           that one
mulligan up --no-browser          only print the address
mulligan up                       again, elsewhere: a new address for the same server
""",
)
@click.argument("directory_", metavar="[DIR]", required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="By default a free one.")
@click.option("--no-browser", is_flag=True, help="Do not open the page, only say where it is.")
@click.option("--token-file", metavar="FILE", help="Keep the token there from start to start.")
def up(
    out: Output, directory_: str | None, port: int, no_browser: bool, token_file: str | None
) -> None:
    """Protect a project and open the page: what agents did, what waits for you, any moment before.

    Takes the first checkpoint if there is none, and serves until Ctrl-C. If the home has a server
    already, that one is used. The address works once, for five minutes; `mulligan up` again prints
    a new one.
    """
    if directory_ is not None:
        if not os.path.isdir(directory_):
            raise UsageError(f"{directory_} is not a directory.")
        out.directory = directory_
    project = protect(out)
    show(
        out, home_directory(), project=project, port=port, browser=not no_browser,
        token_file=token_file,
    )  # fmt: skip


def protect(out: Output) -> str:
    """Sees to it that the project has a checkpoint; gives its id."""
    with out.workspace(create=True) as workspace:
        project = workspace.project.location.id
        if workspace.log(1):
            return project
        first = workspace.checkpoint("First checkpoint", kind="initial")
        out.clear_progress()
        out.say(
            f"First checkpoint of {escape_text(workspace.root)}: {plural(first.files, 'file')}."
        )
        for line in uncovered(first.coverage, 5):
            out.say(line)
    return project


def show(
    out: Output,
    home: str,
    *,
    project: str | None = None,
    port: int = 0,
    browser: bool = True,
    token_file: str | None = None,
) -> None:
    """Serves a home until Ctrl-C and opens its page; opens only the page if it is served."""

    def begun(address: Address, page_address: PageAddress) -> None:
        if project is not None:
            # In a thread of its own: it is answered when the server runs, which is after this.
            threading.Thread(target=_have_watched, args=(address, project), daemon=True).start()
        ready(address, page_address)

    def ready(address: Address, page_address: PageAddress) -> None:
        _say_where(out, address, page_address(project))
        if address.pid == os.getpid() and not out.as_json:
            out.say("Ctrl-C ends it.")
        if browser and _has_display():
            # An address of its own: the printed one still works when the browser has opened.
            path = write_page_file(home, page_address(project))
            # Some browsers keep the one who starts them waiting; the server must not wait too.
            threading.Thread(target=_open, args=(path,), daemon=True).start()

    found = running(home)
    if found is not None:
        if project is not None:
            _have_watched(found, project)
        ready(found, partial(_page_address, found))
        out.say(f"It is served by process {found.pid}, which goes on.")
        return
    from mulligan.server.lifecycle.serve import serve

    serve(home, port=port, token_file=token_file, ready=begun)
    out.say("Ended; everything is in order.")


def _page_address(address: Address, project: str | None) -> str:
    """A new one-time address of the page of a server in another process."""
    given = {} if project is None else {"project": project}
    return str(ask(address, "POST", "/api/v1/page-address", given)["page"])


def _have_watched(address: Address, project: str) -> None:
    """Has the server open the project, and so watch it, before anybody looks at the page."""
    # If it fails, the project is opened when somebody asks for it.
    with suppress(MulliganError):
        path = f"/api/v1/projects/{project}/settings"
        ask(address, "GET", path, timeout=SECONDS_TO_OPEN)


def _say_where(out: Output, address: Address, page: str) -> None:
    if out.as_json:
        out.data({"url": address.url, "page": page, "pid": address.pid})
    else:
        out.say("")
        out.say(f"  {click.style('Mulligan', bold=True)}  {click.style(page, fg='cyan')}")
        out.say("")


def _has_display() -> bool:
    if sys.platform == "darwin":
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(path: str) -> None:
    import webbrowser
    from pathlib import Path

    webbrowser.open(Path(path).as_uri())
