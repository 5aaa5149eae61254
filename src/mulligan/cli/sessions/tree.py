"""`mulligan tree`"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from mulligan.cli.complete import session_names
from mulligan.cli.group import command
from mulligan.cli.output import Output, ago, escape_prose, escape_text, plural, short_id
from mulligan.core.entries import (
    BRANCH_SUMMARY,
    COMPACT_MARKER,
    STEP_SNAPSHOT,
    UNREVERT_POINT,
    USER_INPUT,
)
from mulligan.exporters.pieces import listed_changes, title_of
from mulligan.workspace.results.sessions import Entry, Session
from mulligan.workspace.workspace import Workspace

PAGE_ENTRIES = 1000
KEPT_AT_ENDS = 5
"""Lines at both ends of a long stretch that are always shown."""

SYMBOLS = {USER_INPUT: "●", STEP_SNAPSHOT: "◆", BRANCH_SUMMARY: "◇", COMPACT_MARKER: "◌"}
COLOURS = {USER_INPUT: "cyan", STEP_SNAPSHOT: "green"}
BETWEEN = {
    "assistant_output": "answer",
    "tool_call": "tool call",
    "file_edit": "edit",
    "system_message": "notice",
}


class Shape(NamedTuple):
    """A session's tree in memory. `beside` counts what sub-agents did, by where they began."""

    session: Session
    entries: dict[str, Entry]
    children: dict[str | None, list[Entry]]
    active: frozenset[str]
    beside: Counter[str | None]
    files_skipped: bool

    def stayed(self, entry: Entry) -> bool:
        """True if the session went to this entry without the files."""
        here = entry.id == self.session.leaf
        return (here and self.files_skipped) or bool((entry.data or {}).get("skipFiles"))

    def is_weighty(self, entry: Entry) -> bool:
        """Whether it gets a line: messages, ends of turns, branch points, labels, the leaf."""
        return (
            entry.type in SYMBOLS
            or entry.label is not None
            or entry.id == self.session.leaf
            or len(self.children.get(entry.id, ())) > 1
        )


class Row(NamedTuple):
    """A line of the drawing; one that is `fixed` is never left out."""

    text: str
    fixed: bool = False
    message: bool = False


@command(
    "tree",
    examples="""
mulligan tree                 the session that was changed last
mulligan tree 7f3k --full
mulligan goto 3fk2            and the files with it
""",
)
@click.argument("session", default="@", shell_complete=session_names)
@click.option("--full", is_flag=True, help="Do not shorten long stretches.")
def tree(out: Output, session: str, full: bool) -> None:
    """Draw a session's tree, oldest first: its turns, branches and labels.

    ● is a message of yours, ◆ the end of a turn that changed files. The way to where the session
    stands is the leftmost. "files skipped" is where it went without the files.
    """
    with out.workspace() as workspace:
        shape = read(workspace, session)
        branches = workspace.sessions.branches(shape.session.id) if out.as_json else []
    if out.as_json:
        out.data(
            {
                "session": shape.session.id,
                "leaf": shape.session.leaf,
                "branches": [each.as_json() for each in branches],
                "entries": list(_nodes(shape)),
            }
        )
        return
    out.paged(draw(shape, full=full, width=_width()))
    if not shape.entries:
        out.say("Nothing was said in it yet.")


def read(workspace: Workspace, name: str) -> Shape:
    """The tree of a session, read a page at a time."""
    session = workspace.sessions.get(name)
    entries: dict[str, Entry] = {}
    children: dict[str | None, list[Entry]] = {}
    beside: Counter[str | None] = Counter()
    began: dict[str, str | None] = {}
    since: int | None = 0
    while since is not None:
        page = workspace.sessions.transcript(
            session.id, since=since, limit=PAGE_ENTRIES, include_compacted=True
        )
        for entry in page.entries:
            if not entry.off_path:
                entries[entry.id] = entry
                children.setdefault(entry.parent, []).append(entry)
            elif entry.type != UNREVERT_POINT:
                place = began.get(entry.parent or "", entry.parent)
                began[entry.id] = place
                beside[place] += 1
        since = page.next_seq
    active = set()
    at = session.leaf
    while at is not None and at in entries:
        active.add(at)
        at = entries[at].parent
    skipped = workspace.sessions.files_skipped(session.id)
    return Shape(session, entries, children, frozenset(active), beside, skipped)


def draw(shape: Shape, *, full: bool, width: int) -> Iterator[str]:
    """The drawing, line by line. Other branches come before the way goes on, each in its column."""
    work: list[tuple[str, Entry | None]] = []
    for root in _ordered(shape, None):
        work.insert(0, ("", root))
    while work:
        prefix, entry = work.pop()
        if entry is None:
            yield prefix
            continue
        rows, last = _stretch(shape, entry, prefix, width)
        yield from (row.text for row in (rows if full else _shortened(rows, prefix)))
        *others, main = _ordered(shape, last.id) or [None]
        if main is not None:
            work.append((prefix, main))
        for other in reversed(others):
            work.append((prefix + "│ ", other))
            work.append((f"{prefix}├─╮", None))


def _ordered(shape: Shape, parent: str | None) -> list[Any]:
    """What follows an entry: other ways first, in order of time, then the one to be drawn on."""
    found = shape.children.get(parent, [])
    return sorted(found, key=lambda each: each.id in shape.active)


def _stretch(shape: Shape, entry: Entry, prefix: str, width: int) -> tuple[list[Row], Entry]:
    """The lines up to the next branching or the end, and the entry there."""
    rows: list[Row] = []
    between: Counter[str] = Counter()
    while True:
        following = shape.children.get(entry.id, [])
        if shape.is_weighty(entry):
            rows += _between(between, prefix)
            rows.append(_row(shape, entry, prefix, width))
            between.clear()
        else:
            between[BETWEEN.get(entry.type, "")] += 1
        if shape.beside[entry.id]:
            words = f"beside it: {plural(shape.beside[entry.id], 'record')} of a sub-agent"
            rows.append(Row(f"{prefix}│   {click.style(words, dim=True)}"))
        if len(following) != 1:
            rows += _between(between, prefix)
            return rows, entry
        entry = following[0]


def _between(counts: Counter[str], prefix: str) -> Iterator[Row]:
    words = ", ".join(plural(counts[each], each) for each in BETWEEN.values() if counts[each])
    if words:
        yield Row(f"{prefix}│   {click.style(words, dim=True)}")


def _row(shape: Shape, entry: Entry, prefix: str, width: int) -> Row:
    here = entry.id == shape.session.leaf
    symbol = click.style(SYMBOLS.get(entry.type, "○"), fg=COLOURS.get(entry.type), bold=here)
    name = click.style(short_id(entry.id), fg="yellow")
    text = escape_prose(title_of(_about(entry), max(20, width - len(prefix) - 34)))
    if entry.id not in shape.active:
        text = click.style(text, dim=True)
    label = click.style(f"  [{escape_text(entry.label)}]", fg="magenta") if entry.label else ""
    mark = click.style("  ← here", fg="magenta", bold=True) if here else ""
    mark += click.style("  files skipped", fg="yellow") if shape.stayed(entry) else ""
    time = click.style(f"  {ago(entry.created_at)}", dim=True)
    return Row(
        f"{prefix}{symbol} {name}  {text}{label}{mark}{time}",
        fixed=here or bool(entry.label) or shape.stayed(entry),
        message=entry.type == USER_INPUT,
    )


def _about(entry: Entry) -> str:
    data = entry.data or {}
    if entry.type == STEP_SNAPSHOT:
        counts = Counter(change.status for change in listed_changes(data))
        return ", ".join(f"{count:,} {status}" for status, count in counts.items()) or "a turn ends"
    if entry.type == COMPACT_MARKER:
        return f"compacted: {title_of(entry.content) or data.get('compactedCount', '')}"
    if entry.type == BRANCH_SUMMARY:
        return f"summary: {' '.join(entry.content.split())}"
    if entry.content.strip():
        return entry.content
    about = data.get("name") or data.get("path") or ""
    return f"{entry.type.replace('_', ' ')} {about}"


def _shortened(rows: list[Row], prefix: str) -> Iterator[Row]:
    """A long stretch without its middle, but for what is marked there."""
    left_out: list[Row] = []
    for place, row in enumerate(rows):
        inside = KEPT_AT_ENDS <= place < len(rows) - KEPT_AT_ENDS
        if inside and not row.fixed:
            left_out.append(row)
            continue
        yield from _gap(left_out, prefix)
        left_out.clear()
        yield row


def _gap(rows: list[Row], prefix: str) -> Iterator[Row]:
    if len(rows) <= 2:
        yield from rows
        return
    messages = sum(row.message for row in rows)
    words = f"{plural(messages, 'turn')} more" if messages else f"{len(rows):,} lines more"
    yield Row(f"{prefix}┊   {click.style(f'… {words}', dim=True)}")


def _nodes(shape: Shape) -> Iterator[dict[str, Any]]:
    """The entries of weight, each with the nearest of them above it."""
    above: dict[str | None, str | None] = {None: None}
    for entry in shape.entries.values():
        parent = above.get(entry.parent)
        if not shape.is_weighty(entry):
            above[entry.id] = parent
            continue
        above[entry.id] = entry.id
        yield {
            "entry": entry.id,
            "seq": entry.seq,
            "parent": parent,
            "type": entry.type,
            "title": title_of(_about(entry)),
            "label": entry.label,
            "checkpoint": entry.checkpoint,
            "created_at": entry.created_at,
            "is_leaf": entry.id == shape.session.leaf,
            "active": entry.id in shape.active,
            "files_skipped": shape.stayed(entry),
        }


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 114
