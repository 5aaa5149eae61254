"""`mulligan show`"""

from __future__ import annotations

import base64
import sys

import click

from mulligan.cli.complete import checkpoint_names
from mulligan.cli.group import command
from mulligan.cli.output import (
    Output,
    ago,
    escape_prose,
    escape_terminal,
    escape_text,
    plural,
    size,
    uncovered,
)
from mulligan.core.coverage import decode_path


@command(
    "show",
    examples="""
mulligan show @                          the latest checkpoint and its files
mulligan show @2:src/app.py              the exact bytes of a file
mulligan show @:.env > .env.before       the bytes of a guarded file
""",
)
@click.argument("name", metavar="CHECKPOINT[:PATH]", shell_complete=checkpoint_names)
def show(out: Output, name: str) -> None:
    """Show a checkpoint, or the exact bytes of a file in it. PATH is relative to the project root.

    On a terminal, control characters are escaped, as in \\x1b.
    """
    checkpoint, colon, path = name.partition(":")
    with out.workspace() as workspace:
        if colon:
            content = workspace.read(checkpoint, path)
            if out.as_json:
                out.data(
                    {
                        "checkpoint": workspace.find(checkpoint).id,
                        "path": path,
                        "size": len(content),
                        "content_base64": base64.b64encode(content).decode(),
                    }
                )
            elif sys.stdout.isatty():
                out.paged(
                    escape_terminal(line)
                    for line in decode_path(content).removesuffix("\n").split("\n")
                )
            else:
                sys.stdout.buffer.write(content)
                sys.stdout.buffer.flush()
            return
        found = workspace.find(checkpoint)
        entries = workspace.entries(checkpoint)
    if out.as_json:
        out.data(found.as_json() | {"entries": [each.as_json() for each in entries]})
        return
    out.say(f"checkpoint {found.id}  {found.kind}  {found.created_at} ({ago(found.created_at)})")
    if found.message:
        out.say(f"  {escape_prose(found.message)}")
    out.say(f"  tree {found.tree}")
    out.say(f"  {plural(found.files, 'file')}, {size(found.bytes)}")
    for line in uncovered(found.coverage):
        out.say(line)
    for excluded in found.coverage.excluded:
        where = escape_text(excluded.path.decode(errors="surrogateescape"))
        out.say(f"  left out: {where}  {plural(excluded.files, 'file')} {excluded.reason}")
    if found.coverage.guarded:
        out.say(f"  ignored, but guarded: {plural(found.coverage.guarded, 'file')}")
    for each in entries:
        mark = "  (guarded)" if each.guarded else ""
        end = "/" if each.kind == "directory" else ""
        out.line(f"{each.mode}  {each.size:>12,}  {escape_text(each.path)}{end}{mark}")
