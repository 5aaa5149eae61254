"""`mulligan discard`"""

from __future__ import annotations

import click

from mulligan.cli.complete import hunk_names, session_names
from mulligan.cli.group import command
from mulligan.cli.output import Output, exit_status, plural
from mulligan.cli.review.choice import hunks_and_paths, session_of_turn
from mulligan.cli.review.lines import print_moves
from mulligan.errors import UsageError, WouldLoseWork
from mulligan.workspace.results.review import Discarded


@command(
    "discard",
    examples="""
mulligan discard 3cbdb71349af           a hunk; `mulligan pending` lists their ids
mulligan discard 3cbd src/app.py        the beginning of an id, and all of a file
mulligan discard --session @ --turn 2   what one turn did
mulligan discard --all --preview
mulligan undo                           take it back
""",
)
@click.argument("names", nargs=-1, metavar="[HUNK|PATH]...", shell_complete=hunk_names)
@click.option("--all", "everything", is_flag=True, help="Undo everything that is pending.")
@click.option(
    "--session", metavar="SESSION", shell_complete=session_names, help="Only what this session did."
)
@click.option("--turn", type=click.IntRange(min=0), metavar="N", help="Only what this turn did.")
@click.option("--preview", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--force", is_flag=True, help="Undo also what others have changed since.")
def discard(
    out: Output,
    names: tuple[str, ...],
    everything: bool,
    session: str | None,
    turn: int | None,
    preview: bool,
    force: bool,
) -> int:
    """Undo what an agent did, on the disk: hunks, files, a turn, a session or everything.

    A hunk is named by its id, or at least 4 characters of its beginning. A name that could also be
    a path is the path, if it exists or has something pending. A hunk in which you or another agent
    have changed lines since is left alone, and listed.
    """
    if not (names or everything or session is not None or turn is not None):
        raise UsageError("Say what to undo: hunks, paths, --session, --turn or --all.")
    if names and everything:
        raise UsageError("Name what to undo, or say --all; not both.")
    with out.workspace() as workspace:
        session = session_of_turn(workspace, session, turn)
        hunks, paths = hunks_and_paths(out, workspace, names, session, turn)
        done = workspace.review.discard(
            *hunks, paths=paths, session=session, turn=turn, force=force, preview=preview,
            everything=everything and session is None and turn is None,
        )  # fmt: skip
    if out.as_json:
        found = done.as_json() | {"preview": preview}
        if done.refused:
            found["error"] = {"code": WouldLoseWork.code, "message": _summary(done, preview)}
        out.data(found)
    else:
        print_moves(out, done.results)
        out.say(_summary(done, preview))
    if done.refused:
        return exit_status(WouldLoseWork.code)
    return 0 if all(result.verified for result in done.results) else 1


def _summary(done: Discarded, preview: bool) -> str:
    left = f", {plural(len(done.conflicts), 'change')} left alone" if done.conflicts else ""
    if done.refused:
        return "Nothing was undone: all of it was changed since. --force undoes it all the same."
    count = len(set(done.hunks) - set(done.conflicts)) or len(done.hunks)
    if not count:
        return "Nothing is pending there; nothing was undone."
    if preview:
        return f"Would undo {plural(count, 'change')}{left}. Nothing was changed."
    again = len([result for result in done.results if result.operation is not None])
    how = "`mulligan undo` takes it back."
    if again > 1:
        how = f"{again} sessions' work, so {again} times `mulligan undo` takes it back."
    return f"Undid {plural(count, 'change')}{left}. {how}"
