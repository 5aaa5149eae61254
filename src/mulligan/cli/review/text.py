"""Text for a terminal's cells: what it looks like, how wide it is, and where to cut it.

Nothing that comes out of `safe` can move the cursor, change a colour, or turn the direction of
the text around it, and nothing in it is unseen: what a reader would not see is shown as its bytes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from mulligan.cli.output import escape_text
from mulligan.core.invisible import all_visible

TAB_COLUMNS = 4
CUT = "…"


class Span(NamedTuple):
    """A stretch of text in one style; styles are named, see `review_colours.STYLES`."""

    text: str
    style: str = ""


def safe(text: str) -> str:
    """Text as it may be shown, with tabs as spaces."""
    if all_visible(text):
        return text
    parts: list[str] = []
    column = 0
    for at, part in enumerate(text.split("\t")):
        if at:
            filling = TAB_COLUMNS - column % TAB_COLUMNS
            parts.append(" " * filling)
            column += filling
        part = escape_text(part)
        parts.append(part)
        column += width(part)
    return "".join(parts)


def width(text: str) -> int:
    """How many cells a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def width_of(spans: Iterable[Span]) -> int:
    return sum(width(span.text) for span in spans)


def clipped(spans: Iterable[Span], columns: int, start: int = 0) -> list[Span]:
    """What fits, from a column on; a mark stands at the end of what was cut."""
    found: list[Span] = []
    given = list(spans)
    column = -start
    too_long = width_of(given) - start > columns
    end = columns - width(CUT) if too_long else columns
    for span in given:
        kept = []
        for character in span.text:
            cells = _cells(character)
            if column >= 0 and column + cells <= end:
                kept.append(character)
            elif column < 0 < column + cells:
                # Half of a wide character is left of the edge.
                kept.append(" ")
            column += cells
        if kept:
            found.append(Span("".join(kept), span.style))
        if column > end:
            break
    if too_long and columns > 0:
        found.append(Span(CUT, "dim"))
    return found


def padded(spans: Iterable[Span], columns: int, style: str = "") -> list[Span]:
    """What fits, and blanks up to the end."""
    found = clipped(spans, columns)
    missing = columns - width_of(found)
    return [*found, Span(" " * missing, style)] if missing > 0 else found


def shortened(path: str, columns: int) -> str:
    """A path that fits: its end says more than its beginning."""
    if width(path) <= columns:
        return path
    kept: list[str] = []
    left = columns - width(CUT)
    for character in reversed(path):
        left -= _cells(character)
        if left < 0:
            break
        kept.append(character)
    return CUT + "".join(reversed(kept)) if columns > 0 else ""


def marked(spans: Iterable[Span], needle: str) -> list[Span]:
    """The same, with every occurrence of what is searched for in a style of its own."""
    given = list(spans)
    text = "".join(span.text for span in given)
    places = occurrences(text, needle)
    if not places:
        return given
    inside: set[int] = set()
    for start in places:
        inside.update(range(start, start + len(needle)))
    found: list[Span] = []
    position = 0
    for span in given:
        for character in span.text:
            style = "match" if position in inside else span.style
            if found and found[-1].style == style:
                found[-1] = Span(found[-1].text + character, style)
            else:
                found.append(Span(character, style))
            position += 1
    return found


def occurrences(text: str, needle: str) -> list[int]:
    """Where a text is found in another; capitals matter only if there are some in it."""
    if not needle:
        return []
    if needle == needle.lower():
        lowered = text.lower()
        # A few letters change their length with their case: then there is nothing to point at.
        text = lowered if len(lowered) == len(text) else text
    places = []
    at = text.find(needle)
    while at >= 0:
        places.append(at)
        at = text.find(needle, at + len(needle))
    return places


def contains(text: str, needle: str) -> bool:
    return (needle in text.lower()) if needle == needle.lower() else (needle in text)
