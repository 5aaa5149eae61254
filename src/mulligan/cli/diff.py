"""`mulligan diff`"""

from __future__ import annotations

import os
import sys

import click

from mulligan.cli.complete import checkpoint_names
from mulligan.cli.group import command
from mulligan.cli.output import Output, change_line
from mulligan.errors import Ambiguous, NotFound, UsageError
from mulligan.workspace.checkpoints import ID_LENGTH
from mulligan.workspace.workspace import Workspace


@command(
    "diff",
    examples="""
mulligan diff                    the last checkpoint against the disk
mulligan diff @1                 the one before that against the disk
mulligan diff @2 @               one checkpoint against another
mulligan diff @1 src/app.py      one file
mulligan diff --stat
""",
)
@click.argument("names", nargs=-1, metavar="[FROM [TO]] [PATH]...", shell_complete=checkpoint_names)
@click.option("--stat", is_flag=True, help="Only how many lines, not which.")
def diff(out: Output, names: tuple[str, ...], stat: bool) -> None:
    """Show differences between checkpoints, or between a checkpoint and the disk.

    The output is a patch that `git apply` understands. A path that could also be a checkpoint is
    written as ./PATH.
    """
    with out.workspace() as workspace:
        named, paths = _split(out, workspace, names)
        before = named[0] if named else None
        after = named[1] if len(named) > 1 else None
        found = workspace.diff(before, after, out.paths(paths))
        from_id = workspace.find(before).id if before else workspace.status().checkpoint
        to_id = workspace.find(after).id if after else None
    if out.as_json:
        out.data({"from": from_id, "to": to_id, "files": [each.as_json() for each in found]})
        return
    if stat:
        for each in found:
            note = f"  (from {each.old_path})" if each.old_path else ""
            out.line(change_line(each.status, each.path, each.additions, each.deletions, note))
        added = sum(each.additions for each in found)
        deleted = sum(each.deletions for each in found)
        out.say(f"{len(found)} files, +{added} −{deleted}")
        return
    colour = sys.stdout.isatty()
    for each in found:
        click.echo(_coloured(each.patch) if colour else each.patch, nl=False)


def _split(
    out: Output, workspace: Workspace, names: tuple[str, ...]
) -> tuple[list[str], tuple[str, ...]]:
    """The first one or two names may be checkpoints; the rest are paths."""
    named: list[str] = []
    rest = list(names)
    while rest and len(named) < 2:
        is_path = os.path.lexists(os.path.join(out.base, rest[0]))
        try:
            workspace.find(rest[0])
        except Ambiguous:
            if not is_path:
                raise
            break
        except NotFound:
            if rest[0].startswith("@") and not is_path:
                raise
            break
        if is_path and len(rest[0]) < ID_LENGTH and not rest[0].startswith("@"):
            # A path that happens to be the beginning of some id is a path.
            break
        if is_path and not rest[0].startswith("@"):
            raise UsageError(
                f"{rest[0]} is a checkpoint and a path; write ./{rest[0]} for the path."
            )
        named.append(rest.pop(0))
    return named, tuple(rest)


def _coloured(patch: bytes) -> str:
    lines = []
    for line in patch.decode("utf-8", "replace").splitlines(keepends=True):
        if line.startswith("@@"):
            line = click.style(line, fg="cyan")
        elif line.startswith(("diff ", "--- ", "+++ ")):
            line = click.style(line, bold=True)
        elif line.startswith("+"):
            line = click.style(line, fg="green")
        elif line.startswith("-"):
            line = click.style(line, fg="red")
        lines.append(line)
    return "".join(lines)
