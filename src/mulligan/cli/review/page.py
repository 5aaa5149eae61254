"""What the review shows, as rows of styled text. Pure: the same sight gives the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from mulligan.cli.review.colours import Language, highlight, language_of, painted
from mulligan.cli.review.lines import turns, what_kind, where
from mulligan.cli.review.position import Cursor
from mulligan.cli.review.text import Span, clipped, marked, padded, safe, shortened, width, width_of
from mulligan.workspace.results.review import PendingFile

LIST_BESIDE_FROM = 110
LIST_COLUMNS = 36
LIST_ROWS = 5
CONTEXT_LINES = 3
LOOK_BACK = 400
"""How many lines above what is shown are read, to know whether it begins within a comment."""

KEYS = (
    ("y", "keep"), ("n", "undo"), ("a/d", "file"), ("u", "take back"), ("j/k", "move"),
    ("?", "help"), ("q", "quit"), ("/", "search"), ("J/K", "files"),
)  # fmt: skip
"""The last ones are left out first where the screen is narrow."""

HELP = (
    ("j k ↓ ↑", "the next change, the one before; around the end"),
    ("J K", "the next file, the one before"),
    ("y", "keep this change"),
    ("n", "undo this change on the disk"),
    ("N", "undo it though somebody changed lines in it"),
    ("a d", "keep, or undo, all changes of this file"),
    ("u", "take back the last decision"),
    ("/", "search in paths and lines; Enter or Tab: the next one"),
    ("e", "open $EDITOR at this line"),
    ("space b", "scroll a long change; ← → for long lines"),
    ("r", "look again now (it looks by itself, too)"),
    ("q", "quit; whatever was decided is done"),
)
NOTHING_LEFT = [
    [],
    [Span("  Nothing is pending any more.", "bold")],
    [],
    [Span("  u takes back the last decision, q quits.")],
]
HELP_WORDS = (
    "Keeping changes no file. Undoing brings back what was there before the agent;",
    "where somebody changed lines since, nothing is undone unless you say N.",
)


class ScreenState(NamedTuple):
    """Everything that there is to see."""

    project: str
    place: Cursor
    whose: str = ""
    lines: tuple[str, ...] = ()
    """The file as it is on the disk; empty if it is gone, or cannot be parted."""
    top: int = 0
    shift: int = 0
    needle: str = ""
    message: str = ""
    prompt: str | None = None
    helping: bool = False
    others: str = ""
    """Who has changed lines within the change since."""
    names: Mapping[str, str] = MappingProxyType({})
    """What the sessions are called, if there are several."""


def rows(sight: ScreenState, columns: int, height: int, *, colours: bool = True) -> list[str]:
    """The screen, row by row, as the terminal takes it."""

    def drawn(lines: list[list[Span]]) -> list[str]:
        return [painted(clipped(line, columns), colours=colours) for line in lines]

    inner = max(0, height - 2)
    if sight.helping:
        middle = drawn(_help(inner))
    elif not sight.place.total:
        middle = drawn(NOTHING_LEFT)
    elif columns >= LIST_BESIDE_FROM:
        middle = _beside(sight, columns, inner, colours=colours)
    else:
        middle = drawn(_below_each_other(sight, columns, inner))
    top, bottom = drawn([_title(sight, columns), _bottom(sight, columns)])
    middle = middle[:inner] + [""] * (inner - len(middle))
    return [top, *middle, bottom][:height]


def scroll_limit(sight: ScreenState, columns: int, height: int) -> int:
    """How far the change can be scrolled so that its end is still at the bottom."""
    if not sight.place.total:
        return 0
    room = _room(sight, columns, height)
    return max(0, _extent(sight, room).total - room)


def room_for_lines(sight: ScreenState, columns: int, height: int) -> int:
    return _room(sight, columns, height) if sight.place.total else 0


def _room(sight: ScreenState, columns: int, height: int) -> int:
    inner = max(0, height - 2)
    if columns < LIST_BESIDE_FROM:
        listed = _list_rows(sight, inner)
        inner -= listed + (1 if listed else 0)
    return max(0, inner - 1)


def _beside(sight: ScreenState, columns: int, height: int, *, colours: bool) -> list[str]:
    """The files on the left, the change on the right."""
    bar = painted([Span("│", "dim")], colours=colours)
    names = [_listed(sight, number, LIST_COLUMNS) for number in _window(sight, height)]
    change = _change(sight, columns - LIST_COLUMNS - 2, height)[:height]
    blank: list[list[Span]] = [[]]
    lines = zip(
        names + blank * (height - len(names)), change + blank * (height - len(change)), strict=True
    )
    # Each part at its own column: however wide a terminal makes a name, the rest stays in place.
    return [
        f"{painted(name, colours=colours)}\x1b[{LIST_COLUMNS + 1}G{bar} "
        f"{painted(line, colours=colours)}"
        for name, line in lines
    ]


def _below_each_other(sight: ScreenState, columns: int, height: int) -> list[list[Span]]:
    """The files, and below them the change."""
    listed = _list_rows(sight, height)
    found = [_listed(sight, number, columns) for number in _window(sight, listed)]
    if found:
        found.append([Span("─" * columns, "dim")])
    return found + _change(sight, columns, height - len(found))


def _title(sight: ScreenState, columns: int) -> list[Span]:
    place = sight.place
    position = ""
    if place.total:
        added = sum(file.additions for file in place.files)
        deleted = sum(file.deletions for file in place.files)
        position = f"  Change {place.at + 1} of {place.total}  +{added} −{deleted} "
    # Where there is little room, the position matters most.
    project = shortened(safe(sight.project), max(0, columns - width(position) - 1))
    parts = [Span(f" {project}", "bar mark"), Span(position, "bar")]
    left = columns - width_of(parts) - 2
    if place.total and sight.whose and left > 0:
        name = clipped([Span(safe(sight.whose), "bar")], left)
        parts += [Span(" " * (left - width_of(name) + 1), "bar"), *name]
    return padded(parts, columns, "bar")


def _bottom(sight: ScreenState, columns: int) -> list[Span]:
    if sight.prompt is not None:
        return padded([Span(f"/{safe(sight.prompt)}", "bold"), Span("▏")], columns)
    if sight.message:
        return padded([Span(f" {safe(sight.message)}", "bar mark")], columns, "bar")
    found: list[Span] = []
    for key, words in KEYS:
        entry = [Span(f" {key}", "bar mark"), Span(f" {words} ", "bar")]
        if width_of(found) + width_of(entry) <= columns:
            found += entry
    return padded(found, columns, "bar")


def _help(height: int) -> list[list[Span]]:
    found: list[list[Span]] = [[], [Span("  Keys", "bold")], []]
    found += [[Span(f"  {keys:<9}", "bold"), Span(words)] for keys, words in HELP]
    if height > len(found) + len(HELP_WORDS):
        found += [[], *([Span(f"  {line}")] for line in HELP_WORDS)]
    return found


def _list_rows(sight: ScreenState, inner: int) -> int:
    """How many files are listed above the change; none where there is no room to spare."""
    count = len(sight.place.files)
    return min(count, LIST_ROWS, inner // 4) if count > 1 else 0


def _window(sight: ScreenState, room: int) -> range:
    """Which files are listed: as many as there is room for, with the one that is looked at."""
    count = len(sight.place.files)
    current = sight.place.changes[sight.place.at][0]
    start = max(0, min(current - room // 2, count - room))
    return range(start, min(count, start + room))


def _listed(sight: ScreenState, number: int, columns: int) -> list[Span]:
    file = sight.place.files[number]
    here = number == sight.place.changes[sight.place.at][0]
    mixed = any(hunk.mixed for hunk in file.hunks)
    counts = []
    if file.additions or file.deletions:
        counts = [
            Span(f" +{file.additions}", "added"),
            Span(f" −{file.deletions}", "removed"),
        ]
    begin = [
        Span("▸" if here else " ", "bold"),
        Span(file.status[0].upper(), _status_style(file)),
        Span("!" if mixed else " ", "warning"),
    ]
    name = safe(sight.names.get(file.session, ""))
    if name and width(name) * 3 < columns:
        counts = [Span(f" {name}", "dim"), *counts]
    left = columns - width_of(begin) - width_of(counts)
    name = shortened(safe(file.path), left)
    return [*begin, *padded([Span(name, "bold" if here else "")], left), *counts]


def _status_style(file: PendingFile) -> str:
    return {"added": "added mark", "deleted": "removed mark"}.get(file.status, "modified")


def _change(sight: ScreenState, columns: int, height: int) -> list[list[Span]]:
    """The change that is looked at: a line that says which, and its lines with some around."""
    file, hunk = sight.place.file, sight.place.hunk
    about = [turns(hunk)]
    if hunk.kind != "whole":
        about = [where(hunk), f"+{hunk.additions} −{hunk.deletions}", *about]
    note = "  ".join(part for part in about if part) + what_kind(file)
    warning = [Span(f"  {safe(sight.others)}", "warning")] if sight.others else []
    left = columns - width(note) - width_of(warning) - 2
    head = [Span(shortened(safe(file.path), max(left, 12)), "bold"), Span(f"  {note}"), *warning]
    found = [clipped(marked(head, sight.needle), columns)]
    if hunk.kind == "whole":
        return [*found, [], *(clipped([Span(f"  {words}")], columns) for words in _whole(file))]
    return [*found, *_lines(sight, columns, height - 1)]


def _whole(file: PendingFile) -> list[str]:
    """What to say of a change that has no lines."""
    if file.path.endswith("/"):
        what = "An empty folder"
    elif file.is_too_large:
        what = "A file that is too large to be shown"
    elif file.is_binary:
        what = "A binary file"
    elif file.status == "modified" and file.old_mode != file.new_mode:
        return [f"Its mode changed: {file.old_mode} → {file.new_mode}."]
    elif file.status == "modified":
        what = "Something other than lines of text"
    else:
        what = "An empty file, or a link"
    return [f"{what}; it was {file.status}, and is kept or undone as a whole."]


class _Extent(NamedTuple):
    """The lines around and of a change, one after the other: so many of each."""

    before: int
    old: int
    new: int
    after: int

    @property
    def total(self) -> int:
        return sum(self)


def _extent(sight: ScreenState, height: int) -> _Extent:
    """As much around the change as there is room for, and a little where it has to be scrolled."""
    hunk = sight.place.hunk
    old, new = len(hunk.old_lines), len(hunk.new_lines)
    above = hunk.new_start - 1
    below = max(0, len(sight.lines) - above - new)
    spare = height - old - new
    if spare < 0:
        spare = 2 * min(CONTEXT_LINES, height // 6)
    before = min(above, spare // 2)
    after = min(below, spare - before)
    before = min(above, spare - after)
    return _Extent(before if sight.lines else 0, old, new, after if sight.lines else 0)


def _lines(sight: ScreenState, columns: int, height: int) -> list[list[Span]]:
    hunk, extent = sight.place.hunk, _extent(sight, height)
    language = language_of(sight.place.file.path)
    others = _other_lines(sight)
    gutter = len(str(hunk.new_start + extent.new + extent.after + extent.old)) + 1
    if columns < 40:
        gutter = 0
    found: list[list[Span]] = []
    end: str | None = None
    started = False
    top = max(0, min(sight.top, extent.total - height))
    for row in range(top, min(top + height, extent.total)):
        number, mark, line = _row(sight, extent, row)
        is_old = mark == "−"
        if not is_old and not started:
            end = _state_before(sight.lines, number - 1, language)
            started = True
        style = {"+": "added", "−": "removed"}.get(mark, "")
        text = safe(line.removesuffix("\n").removesuffix("\r")[: sight.shift + columns + 400])
        if is_old:
            # One colour: what goes should not shine.
            spans = [Span(text, style)]
        else:
            spans, end = highlight(text, language, end, style)
        if not line.endswith("\n"):
            spans.append(Span("  (no newline at the end)", "dim"))
        elif line.endswith("\r\n") and mark:
            spans.append(Span("␍", "dim"))
        sign = (
            Span(f"{mark} ", f"{style} mark")
            if mark
            else Span(": " if number in others else "  ", "dim")
        )
        begin = [Span(f"{number:>{gutter}} " if gutter else "", "dim"), sign]
        room = columns - width_of(begin)
        found.append([*begin, *clipped(marked(spans, sight.needle), room, sight.shift)])
    return found


def _row(sight: ScreenState, extent: _Extent, row: int) -> tuple[int, str, str]:
    """A row's line number, its mark and its line."""
    hunk = sight.place.hunk
    first = hunk.new_start - 1 - extent.before
    if row < extent.before:
        return first + row + 1, "", sight.lines[first + row]
    row -= extent.before
    if row < extent.old:
        return hunk.old_start + row, "−", hunk.old_lines[row]
    row -= extent.old
    if row < extent.new:
        return hunk.new_start + row, "+", hunk.new_lines[row]
    at = hunk.new_start - 1 + row
    return at + 1, "", sight.lines[at]


def _other_lines(sight: ScreenState) -> set[int]:
    """The lines of the file that belong to other pending changes."""
    path, current = sight.place.file.path, sight.place.hunk
    return {
        number
        for file in sight.place.files
        if file.path == path
        for hunk in file.hunks
        if hunk is not current
        for number in range(hunk.new_start, hunk.new_start + min(len(hunk.new_lines), 10_000))
    }


def _state_before(lines: tuple[str, ...], at: int, language: Language | None) -> str | None:
    """What a line begins within, such as a comment, as far as the lines above tell."""
    end: str | None = None
    for line in lines[max(0, at - LOOK_BACK) : at] if language else ():
        _spans, end = highlight(line, language, end)
    return end
