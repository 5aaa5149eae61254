"""`mulligan up`"""

from __future__ import annotations

import os
import sys
import threading

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, plural, uncovered
from mulligan.errors import UsageError
from mulligan.server.server_file import Address, connect, running
from mulligan.workspace.project import home_directory

SECONDS_TO_OPEN = 30.0


@command(
    "up",
    examples="""
mulligan up                       protect this project, and open the page
mulligan up ~/code/site           that one
mulligan up --no-browser          only print the address
""",
)
@click.argument("directory_", metavar="[DIR]", required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="By default a free one.")
@click.option("--no-browser", is_flag=True, help="Do not open the page, only say where it is.")
def up(out: Output, directory_: str | None, port: int, no_browser: bool) -> None:
    """Protect a project and open the page: what agents did, what waits for you, any moment before.

    Takes the first checkpoint if there is none, and serves until Ctrl-C. If the home has a server
    already, that one is used.
    """
    if directory_ is not None:
        if not os.path.isdir(directory_):
            raise UsageError(f"{directory_} is not a directory.")
        out.directory = directory_
    project = protect(out)
    show(out, home_directory(), project=project, port=port, browser=not no_browser)


def protect(out: Output) -> str:
    """Sees to it that the project has a checkpoint; gives its id."""
    with out.workspace(create=True) as workspace:
        project = workspace.project.id
        if workspace.log(1):
            return project
        first = workspace.checkpoint("First checkpoint", kind="initial")
        out.clear_progress()
        out.say(f"First checkpoint of {workspace.root}: {plural(first.files, 'file')}.")
        for line in uncovered(first.coverage, 5):
            out.say(line)
    return project


def show(
    out: Output, home: str, *, project: str | None = None, port: int = 0, browser: bool = True
) -> None:
    """Serves a home until Ctrl-C and opens its page; opens only the page if it is served."""

    def begun(address: Address) -> None:
        if project is not None:
            # In a thread of its own: it is answered when the server runs, which is after this.
            threading.Thread(target=_have_watched, args=(address, project), daemon=True).start()
        ready(address)

    def ready(address: Address) -> None:
        page = address.page_on(project)
        _say_where(out, address, page)
        if address.pid == os.getpid() and not out.as_json:
            out.say("Ctrl-C ends it.")
        if browser and _has_display():
            # Some browsers keep the one who starts them waiting; the server must not wait too.
            threading.Thread(target=_open, args=(page,), daemon=True).start()

    found = running(home)
    if found is not None:
        if project is not None:
            _have_watched(found, project)
        ready(found)
        out.say(f"It is served by process {found.pid}, which goes on.")
        return
    from mulligan.server.running import serve

    serve(home, port=port, ready=begun)
    out.say("Ended; everything is in order.")


def _have_watched(address: Address, project: str) -> None:
    """Has the server open the project, and so watch it, before anybody looks at the page."""
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection("localhost")
    try:
        connection.sock = connect(address, SECONDS_TO_OPEN)
        connection.request("GET", f"/api/v1/projects/{project}/settings")
        connection.getresponse().read()
    except (OSError, HTTPException):
        # It will be opened when somebody asks for it.
        return
    finally:
        connection.close()


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


def _open(page: str) -> None:
    import webbrowser

    webbrowser.open(page)
