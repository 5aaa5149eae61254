"""`mulligan reset`"""

from __future__ import annotations

import click

from mulligan.cli.complete import session_names
from mulligan.cli.group import command
from mulligan.cli.output import Output, exit_status
from mulligan.cli.review.choice import session_with_work
from mulligan.cli.review.lines import print_moves
from mulligan.errors import WouldLoseWork
from mulligan.workspace.results.review import Reset


@command(
    "reset",
    examples="""
mulligan reset --preview             what would happen
mulligan reset                       what the only session with pending work did
mulligan reset 7f3k
mulligan undo                        take it back
""",
)
@click.argument("session", required=False, shell_complete=session_names)
@click.option("--preview", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--force", is_flag=True, help="Overwrite what others have changed since, too.")
def reset(out: Output, session: str | None, preview: bool, force: bool) -> int:
    """Undo everything that a session did and you have not kept; a new round of it begins.

    What commands created goes too. What you or other sessions did in the same files stays, line
    by line. What is there now is kept in a safety checkpoint first.
    """
    with out.workspace() as workspace:
        name = session_with_work(workspace, session)
        done = workspace.review.reset(name, force=force, preview=preview)
    if out.as_json:
        words = {"reset_to": done.reset_to, "new_session": done.new_round}
        found = words | done.as_json() | {"preview": preview}
        if done.refused:
            found["error"] = {"code": WouldLoseWork.code, "message": _summary(done, preview)}
        out.data(found)
    else:
        print_moves(out, (done.files,))
        out.say(_summary(done, preview))
    if done.refused:
        return exit_status(WouldLoseWork.code)
    return 0 if done.files.verified else 1


def _summary(done: Reset, preview: bool) -> str:
    files = done.files
    if done.refused:
        return (
            f"Nothing was undone, and {done.new_round} goes on: all of it was changed since. "
            "--force undoes it all the same."
        )
    what = f"{len(files.restored):,} restored, {len(files.deleted):,} deleted"
    if files.skipped:
        what += f", {len(files.skipped):,} left alone"
    if preview:
        return f"Would do: {what}. Nothing was changed."
    return (
        f"Reset session {done.session}: {what}; {done.new_round} begins. "
        "`mulligan undo` takes it back."
    )
