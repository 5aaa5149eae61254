"""What is pending, as lines of text: for pipes, and for those who want no screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from mulligan.cli.output import Output, change_line, escape_terminal, escape_text, plural

if TYPE_CHECKING:
    from mulligan.workspace.results.files import RestoreResult
    from mulligan.workspace.results.review import PendingFile, PendingHunk, Review
    from mulligan.workspace.workspace import Workspace


def print_review(out: Output, workspace: Workspace, found: Review, *, lines: bool) -> None:
    """The files with their hunks, and on request the lines of each."""
    if out.as_json:
        out.data(found.as_json())
        return
    several = len({file.session for file in found.files}) > 1
    for file in found.files:
        note = what_kind(file)
        if several:
            note += f"  {whose(workspace, file.session)}"
        out.line(change_line(file.status, file.path, file.additions, file.deletions, note))
        for hunk in file.hunks:
            out.line(_hunk_line(hunk, changed_by(workspace, hunk)))
            for line in changed_lines(hunk) if lines else ():
                out.line(line)
    if not found.files:
        out.say("Nothing is pending.")
        return
    added = sum(file.additions for file in found.files)
    deleted = sum(file.deletions for file in found.files)
    count = len({file.path for file in found.files})
    out.say(
        f"{plural(len(found.hunks), 'change')} in {plural(count, 'file')}, "
        f"+{added} −{deleted}.{'' if lines else ' `mulligan review` goes through them.'}"
    )


def print_moves(out: Output, results: Iterable[RestoreResult]) -> None:
    """What was changed on the disk, and what was left alone and why."""
    for result in results:
        for path in result.restored:
            out.line(change_line("restored", path, 0, 0))
        for path in result.deleted:
            out.line(change_line("deleted", path, 0, 0))
        for skip in result.skipped:
            out.line(f"left alone: {escape_text(skip.path)}, because {skip.reason}")
        for path in result.rescued:
            out.say(f"Saved by somebody at the very moment, and put beside: {escape_text(path)}")


def whose(workspace: Workspace, session: str) -> str:
    """A session as people tell it from others: the agent, and the beginning of its id."""
    agent = workspace.sessions.get(session).agent
    return f"{escape_text(agent)} {session[:4]}" if agent else session[:4]


def changed_by(workspace: Workspace, hunk: PendingHunk) -> str:
    """Who has changed lines within a hunk since, if anybody has."""
    if not hunk.mixed:
        return ""
    names = ["you" if each == "user" else whose(workspace, each) for each in hunk.changed_by]
    what = "it since" if hunk.kind == "whole" else "lines in here"
    return f"{' and '.join(names)} changed {what}"


def what_kind(file: PendingFile) -> str:
    """What else there is to say of a file: why it cannot be parted, and a change of its mode."""
    note = "  (large)" if file.is_too_large else "  (binary)" if file.is_binary else ""
    if file.old_mode and file.new_mode and file.old_mode != file.new_mode:
        note += f"  {file.old_mode} → {file.new_mode}"
    return note


def where(hunk: PendingHunk) -> str:
    """Where a hunk is in its file."""
    if hunk.kind == "whole":
        return "as a whole"
    return f"line {hunk.new_start}"


def turns(hunk: PendingHunk) -> str:
    if not hunk.turns:
        return ""
    return f"turn{'s' if len(hunk.turns) > 1 else ''} {', '.join(map(str, hunk.turns))}"


def changed_lines(hunk: PendingHunk) -> Iterator[str]:
    """The lines that went and the lines that came; nothing in them can disturb a terminal."""
    for mark, lines, colour in (("-", hunk.old_lines, "red"), ("+", hunk.new_lines, "green")):
        for line in lines:
            content = line.removesuffix("\n")
            yield click.style(f"       {mark}{escape_terminal(content)}", fg=colour)
            if content == line:
                yield "       \\ No newline at end of file"


def _hunk_line(hunk: PendingHunk, others: str) -> str:
    parts = [click.style(hunk.id, fg="cyan"), where(hunk)]
    if hunk.kind != "whole":
        parts.append(f"+{hunk.additions} −{hunk.deletions}")
    parts += [turns(hunk), click.style(others, fg="yellow") if others else ""]
    return "     " + "  ".join(part for part in parts if part)
