"""`mulligan restore`"""

from __future__ import annotations

import os

import click

from mulligan.cli.complete import checkpoint_names
from mulligan.cli.files.restored import report, report_elsewhere
from mulligan.cli.group import command
from mulligan.cli.output import Output
from mulligan.errors import UsageError


@command(
    "restore",
    examples="""
mulligan restore @                       everything back to the latest checkpoint
mulligan restore @1 --preview            what would happen
mulligan restore 7f3k src/app.py docs    only these
mulligan restore @ --keep-dirty          spare what is in no checkpoint yet
mulligan restore 7f3k --to /tmp/then     the files as they were, in another directory
mulligan undo                            take it back
""",
)
@click.argument("checkpoint", shell_complete=checkpoint_names)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(readable=False))
@click.option("--preview", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--keep-dirty", is_flag=True, help="Leave files alone that are in no checkpoint yet.")
@click.option("--force", is_flag=True, help="Overwrite files even if they are known to be yours.")
@click.option(
    "--to", "target", metavar="DIR", type=click.Path(file_okay=False),
    help="Write the files into DIR instead; nothing in it is deleted.",
)  # fmt: skip
def restore(
    out: Output,
    checkpoint: str,
    paths: tuple[str, ...],
    preview: bool,
    keep_dirty: bool,
    force: bool,
    target: str | None,
) -> int:
    """Bring the project, or some paths of it, back to a checkpoint.

    What is there now is kept in a safety checkpoint first, and `mulligan undo` brings it back.
    With --to the project stays as it is. Files that DIR has already, and that differ, are left
    alone; with --force they are overwritten, and kept in a checkpoint of their own.
    """
    if target is not None and keep_dirty:
        raise UsageError("--keep-dirty is about the project's own files; leave it out with --to.")
    with out.workspace() as workspace:
        if target is not None:
            done_there = workspace.restore_to(
                checkpoint, os.path.abspath(target), out.paths(paths), force=force,
                preview=preview,
            )  # fmt: skip
            return report_elsewhere(out, done_there)
        done = workspace.restore(
            checkpoint, out.paths(paths), keep_dirty=keep_dirty, force=force, preview=preview
        )
        return report(out, done)
