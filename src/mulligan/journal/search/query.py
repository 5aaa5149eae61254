"""What somebody types, as a question to the index; and what of a text answers it.

Any text is data: it is cut at white space, each word is quoted, and all words must match. FTS5 in
memory does the rest, so that words are taken apart, and found again in a text, exactly as the
index does it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import apsw

from mulligan.errors import UsageError
from mulligan.journal.search.index import TOKENIZER
from mulligan.journal.search.texts import CLOSE, OPEN, Columns, clean, kind

SNIPPET_TOKENS = 32
GAP = "..."
ENDINGS = ("ing", "ed", "es", "er", "ly", "ation", "ment", "ness", "ity", "able", "ful")
SHORTEST_PREFIX = 3
LONG_TEXT = 16 << 10
PLACES, AROUND = 8, 1_500
EXACT_TEXT = 4 << 20
"""So much text is taken apart as a whole, where no guess says which part of it matches."""

LONGEST_PIECE = 160

Pieces = tuple[tuple[str, bool], ...]
"""A text in order, cut where what matched begins and ends; with each piece, whether it matched."""


class Query(NamedTuple):
    """A question to the index: what must match, what is to be marked, and how words begin.

    Without `match` there is no word to look up; then `literal` is to be found as it is, if it is
    not empty.
    """

    match: str = ""
    marked: str = ""
    beginnings: tuple[str, ...] = ()
    literal: str = ""


class Reader:
    """Reads queries and marks texts. Use it from one thread."""

    def __init__(self) -> None:
        self._db = apsw.Connection(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE words USING fts5(content, tool, path, diff, "
            f"tokenize='{TOKENIZER}')"
        )
        name, *rest = TOKENIZER.split()
        self._tokenizer = self._db.fts5_tokenizer(name, rest)

    def close(self) -> None:
        self._db.close()

    def words(self, text: str, *, as_you_type: bool = False) -> Query:
        """All words of a text; `as_you_type` takes the last one as the beginning of a word."""
        text = clean(text)
        pieces = text.split()
        phrases: dict[tuple[str, ...], str] = {}
        for position, piece in enumerate(pieces):
            tokens = self.tokens(piece)
            if tokens:
                last = as_you_type and position == len(pieces) - 1 and text.endswith(piece)
                phrases[tokens] = self._begun(piece, tokens) if last else _quoted(piece)
        if not phrases:
            return Query(literal=text.strip())
        beginnings = {_beginning(token) for tokens in phrases for token in tokens}
        beginnings |= {piece.lower() for piece in pieces}
        return Query(
            " AND ".join(phrases.values()),
            " OR ".join(phrases.values()),
            tuple(sorted(beginnings)),
        )

    def raw(self, text: str) -> Query:
        """FTS5's own syntax; raises `UsageError` if it is not that."""
        if not text.strip():
            return Query()
        if "\0" in text:
            raise UsageError("The query holds a NUL, which the raw syntax cannot have.")
        text = clean(text)
        match = f"({text})"
        # By itself too: with a bracket too many at each end it would only seem to be in brackets.
        for each in (text, match):
            try:
                self._db.execute("SELECT 1 FROM words WHERE words MATCH ?", (each,)).fetchall()
            except apsw.SQLError as problem:
                raise UsageError(
                    f"The raw query cannot be read: {problem}. Without --raw any text will do."
                ) from problem
        return Query(match, match)

    def path(self, path: str) -> str:
        """What the path column must match for a path, or for all below it; at least that much."""
        # Only whole names count: what stands beside a wildcard may be part of a longer one.
        plain = re.sub(r"\[[^]]*\]", "*", clean(path))
        parts = re.split(r"[/._-]", plain)
        found = [part for part in parts if not re.search(r"[*?\[]", part) and self.tokens(part)]
        names = " AND ".join(dict.fromkeys(_quoted(part) for part in found))
        return f"path : ({names})" if names else ""

    def tokens(self, text: str) -> tuple[str, ...]:
        found = self._tokenizer(
            text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False
        )
        return tuple(str(each) for token in found for each in token)

    def mark(self, texts: Sequence[Columns], query: Query) -> list[Pieces]:
        """The part of each text that answers best, with marks on what matched."""
        if not query.match:
            return [_around(each, query.literal) for each in texts]
        # Most of a long text is left out at first, for taking it apart is what costs.
        short = {
            number: _cut(each, query.beginnings)
            for number, each in enumerate(texts)
            if query.beginnings or _length(each) <= LONG_TEXT
        }
        found = self._snippets(short, query)
        rest: dict[int, Columns] = {}
        left = EXACT_TEXT
        for number, each in enumerate(texts):
            if number not in found and left > 0:
                rest[number] = each
                left -= _length(each)
        if rest:
            found |= self._snippets(rest, query)
        return [found.get(number) or _head(each) for number, each in enumerate(texts)]

    def _begun(self, word: str, tokens: tuple[str, ...]) -> str:
        """A word that may not be finished yet.

        The index has stems, and none begins with "runn": so likely endings are tried as well.
        """
        quoted, last = _quoted(word), tokens[-1]
        if not word[-1].isalnum() or (last.isascii() and len(last) < SHORTEST_PREFIX):
            return quoted
        ways = [quoted, f"{quoted}*"]
        for ending in ENDINGS:
            for there in range(len(ending)):
                whole = word + ending[there:]
                fits = word.lower().endswith(ending[:there])
                if fits and not self.tokens(whole)[-1].startswith(last):
                    ways.append(_quoted(whole))
        return f"({' OR '.join(ways)})"

    def _snippets(self, texts: dict[int, Columns], query: Query) -> dict[int, Pieces]:
        self._db.execute("BEGIN")
        try:
            self._db.executemany(
                "INSERT INTO words (rowid, content, tool, path, diff) VALUES (?,?,?,?,?)",
                ((number, *columns) for number, columns in texts.items()),
            )
            sql = "SELECT rowid, snippet(words, -1, ?, ?, ?, ?) FROM words WHERE words MATCH ?"
            given = (OPEN, CLOSE, GAP, SNIPPET_TOKENS, query.marked)
            return {row[0]: _pieces(row[1]) for row in self._db.execute(sql, given)}
        finally:
            self._db.execute("ROLLBACK")


def all_of(*expressions: str) -> str:
    """One expression that holds where all of them do; empty ones do not count."""
    return " AND ".join(each for each in expressions if each)


def of_types(types: Sequence[str]) -> str:
    names = " OR ".join(_quoted(kind(each)) for each in types)
    return f"kind : ({names})" if names else ""


def marked(pieces: Pieces) -> str:
    """The pieces in one, with `<mark>` around what matched. The text itself is as it was."""
    return "".join(f"<mark>{text}</mark>" if matched else text for text, matched in pieces)


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def _beginning(stem: str) -> str:
    """What words with this stem begin with, most often: "file" is the stem of "filing"."""
    return stem[:-1] if len(stem) > SHORTEST_PREFIX else stem


def _cut(columns: Columns, beginnings: Sequence[str]) -> Columns:
    """The columns, and of long ones only the surroundings of some places that may match."""
    if _length(columns) <= LONG_TEXT:
        return columns
    return Columns(*(_near(column, beginnings[:SNIPPET_TOKENS]) for column in columns))


def _near(text: str, beginnings: Sequence[str]) -> str:
    if len(text) <= LONG_TEXT // len(Columns._fields):
        return text
    small = text.lower()
    places: list[int] = []
    for each in beginnings:
        place = small.find(each)
        for _ in range(PLACES):
            if place < 0:
                break
            places.append(place)
            place = small.find(each, place + AROUND)
    parts: list[str] = []
    end = 0
    for place in sorted(places):
        if place + AROUND // 2 > end:
            start = max(end, place - AROUND)
            # From one gap between words to another, so that none is cut in two.
            start = text.find(" ", start, place) + 1 or start
            end = text.find(" ", place + AROUND, place + 2 * AROUND)
            end = end if end >= 0 else place + AROUND
            parts.append(text[start:end])
    return "\n".join(parts)


def _length(columns: Columns) -> int:
    return sum(map(len, columns))


def _pieces(snippet: str) -> Pieces:
    found: list[tuple[str, bool]] = []
    for part in snippet.split(OPEN):
        matched, closed, rest = part.rpartition(CLOSE)
        if closed:
            found.append((matched, True))
        found.append((rest, False))
    pieces = [(text, is_marked) for text, is_marked in found if text]
    last = len(pieces) - 1
    return tuple(
        (_shortened(text, is_marked or number == last, not is_marked and number == 0), is_marked)
        for number, (text, is_marked) in enumerate(pieces)
    )


def _shortened(text: str, keep_start: bool, keep_end: bool) -> str:
    """A piece that is not too long: some files have one line, and that without a gap."""
    if len(text) <= LONGEST_PIECE:
        return text
    if keep_end and not keep_start:
        return GAP + text[-LONGEST_PIECE:]
    if keep_start:
        return text[:LONGEST_PIECE] + GAP
    half = LONGEST_PIECE // 2
    return text[:half] + GAP + text[-half:]


def _around(columns: Columns, literal: str) -> Pieces:
    for text in columns:
        place = text.find(literal) if literal else -1
        if place >= 0:
            end = place + len(literal)
            before, after = text[max(0, place - 80) : place], text[end : end + 80]
            start = GAP if place > 80 else ""
            stop = GAP if end + 80 < len(text) else ""
            pieces = ((start + before, False), (literal, True), (after + stop, False))
            return tuple(piece for piece in pieces if piece[0])
    return _head(columns)


def _head(columns: Columns) -> Pieces:
    text = next((each for each in columns if each), "")
    return ((_shortened(text, True, False), False),) if text else ()
