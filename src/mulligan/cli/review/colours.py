"""Colours for the review: styles by name, and a small highlighter for common languages.

The highlighter knows comments, strings, numbers and keywords, line by line; what runs over several
lines is handed on as the text that will end it. It never changes a character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from mulligan.cli.review.text import Span

STYLES = {
    "": ("", ""),
    "added": ("32", ""),
    "removed": ("31", ""),
    "added mark": ("1;32", "1"),
    "removed mark": ("1;31", "1"),
    "bar": ("7", "7"),
    "bar mark": ("1;7", "1;7"),
    "bold": ("1", "1"),
    "dim": ("2", "2"),
    "match": ("7", "7"),
    "warning": ("1;33", "1"),
    "keyword": ("35", ""),
    "string": ("36", ""),
    "comment": ("2;3", ""),
    "number": ("33", ""),
    "modified": ("33", ""),
}
"""For each style what the terminal is told, with colours and without. What stands for added and
removed is used for nothing else, so that no colour of a language can be taken for it."""


def painted(spans: Iterable[Span], *, colours: bool) -> str:
    """Spans as the terminal takes them; ends in no style."""
    parts = []
    for span in spans:
        code = STYLES[span.style][0 if colours else 1]
        parts.append(f"\x1b[{code}m{span.text}\x1b[m" if code else span.text)
    return "".join(parts)


class Language(NamedTuple):
    """What the highlighter has to know of a language."""

    keywords: frozenset[str]
    tokens: re.Pattern[str]
    ends: dict[str, str]
    """What may run over several lines: how it begins, and how it ends."""


def language_of(path: str) -> Language | None:
    """The language of a file, by its name; `None` for one that is not known."""
    name = path.rpartition("/")[2].lower()
    return _language(_NAMES.get(name) or _ENDINGS.get(name.rpartition(".")[2], ""))


def highlight(
    text: str, language: Language | None, end: str | None = None, plain: str = ""
) -> tuple[list[Span], str | None]:
    """A line in colours. `end` is what would end something that began on a line before; the same
    is given back for the next line. `plain` is the style of everything that is nothing special."""
    if language is None:
        return [Span(text, plain)], None
    spans: list[Span] = []
    position = 0
    while position < len(text):
        if end is not None:
            stop = text.find(end, position)
            after = len(text) if stop < 0 else stop + len(end)
            spans.append(Span(text[position:after], _style_of(end)))
            position, end = after, None if stop >= 0 else end
            continue
        token = language.tokens.search(text, position)
        if token is None:
            break
        spans.append(Span(text[position : token.start()], plain))
        kind, found = token.lastgroup, token.group()
        position = token.end()
        if kind == "open":
            end = language.ends[found]
            stop = text.find(end, position)
            after = len(text) if stop < 0 else stop + len(end)
            spans.append(Span(found + text[position:after], _style_of(end)))
            position, end = after, None if stop >= 0 else end
        elif kind == "word":
            spans.append(Span(found, "keyword" if found in language.keywords else plain))
        else:
            assert kind is not None
            spans.append(Span(found, kind))
    spans.append(Span(text[position:], plain))
    return [span for span in spans if span.text], end


def _style_of(end: str) -> str:
    return "comment" if end in ("*/", "-->") else "string"


@cache
def _language(name: str) -> Language | None:
    if name not in _LANGUAGES:
        return None
    words, comment, opening, strings = _LANGUAGES[name]
    ends = dict(pair.split(" ") for pair in opening)
    parts = []
    if comment:
        parts.append(f"(?P<comment>{comment})")
    if ends:
        begins = "|".join(re.escape(each) for each in sorted(ends, key=len, reverse=True))
        parts.append(f"(?P<open>{begins})")
    parts.append(f"(?P<string>{strings})")
    parts.append(r"(?P<number>\b(?:0[xXbBoO][0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b)")
    parts.append(r"(?P<word>[^\W\d]\w*)")
    return Language(frozenset(words.split()), re.compile("|".join(parts)), ends)


_HASH = r"\#.*"
_SHELL_HASH = r"(?<!\S)\#.*"
_SLASHES = r"//.*"
_QUOTED = r'"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])*'"
_DOUBLE_QUOTED = r'"(?:\\.|[^"\\])*"|' + r"'(?:\\[^']+|[^'\\])'"
_C = "/* */"

_LANGUAGES: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "python": (
        "and as assert async await break case class continue def del elif else except finally for "
        "from global if import in is lambda match nonlocal not or pass raise return try while "
        "with yield None True False self",
        _HASH,
        ('""" """', "''' '''"),
        _QUOTED,
    ),
    "javascript": (
        "abstract as async await break case catch class const continue declare default delete do "
        "else enum export extends false finally for from function get if implements import in "
        "instanceof interface let namespace new null of private protected public readonly return "
        "set static super switch this throw true try type typeof undefined var void while yield",
        _SLASHES,
        (_C, "` `"),
        _QUOTED,
    ),
    "c": (
        "alignas auto bool break case catch char class const constexpr continue default delete do "
        "double else enum explicit extern false final float for friend goto if inline int long "
        "namespace new noexcept nullptr operator override private protected public register "
        "return short signed sizeof static struct switch template this throw true try typedef "
        "typename union unsigned using virtual void volatile while include define ifdef ifndef "
        "endif abstract boolean byte extends implements import instanceof interface null package "
        "super synchronized throws record var string object foreach in is out params sealed "
        "async await fun val when data suspend companion internal",
        _SLASHES,
        (_C,),
        _DOUBLE_QUOTED,
    ),
    "go": (
        "break case chan const continue default defer else fallthrough for func go goto if import "
        "interface map package range return select struct switch type var nil true false error "
        "string int bool byte rune any",
        _SLASHES,
        (_C, "` `"),
        _DOUBLE_QUOTED,
    ),
    "rust": (
        "as async await break const continue crate dyn else enum extern false fn for if impl in "
        "let loop match mod move mut pub ref return self Self static struct super trait true type "
        "unsafe use where while Some None Ok Err",
        _SLASHES,
        (_C,),
        _DOUBLE_QUOTED,
    ),
    "shell": (
        "case do done elif else esac exit export fi for function if in local readonly return set "
        "shift then until while",
        _SHELL_HASH,
        (),
        _QUOTED,
    ),
    "ruby": (
        "alias and begin break case class def defined do else elsif end ensure false for if in "
        "module next nil not or redo rescue retry return self super then true undef unless until "
        "when while yield require",
        _HASH,
        (),
        _QUOTED,
    ),
    "sql": (
        "select from where insert into values update set delete create table index view drop alter "
        "add primary key foreign references not null and or in is as join left right inner outer "
        "on group by order having limit offset union all distinct case when then else end begin "
        "commit SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX VIEW "
        "DROP ALTER ADD PRIMARY KEY FOREIGN REFERENCES NOT NULL AND OR IN IS AS JOIN LEFT RIGHT "
        "INNER OUTER ON GROUP BY ORDER HAVING LIMIT OFFSET UNION ALL DISTINCT CASE WHEN THEN ELSE "
        "END BEGIN COMMIT",
        r"--.*",
        (_C,),
        _QUOTED,
    ),
    "settings": ("true false null yes no on off", _SHELL_HASH, ('""" """', "''' '''"), _QUOTED),
    "json": ("true false null", "", (), r'"(?:\\.|[^"\\])*"'),
    "css": ("important", "", (_C,), _QUOTED),
    "html": ("", "", ("<!-- -->",), r'"[^"<>]*"'),
}

_ENDINGS = {
    ending: name
    for name, endings in {
        "python": "py pyi pyw",
        "javascript": "js jsx ts tsx mjs cjs mts cts vue svelte",
        "c": "c h cc cpp cxx hpp hh java kt kts cs swift scala dart m php",
        "go": "go",
        "rust": "rs",
        "shell": "sh bash zsh fish",
        "ruby": "rb",
        "sql": "sql",
        "settings": "toml yaml yml ini cfg conf",
        "json": "json jsonc",
        "css": "css scss less",
        "html": "html htm xml svg",
    }.items()
    for ending in endings.split()
}

_NAMES = {"dockerfile": "shell", "makefile": "shell", ".bashrc": "shell", "gemfile": "ruby"}
