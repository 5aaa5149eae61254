"""`mulligan session status`"""

from __future__ import annotations

import click

from mulligan.cli.complete import session_names
from mulligan.cli.group import command
from mulligan.cli.output import Output, ago, change_line, plural


@command(
    "status",
    examples="""
mulligan session status               the session that was changed last
mulligan session status 7f3k --json
""",
)
@click.argument("session", default="@", shell_complete=session_names)
def status(out: Output, session: str) -> None:
    """Show what a session has pending, its rounds, and what became of each turn's work."""
    with out.workspace() as workspace:
        found = workspace.review.round_status(session)
        rounds = workspace.review.rounds(found.session)
        turns = workspace.review.turn_statuses(found.session)
    if out.as_json:
        more = {
            "rounds": [each.as_json() for each in rounds],
            "turns": [each.as_json() for each in turns],
        }
        out.data(found.as_json() | more)
        return
    out.say(f"Session {found.session}, {found.round}:")
    for file in found.changed_files:
        out.line(change_line(file.status, file.path, file.additions, file.deletions))
    for turn in turns:
        out.line(f"turn {turn.turn}  {turn.status}  {plural(len(turn.files), 'file')}")
    for each in rounds:
        when = f"  {ago(each.closed_at)}" if each.closed_at else ""
        count = plural(each.checkpoints, "checkpoint")
        out.line(f"{each.name}  {each.status}  {count}{when}")
    if found.has_unapproved:
        out.say("`mulligan review` goes through what is pending.")
    else:
        out.say("Nothing is pending in it.")
