"""Turn a user's text into an FTS5 query, and mark the matches in texts.

Any text is accepted: it is split at white space, each word is quoted, and all words must match. An
FTS5 table in memory tokenizes and marks texts exactly as the index does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import apsw

from mulligan.errors import UsageError
from mulligan.journal.search.index import TOKENIZER
from mulligan.journal.search.texts import CLOSE, OPEN, Columns, clean, kind

SNIPPET_TOKENS = 32
GAP = "..."
ENDINGS = ("ing", "ed", "es", "er", "ly", "ation", "ment", "ness", "ity", "able", "ful")
MIN_PREFIX_CHARACTERS = 3
LONG_TEXT_CHARACTERS = 16 << 10
MAX_PLACES_PER_WORD, CONTEXT_CHARACTERS = 8, 1_500
LITERAL_CONTEXT_CHARACTERS = 80
MAX_EXACT_CHARACTERS = 4 << 20
"""Long texts are tokenized whole up to this total, if their excerpts do not match."""

MAX_PIECE_CHARACTERS = 160

Pieces = tuple[tuple[str, bool], ...]
"""A text split into (piece, matched) in order."""


class Query(NamedTuple):
    """An FTS5 expression to match, one to mark, and the beginnings of its words.

    Without any word `match` is empty, and `literal` is searched for as it is, unless empty.
    """

    match: str = ""
    marked: str = ""
    beginnings: tuple[str, ...] = ()
    literal: str = ""


class Reader:
    """Parses queries and marks texts. Use it from one thread."""

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
        """Query for all words of a text; `as_you_type` takes the last one as a prefix."""
        text = clean(text)
        pieces = text.split()
        phrases: dict[tuple[str, ...], str] = {}
        for position, piece in enumerate(pieces):
            tokens = self.tokens(piece)
            if tokens:
                last = as_you_type and position == len(pieces) - 1 and text.endswith(piece)
                phrases[tokens] = self._prefix(piece, tokens) if last else _quoted(piece)
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
        """Query in FTS5's own syntax; raise `UsageError` if it is invalid."""
        if not text.strip():
            return Query()
        if "\0" in text:
            raise UsageError("The query holds a NUL, which the raw syntax does not allow.")
        text = clean(text)
        match = f"({text})"
        # Test both: text such as `a) OR (b` is valid only within the added brackets.
        for each in (text, match):
            try:
                self._db.execute("SELECT 1 FROM words WHERE words MATCH ?", (each,)).fetchall()
            except apsw.SQLError as problem:
                raise UsageError(
                    f"The raw query cannot be read: {problem}. Without --raw any text will do."
                ) from problem
        return Query(match, match)

    def path(self, path: str) -> str:
        """Return an expression that the path column matches for a path and all below it."""
        # Only whole names: text beside a wildcard may be part of a longer name.
        plain = re.sub(r"\[[^]]*\]", "*", clean(path))
        parts = re.split(r"[/._-]", plain)
        whole = [part for part in parts if not re.search(r"[*?\[]", part) and self.tokens(part)]
        names = " AND ".join(dict.fromkeys(_quoted(part) for part in whole))
        return f"path : ({names})" if names else ""

    def tokens(self, text: str) -> tuple[str, ...]:
        """Tokenize a text as a query."""
        groups = self._tokenizer(
            text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False
        )
        return tuple(str(token) for group in groups for token in group)

    def mark(self, texts: Sequence[Columns], query: Query) -> list[Pieces]:
        """Return the best excerpt of each text, with its matches marked."""
        if not query.match:
            return [_around(each, query.literal) for each in texts]
        # Tokenizing is what costs, so long texts are first cut to likely excerpts.
        short = {
            number: _cut(each, query.beginnings)
            for number, each in enumerate(texts)
            if query.beginnings or _length(each) <= LONG_TEXT_CHARACTERS
        }
        snippets = self._snippets(short, query)
        rest: dict[int, Columns] = {}
        characters_left = MAX_EXACT_CHARACTERS
        for number, each in enumerate(texts):
            if number not in snippets and characters_left > 0:
                rest[number] = each
                characters_left -= _length(each)
        if rest:
            snippets |= self._snippets(rest, query)
        return [snippets.get(number) or _head(each) for number, each in enumerate(texts)]

    def _prefix(self, word: str, tokens: tuple[str, ...]) -> str:
        """Return an expression for a word that may be unfinished.

        The index holds stems, and no stem begins with "runn": so likely endings are tried, too.
        """
        quoted, last = _quoted(word), tokens[-1]
        if not word[-1].isalnum() or (last.isascii() and len(last) < MIN_PREFIX_CHARACTERS):
            return quoted
        alternatives = [quoted, f"{quoted}*"]
        for ending in ENDINGS:
            for typed in range(len(ending)):
                whole = word + ending[typed:]
                fits = word.lower().endswith(ending[:typed])
                if fits and not self.tokens(whole)[-1].startswith(last):
                    alternatives.append(_quoted(whole))
        return f"({' OR '.join(alternatives)})"

    def _snippets(self, texts: dict[int, Columns], query: Query) -> dict[int, Pieces]:
        self._db.execute("BEGIN")
        try:
            self._db.executemany(
                "INSERT INTO words (rowid, content, tool, path, diff) VALUES (?,?,?,?,?)",
                ((number, *columns) for number, columns in texts.items()),
            )
            sql = "SELECT rowid, snippet(words, -1, ?, ?, ?, ?) FROM words WHERE words MATCH ?"
            values = (OPEN, CLOSE, GAP, SNIPPET_TOKENS, query.marked)
            return {row[0]: _pieces(row[1]) for row in self._db.execute(sql, values)}
        finally:
            self._db.execute("ROLLBACK")


def all_of(*expressions: str) -> str:
    """Join expressions by AND, without the empty ones."""
    return " AND ".join(each for each in expressions if each)


def of_types(types: Sequence[str]) -> str:
    """Return an expression that matches entries of these types."""
    names = " OR ".join(_quoted(kind(each)) for each in types)
    return f"kind : ({names})" if names else ""


def marked(pieces: Pieces) -> str:
    """Join pieces, with `<mark>` around the matches; the text is not escaped."""
    return "".join(f"<mark>{text}</mark>" if matched else text for text, matched in pieces)


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def _beginning(stem: str) -> str:
    """Return how words of this stem mostly begin: "filing" has the stem "file"."""
    return stem[:-1] if len(stem) > MIN_PREFIX_CHARACTERS else stem


def _cut(columns: Columns, beginnings: Sequence[str]) -> Columns:
    """Cut long columns to the surroundings of likely matches."""
    if _length(columns) <= LONG_TEXT_CHARACTERS:
        return columns
    return Columns(*(_near(column, beginnings[:SNIPPET_TOKENS]) for column in columns))


def _near(text: str, beginnings: Sequence[str]) -> str:
    if len(text) <= LONG_TEXT_CHARACTERS // len(Columns._fields):
        return text
    parts: list[str] = []
    end = 0
    for place in sorted(_places(text.lower(), beginnings)):
        if place + CONTEXT_CHARACTERS // 2 > end:
            start = max(end, place - CONTEXT_CHARACTERS)
            # Cut at spaces, so that no word is split.
            start = text.find(" ", start, place) + 1 or start
            end = text.find(" ", place + CONTEXT_CHARACTERS, place + 2 * CONTEXT_CHARACTERS)
            end = end if end >= 0 else place + CONTEXT_CHARACTERS
            parts.append(text[start:end])
    return "\n".join(parts)


def _places(text: str, beginnings: Sequence[str]) -> Iterator[int]:
    """Yield some places of each beginning, one context apart."""
    for beginning in beginnings:
        place = text.find(beginning)
        for _ in range(MAX_PLACES_PER_WORD):
            if place < 0:
                break
            yield place
            place = text.find(beginning, place + CONTEXT_CHARACTERS)


def _length(columns: Columns) -> int:
    return sum(map(len, columns))


def _pieces(snippet: str) -> Pieces:
    """Split a snippet of FTS5 at its marks, and shorten long pieces."""
    split: list[tuple[str, bool]] = []
    for part in snippet.split(OPEN):
        matched, closed, rest = part.rpartition(CLOSE)
        if closed:
            split.append((matched, True))
        split.append((rest, False))
    pieces = [(text, is_marked) for text, is_marked in split if text]
    last = len(pieces) - 1
    return tuple(
        (_shortened(text, is_marked or number == last, not is_marked and number == 0), is_marked)
        for number, (text, is_marked) in enumerate(pieces)
    )


def _shortened(text: str, keep_start: bool, keep_end: bool) -> str:
    """Limit the length of a piece: minified files hold lines without any space."""
    if len(text) <= MAX_PIECE_CHARACTERS:
        return text
    if keep_end and not keep_start:
        return GAP + text[-MAX_PIECE_CHARACTERS:]
    if keep_start:
        return text[:MAX_PIECE_CHARACTERS] + GAP
    half = MAX_PIECE_CHARACTERS // 2
    return text[:half] + GAP + text[-half:]


def _around(columns: Columns, literal: str) -> Pieces:
    """Return the first occurrence of a literal text with its context."""
    context = LITERAL_CONTEXT_CHARACTERS
    for text in columns:
        place = text.find(literal) if literal else -1
        if place >= 0:
            end = place + len(literal)
            before, after = text[max(0, place - context) : place], text[end : end + context]
            start = GAP if place > context else ""
            stop = GAP if end + context < len(text) else ""
            pieces = ((start + before, False), (literal, True), (after + stop, False))
            return tuple(piece for piece in pieces if piece[0])
    return _head(columns)


def _head(columns: Columns) -> Pieces:
    """Return the beginning of the first column with text."""
    text = next((each for each in columns if each), "")
    return ((_shortened(text, True, False), False),) if text else ()
