"""`mulligan demo`"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import click

from mulligan.cli.demo.script import make_project, play
from mulligan.cli.group import command
from mulligan.cli.output import Output
from mulligan.cli.server import up
from mulligan.errors import UsageError


@command(
    "demo",
    examples="""
mulligan demo                     a sample project, agents at work, and the page
mulligan demo --keep /tmp/look    the same, in a folder that stays
""",
)
@click.option("--keep", metavar="DIR", help="Put it into this new folder, and leave it there.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="By default a free one.")
@click.option("--no-browser", is_flag=True, help="Do not open the page, only say where it is.")
def demo(out: Output, keep: str | None, port: int, no_browser: bool) -> None:
    """Look around: a sample project in which scripted agents have worked, on the page.

    It has a home of its own, so your projects are not touched; all of it is gone at the end.
    """
    if keep is not None and os.path.lexists(keep):
        raise UsageError(f"{keep} is there already; name a folder that is not.")
    base = Path(os.path.realpath(keep or tempfile.mkdtemp(prefix="mulligan-demo-")))
    try:
        home = prepare(base)
        out.say(f"A sample project is in {base / 'kettle'}.")
        up.show(out, home, port=port, browser=not no_browser)
    finally:
        if keep is None:
            shutil.rmtree(base, ignore_errors=True)


def prepare(base: Path) -> str:
    """Makes the sample project in a folder, and plays what happens in it; gives its home."""
    from mulligan.workspace.workspace import open_workspace

    project, home = base / "kettle", str(base / "home")
    make_project(project)
    with open_workspace(project, home=home) as workspace:
        workspace.checkpoint("First checkpoint", kind="initial")
        play(workspace)
    return home
