"""List the code points that a reader cannot see, and escape them.

`HIDDEN` is Unicode's Default_Ignorable_Code_Point, plus control characters, line separators, format
characters, and letters whose glyph is empty. `BLANK` holds the spaces that look like U+0020. Tab
and line feed are in neither.

The page has the same tables, written from these:

    python -m mulligan.core.invisible > ui/src/invisible-ranges.ts
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final

Ranges = tuple[tuple[int, int, str], ...]

HIDDEN: Final[Ranges] = (
    (0x0000, 0x0008, "control character"),
    (0x000B, 0x001F, "control character"),
    (0x007F, 0x009F, "control character"),
    (0x00AD, 0x00AD, "soft hyphen"),
    (0x034F, 0x034F, "combining grapheme joiner"),
    (0x061C, 0x061C, "bidirectional control"),
    (0x070F, 0x070F, "format character"),
    (0x115F, 0x1160, "Hangul filler"),
    (0x17B4, 0x17B5, "Khmer vowel that draws nothing"),
    (0x180B, 0x180D, "variation selector"),
    (0x180E, 0x180E, "vowel separator"),
    (0x180F, 0x180F, "variation selector"),
    (0x200B, 0x200D, "zero-width character"),
    (0x200E, 0x200F, "bidirectional control"),
    (0x2028, 0x2029, "line separator"),
    (0x202A, 0x202E, "bidirectional control"),
    (0x2060, 0x2060, "zero-width character"),
    (0x2061, 0x2065, "invisible operator"),
    (0x2066, 0x2069, "bidirectional control"),
    (0x206A, 0x206F, "format character"),
    (0x2800, 0x2800, "Braille blank"),
    (0x3164, 0x3164, "Hangul filler"),
    (0xFE00, 0xFE0F, "variation selector"),
    (0xFEFF, 0xFEFF, "zero-width character"),
    (0xFFA0, 0xFFA0, "Hangul filler"),
    (0xFFF0, 0xFFFB, "format character"),
    (0x13430, 0x13440, "format character"),
    (0x13441, 0x13442, "hieroglyph that is blank"),
    (0x16FE4, 0x16FE4, "Khitan filler"),
    (0x1BCA0, 0x1BCA3, "format character"),
    (0x1D159, 0x1D159, "note head that is blank"),
    (0x1D173, 0x1D17A, "format character"),
    (0xE0000, 0xE007F, "tag character"),
    (0xE0080, 0xE00FF, "format character"),
    (0xE0100, 0xE01EF, "variation selector"),
    (0xE01F0, 0xE0FFF, "format character"),
)
BLANK: Final[Ranges] = (
    (0x00A0, 0x00A0, "no-break space"),
    (0x1680, 0x1680, "space"),
    (0x2000, 0x200A, "space"),
    (0x202F, 0x202F, "no-break space"),
    (0x205F, 0x205F, "space"),
    (0x3000, 0x3000, "wide space"),
)
PICTOGRAPHS: Final[Ranges] = (
    (0x00A9, 0x00A9, ""),
    (0x00AE, 0x00AE, ""),
    (0x203C, 0x203C, ""),
    (0x2049, 0x2049, ""),
    (0x2122, 0x2122, ""),
    (0x2139, 0x2139, ""),
    (0x2190, 0x21FF, ""),
    (0x2300, 0x23FF, ""),
    (0x24C2, 0x24C2, ""),
    (0x25A0, 0x27BF, ""),
    (0x2934, 0x2935, ""),
    (0x2B00, 0x2BFF, ""),
    (0x3030, 0x3030, ""),
    (0x303D, 0x303D, ""),
    (0x3297, 0x3299, ""),
    (0x1F000, 0x1FAFF, ""),
)
"""The blocks that hold emoji: they may carry U+FE0F and be joined by U+200D."""


def _class(*tables: Ranges) -> str:
    ends = (
        f"{re.escape(chr(first))}-{re.escape(chr(last))}"
        for table in tables
        for first, last, _ in table
    )
    return "".join(ends)


@cache
def _invisible() -> re.Pattern[str]:
    return re.compile(f"[{_class(HIDDEN, BLANK)}]")


@cache
def _harmless_in_prose() -> re.Pattern[str]:
    """Match emoji with their selectors, skin tones and joiners, and blanks of any width."""
    one = f"[{_class(PICTOGRAPHS)}][\ufe0f\U0001f3fb-\U0001f3ff]?"
    return re.compile(f"[#*0-9]\ufe0f\u20e3|{one}(?:\u200d{one})*|[{_class(BLANK)}]+")


def is_hidden(character: str) -> bool:
    """True if `character` draws nothing, or acts on the text around it."""
    return any(first <= ord(character) <= last for first, last, _ in HIDDEN)


def all_visible(text: str) -> bool:
    """True if a reader sees every character of `text`, on one line."""
    return text.isprintable() and (text.isascii() or _invisible().search(text) is None)


def escape_invisible(text: str, escape: Callable[[str], str], *, prose: bool = False) -> str:
    """Replace each character that a reader does not see by `escape(character)`.

    Prose keeps its emoji, which are made with selectors and joiners, and its blanks.
    """
    if all_visible(text):
        return text
    if not prose:
        return "".join(each if all_visible(each) else escape(each) for each in text)
    parts: list[str] = []
    end = 0
    for match in _harmless_in_prose().finditer(text):
        parts += (escape_invisible(text[end : match.start()], escape), match.group())
        end = match.end()
    return "".join(parts) + escape_invisible(text[end:], escape)


def as_typescript() -> str:
    """Write the tables as the page's module `invisible-ranges.ts`."""
    lines = [
        "/** Written by `python -m mulligan.core.invisible`; edit the tables there. */",
        "",
        "export type Ranges = readonly (readonly [first: number, last: number, what: string])[];",
    ]
    for name, table in (("HIDDEN", HIDDEN), ("BLANK", BLANK), ("PICTOGRAPHS", PICTOGRAPHS)):
        rows = (f'  [0x{first:04x}, 0x{last:04x}, "{what}"],' for first, last, what in table)
        lines += ["", f"export const {name}: Ranges = [", *rows, "];"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(as_typescript(), end="")
