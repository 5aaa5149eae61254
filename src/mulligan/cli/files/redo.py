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
mulligan redo --expect 42              the undo with number 42, or nothing
mulligan redo --keep-dirty
""",
)
@click.option("--preview", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--keep-dirty", is_flag=True, help="Leave files alone that are in no checkpoint yet.")
@click.option("--force", is_flag=True, help="Overwrite what others have changed since, too.")
@click.option("--expect", type=int, metavar="N", help="Take back undo N, or nothing.")
def redo(out: Output, preview: bool, keep_dirty: bool, force: bool, expect: int | None) -> int:
    """Take back the last undo."""
    with out.workspace() as workspace:
        done = workspace.redo(keep_dirty=keep_dirty, force=force, preview=preview, expect=expect)
        return report(out, done)
