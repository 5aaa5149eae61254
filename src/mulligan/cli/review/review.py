"""`mulligan review`"""

from __future__ import annotations

import os
import sys

import click

from mulligan.cli.complete import session_names
from mulligan.cli.group import command
from mulligan.cli.output import Output
from mulligan.cli.review.lines import print_review


@command(
    "review",
    examples="""
mulligan review                    on a terminal: j and k to move, y to keep, n to undo, ? for help
mulligan review --session @        only what the latest session did
mulligan review | less             the same as text
mulligan review --json
""",
)
@click.option(
    "--session", metavar="SESSION", shell_complete=session_names, help="Only what this session did."
)
def review(out: Output, session: str | None) -> int:
    """Go through what agents did, and keep or undo it change by change.

    Into a pipe, or with --json: every pending hunk with its id and its lines.
    """
    can_draw = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if out.as_json or not can_draw:
        with out.workspace() as workspace:
            found = workspace.review.pending(session=session)
            out.clear_progress()
            print_review(out, workspace, found, lines=True)
        return 0
    from mulligan.cli.review.screen import show

    return show(out, session)
