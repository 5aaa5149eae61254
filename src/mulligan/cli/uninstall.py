"""`mulligan uninstall`"""

from __future__ import annotations

import click

from mulligan.cli.group import command
from mulligan.cli.install import each, names, place
from mulligan.cli.output import Output
from mulligan.protocols.agents import AGENTS, agent


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
    from mulligan.workspace.home import home_directory

    where = place(out, for_project=for_project, for_user=for_user)
    chosen = [agent(name) for name in (AGENTS if agent_name == "all" else (agent_name,))]
    return each(
        out,
        chosen,
        lambda one, preview: take_back(one, where, home_directory(), preview=preview),
        "taken back",
        preview=preview,
    )
