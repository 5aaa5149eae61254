"""`mulligan install`"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterable, Iterator

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, escape_text
from mulligan.errors import MulliganError, UsageError
from mulligan.protocols.agents import AGENTS, agent
from mulligan.protocols.agents.installing import Change, Outcome
from mulligan.protocols.agents.shape import Agent, HookCommand, InstallScope

Work = Callable[[Agent, bool], Outcome]
"""Install or uninstall one agent; with True, only preview it."""
COLOURS = {"+": "green", "-": "red", "@": "cyan"}
names = click.Choice((*AGENTS, "all"))


@command(
    "install",
    examples="""
mulligan install claude-code           for all your projects
mulligan install all --preview         what would be written, for the agents that are here
mulligan install codex --project       for this project alone
mulligan uninstall claude-code         take it back
""",
)
@click.argument("agent_name", metavar="AGENT", type=names)
@click.option("--project", "for_project", is_flag=True, help="For this project alone.")
@click.option("--user", "for_user", is_flag=True, help="For all your projects; the default.")
@click.option("--preview", is_flag=True, help="Show what would be written, and write nothing.")
@click.option(
    "--strict", is_flag=True, help="Stop a prompt that cannot be protected; else it goes on."
)
def install(
    out: Output, agent_name: str, for_project: bool, for_user: bool, preview: bool, strict: bool
) -> int:
    """Let an agent call Mulligan: a checkpoint before every prompt, a step after every turn.

    Shows the few lines that it adds to the agent's own configuration, and adds them. Whatever
    happens to Mulligan, the agent goes on as before. AGENT is claude-code, codex, gemini, opencode
    or pi; `all` are those that are found here.
    """
    from mulligan.protocols.agents.installing import install as write
    from mulligan.protocols.agents.installing import our_command
    from mulligan.workspace.project.location import home_directory

    where = place(out, for_project=for_project, for_user=for_user)
    mulligan = HookCommand(our_command(), strict)
    return each(
        out,
        chosen(agent_name, where),
        lambda one, preview: write(one, where, mulligan, home_directory(), preview=preview),
        "installed",
        "it is installed as it should be",
        preview=preview,
    )


def place(out: Output, *, for_project: bool, for_user: bool) -> InstallScope:
    """Return the scope to install for."""
    if for_project and for_user:
        raise UsageError("--user and --project are mutually exclusive.")
    project = None
    if for_project:
        from mulligan.workspace.project.location import find_project, home_directory

        location = find_project(out.base, home_directory(), allow_any_root=out.any_root)
        project = os.fsdecode(location.root)
    return InstallScope(os.path.expanduser("~"), os.environ, project)


def chosen(name: str, where: InstallScope) -> list[Agent]:
    """Return the named agent, or for `all` those that are present."""
    from mulligan.protocols.agents.finding import is_found

    if name != "all":
        return [agent(name)]
    present = [one for one in map(agent, AGENTS) if is_found(one, where)]
    if not present:
        raise UsageError(f"None of {', '.join(AGENTS)} is found here; name one to install anyway.")
    return present


def each(
    out: Output, agents: list[Agent], work: Work, done: str, already: str, *, preview: bool
) -> int:
    """Show and make the changes for each agent; a failure for one does not stop the others.

    Changes that an agent makes itself while it is installed are shown afterwards.
    """
    results, problems = [], []
    for one in agents:
        try:
            outcome = work(one, True)
            _show(out, outcome.changes)
            if not preview:
                planned, outcome = outcome.changes, work(one, False)
                _show(out, [change for change in outcome.changes if change not in planned])
            results.append(outcome)
            if not out.as_json:
                out.say(_words(one, outcome, done, already, preview=preview))
        except (MulliganError, OSError) as problem:
            if len(agents) == 1:
                raise
            problems.append({"agent": one.name, "problem": str(problem)})
            out.say(f"{one.title}: {escape_text(str(problem))}")
    if out.as_json:
        out.data(
            {
                "agents": [_as_json(outcome) for outcome in results],
                "problems": problems,
                "preview": preview,
            }
        )
    return 1 if problems else 0


def _show(out: Output, changes: Iterable[Change]) -> None:
    if not out.as_json:
        for change in changes:
            for line in _difference(change):
                out.line(line)


def _words(one: Agent, outcome: Outcome, done: str, already: str, *, preview: bool) -> str:
    if not outcome.changes:
        text = f"{one.title}: nothing to change; {outcome.note or already}."
    elif preview:
        text = f"{one.title}: this would be written"
        text += f"; {outcome.note}." if outcome.note else ". Nothing was changed."
    else:
        text = f"{one.title}: {done}."
    if outcome.needs:
        text += f"\n{click.style('Still to do:', fg='yellow')} {escape_text(outcome.needs)}."
    return text


def _difference(change: Change, around: int = 1) -> Iterator[str]:
    before, after = change.before or "", change.after or ""
    lines = difflib.unified_diff(
        before.splitlines(),
        after.splitlines(),
        change.path if change.before is not None else os.devnull,
        change.path if change.after is not None else os.devnull,
        n=around,
        lineterm="",
    )
    for line in lines:
        colour = COLOURS.get(line[:1]) if sys.stdout.isatty() else None
        yield click.style(escape_text(line.rstrip("\n").expandtabs(4)), fg=colour)


def _as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "agent": outcome.agent,
        # The lines that change, and not the file: there may be keys in it.
        "changes": [
            {"path": change.path, "diff": click.unstyle("\n".join(_difference(change, 0)))}
            for change in outcome.changes
        ],
        "needs": outcome.needs,
        "note": outcome.note,
    }
