"""`mulligan approve`"""

from __future__ import annotations

import click

from mulligan.cli.complete import session_names
from mulligan.cli.group import command
from mulligan.cli.output import Output, plural
from mulligan.cli.review.choice import session_with_work


@command(
    "approve",
    examples="""
mulligan approve                     what the only session with pending work did
mulligan approve 7f3k -m "good, go on"
mulligan undo                        take the approval back
""",
)
@click.argument("session", required=False, shell_complete=session_names)
@click.option("-m", "--message", default="", metavar="TEXT", help="Why, for the log.")
def approve(out: Output, session: str | None, message: str) -> None:
    """Keep everything that a session did, and begin a new round of it.

    The session is the one with pending work; where several have some, name one.
    """
    with out.workspace() as workspace:
        done = workspace.review.approve(session_with_work(workspace, session), message)
    if out.as_json:
        words = {
            "approved_commit": done.approved_checkpoint,
            "new_session": done.new_round,
            "commits_approved": done.checkpoints,
        }
        out.data(words | done.as_json())
        return
    out.line(done.approved_checkpoint)
    out.say(
        f"Approved session {done.session} with {plural(done.checkpoints, 'checkpoint')}; "
        f"{done.new_round} begins. `mulligan undo` takes it back."
    )
