"""What a reader cannot see is escaped in a terminal and in an exported page, from one table."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest

from mulligan.cli.output import escape_prose, escape_terminal, escape_text
from mulligan.cli.review.text import safe
from mulligan.core.invisible import HIDDEN, as_typescript

PAGE_TABLE = Path(__file__).parents[2] / "ui" / "src" / "invisible-ranges.ts"
UNSEEN = {
    "right-to-left override": "\u202e",
    "isolate": "\u2066",
    "Arabic letter mark": "\u061c",
    "zero-width space": "\u200b",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "grapheme joiner": "\u034f",
    "Hangul filler": "\u3164",
    "half-width Hangul filler": "\uffa0",
    "Hangul choseong filler": "\u115f",
    "Braille blank": "\u2800",
    "variation selector": "\ufe0f",
    "variation selector 17": "\U000e0100",
    "Mongolian variation selector": "\u180b",
    "tag letter": "\U000e0061",
    "line separator": "\u2028",
    "control": "\x9b",
}


@pytest.mark.parametrize("character", UNSEEN.values(), ids=UNSEEN)
def test_a_terminal_shows_each_character_that_draws_nothing(character: str) -> None:
    text = f"if a{character}b:"
    escaped = "".join(f"\\x{byte:02x}" for byte in character.encode())
    for show in (escape_text, escape_prose, escape_terminal, safe):
        assert show(text) == f"if a{escaped}b:"


def test_every_control_and_format_character_is_in_the_table() -> None:
    listed = {code for first, last, _ in HIDDEN for code in range(first, last + 1)}
    # Signs that enclose the digits behind them: they are drawn.
    drawn = {*range(0x600, 0x606), 0x6DD, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and character not in "\t\n":
            assert code in listed or code in drawn, f"U+{code:04X}"


def test_prose_keeps_its_emoji_and_blanks_and_nothing_else() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    text = f"\u2764\ufe0f {family} 1\ufe0f\u20e3 \U0001f44b\U0001f3fd Qu'est-ce\u00a0? \u3000"
    assert escape_prose(text) == text
    assert "\ufe0f" not in escape_text(text)
    assert (
        escape_prose("pass\u200dword \u200d\U0001f469")
        == "pass\\xe2\\x80\\x8dword \\xe2\\x80\\x8d\U0001f469"
    )


def test_the_page_has_the_same_table() -> None:
    assert PAGE_TABLE.read_text() == as_typescript(), (
        "run: python -m mulligan.core.invisible > ui/src/invisible-ranges.ts"
    )
