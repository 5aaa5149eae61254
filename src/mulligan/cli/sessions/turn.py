"""`mulligan turn`"""

from __future__ import annotations

import click

from mulligan.cli.complete import session_names
from mulligan.cli.group import CommandGroup, command
from mulligan.cli.output import Output, change_line, escape_text
from mulligan.errors import UsageError


@command(
    "turn",
    kind=CommandGroup,
    examples="""
mulligan turn begin @ "make the tests pass"
mulligan turn begin --new --agent my-agent "make the tests pass"
mulligan turn end @
""",
)
def turn(out: Output) -> None:
    """Say where an agent's turn begins and ends.

    What changes in between is the agent's: it is pending until you keep it, and one `mulligan undo`
    takes the whole turn back.
    """


@command(
    "begin",
    examples="""
mulligan turn begin @ "make the tests pass"
mulligan turn begin 7f3k fix the typo
mulligan turn begin --new --agent my-agent "make the tests pass"
""",
)
@click.argument("words", nargs=-1, metavar="[SESSION] MESSAGE...")
@click.option("--new", is_flag=True, help="Make a session first; then none is named.")
@click.option("--agent", default="", metavar="NAME", help="Whose session the new one is.")
def begin(out: Output, words: tuple[str, ...], new: bool, agent: str) -> None:
    """Begin a turn: a checkpoint, then the message. No tool may run before this has returned.

    Prints the session's id.
    """
    if agent and not new:
        raise UsageError("--agent names the agent of a new session; say --new too.")
    if len(words) < (1 if new else 2):
        raise UsageError(
            "Give the user's message."
            if new
            else "Name a session and give the user's message, or say --new."
        )
    with out.workspace(create=True) as workspace:
        if new:
            session, message = workspace.sessions.create(agent=agent, process=0).id, words
        else:
            session, message = words[0], words[1:]
        begun = workspace.sessions.begin_turn(session, " ".join(message))
    if out.as_json:
        out.data(begun.as_json())
        return
    out.line(begun.session)
    if begun.ended:
        out.say("The turn before had not been ended; it is now, as an interrupted one.")
    out.say(f"Turn {begun.turn} has begun; checkpoint {begun.checkpoint[:8]} is from before it.")


@command(
    "end",
    examples="""
mulligan turn end @
mulligan turn end 7f3k --interrupted
""",
)
@click.argument("session", shell_complete=session_names)
@click.option("--interrupted", is_flag=True, help="The agent was stopped before it was done.")
def end(out: Output, session: str, interrupted: bool) -> None:
    """End a turn, and list what it changed."""
    with out.workspace() as workspace:
        step = workspace.sessions.end_turn(session, interrupted=interrupted)
    if out.as_json:
        out.data(step.as_json())
        return
    for state in ("added", "modified", "deleted"):
        for path in getattr(step, state):
            out.line(change_line(state, path, 0, 0))
    if step.guarded:
        names = ", ".join(map(escape_text, step.guarded[:5]))
        out.say(f"Guarded, and changed in the meantime: {names}.")
    if step.checkpoint is None:
        out.say(f"Turn {step.turn} has ended; it changed nothing.")
    else:
        out.say(
            f"Turn {step.turn} has ended. `mulligan review` shows what it did; "
            "`mulligan undo` takes it back."
        )


turn.add_command(begin)
turn.add_command(end)
