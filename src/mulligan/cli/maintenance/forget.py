"""`mulligan forget`"""

from __future__ import annotations

import click

from mulligan.cli.complete import session_names
from mulligan.cli.group import command
from mulligan.cli.output import Output, plural
from mulligan.errors import UsageError
from mulligan.workspace.settings.settings import parse_size

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}


@command(
    "forget",
    examples="""
mulligan forget --older-than 30d --dry-run
mulligan forget --keep-last 100
mulligan forget --max-size 2GB && mulligan gc
mulligan forget --session 7f3k --older-than 30d
""",
)
@click.option("--older-than", metavar="AGE", help="Drop those older than AGE: 12h, 30d, 8w.")
@click.option(
    "--keep-last", type=click.IntRange(min=1), metavar="N", help="Drop all but the last N."
)
@click.option("--max-size", metavar="SIZE", help="Drop the oldest until the rest fits in SIZE.")
@click.option(
    "--session", metavar="S", shell_complete=session_names,
    help="Only those of session S; all of them, if nothing else is said.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would be dropped, and drop nothing.")
def forget(
    out: Output,
    older_than: str | None,
    keep_last: int | None,
    max_size: str | None,
    session: str | None,
    dry_run: bool,
) -> None:
    """Drop old checkpoints, by age, count, size or session. Files are not touched.

    Without options, as the settings say under [retention]. The latest, and those that the next
    undo and redo need, are never dropped. The space is freed by `mulligan gc`.
    """
    with out.workspace() as workspace:
        found = workspace.maintenance.forget(
            keep_last=keep_last,
            older_than=_age(older_than) if older_than else None,
            max_bytes=parse_size(max_size, "--max-size") if max_size else None,
            session=session,
            dry_run=dry_run,
        )
    if out.as_json:
        out.data(found.as_json())
        return
    for id in found.forgotten:
        out.line(id)
    word = "Would drop" if dry_run else "Dropped"
    out.say(f"{word} {plural(len(found.forgotten), 'checkpoint')}; {found.kept:,} kept.")
    if found.forgotten and not dry_run:
        out.say("`mulligan gc` frees the space.")


def _age(text: str) -> float:
    try:
        number, unit = float(text[:-1]), UNITS[text[-1:].lower()]
        if number >= 0:
            return number * unit
    except (ValueError, KeyError):
        pass
    raise UsageError(f"{text!r} is not an age; write 12h, 30d or 8w.")
