"""`mulligan run`"""

from __future__ import annotations

import json
import os
import shutil

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, change_line, escape_text, plural
from mulligan.workspace.results.files import plain
from mulligan.workspace.results.turns import Step

MAX_SHOWN_FILES = 20


@command(
    "run",
    examples="""
mulligan run aider
mulligan run -- make clean all
mulligan run --json -- make           the summary as JSON, in the last line of stderr
mulligan undo                         take back what it did
""",
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def run(out: Output, program: tuple[str, ...]) -> int:
    """Run any program under protection: an agent without hooks, a script, a build.

    There is a checkpoint before it, one whenever the files fall quiet while it runs, and one after
    it. The program has the terminal to itself; its exit code is passed on. What it changed is
    told on stderr, with --json too: stdout is the program's.
    """
    from mulligan.workspace.sessions import run_program

    with out.workspace(create=True, watch=True) as workspace:
        done = run_program.run(
            workspace.project, program, directory=out.base, starting=out.clear_progress
        )
    if out.as_json:
        # On a line of its own, wherever the program has stopped writing.
        out.say("\n" + json.dumps(plain(done)))
        return done.code
    if done.code == run_program.NOT_FOUND and done.step is not None and not _changes(done.step):
        # A shell that does not find a command ends like this, too.
        name = os.path.join(out.base, program[0]) if "/" in program[0] else program[0]
        if shutil.which(name) is None:
            out.say(
                f"mulligan: there is no program {escape_text(program[0])}; the code is {done.code}."
            )
    if done.problem is not None:
        out.say(f"mulligan: what it changed could not be recorded: {escape_text(done.problem)}")
    elif done.step is not None:
        _summary(out, done.step)
    return done.code


# What follows the program's name is the program's.
run.allow_interspersed_args = False


def _changes(step: Step) -> list[tuple[str, str]]:
    return [
        (state, path) for state in ("added", "modified", "deleted") for path in getattr(step, state)
    ]


def _summary(out: Output, step: Step) -> None:
    changes = _changes(step)
    if not changes:
        out.say("mulligan: nothing was changed.")
        return
    for state, path in changes[:MAX_SHOWN_FILES]:
        out.say(change_line(state, path, 0, 0))
    if len(changes) > MAX_SHOWN_FILES:
        out.say(f"… and {len(changes) - MAX_SHOWN_FILES:,} more.")
    out.say(
        f"mulligan: {plural(len(changes), 'file')} changed; `mulligan review` to decide, "
        "`mulligan undo` to take back."
    )
