"""`mulligan verify`"""

from __future__ import annotations

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, escape_text, plural, size


@command(
    "verify",
    examples="""
mulligan verify
mulligan verify --repair     strike out what is damaged, so that it can be stored anew
mulligan verify --json
""",
)
@click.option("--repair", is_flag=True, help="Let damaged contents be stored anew from the disk.")
def verify(out: Output, repair: bool) -> int:
    """Re-read and re-hash everything that is stored, and check every reference."""
    with out.workspace() as workspace:
        found = workspace.maintenance.verify(repair=repair)
    if out.as_json:
        out.data(found.as_json())
    else:
        for problem in found.problems:
            out.line(escape_text(problem))
        looked = f"{plural(found.objects, 'object')} ({size(found.bytes)})"
        if found.clean:
            out.say(f"All is well: {looked} in {plural(found.checkpoints, 'checkpoint')}.")
        else:
            out.say(f"{plural(len(found.problems), 'problem')} in {looked}.")
            if repair:
                out.say("Now run `mulligan checkpoint`: what is still on the disk is stored anew.")
                out.say(
                    "What is not is lost; `mulligan forget --keep-last N` lets go of the old "
                    "checkpoints that miss it."
                )
            else:
                out.say("`mulligan verify --repair` lets damaged contents be stored anew.")
    return 0 if found.clean else 1
