"""How a conversation looks on a terminal: who said what, and what was done, folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from mulligan.cli.output import STATUS_COLOURS, ago, escape_prose, escape_text, plural, short_id
from mulligan.core.entries import ERROR, SUCCESS
from mulligan.exporters.pieces import (
    Call,
    Edit,
    Message,
    Note,
    Piece,
    TurnEnd,
    title_of,
    to_pieces,
)
from mulligan.exporters.records import FileChange
from mulligan.workspace.results.sessions import Entry, Session

MAX_SHOWN_LINES = 12
"""Lines of a message that are shown, unless all are wanted."""

WHO = {"You": "cyan", "Assistant": "green"}
MARKS = {SUCCESS: click.style("✓", fg="green"), ERROR: click.style("✗", fg="red")}


def headline(session: Session) -> Iterator[str]:
    title = escape_prose(title_of(session.title, 200)) or "(no title)"
    yield click.style(title, bold=True)
    facts = [session.agent, session.model or "", session.status.replace("_", " ")]
    words = " · ".join(escape_text(each) for each in facts if each)
    id = click.style(escape_text(session.id), fg="yellow")
    yield f"session {id} · {words} · {ago(session.updated_at)}"


def conversation(
    entries: Sequence[Entry], *, full: bool = False, leaf: str | None = None
) -> Iterator[str]:
    """The entries in lines. Where their order jumps to another branch, a line says so."""
    before: str | None = None
    last: Entry | None = None
    told: set[str] = set()
    compacted = False
    for piece in to_pieces(entries, lambda entry: ()):
        entry = piece.entry
        assert isinstance(entry, Entry)
        if entry.is_compacted != compacted:
            compacted = entry.is_compacted
            words = "compacted from here" if compacted else "compacted up to here"
            yield click.style(f"┈┈ {words} ┈┈", dim=True)
        if last is not None and _jumps(entry, last, told):
            yield ""
            parent = escape_text((entry.parent or "the beginning")[:8])
            kind = "beside it" if entry.off_path else f"from {parent}"
            yield click.style(f"── another branch, {kind} ──", fg="magenta")
        told.add(entry.id)
        last = entry
        if before is not None and "Message" in (before, type(piece).__name__):
            yield ""
        before = type(piece).__name__
        yield from _lines(piece, full)
        if entry.id == leaf:
            yield click.style("  ← the session stands here", fg="magenta")


def _jumps(entry: Entry, last: Entry, told: set[str]) -> bool:
    return entry.branch != last.branch and entry.parent in told and entry.parent != last.id


def _lines(piece: Piece, full: bool) -> Iterator[str]:
    mark = _mark(piece)
    match piece:
        case Message(entry, who, text, aloud):
            colour = WHO.get(who)
            name = click.style(who, fg=colour, bold=aloud, dim=not aloud)
            yield f"{name}  {click.style(ago(entry.created_at), dim=True)}{mark}"
            yield from _text(text, None if full else MAX_SHOWN_LINES, dim=not aloud, prose=True)
        case Call(_, name, subject, state, took):
            end = MARKS.get(state, click.style(escape_text(state) or "?", dim=True))
            about = escape_text(subject if full else title_of(subject, 90))
            time = click.style(took, dim=True)
            yield (
                f"  ▸ {click.style(escape_text(name), bold=True)} {about}  {end} {time}".rstrip()
                + mark
            )
            if full:
                yield from _text(piece.input, None, indent=6, dim=True)
                yield from _text(piece.output, None, indent=6)
        case Edit(_, change):
            yield f"  ✎ {_change(change)}{mark}"
            if full and change.diff:
                yield from _diff(change.diff)
        case TurnEnd(entry, changes):
            name = click.style((entry.checkpoint or "")[:8], fg="yellow")
            yield f"  ◆ checkpoint {name}: {plural(len(changes), 'file')} changed{mark}"
            for change in changes if full else changes[:MAX_SHOWN_LINES]:
                yield f"      {_change(change)}"
            if not full and len(changes) > MAX_SHOWN_LINES:
                yield f"      … and {len(changes) - MAX_SHOWN_LINES:,} more"
        case Note(_, title, text):
            yield click.style(f"  ┄ {escape_prose(title)}", fg="magenta") + mark
            yield from _text(
                text, None if full else MAX_SHOWN_LINES, indent=4, dim=True, prose=True
            )


def _mark(piece: Piece) -> str:
    """The entry's name, to go there, and its label if it has one."""
    entry = piece.entry
    found = "  " + click.style(short_id(entry.id), fg="yellow", dim=True)
    if entry.label:
        found += "  " + click.style(f"[{escape_text(entry.label)}]", fg="magenta", bold=True)
    if isinstance(piece, Message) and entry.checkpoint:
        found += click.style(f"  ◆ {entry.checkpoint[:8]}", dim=True)
    return found


def _change(change: FileChange) -> str:
    colour = STATUS_COLOURS.get({"created": "added"}.get(change.status, change.status))
    counts = ""
    if change.additions or change.deletions:
        plus = click.style(f"+{change.additions}", fg="green")
        counts = f"  {plus} {click.style(f'−{change.deletions}', fg='red')}"
    return (
        f"{click.style(escape_text(change.status), fg=colour)} {escape_text(change.path)}{counts}"
    )


def _text(
    text: str, limit: int | None, *, indent: int = 2, dim: bool = False, prose: bool = False
) -> Iterator[str]:
    lines = text.expandtabs(4).strip("\n").splitlines() if text.strip() else []
    for line in map(escape_prose if prose else escape_text, lines[:limit]):
        yield " " * indent + (click.style(line, dim=True) if dim else line)
    if limit is not None and len(lines) > limit:
        rest = plural(len(lines) - limit, "more line")
        yield " " * indent + click.style(f"… {rest}", dim=True)


def _diff(diff: str) -> Iterator[str]:
    for line in diff.expandtabs(4).removesuffix("\n").split("\n"):
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        yield "      " + click.style(escape_text(line), fg=colour)
