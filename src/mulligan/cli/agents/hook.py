"""`mulligan hook`"""

from __future__ import annotations

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output
from mulligan.protocols.agents import AGENTS


@command(
    "hook",
    examples="""
mulligan hook claude-code             one event on stdin, as that agent writes it
mulligan install claude-code          what sets this up
mulligan doctor                       what hooks could not record
""",
)
@click.argument("agent", type=click.Choice(AGENTS))
@click.option("--strict", is_flag=True, help="Stop a prompt that cannot be protected.")
def hook(out: Output, agent: str, strict: bool) -> int:
    """What agents call at each step: takes an event on stdin, and answers on stdout.

    Nothing that goes wrong in here reaches the agent; `mulligan doctor` shows it.
    """
    from mulligan.protocols.hooks.run import main

    return main([agent, *(["--strict"] if strict else [])])
