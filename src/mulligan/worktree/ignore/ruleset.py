"""Compile one ignore file for fast lookups. Pure.

Most patterns are literals, prefixes or suffixes, which need no regular expression; the others are
joined into one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from mulligan.worktree.ignore.patterns import (
    Gap,
    Pattern,
    Tokens,
    directory_regex,
    literal,
    name_regex,
    parse,
)

MAX_FILE_BYTES = 1 << 20
MAX_WILDCARD_TOKENS = 16_000
MIN_WILDCARD_TOKENS = 16
"""The least that a pattern is charged, which limits them to 1,000."""


class Rules:
    """One parsed ignore file."""

    __slots__ = ("_at", "_everywhere", "_is_empty", "_names", "_somewhere", "_within", "placed")

    @classmethod
    def parse(cls, data: bytes) -> Rules:
        """Parse an ignore file; accepts any bytes.

        Patterns beyond the limits above are dropped, since every name is tried on every wildcard.
        """
        return _parsed(data)

    def __init__(self, entries: Sequence[Pattern]) -> None:
        everywhere: list[Pattern] = []
        self._at: dict[bytes, list[Pattern]] = {}
        within: dict[Tokens, list[Pattern]] = {}
        for entry in entries:
            if all(token is Gap.DEEP for token in entry.directory) and entry.directory != ():
                everywhere.append(entry)
            elif (text := literal(entry.directory)) is not None:
                self._at.setdefault(text, []).append(entry)
            else:
                within.setdefault(entry.directory, []).append(entry)
        self._within = [
            (re.compile(directory_regex(tokens)), names_of(patterns))
            for tokens, patterns in within.items()
        ]
        # One regex for all of them first, since hardly any directory matches.
        self._somewhere: re.Pattern[bytes] | None = None
        if self._within:
            self._somewhere = re.compile(b"|".join(regex.pattern for regex, _ in self._within))
        self._everywhere = names_of(everywhere)
        self._names: dict[bytes, Names] = {}
        self._is_empty = not entries
        self.placed = bool(self._at or self._within)

    def __bool__(self) -> bool:
        return not self._is_empty

    def match(self, path: bytes, is_dir: bool) -> bool | None:
        """Return True if ignored, False if re-included, None if no pattern matches.

        The last match wins. The path is relative to the directory of the file; its parent
        directories are not matched.
        """
        directory, slash, name = path.rpartition(b"/")
        tables = self.tables(self.extra(directory + slash), is_dir)
        return verdict(tables, name)

    def extra(self, directory: bytes) -> tuple[Names, ...]:
        """Return the patterns for this directory only (`b""` or ending in a slash)."""
        extra: list[Names] = []
        if directory in self._at:
            if directory not in self._names:
                self._names[directory] = names_of(self._at[directory])
            extra.append(self._names[directory])
        if self._somewhere is not None and self._somewhere.match(directory):
            extra += [names for regex, names in self._within if regex.match(directory)]
        return tuple(extra)

    def tables(self, extra: tuple[Names, ...], is_dir: bool) -> tuple[Table, ...]:
        """Return the tables to look up a name in; `extra` is that of its directory."""
        return tuple(names[is_dir] for names in (self._everywhere, *extra) if names[is_dir])


class Table:
    """Patterns for names; one lookup finds the last one that matches."""

    __slots__ = (
        *("_start_lengths", "_starts", "_stop_lengths", "_stops", "_weights"),
        *("literals", "prefixes", "regex", "suffixes"),
    )

    def __init__(self, entries: Iterable[Pattern]) -> None:
        self.literals: dict[bytes, int] = {}
        starts: dict[bytes, int] = {}
        stops: dict[bytes, int] = {}
        others: list[tuple[int, bytes]] = []
        for weight, _, _, name in entries:
            if (text := literal(name)) is not None:
                self.literals[text] = max(weight, self.literals.get(text, 0))
            elif name[0] is Gap.STAR and (text := literal(name[1:])) is not None:
                stops[text] = max(weight, stops.get(text, 0))
            elif name[-1] is Gap.STAR and (text := literal(name[:-1])) is not None:
                starts[text] = max(weight, starts.get(text, 0))
            else:
                others.append((weight, name_regex(name)))
        self._starts, self._stops = starts, stops
        self.prefixes, self.suffixes = tuple(starts), tuple(stops)
        self._start_lengths, self._stop_lengths = set(map(len, starts)), set(map(len, stops))
        # An empty group tells which alternative matched. It stands at the end of each, because
        # the regex engine skips alternatives by their first character.
        others.sort(reverse=True)
        self._weights = [weight for weight, _ in others]
        self.regex: Callable[[bytes], re.Match[bytes] | None] | None = None
        if others:
            source = b"(?s:" + b"|".join(regex + rb"\Z()" for _, regex in others) + b")"
            self.regex = re.compile(source).match

    def __bool__(self) -> bool:
        return bool(self.literals or self._starts or self._stops or self._weights)

    def weight(self, name: bytes) -> int:
        """Return the weight of the heaviest matching pattern; 0 if none matches."""
        best = self.literals.get(name, 0)
        for length in self._stop_lengths:
            if length <= len(name):
                best = max(best, self._stops.get(name[len(name) - length :], 0))
        for length in self._start_lengths:
            best = max(best, self._starts.get(name[:length], 0))
        if self.regex is not None and (match := self.regex(name)) is not None:
            assert match.lastindex is not None
            best = max(best, self._weights[match.lastindex - 1])
        return best


Names = tuple[Table, Table]


def names_of(entries: Sequence[Pattern]) -> Names:
    """Build the tables for files and for directories."""
    files = [entry for entry in entries if not entry.only_directories]
    table = Table(files)
    return (table, table if len(files) == len(entries) else Table(entries))


def verdict(tables: tuple[Table, ...], name: bytes) -> bool | None:
    """Return what one ignore file says of a name: later patterns weigh more, odd ones ignore."""
    weight = max((table.weight(name) for table in tables), default=0)
    return weight & 1 == 1 if weight else None


@functools.lru_cache(maxsize=512)
def _parsed(data: bytes) -> Rules:
    if len(data) > MAX_FILE_BYTES:
        data = data[: data.rfind(b"\n", 0, MAX_FILE_BYTES) + 1]
    return Rules(list(_bounded(parse(data))))


def _bounded(entries: Iterable[Pattern]) -> Iterator[Pattern]:
    """Drop wildcard patterns after `MAX_WILDCARD_TOKENS`."""
    tokens_left = MAX_WILDCARD_TOKENS
    for entry in entries:
        if _needs_regex(entry):
            tokens_left -= max(MIN_WILDCARD_TOKENS, len(entry.directory) + len(entry.name))
            if tokens_left < 0:
                continue
        yield entry


def _needs_regex(entry: Pattern) -> bool:
    """Return True unless the pattern is a literal, a prefix or a suffix."""
    is_everywhere = all(token is Gap.DEEP for token in entry.directory)
    if not is_everywhere and literal(entry.directory) is None:
        return True
    name = entry.name
    rest = name[1:] if name[0] is Gap.STAR else name[:-1] if name[-1] is Gap.STAR else name
    return literal(rest) is None
