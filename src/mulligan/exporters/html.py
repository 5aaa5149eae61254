"""HTML: a session as one page that needs nothing else, neither the network nor a script.

Every text of the session is escaped, and none of it becomes part of a tag: attributes hold only
what this module writes. The page's own policy forbids scripts and anything from elsewhere, should
an error ever be found here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Final

from mulligan.core.entries import ERROR, SUCCESS
from mulligan.exporters.html_style import STYLE
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
from mulligan.exporters.records import Entry, FileChange, Story

LINES: Final = {"+": "new", "-": "old"}
MARKS: Final = {SUCCESS: "✓", ERROR: "✗"}

_FENCED: Final = re.compile(
    r"^ {0,3}(`{3,}|~{3,})([^\n]*)\n(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.M | re.S
)
_SPAN: Final = re.compile(r"(?<!`)(`{1,2})(?!`)([^\n]+?)(?<!`)\1(?!`)")


def page(story: Story) -> Iterator[str]:
    """The page, piece by piece."""
    session = story.session
    title = title_of(session.title) or "A session"
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    )
    facts = (session.agent, session.model, session.project, _moment(session.created_at))
    yield f"<header>\n<h1>{_text(title)}</h1>\n<p>"
    yield " · ".join(f"<span>{_text(each)}</span>" for each in facts if each)
    yield f"</p>\n<p><code>{_text(session.id)}</code></p>\n</header>\n<main>\n"
    for piece in pieces(story.way, story.changes_of):
        yield _shown(piece)
    for stretch in story.others:
        inside = list(pieces(stretch.entries, story.changes_of))
        if not inside:
            continue
        kind = "Beside the conversation" if stretch.off_path else "Another way, not taken"
        yield f'<details class="way">\n<summary>{kind}: {_text(opening(inside))}</summary>\n'
        for piece in inside:
            yield _shown(piece)
        yield "</details>\n"
    yield "</main>\n</body>\n</html>\n"


def _shown(piece: Piece) -> str:
    match piece:
        case Message(entry, who, text, aloud):
            if not text.strip():
                return ""
            kind = "you" if who == "You" else "said" if aloud else "quiet"
            words = _words(text) if aloud else f"<p>{_text(text)}</p>"
            return _article(entry, kind, f"<h2>{_text(who)}</h2>\n{words}")
        case Call():
            return _article(piece.entry, "call", _call(piece))
        case Edit(entry, change):
            return _article(entry, "edit", _change(change))
        case TurnEnd(entry, changes):
            mark = f" <code>{_text(entry.checkpoint)}</code>" if entry.checkpoint else ""
            head = f"<h2>The turn changed{mark}</h2>\n"
            return _article(entry, "turn", head + "".join(map(_change, changes)))
        case Note(entry, title, text):
            body = f"<p>{_text(text)}</p>\n" if text.strip() else ""
            return _article(entry, "note", f"<h2>{_text(title)}</h2>\n{body}")


def _article(entry: Entry, kind: str, body: str) -> str:
    hidden = " compacted" if entry.is_compacted else ""
    label = f'<span class="label">{_text(entry.label)}</span>' if entry.label else ""
    return (
        f'<article class="{kind}{hidden}" id="e{entry.seq}">\n'
        f'<p class="when">{label}<a href="#e{entry.seq}">{_moment(entry.created_at)}</a></p>\n'
        f"{body}</article>\n"
    )


def _call(call: Call) -> str:
    state = MARKS.get(call.state, "…" if call.state else "")
    took = f' <span class="took">{call.took}</span>' if call.took else ""
    kind = "bad" if call.state == ERROR else "good"
    head = (
        f"<summary><b>{_text(call.name)}</b> <code>{_text(title_of(call.subject, 160))}</code> "
        f'<span class="{kind}">{state}</span>{took}</summary>\n'
    )
    parts = "".join(f"<pre>{_text(each)}</pre>\n" for each in (call.input, call.output) if each)
    return f"<details>\n{head}{parts}</details>\n"


def _change(change: FileChange) -> str:
    counts = ""
    if change.additions or change.deletions:
        counts = (
            f' <span class="good">+{change.additions}</span>'
            f' <span class="bad">−{change.deletions}</span>'
        )
    head = f"{_text(change.status)} <code>{_text(change.path)}</code>{counts}"
    if not change.diff:
        return f'<p class="file">{head}</p>\n'
    return f'<details>\n<summary class="file">{head}</summary>\n{_diff(change.diff)}</details>\n'


def _diff(diff: str) -> str:
    rows = []
    for line in diff.removesuffix("\n").split("\n"):
        kind = "head" if line.startswith(("--- ", "+++ ", "@@")) else LINES.get(line[:1])
        text = _text(line)
        rows.append(f'<span class="{kind}">{text}</span>' if kind else text)
    shown = "\n".join(rows)
    return f'<pre class="diff">{shown}</pre>\n'


def _words(text: str) -> str:
    """What somebody said: fences become blocks and spans code; the rest stays as written."""
    parts = []
    at = 0
    for found in _FENCED.finditer(text):
        parts.append(_paragraph(text[at : found.start()]))
        parts.append(f"<pre>{_text(found[2])}</pre>\n")
        at = found.end()
    parts.append(_paragraph(text[at:]))
    return "".join(parts)


def _paragraph(text: str) -> str:
    if not text.strip():
        return ""
    parts = []
    at = 0
    text = text.strip("\n")
    for found in _SPAN.finditer(text):
        parts.append(_text(text[at : found.start()]) + f"<code>{_text(found[2])}</code>")
        at = found.end()
    return f"<p>{''.join(parts)}{_text(text[at:])}</p>\n"


def _text(text: str | None) -> str:
    """Escape text for HTML, mark what a reader would not see, drop what HTML forbids."""
    return escape(harmless(text or ""), quote=True)


def _moment(moment: str) -> str:
    return _text(f"{moment[:10]} {moment[11:16]} UTC")
