"""`mulligan gc`"""

from __future__ import annotations

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, plural, size


@command(
    "gc",
    examples="""
mulligan gc --dry-run
mulligan gc
""",
)
@click.option("--dry-run", is_flag=True, help="Say what would be freed, and free nothing.")
def gc(out: Output, dry_run: bool) -> None:
    """Free what no checkpoint needs any more. Safe beside running agents."""
    with out.workspace() as workspace:
        found = workspace.maintenance.gc(dry_run=dry_run)
    if out.as_json:
        out.data(found.as_json())
    else:
        word = "Would free about" if dry_run else "Freed"
        out.say(f"{word} {size(found.freed_bytes)}: {plural(found.removed, 'object')}.")
