"""`mulligan session`"""

from __future__ import annotations

import sys

import click

from mulligan.cli.complete import entry_names, session_names
from mulligan.cli.group import CommandGroup, command
from mulligan.cli.output import Output, escape_prose, escape_text, exit_status, plural
from mulligan.cli.sessions.conversation import conversation, headline
from mulligan.cli.sessions.session_status import status
from mulligan.errors import UsageError, WouldLoseWork
from mulligan.workspace.results.sessions import Entry
from mulligan.workspace.sessions.clear_all import Cleared
from mulligan.workspace.workspace import Workspace

PAGE_ENTRIES = 1000


@command(
    "session",
    kind=CommandGroup,
    examples="""
mulligan session show @                     the session that was changed last
mulligan session status                     what it has pending, and what became of the rest
mulligan session new --agent me --title "Sorting things out"
mulligan session title @ "The parser"
mulligan session fork 7f3k good             a new session from the entry labelled good
mulligan session label 3fk2 good            a name to return to
mulligan session compact @
mulligan session delete 7f3k
mulligan session clear
""",
)
def session(out: Output) -> None:
    """Show, begin, name, fork, compact or delete a session.

    SESSION is an id, the beginning of one, @ for the session that was changed last, or @1 for the
    one before. ENTRY is an id, the beginning of one, or a label.
    """


@command(
    "show",
    examples="""
mulligan session show @
mulligan session show 7f3k --full
mulligan session show @ -n 20 --json
""",
)
@click.argument("session", default="@", shell_complete=session_names)
@click.option("--full", is_flag=True, help="Unfold tool calls, differences and long texts.")
@click.option("--all-branches", is_flag=True, help="Also what is not on the way to the leaf.")
@click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", help="Only the last N.")
def show(out: Output, session: str, full: bool, all_branches: bool, limit: int | None) -> None:
    """Show the conversation: what was said, called and changed, and the checkpoints."""
    with out.workspace() as workspace:
        found = workspace.sessions.get(session)
        if all_branches:
            entries = _transcript(workspace, found.id, limit)
        else:
            entries = workspace.sessions.conversation(
                found.id, limit=limit, newest=limit is not None
            )
        total = workspace.sessions.count_entries(found.id)
    if out.as_json:
        rows = [each.as_json() for each in entries]
        out.data({"session": found.as_json(), "entries": rows, "total": total})
        return
    out.paged([*headline(found), "", *conversation(entries, full=full, leaf=found.leaf)])
    if not entries:
        out.say("Nothing was said in it yet.")


def _transcript(workspace: Workspace, session: str, limit: int | None) -> list[Entry]:
    if limit is not None:
        return list(workspace.sessions.recent(session, limit=limit, include_compacted=True).entries)
    found: list[Entry] = []
    since: int | None = 0
    while since is not None:
        page = workspace.sessions.transcript(
            session, since=since, limit=PAGE_ENTRIES, include_compacted=True
        )
        found += page.entries
        since = page.next_seq
    return found


@command(
    "new",
    examples="""
mulligan session new --agent me --title "Sorting things out"
mulligan session new --json
""",
)
@click.option("--agent", default="", metavar="NAME", help="Who it is had with.")
@click.option("--title", default="", metavar="TEXT", help="What it is about.")
@click.option("--model", metavar="NAME", help="The model that answers in it.")
def new(out: Output, agent: str, title: str, model: str | None) -> None:
    """Begin a session, with a checkpoint of how the project is now."""
    with out.workspace(create=True) as workspace:
        made = workspace.sessions.create(agent=agent, title=title, model=model, process=0)
    if out.as_json:
        out.data(made.as_json())
        return
    out.line(made.id)


@command("title", examples='mulligan session title @ "The parser"')
@click.argument("session", shell_complete=session_names)
@click.argument("text")
def title(out: Output, session: str, text: str) -> None:
    """Give a session a title."""
    with out.workspace() as workspace:
        changed = workspace.sessions.change(session, title=text)
    if out.as_json:
        out.data(changed.as_json())
        return
    out.say(f"Session {changed.id[:8]} is titled: {escape_prose(changed.title)}")


@command(
    "delete",
    examples="""
mulligan session delete 7f3k
mulligan session delete 7f3k --yes && mulligan gc
""",
)
@click.argument("session", shell_complete=session_names)
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(out: Output, session: str, yes: bool) -> None:
    """Delete a session, with its entries and its checkpoints. This cannot be undone.

    Files are not touched. The space is freed by `mulligan gc`.
    """
    with out.workspace() as workspace:
        found = workspace.sessions.get(session)
        if not yes:
            _ask(out, workspace, found.id, found.title)
        gone = workspace.sessions.delete(found.id)
    if out.as_json:
        out.data(gone.as_json() | {"deleted": True})
        return
    out.say(f"Deleted session {gone.id}. `mulligan gc` frees the space.")


def _ask(out: Output, workspace: Workspace, session: str, title: str) -> None:
    """Asks whoever sits at the terminal; where nobody does, nothing is deleted."""
    if not sys.stdin.isatty() or out.as_json:
        raise UsageError("This cannot be undone, and nobody can be asked here; say --yes.")
    count = plural(workspace.sessions.count_entries(session), "record")
    out.clear_progress()
    question = f"Delete session {session[:8]} ({escape_prose(title) or 'no title'}) with {count}?"
    click.confirm(question, abort=True, err=True)


@command(
    "clear",
    examples="""
mulligan session clear                        asks twice
mulligan session clear --json                 what would go, and the word to confirm with
mulligan session clear --confirm 3f9a0c1b2d4e && mulligan gc
""",
)
@click.option("--confirm", metavar="WORD", help="The word that the call without it gave.")
def clear(out: Output, confirm: str | None) -> int:
    """Delete all sessions of the project, with their checkpoints. This cannot be undone.

    Files are not touched. The space is freed by `mulligan gc`.
    """
    with out.workspace() as workspace:
        found = workspace.sessions.clear(confirm)
        if not found.cleared and sys.stdin.isatty() and not out.as_json:
            _ask_twice(out, found)
            found = workspace.sessions.clear(found.confirm)
    words = f"Deleted {plural(found.sessions, 'session')}. `mulligan gc` frees the space."
    if not found.cleared:
        words = (
            f"{plural(found.sessions, 'session')} would be deleted, for good; nothing was. "
            f"`mulligan session clear --confirm {found.confirm}` does it."
        )
    if out.as_json:
        error = {} if found.cleared else {"error": {"code": WouldLoseWork.code, "message": words}}
        out.data(found.as_json() | error)
    else:
        out.say(words)
    return 0 if found.cleared else exit_status(WouldLoseWork.code)


def _ask_twice(out: Output, found: Cleared) -> None:
    out.clear_progress()
    records = plural(found.entries, "record")
    question = f"Delete all {plural(found.sessions, 'session')} of this project with {records}?"
    click.confirm(question, abort=True, err=True)
    click.confirm("Their checkpoints go too, and nothing brings them back. Really?",
                  abort=True, err=True)  # fmt: skip


@command(
    "fork",
    examples="""
mulligan session fork @                 go on elsewhere, from where it stands
mulligan session fork @ good            from the entry labelled good
mulligan session fork 7f3k 3fk2 --title "Another try"
""",
)
@click.argument("session", shell_complete=session_names)
@click.argument("entry", required=False, shell_complete=entry_names)
@click.option("--title", metavar="TEXT", help="Its title; else the same as before.")
def fork(out: Output, session: str, entry: str | None, title: str | None) -> None:
    """Make a new session with the way to the leaf, or to an entry; the old one stays as it is.

    A message is forked before, so that it can be said differently.
    """
    with out.workspace() as workspace:
        made = workspace.sessions.fork(session, entry, title=title)
    if out.as_json:
        out.data(made.as_json())
        return
    out.line(made.id)
    out.say(f"Forked from {(made.forked_from or '')[:8]}. The files stay as they are.")


@command(
    "label",
    examples="""
mulligan session label 3fk2 good
mulligan goto good
mulligan session label good              takes the label away
""",
)
@click.argument("entry", shell_complete=entry_names)
@click.argument("text", required=False)
@click.option("--session", metavar="S", shell_complete=session_names, help="Whose entry it is.")
def label(out: Output, entry: str, text: str | None, session: str | None) -> None:
    """Give an entry a name to return to; without TEXT, take the name away."""
    with out.workspace() as workspace:
        changed = workspace.sessions.label(entry, text, session)
    if out.as_json:
        out.data(changed.as_json())
    elif text:
        out.say(f"`mulligan goto {escape_text(text)}` goes to {changed.id[:8]}.")
    else:
        out.say(f"Entry {changed.id[:8]} has no label now.")


@command(
    "compact",
    examples="""
mulligan session compact @
mulligan session compact @ 3fk2 --summary "We chose the second parser."
""",
)
@click.argument("session", shell_complete=session_names)
@click.argument("entry", required=False, shell_complete=entry_names)
@click.option("--summary", metavar="TEXT", help="What was said and done, in short.")
def compact(out: Output, session: str, entry: str | None, summary: str | None) -> None:
    """Hide what came before ENTRY, else everything, behind a marker.

    What is hidden can still be searched and returned to.
    """
    with out.workspace() as workspace:
        hidden, marker = workspace.sessions.compact(session, entry, summary=summary)
    if out.as_json:
        out.data({"hidden": hidden, "marker": marker.as_json()})
        return
    words = "1 entry is" if hidden == 1 else f"{hidden:,} entries are"
    out.say(f"{words} compacted, and can still be found and returned to.")


for _command in (show, status, new, title, delete, clear, fork, label, compact):
    session.add_command(_command)
