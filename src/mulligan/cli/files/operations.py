"""`mulligan operations`"""

from __future__ import annotations

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, ago


@command(
    "operations",
    examples="""
mulligan operations
mulligan operations -n 3 --json
""",
)
@click.option("-n", "limit", type=click.IntRange(min=0), metavar="N", help="List the newest N.")
def operations(out: Output, limit: int | None) -> None:
    """List the project's operations, newest first."""
    with out.workspace() as workspace:
        found = workspace.operations(limit)
    if out.as_json:
        out.data({"operations": [each.as_json() for each in found]})
        return
    for each in found:
        number = click.style(f"{each.number:>4}", fg="yellow")
        note = (
            f"  of {each.undoes}"
            if each.undoes
            else f"  to {each.target[:8]}"
            if each.target
            else ""
        )
        if each.state != "applied":
            note += click.style(f"  {each.state}", fg="red")
        summary = each.summary
        if "restored" in summary:
            note += f"  {len(summary['restored'])} restored, {len(summary['deleted'])} deleted"
        out.line(f"{number}  {ago(each.created_at):>10}  {each.kind}{note}")
