"""`mulligan goto`"""

from __future__ import annotations

import sys

import click

from mulligan.cli.complete import entry_names, session_names
from mulligan.cli.files.restored import report
from mulligan.cli.group import command
from mulligan.cli.output import Output, escape_prose, escape_text, plural
from mulligan.exporters.pieces import title_of
from mulligan.workspace.results.sessions import Navigation, Session


@command(
    "goto",
    examples="""
mulligan goto 3fk2                     conversation and files, as they were there
mulligan goto good --preview           what would happen to the files
mulligan goto 3fk2 --no-files          the conversation alone
mulligan goto 3fk2 --summarize         leave a summary of the way that is left
mulligan undo                          take it back
""",
)
@click.argument("entry", shell_complete=entry_names)
@click.option("--session", metavar="S", shell_complete=session_names, help="Whose entry it is.")
@click.option("--files/--no-files", default=True, help="Whether the files follow.")
@click.option("--summarize", is_flag=True, help="Leave a summary of the way that is left.")
@click.option("--preview", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--force", is_flag=True, help="Overwrite files even if they are known to be yours.")
def goto(
    out: Output,
    entry: str,
    session: str | None,
    files: bool,
    summarize: bool,
    preview: bool,
    force: bool,
) -> int:
    """Go to an entry of a session, and bring the files to what they were there.

    A message of yours is gone back before, and printed, so that you can say it differently. What
    is left stays in the session's tree; `mulligan tree` shows it.
    """
    with out.workspace() as workspace:
        done = workspace.sessions.goto(
            entry, session=session, skip_files=not files, summarize=summarize, preview=preview,
            force=force,
        )  # fmt: skip
        whose = workspace.sessions.get(done.session)
    if out.as_json:
        out.data(done.as_json())
    elif preview and done.files is not None:
        return report(out, done.files)
    else:
        for skip in done.files.skipped if done.files else ():
            out.say(
                f"{click.style('S', fg='cyan', bold=True)}  {escape_text(skip.path)}: {skip.reason}"
            )
        out.say(_words(done))
        if not preview:
            _say_how_to_continue(out, whose)
        if done.text is not None:
            _print(out, done.text)
    return 1 if done.files is not None and not done.files.verified else 0


def _words(done: Navigation) -> str:
    """What was done, in a line."""
    if done.old_leaf == done.new_leaf and done.files is None and not done.preview:
        return (
            "The session stands there already; nothing was changed. "
            "`--force` brings the files there too."
        )
    place = (done.new_leaf or "")[:8] or "its beginning"
    before = f', before "{escape_prose(title_of(done.text, 50))}"' if done.text is not None else ""
    if done.preview:
        return f"Would move session {done.session[:8]} to {place}{before}. Nothing was changed."
    what = "the files stay as they are"
    if done.files is not None:
        what = f"{plural(len(done.files.restored), 'file')} restored"
        what += f", {len(done.files.deleted):,} deleted"
        if done.files.skipped:
            what += f", {len(done.files.skipped):,} left alone"
    summary = f" The way that was left is summed up in {place}." if done.summary_entry else ""
    return (
        f"Session {done.session[:8]} is at {place}{before}: {what}.{summary} "
        "`mulligan undo` takes it back."
    )


def _say_how_to_continue(out: Output, session: Session) -> None:
    """Say how to resume the conversation, which only the agent can do."""
    from mulligan.protocols.agents import AGENTS
    from mulligan.protocols.agents.resuming import resume_command, rewind_hint

    command = resume_command(session)
    if command is not None:
        out.say(f"To continue the conversation: `{command}`; {rewind_hint(session)}.")
    elif session.source is not None or session.agent in AGENTS:
        agent = escape_text(session.agent)
        out.say(f"The conversation itself stays as it is: {agent} cannot be resumed.")


def _print(out: Output, message: str) -> None:
    """The message: exactly for a program, harmless for a terminal."""
    if sys.stdout.isatty():
        for line in message.expandtabs(4).splitlines():
            out.line(escape_prose(line))
    else:
        sys.stdout.buffer.write(message.encode() + b"\n")
        sys.stdout.buffer.flush()
