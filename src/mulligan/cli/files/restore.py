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
mulligan restore @                       the whole project to the latest checkpoint
mulligan restore @1 --preview            show what would happen
mulligan restore 7f3k src/app.py docs    only these paths
mulligan restore @ --keep-dirty          skip files whose content is in no checkpoint
mulligan restore 7f3k --to /tmp/then     write the files into another directory
mulligan undo                            undo the restore
""",
)
@click.argument("checkpoint", shell_complete=checkpoint_names)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(readable=False))
@click.option("--preview", is_flag=True, help="Show what would be done; change nothing.")
@click.option("--keep-dirty", is_flag=True, help="Skip files whose content is in no checkpoint.")
@click.option("--force", is_flag=True, help="Also overwrite files that you have edited.")
@click.option(
    "--to", "target", metavar="DIR", type=click.Path(file_okay=False),
    help="Write the files into DIR instead; delete nothing there.",
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
    """Restore the project, or some of its paths, to a checkpoint.

    A safety checkpoint of the current files is taken first; `mulligan undo` restores it. With --to
    the project stays unchanged. Files in DIR that differ are skipped; --force overwrites them, and
    first stores them in a checkpoint of their own.
    """
    if target is not None and keep_dirty:
        raise UsageError("--keep-dirty and --to are mutually exclusive; leave one out.")
    with out.workspace() as workspace:
        if target is not None:
            written = workspace.restore_to(
                checkpoint, os.path.abspath(target), out.paths(paths), force=force,
                preview=preview,
            )  # fmt: skip
            return report_elsewhere(out, written)
        restored = workspace.restore(
            checkpoint, out.paths(paths), keep_dirty=keep_dirty, force=force, preview=preview
        )
        return report(out, restored)
