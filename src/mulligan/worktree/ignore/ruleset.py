"""One ignore file, arranged for quick answers. Pure.

Most patterns are plain words, prefixes and suffixes, which need no regular expression; the others
are tried together in one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence

from mulligan.worktree.ignore.patterns import (
    Gap,
    Pattern,
    directory_regex,
    literal,
    name_regex,
    parse,
)


class Rules:
    """One parsed ignore file."""

    __slots__ = ("_at", "_entries", "_everywhere", "_extras", "_somewhere", "_within", "placed")

    @classmethod
    def parse(cls, data: bytes) -> Rules:
        """The rules that an ignore file with this content holds; any bytes will do."""
        return _parsed(data)

    def __init__(self, entries: Sequence[Pattern]) -> None:
        everywhere: list[Pattern] = []
        self._entries = entries
        self._at: dict[bytes, tuple[int, ...]] = {}
        self._within: list[tuple[re.Pattern[bytes], int]] = []
        for number, entry in enumerate(entries):
            if all(token is Gap.DEEP for token in entry.directory) and entry.directory != ():
                everywhere.append(entry)
            elif (text := literal(entry.directory)) is not None:
                self._at[text] = (*self._at.get(text, ()), number)
            else:
                self._within.append((re.compile(directory_regex(entry.directory)), number))
        # One question for all of them, as hardly any directory answers it with yes.
        self._somewhere: re.Pattern[bytes] | None = None
        if self._within:
            self._somewhere = re.compile(b"|".join(regex.pattern for regex, _ in self._within))
        self._everywhere = names_of(everywhere)
        self._extras: dict[tuple[int, ...], Names] = {}
        self.placed = bool(self._at or self._within)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def match(self, path: bytes, is_dir: bool) -> bool | None:
        """True: ignored, False: re-included, None: not mentioned. The last match wins.

        The path is relative to the directory of the file. Only the path itself is judged, not
        the directories above it.
        """
        directory, slash, name = path.rpartition(b"/")
        tables = self.tables(self.extra(directory + slash), is_dir)
        return verdict(tables, name)

    def extra(self, directory: bytes) -> Names | None:
        """The patterns that count in this directory (`b""` or ending in a slash) only."""
        found = self._at.get(directory, ())
        if self._somewhere is not None and self._somewhere.match(directory):
            found += tuple(number for regex, number in self._within if regex.match(directory))
        if not found:
            return None
        names = self._extras.get(found)
        if names is None:
            names = self._extras[found] = names_of([self._entries[number] for number in found])
        return names

    def tables(self, extra: Names | None, is_dir: bool) -> tuple[Table, ...]:
        """The tables in which to look up a name, given what `extra` said of its directory."""
        both = (self._everywhere,) if extra is None else (self._everywhere, extra)
        return tuple(names[is_dir] for names in both if names[is_dir])


class Table:
    """Patterns for names, arranged so that one look finds the last one that matches."""

    __slots__ = ("_starts", "_stops", "_weights", "literals", "prefixes", "regex", "suffixes")

    def __init__(self, entries: Iterable[Pattern]) -> None:
        self.literals: dict[bytes, int] = {}
        starts: list[tuple[int, bytes]] = []
        stops: list[tuple[int, bytes]] = []
        others: list[tuple[int, bytes]] = []
        for weight, _, _, name in entries:
            if (text := literal(name)) is not None:
                self.literals[text] = max(weight, self.literals.get(text, 0))
            elif name[0] is Gap.STAR and (text := literal(name[1:])) is not None:
                stops.append((weight, text))
            elif name[-1] is Gap.STAR and (text := literal(name[:-1])) is not None:
                starts.append((weight, text))
            else:
                others.append((weight, name_regex(name)))
        self._starts = sorted(starts, reverse=True)
        self._stops = sorted(stops, reverse=True)
        self.prefixes = tuple(text for _, text in self._starts)
        self.suffixes = tuple(text for _, text in self._stops)
        # The empty group at the end of each alternative tells which one it was. It stands at the
        # end because the regular expression engine skips alternatives by their first character.
        others.sort(reverse=True)
        self._weights = [weight for weight, _ in others]
        self.regex: Callable[[bytes], re.Match[bytes] | None] | None = None
        if others:
            source = b"(?s:" + b"|".join(regex + rb"\Z()" for _, regex in others) + b")"
            self.regex = re.compile(source).match

    def __bool__(self) -> bool:
        return bool(self.literals or self._starts or self._stops or self._weights)

    def weight(self, name: bytes) -> int:
        """The weight of the heaviest pattern that matches, 0 if none does."""
        best = self.literals.get(name, 0)
        if name.endswith(self.suffixes):
            for weight, suffix in self._stops:
                if name.endswith(suffix):
                    best = max(best, weight)
                    break
        if name.startswith(self.prefixes):
            for weight, prefix in self._starts:
                if name.startswith(prefix):
                    best = max(best, weight)
                    break
        if self.regex is not None and (match := self.regex(name)) is not None:
            assert match.lastindex is not None
            best = max(best, self._weights[match.lastindex - 1])
        return best


Names = tuple[Table, Table]


def names_of(entries: Sequence[Pattern]) -> Names:
    files = [entry for entry in entries if not entry.only_directories]
    table = Table(files)
    return (table, table if len(files) == len(entries) else Table(entries))


def verdict(tables: tuple[Table, ...], name: bytes) -> bool | None:
    """What one ignore file says of a name: patterns further down weigh more, odd ones ignore."""
    weight = 0
    for table in tables:
        found = table.weight(name)
        weight = max(weight, found)
    return weight & 1 == 1 if weight else None


@functools.lru_cache(maxsize=512)
def _parsed(data: bytes) -> Rules:
    return Rules(parse(data))
