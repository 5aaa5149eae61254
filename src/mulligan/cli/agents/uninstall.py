"""`mulligan uninstall`"""

from __future__ import annotations

import click

from mulligan.cli.agents.install import each, names, place
from mulligan.cli.group import command
from mulligan.cli.output import Output
from mulligan.errors import MulliganError
from mulligan.protocols.agents import AGENTS, agent
from mulligan.protocols.agents.installing import Outcome
from mulligan.protocols.agents.shape import Agent


@command(
    "uninstall",
    examples="""
mulligan uninstall claude-code
mulligan uninstall all --preview
mulligan uninstall codex --project
""",
)
@click.argument("agent_name", metavar="AGENT", type=names)
@click.option("--project", "for_project", is_flag=True, help="For this project alone.")
@click.option("--user", "for_user", is_flag=True, help="For all your projects; the default.")
@click.option("--preview", is_flag=True, help="Show what would be taken back, and do nothing.")
def uninstall(
    out: Output, agent_name: str, for_project: bool, for_user: bool, preview: bool
) -> int:
    """Take back exactly what `mulligan install` wrote. History stays; undo works on."""
    from mulligan.protocols.agents.installing import uninstall as take_back
    from mulligan.workspace.project.location import home_directory

    where = place(out, for_project=for_project, for_user=for_user)
    already = "it is not installed for this project" if for_project else "it is not installed"

    def work(one: Agent, preview: bool) -> Outcome:
        done = take_back(one, where, home_directory(), preview=preview)
        if done.changes or for_project or not _is_in_project(out, one):
            return done
        way = f"`mulligan uninstall {one.name} --project`"
        return done._replace(note=f"it is installed for this project alone: {way}")

    chosen = [agent(name) for name in (AGENTS if agent_name == "all" else (agent_name,))]
    return each(
        out,
        chosen,
        work,
        "taken back",
        already,
        preview=preview,
    )


def _is_in_project(out: Output, one: Agent) -> bool:
    """Whether the project that we are in, if we are in one, has the agent call us."""
    from mulligan.protocols.agents.installing import config_file

    try:
        text = config_file(one, place(out, for_project=True, for_user=False)).read()
        return text is not None and bool(one.commands(text))
    except (MulliganError, OSError, ValueError):
        return False
