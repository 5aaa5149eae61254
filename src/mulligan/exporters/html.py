"""Export a session as one HTML page without scripts and network access.

All texts of the session are escaped, and none becomes part of a tag: attributes hold only what
this module writes. Should that fail, the page's own content security policy forbids scripts and
external resources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Final

from mulligan.core.entries import ERROR, SUCCESS
from mulligan.exporters.html_style import STYLE
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
from mulligan.exporters.records import Entry, FileChange, SessionContent

LINE_CLASSES: Final = {"+": "new", "-": "old"}
STATE_MARKS: Final = {SUCCESS: "✓", ERROR: "✗"}

_FENCED: Final = re.compile(
    r"^ {0,3}(`{3,}|~{3,})([^\n]*)\n(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.M | re.S
)
_SPAN: Final = re.compile(r"(?<!`)(`{1,2})(?!`)([^\n]+?)(?<!`)\1(?!`)")


def page(content: SessionContent) -> Iterator[str]:
    """Yield the page in pieces."""
    session = content.session
    title = title_of(session.title) or "A session"
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_escape(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    )
    facts = (session.agent, session.model, session.project, _format_time(session.created_at))
    yield f"<header>\n<h1>{_escape(title)}</h1>\n<p>"
    yield " · ".join(f"<span>{_escape(fact)}</span>" for fact in facts if fact)
    yield f"</p>\n<p><code>{_escape(session.id)}</code></p>\n</header>\n<main>\n"
    for piece in to_pieces(content.path, content.changes_of):
        yield _render(piece)
    for branch in content.branches:
        branch_pieces = list(to_pieces(branch.entries, content.changes_of))
        if not branch_pieces:
            continue
        kind = "Off the main path" if branch.off_path else "Another branch"
        summary = f"{kind}: {_escape(first_line(branch_pieces))}"
        yield f'<details class="branch">\n<summary>{summary}</summary>\n'
        for piece in branch_pieces:
            yield _render(piece)
        yield "</details>\n"
    yield "</main>\n</body>\n</html>\n"


def _render(piece: Piece) -> str:
    match piece:
        case Message(entry, speaker, text, is_dialog):
            if not text.strip():
                return ""
            kind = "you" if speaker == "You" else "said" if is_dialog else "quiet"
            words = _render_text(text) if is_dialog else f"<p>{_escape(text)}</p>"
            return _render_article(entry, kind, f"<h2>{_escape(speaker)}</h2>\n{words}")
        case Call():
            return _render_article(piece.entry, "call", _render_call(piece))
        case Edit(entry, change):
            return _render_article(entry, "edit", _render_change(change))
        case TurnEnd(entry, changes):
            mark = f" <code>{_escape(entry.checkpoint)}</code>" if entry.checkpoint else ""
            head = f"<h2>The turn changed{mark}</h2>\n"
            return _render_article(entry, "turn", head + "".join(map(_render_change, changes)))
        case Note(entry, title, text):
            body = f"<p>{_escape(text)}</p>\n" if text.strip() else ""
            return _render_article(entry, "note", f"<h2>{_escape(title)}</h2>\n{body}")


def _render_article(entry: Entry, kind: str, body: str) -> str:
    hidden = " compacted" if entry.is_compacted else ""
    label = f'<span class="label">{_escape(entry.label)}</span>' if entry.label else ""
    return (
        f'<article class="{kind}{hidden}" id="e{entry.seq}">\n'
        f'<p class="when">{label}<a href="#e{entry.seq}">{_format_time(entry.created_at)}</a></p>\n'
        f"{body}</article>\n"
    )


def _render_call(call: Call) -> str:
    state = STATE_MARKS.get(call.state, "…" if call.state else "")
    duration = f' <span class="took">{call.duration}</span>' if call.duration else ""
    kind = "bad" if call.state == ERROR else "good"
    head = (
        f"<summary><b>{_escape(call.name)}</b> <code>{_escape(title_of(call.subject, 160))}</code> "
        f'<span class="{kind}">{state}</span>{duration}</summary>\n'
    )
    parts = "".join(f"<pre>{_escape(each)}</pre>\n" for each in (call.input, call.output) if each)
    return f"<details>\n{head}{parts}</details>\n"


def _render_change(change: FileChange) -> str:
    counts = ""
    if change.additions or change.deletions:
        counts = (
            f' <span class="good">+{change.additions}</span>'
            f' <span class="bad">−{change.deletions}</span>'
        )
    head = f"{_escape(change.status)} <code>{_escape(change.path)}</code>{counts}"
    if not change.diff:
        return f'<p class="file">{head}</p>\n'
    diff = _render_diff(change.diff)
    return f'<details>\n<summary class="file">{head}</summary>\n{diff}</details>\n'


def _render_diff(diff: str) -> str:
    rows = []
    for line in diff.removesuffix("\n").split("\n"):
        kind = "head" if line.startswith(("--- ", "+++ ", "@@")) else LINE_CLASSES.get(line[:1])
        text = _escape(line)
        rows.append(f'<span class="{kind}">{text}</span>' if kind else text)
    shown = "\n".join(rows)
    return f'<pre class="diff">{shown}</pre>\n'


def _render_text(text: str) -> str:
    """Render fenced blocks and code spans of Markdown; keep all other text as written."""
    parts = []
    at = 0
    for block in _FENCED.finditer(text):
        parts.append(_render_paragraph(text[at : block.start()]))
        parts.append(f"<pre>{_escape(block[2])}</pre>\n")
        at = block.end()
    parts.append(_render_paragraph(text[at:]))
    return "".join(parts)


def _render_paragraph(text: str) -> str:
    if not text.strip():
        return ""
    parts = []
    at = 0
    text = text.strip("\n")
    for span in _SPAN.finditer(text):
        parts.append(_escape(text[at : span.start()]) + f"<code>{_escape(span[2])}</code>")
        at = span.end()
    return f"<p>{''.join(parts)}{_escape(text[at:])}</p>\n"


def _escape(text: str | None) -> str:
    """Escape text for HTML; show invisible characters, drop those that HTML forbids."""
    return escape(sanitize_text(text or ""), quote=True)


def _format_time(time: str) -> str:
    return _escape(f"{time[:10]} {time[11:16]} UTC")
