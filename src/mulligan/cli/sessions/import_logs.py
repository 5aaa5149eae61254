"""`mulligan import`: other agents' sessions, from their own logs."""

from __future__ import annotations

import os
from functools import partial

import click

from mulligan.cli import output
from mulligan.cli.group import command
from mulligan.workspace.project.location import home_directory
from mulligan.workspace.transfer.import_logs import IMPORTERS, ImportResult, follow, import_logs

MAX_SHOWN_PROBLEMS = 20


@command(
    "import",
    examples="""
mulligan import claude-code          take in all sessions of Claude Code
mulligan import all                  those of every agent that is known
mulligan import codex --watch        keep following Codex's logs
mulligan import pi session.jsonl     one log
mulligan import yaai ~/old-folder    a folder of logs
mulligan import agentsmithy          the dialogs of the project here
mulligan -C ~/shop import aider      the history of another project
""",
)
@click.argument("agent", metavar="AGENT", type=click.Choice([*IMPORTERS, "all"]))
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--watch", is_flag=True, help="Keep following the logs until interrupted.")
@click.option("--again", is_flag=True, help="Read logs again that have not changed.")
def import_command(
    out: output.Output, agent: str, paths: tuple[str, ...], watch: bool, again: bool
) -> None:
    """Take in the sessions that other agents wrote down.

    Without PATHS it finds the user's logs by itself. Each session goes to the project that it is
    about, and checkpoints with it, where the logs have any; nothing of the project or of the logs
    is changed. To run it again adds only what is new. AGENT is claude-code, codex, gemini,
    opencode, pi, aider, agentsmithy, yaai, mulligan (what `mulligan export` wrote), or all.
    """
    home = home_directory()
    named = tuple(out.paths(paths))
    if agent == "all" and (named or watch):
        raise click.UsageError("Name one agent to import named logs, or to follow them.")
    # Importers look for a project's logs in PWD, and `-C` is where the user means to be.
    environment = {**os.environ, "PWD": out.base}
    if watch:
        told = partial(_follow, out)
        follow(home, agent, paths=named, environment=environment, told=told)
        return
    progress = output.Progress()
    take = partial(import_logs, environment=environment)
    with progress:
        done = [
            take(home, each, paths=named, again=again, progress=progress.show)
            for each in (IMPORTERS if agent == "all" else (agent,))
            if agent != "all" or each != "mulligan"
        ]
    if out.as_json:
        out.data({"imported": [each.as_json() for each in done]})
        return
    for each in done:
        _tell(out, each)


def _follow(out: output.Output, done: ImportResult) -> bool:
    if out.as_json:
        if done.entries or done.checkpoints or done.problems:
            out.data(done.as_json())
    elif done.entries or done.checkpoints or done.problems:
        _tell(out, done)
    return True


def _tell(out: output.Output, done: ImportResult) -> None:
    if not done.logs:
        out.say(f"{done.agent}: no logs found.")
        return
    out.line(
        f"{done.agent}: {output.plural(done.entries, 'new entry').replace('entrys', 'entries')} in "
        f"{output.plural(done.sessions, 'session')}, "
        + (f"{output.plural(done.checkpoints, 'checkpoint')}, " if done.checkpoints else "")
        + f"{output.plural(done.logs, 'log')} ({done.unchanged} unchanged)"
    )
    for problem in done.problems[:MAX_SHOWN_PROBLEMS]:
        place = f"{problem.path}:{problem.line}" if problem.line else problem.path
        out.say(f"  not taken: {output.escape_text(place)}: {output.escape_text(problem.reason)}")
    rest = len(done.problems) - MAX_SHOWN_PROBLEMS
    if rest > 0:
        out.say(f"  … and {rest:,} more; --json names them all.")
