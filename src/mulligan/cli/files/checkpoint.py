"""`mulligan checkpoint`"""

from __future__ import annotations

import os

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, escape_text, plural, size, uncovered


@command(
    "checkpoint",
    examples="""
mulligan checkpoint
mulligan checkpoint -m "before the refactoring"
mulligan checkpoint --include dist/report.html    keep this file even though it is ignored
mulligan checkpoint --json
""",
)
@click.option("-m", "--message", default="", metavar="TEXT", help="What this checkpoint is for.")
@click.option(
    "--include", multiple=True, metavar="PATH", help="Keep PATH from now on, even where ignored."
)
def checkpoint(out: Output, message: str, include: tuple[str, ...]) -> None:
    """Take a checkpoint: everything in the project, as it is now."""
    with out.workspace(create=True) as workspace:
        taken = workspace.checkpoint(message, include=out.paths(include))
        root = workspace.root
    if out.as_json:
        out.data(taken.as_json())
        return
    changes = taken.changes
    assert changes is not None
    out.line(taken.id)
    for path in include:
        if not os.path.lexists(os.path.join(out.base, path)):
            out.say(f"  {escape_text(path)} is not there yet; it will be kept once it is.")
    parts = [
        f"{count:,} {word}"
        for word, count in (
            ("added", changes.added),
            ("modified", changes.modified),
            ("deleted", changes.deleted),
        )
        if count
    ]
    summary = ", ".join(parts) or "nothing changed"
    # It may be one far above, which was known already.
    where = "" if root == os.path.realpath(out.base) else f" of {escape_text(root)}"
    out.say(f"{plural(taken.files, 'file')}{where}, {size(taken.bytes)}: {summary}.")
    for line in uncovered(taken.coverage, 10):
        out.say(line)
    left_out = sum(each.files for each in taken.coverage.excluded) - taken.coverage.guarded
    if left_out > 0:
        out.say(f"  left out by ignore rules: {plural(left_out, 'file')}; see `mulligan show @`.")
