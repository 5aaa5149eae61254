"""Export a session as a Markdown document that reads well, rendered or not.

The assistant's text is Markdown already and is kept; a fence that it left open is closed.
Everything else is quoted, or in fences longer than any inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mulligan.exporters.pieces import (
    Call,
    Edit,
    Message,
    Note,
    Piece,
    TurnEnd,
    first_line,
    sanitize_text,
    title_of,
    to_pieces,
)
from mulligan.exporters.records import FileChange, SessionContent

MAX_OUTPUT_LINES: Final = 60
"""Limits a tool's output; the other formats hold all of it."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_TICKS: Final = re.compile(r"`+")
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|&])")


def document(content: SessionContent) -> Iterator[str]:
    """Yield the document in pieces."""
    session = content.session
    yield f"# {_escape(title_of(session.title) or 'A session')}\n\n"
    facts = [
        ("Agent", session.agent),
        ("Model", session.model or ""),
        ("Project", session.project),
        ("Began", session.created_at),
        ("Changed", session.updated_at),
        ("Session", session.id),
    ]
    yield "".join(f"- {name}: {_code(value)}\n" for name, value in facts if value)
    for piece in to_pieces(content.path, content.changes_of):
        yield _render(piece)
    for branch in content.branches:
        branch_pieces = list(to_pieces(branch.entries, content.changes_of))
        if not branch_pieces:
            continue
        kind = "Off the main path" if branch.off_path else "Another branch"
        yield f"\n---\n\n# {kind}: {_escape(first_line(branch_pieces))}\n"
        for piece in branch_pieces:
            yield _render(piece)


def _render(piece: Piece) -> str:
    label = f" — {_escape(piece.entry.label)}" if piece.entry.label else ""
    match piece:
        case Message(entry, "You", text):
            return f"\n## You{label}\n\n{_format_time(entry.created_at)}\n\n{_quote(text)}"
        case Message(_, speaker, text, is_dialog):
            if not text.strip():
                return ""
            if is_dialog:
                return f"\n### {speaker}{label}\n\n{_close_fence(text)}"
            return f"\n*{speaker}*{label}\n\n{_quote(text)}"
        case Call():
            return _render_call(piece, label)
        case Edit(_, change):
            return f"\n- {_render_change(change)}{label}\n{_render_diff(change)}"
        case TurnEnd(entry, changes):
            mark = f" (checkpoint {_code(entry.checkpoint)})" if entry.checkpoint else ""
            rows = "".join(f"- {_render_change(each)}\n" for each in changes)
            diffs = "".join(_render_diff(each, named=True) for each in changes)
            return f"\n**The turn changed{mark}**{label}\n\n{rows}{diffs}"
        case Note(_, title, text):
            return f"\n*{_escape(title)}*{label}\n{_quote(text, space=True)}"


def _render_call(call: Call, label: str) -> str:
    details = ", ".join(_escape(each) for each in (call.state, call.duration) if each)
    subject = f" {_code(title_of(call.subject, 100))}" if call.subject else ""
    end = f" — {details}" if details else ""
    head = f"\n- **{_escape(call.name)}**{subject}{end}{label}\n"
    return head + (f"\n{_fence(_truncate(call.output))}" if call.output.strip() else "")


def _render_change(change: FileChange) -> str:
    counts = ""
    if change.additions or change.deletions:
        counts = f" +{change.additions} −{change.deletions}"
    return f"{_escape(change.status)} {_code(change.path)}{counts}"


def _render_diff(change: FileChange, *, named: bool = False) -> str:
    if not change.diff:
        return ""
    head = f"\n{_code(change.path)}\n" if named else ""
    return f"{head}\n{_fence(change.diff, 'diff')}"


def _fence(text: str, language: str = "") -> str:
    text = sanitize_text(text)
    longest = max((len(each) for each in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if text.endswith("\n") else "\n"
    return f"{fence}{language}\n{text}{end}{fence}\n"


def _quote(text: str, *, space: bool = False) -> str:
    if not text.strip():
        return ""
    body = "".join(f"> {line}".rstrip() + "\n" for line in _close_fence(text).splitlines())
    return "\n" + body if space else body


def _close_fence(text: str) -> str:
    """Close a fence that the text left open."""
    text = sanitize_text(text).rstrip("\n")
    fence = ""
    for line in text.splitlines():
        match = _FENCE.match(line)
        if match and not fence:
            fence = match[1]
        elif match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
    return f"{text}\n{fence}\n" if fence else f"{text}\n"


def _truncate(text: str) -> str:
    lines = text.rstrip("\n").splitlines()
    if len(lines) <= MAX_OUTPUT_LINES:
        return text
    rest = len(lines) - MAX_OUTPUT_LINES
    return "\n".join([*lines[:MAX_OUTPUT_LINES], f"… {rest:,} more lines"])


def _code(text: str | None) -> str:
    """Format any text as a code span."""
    text = " ".join(sanitize_text(text or "").split())
    longest = max((len(each) for each in _TICKS.findall(text)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(sanitize_text(text).split()))


def _format_time(time: str) -> str:
    return f"*{time[:16].replace('T', ' ')} UTC*"
