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
mulligan undo --further             skip a last turn that changed nothing
mulligan undo --expect 41           only if operation 41 is the next to undo
mulligan undo --keep-dirty
""",
)
@click.option("--preview", is_flag=True, help="Show what would be done; change nothing.")
@click.option("--keep-dirty", is_flag=True, help="Skip files whose content is in no checkpoint.")
@click.option("--force", is_flag=True, help="Also overwrite what others have changed since.")
@click.option("--further", is_flag=True, help="Skip a last turn that changed nothing.")
@click.option("--expect", type=int, metavar="N", help="Undo operation N, or fail.")
def undo(
    out: Output, preview: bool, keep_dirty: bool, force: bool, further: bool, expect: int | None
) -> int:
    """Undo the last operation that changed something; run it again to undo the one before.

    Later changes by others stay, line by line. Checkpoints change nothing, so undo skips them.
    Right after a turn that changed nothing, undo fails; --further skips that turn.
    """
    with out.workspace() as workspace:
        result = workspace.undo(
            keep_dirty=keep_dirty,
            force=force,
            preview=preview,
            past_idle_turn=further,
            expect=expect,
        )
        return report(out, result)
