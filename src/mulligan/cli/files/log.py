"""`mulligan log`"""

from __future__ import annotations

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, ago, escape_prose, plural, size
from mulligan.journal.checkpoints import NOT_TAKEN


@command(
    "log",
    examples="""
mulligan log
mulligan log -n 5
mulligan log --json | jq -r '.checkpoints[0].checkpoint'
""",
)
@click.option("-n", "limit", type=click.IntRange(min=0), metavar="N", help="List the newest N.")
def log(out: Output, limit: int | None) -> None:
    """List the checkpoints, newest first."""
    with out.workspace() as workspace:
        found = workspace.log(limit)
    if out.as_json:
        out.data({"checkpoints": [each.as_json() for each in found]})
        return
    position = 0
    for each in found:
        name = click.style(each.id[:8], fg="yellow")
        is_automatic = each.kind in NOT_TAKEN
        kind = click.style(f"{each.kind:9}", dim=is_automatic)
        ref = ""
        if not is_automatic:
            ref = f"@{position or ''}"
            position += 1
        details = f"{plural(each.files, 'file')}, {size(each.bytes)}"
        warning = "" if each.coverage.complete else click.style("  incomplete", fg="red")
        message = escape_prose(each.message.splitlines()[0]) if each.message.strip() else ""
        out.line(
            f"{name}  {ref:4} {ago(each.created_at):>10}  {kind} {message or details}{warning}"
        )
    if not found and limit != 0:
        out.say("There is no checkpoint yet; `mulligan checkpoint` takes one.")
