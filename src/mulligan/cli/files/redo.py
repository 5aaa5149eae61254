"""`mulligan redo`"""

from __future__ import annotations

import click

from mulligan.cli.files.restored import report
from mulligan.cli.group import command
from mulligan.cli.output import Output


@command(
    "redo",
    examples="""
mulligan redo
mulligan redo --preview
mulligan redo --expect 42              only if operation 42 is the undo to redo
mulligan redo --keep-dirty
""",
)
@click.option("--preview", is_flag=True, help="Show what would be done; change nothing.")
@click.option("--keep-dirty", is_flag=True, help="Skip files whose content is in no checkpoint.")
@click.option("--force", is_flag=True, help="Also overwrite what others have changed since.")
@click.option("--expect", type=int, metavar="N", help="Take back undo N, or fail.")
def redo(out: Output, preview: bool, keep_dirty: bool, force: bool, expect: int | None) -> int:
    """Redo the operation that was undone last."""
    with out.workspace() as workspace:
        result = workspace.redo(keep_dirty=keep_dirty, force=force, preview=preview, expect=expect)
        return report(out, result)
