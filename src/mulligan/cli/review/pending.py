"""`mulligan pending`"""

from __future__ import annotations

import click

from mulligan.cli.complete import session_names
from mulligan.cli.group import command
from mulligan.cli.output import Output
from mulligan.cli.review.choice import session_of_turn
from mulligan.cli.review.lines import print_review


@command(
    "pending",
    examples="""
mulligan pending                      all files and hunks that wait for a decision
mulligan pending src/app.py docs      only there
mulligan pending --session @ --turn 2
mulligan pending --json
""",
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(readable=False))
@click.option(
    "--session", metavar="SESSION", shell_complete=session_names, help="Only what this session did."
)
@click.option("--turn", type=click.IntRange(min=0), metavar="N", help="Only what this turn did.")
def pending(out: Output, paths: tuple[str, ...], session: str | None, turn: int | None) -> None:
    """List what agents did and you have not decided on yet: files, and hunks with their ids."""
    with out.workspace() as workspace:
        session = session_of_turn(workspace, session, turn)
        found = workspace.review.pending(session=session, turn=turn, paths=out.paths(paths))
        out.clear_progress()
        print_review(out, workspace, found, lines=False)
