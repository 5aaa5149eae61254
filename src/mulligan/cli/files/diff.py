"""`mulligan diff`"""

from __future__ import annotations

import os
import sys

import click

from mulligan.cli.complete import checkpoint_names
from mulligan.cli.group import command
from mulligan.cli.output import (
    Output,
    change_line,
    escape_terminal,
    escape_text,
    folder_line,
    plural,
)
from mulligan.core.coverage import decode_path
from mulligan.errors import Ambiguous, NotFound, UsageError
from mulligan.workspace.new_id import ID_LENGTH
from mulligan.workspace.results.files import Differences
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
@click.option("--stat", is_flag=True, help="Show only the number of changed lines.")
def diff(out: Output, names: tuple[str, ...], stat: bool) -> None:
    """Show differences between checkpoints, or between a checkpoint and the disk.

    The output is a patch for `git apply`. On a terminal, binary files are named only. Write ./PATH
    for a path that could also be the name of a checkpoint.
    """
    with out.workspace() as workspace:
        checkpoints, paths = _split_names(out, workspace, names)
        before = checkpoints[0] if checkpoints else None
        after = checkpoints[1] if len(checkpoints) > 1 else None
        colour = sys.stdout.isatty()
        binary = not (colour or stat or out.as_json)
        found = workspace.compare(before, after, out.paths(paths), binary=binary)
    if out.as_json:
        out.data(found.as_json())
        return
    if stat:
        _print_stat(out, found)
        return
    for each in found.files:
        out.line(_colour_patch(each.patch) if colour else each.patch, nl=False)
    for each in found.files:
        if each.patch.startswith(b"#"):
            out.say(f"Not in the patch, because it is too large: {escape_text(each.path)}")
    for folder in found.folders:
        # Git tracks no folders; `git apply` skips this line.
        out.line(f"# {folder_line(folder)}")


def _print_stat(out: Output, differences: Differences) -> None:
    for each in differences.files:
        note = f"  (from {escape_text(each.old_path)})" if each.old_path else ""
        out.line(change_line(each.status, each.path, each.additions, each.deletions, note))
    for folder in differences.folders:
        out.line(folder_line(folder))
    added = sum(each.additions for each in differences.files)
    deleted = sum(each.deletions for each in differences.files)
    out.say(f"{plural(len(differences.files), 'file')}, +{added} −{deleted}")


def _split_names(
    out: Output, workspace: Workspace, names: tuple[str, ...]
) -> tuple[list[str], tuple[str, ...]]:
    """Split the arguments into at most two checkpoints, and paths."""
    checkpoints: list[str] = []
    rest = list(names)
    while rest and len(checkpoints) < 2:
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
            # An existing path wins over the prefix of an id.
            break
        if is_path and not rest[0].startswith("@"):
            raise UsageError(
                f"{rest[0]} is a checkpoint and a path; write ./{rest[0]} for the path."
            )
        checkpoints.append(rest.pop(0))
    return checkpoints, tuple(rest)


def _colour_patch(patch: bytes) -> str:
    """Colour a patch for a terminal, and escape its control characters."""
    lines = []
    for raw in patch.split(b"\n")[:-1]:
        line = escape_terminal(decode_path(raw))
        if line.startswith("@@"):
            line = click.style(line, fg="cyan")
        elif line.startswith(("diff ", "--- ", "+++ ")):
            line = click.style(line, bold=True)
        elif line.startswith("+"):
            line = click.style(line, fg="green")
        elif line.startswith("-"):
            line = click.style(line, fg="red")
        lines.append(line + "\n")
    return "".join(lines)
