"""`mulligan keep`"""

from __future__ import annotations

import click

from mulligan.cli.complete import hunk_names, session_names
from mulligan.cli.group import command
from mulligan.cli.output import Output, plural
from mulligan.cli.review.choice import hunks_and_paths, session_of_turn
from mulligan.errors import UsageError


@command(
    "keep",
    examples="""
mulligan keep 3cbdb71349af           a hunk; `mulligan pending` lists their ids
mulligan keep 3cbd 105e src/app.py   the beginnings of two ids, and all of a file
mulligan keep --session @ --turn 2   what one turn did
mulligan keep --all
mulligan undo                        take it back
""",
)
@click.argument("names", nargs=-1, metavar="[HUNK|PATH]...", shell_complete=hunk_names)
@click.option("--all", "everything", is_flag=True, help="Keep everything that is pending.")
@click.option(
    "--session", metavar="SESSION", shell_complete=session_names, help="Only what this session did."
)
@click.option("--turn", type=click.IntRange(min=0), metavar="N", help="Only what this turn did.")
def keep(
    out: Output, names: tuple[str, ...], everything: bool, session: str | None, turn: int | None
) -> None:
    """Keep what an agent did: hunks, files, a turn, a session or everything.

    A hunk is named by its id, or at least 4 characters of its beginning. A name that could also be
    a path is the path, if it exists or has something pending. The files stay as they are.
    """
    if not (names or everything or session is not None or turn is not None):
        raise UsageError("Say what to keep: hunks, paths, --session, --turn or --all.")
    if names and everything:
        raise UsageError("Name what to keep, or say --all; not both.")
    with out.workspace() as workspace:
        session = session_of_turn(workspace, session, turn)
        hunks, paths = hunks_and_paths(out, workspace, names, session, turn)
        done = workspace.review.keep(
            *hunks, paths=paths, session=session, turn=turn,
            everything=everything and session is None and turn is None,
        )  # fmt: skip
    if out.as_json:
        out.data(done.as_json())
        return
    if not done.hunks:
        out.say("Nothing is pending there; nothing was kept.")
        return
    for id in done.hunks:
        out.line(id)
    out.say(f"Kept {plural(len(done.hunks), 'change')}. `mulligan undo` takes it back.")
