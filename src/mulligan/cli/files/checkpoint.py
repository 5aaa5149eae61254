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
@click.option("-m", "--message", default="", metavar="TEXT", help="Describe the checkpoint.")
@click.option(
    "--include", multiple=True, metavar="PATH", help="Include PATH from now on, even if ignored."
)
def checkpoint(out: Output, message: str, include: tuple[str, ...]) -> None:
    """Take a checkpoint of the project's files."""
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
            out.say(f"  {escape_text(path)} does not exist yet; it is included once it does.")
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
    # The project found may be a parent of the directory that the user is in.
    where = "" if root == os.path.realpath(out.base) else f" of {escape_text(root)}"
    out.say(f"{plural(taken.files, 'file')}{where}, {size(taken.bytes)}: {summary}.")
    for line in uncovered(taken.coverage, 10):
        out.say(line)
    ignored = sum(each.files for each in taken.coverage.excluded) - taken.coverage.guarded
    if ignored > 0:
        out.say(f"  left out by ignore rules: {plural(ignored, 'file')}; see `mulligan show @`.")
