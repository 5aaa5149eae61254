"""Markdown: a session as a document that reads well, rendered or not.

What an assistant wrote is Markdown already and stays so; a fence that it left open is closed.
Everything else is quoted, or in fences that are longer than any inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mulligan.exporters.reading import (
    Call,
    Edit,
    Message,
    Note,
    Piece,
    TurnEnd,
    harmless,
    opening,
    pieces,
    title_of,
)
from mulligan.exporters.records import FileChange, Story

MAX_TITLE_CHARACTERS: Final = 60
"""Lines of a tool's output; who needs all of them takes another format."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_TICKS: Final = re.compile(r"`+")
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|&])")


def document(story: Story) -> Iterator[str]:
    """The document, piece by piece."""
    session = story.session
    yield f"# {_escaped(title_of(session.title) or 'A session')}\n\n"
    facts = [
        ("Agent", session.agent),
        ("Model", session.model or ""),
        ("Project", session.project),
        ("Began", session.created_at),
        ("Changed", session.updated_at),
        ("Session", session.id),
    ]
    yield "".join(f"- {name}: {_code(value)}\n" for name, value in facts if value)
    for piece in pieces(story.way, story.changes_of):
        yield _shown(piece)
    for stretch in story.others:
        inside = list(pieces(stretch.entries, story.changes_of))
        if not inside:
            continue
        kind = "Beside the conversation" if stretch.off_path else "Another way, not taken"
        yield f"\n---\n\n# {kind}: {_escaped(opening(inside))}\n"
        for piece in inside:
            yield _shown(piece)


def _shown(piece: Piece) -> str:
    label = f" — {_escaped(piece.entry.label)}" if piece.entry.label else ""
    match piece:
        case Message(entry, "You", text):
            return f"\n## You{label}\n\n{_time(entry.created_at)}\n\n{_quoted(text)}"
        case Message(_, who, text, aloud):
            if not text.strip():
                return ""
            if aloud:
                return f"\n### {who}{label}\n\n{_closed(text)}"
            return f"\n*{who}*{label}\n\n{_quoted(text)}"
        case Call():
            return _call(piece, label)
        case Edit(_, change):
            return f"\n- {_change(change)}{label}\n{_diff(change)}"
        case TurnEnd(entry, changes):
            mark = f" (checkpoint {_code(entry.checkpoint)})" if entry.checkpoint else ""
            rows = "".join(f"- {_change(each)}\n" for each in changes)
            diffs = "".join(_diff(each, named=True) for each in changes)
            return f"\n**The turn changed{mark}**{label}\n\n{rows}{diffs}"
        case Note(_, title, text):
            return f"\n*{_escaped(title)}*{label}\n{_quoted(text, space=True)}"


def _call(call: Call, label: str) -> str:
    details = ", ".join(_escaped(each) for each in (call.state, call.took) if each)
    subject = f" {_code(title_of(call.subject, 100))}" if call.subject else ""
    end = f" — {details}" if details else ""
    head = f"\n- **{_escaped(call.name)}**{subject}{end}{label}\n"
    return head + (f"\n{_fenced(_cut(call.output))}" if call.output.strip() else "")


def _change(change: FileChange) -> str:
    counts = ""
    if change.additions or change.deletions:
        counts = f" +{change.additions} −{change.deletions}"
    return f"{_escaped(change.status)} {_code(change.path)}{counts}"


def _diff(change: FileChange, *, named: bool = False) -> str:
    if not change.diff:
        return ""
    head = f"\n{_code(change.path)}\n" if named else ""
    return f"{head}\n{_fenced(change.diff, 'diff')}"


def _fenced(text: str, language: str = "") -> str:
    text = harmless(text)
    longest = max((len(each) for each in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}\n"


def _quoted(text: str, *, space: bool = False) -> str:
    if not text.strip():
        return ""
    body = "".join(f"> {line}".rstrip() + "\n" for line in _closed(text).splitlines())
    return "\n" + body if space else body


def _closed(text: str) -> str:
    """The text, with the fence closed that it may have left open."""
    text = harmless(text).rstrip("\n")
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
    return f"{text}\n{fence}\n" if fence else f"{text}\n"


def _cut(text: str) -> str:
    lines = text.rstrip("\n").splitlines()
    if len(lines) <= MAX_TITLE_CHARACTERS:
        return text
    rest = len(lines) - MAX_TITLE_CHARACTERS
    return "\n".join([*lines[:MAX_TITLE_CHARACTERS], f"… {rest:,} more lines"])


def _code(text: str | None) -> str:
    """Text as a code span, whatever it holds."""
    text = " ".join(harmless(text or "").split())
    longest = max((len(each) for each in _TICKS.findall(text)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(harmless(text).split()))


def _time(moment: str) -> str:
    return f"*{moment[:16].replace('T', ' ')} UTC*"
