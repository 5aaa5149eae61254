"""`mulligan undo`"""

from __future__ import annotations

import click

from mulligan.cli.files.restored import report
from mulligan.cli.group import command
from mulligan.cli.output import Output


@command(
    "undo",
    examples="""
mulligan undo
mulligan undo --preview
mulligan undo --further             although the last turn changed nothing
mulligan undo --expect 41           operation 41, or nothing if another was done since
mulligan undo --keep-dirty
""",
)
@click.option("--preview", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--keep-dirty", is_flag=True, help="Leave files alone that are in no checkpoint yet.")
@click.option("--force", is_flag=True, help="Overwrite what others have changed since, too.")
@click.option("--further", is_flag=True, help="Go past a last turn that changed nothing.")
@click.option("--expect", type=int, metavar="N", help="Take back operation N, or nothing.")
def undo(
    out: Output, preview: bool, keep_dirty: bool, force: bool, further: bool, expect: int | None
) -> int:
    """Take back the last operation that changed something; again, one further back.

    Whatever else was done since stays, line by line. A checkpoint changes nothing, so undo passes
    over it. It stops at a turn that changed nothing: right after one, there is nothing to undo.
    """
    with out.workspace() as workspace:
        done = workspace.undo(
            keep_dirty=keep_dirty,
            force=force,
            preview=preview,
            past_idle_turn=further,
            expect=expect,
        )
        return report(out, done)
