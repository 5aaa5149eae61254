"""Parse ignore files into patterns, as git does. Pure.

A pattern is cut at its last slash into a part for the directory and a part for the name. Each part
is a sequence of tokens: literal characters, character sets, and gaps.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple


class Gap(enum.Enum):
    """Tokens that can match more than one character."""

    STAR = enum.auto()  # any characters within one name
    DEEP = enum.auto()  # any number of directories, each with its slash, or none
    DEEPER = enum.auto()  # anything up to and including some slash


# A literal character, the regular expression for one character, or a gap.
Token = int | bytes | Gap
Tokens = tuple[Token, ...]


class Pattern(NamedTuple):
    """A pattern, cut at its last slash."""

    weight: int
    only_directories: bool
    directory: Tokens
    name: Tokens


_SLASH, _BACKSLASH, _STAR, _QUESTION, _OPEN, _CLOSE, _DASH = b"/\\*?[]-"


def parse(data: bytes) -> list[Pattern]:
    """Return the patterns of an ignore file; accepts any bytes."""
    patterns: list[Pattern] = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.startswith(b"#"):
            line = line.removesuffix(b"\r").partition(b"\0")[0]
            patterns.extend(_line(number, _without_trailing_spaces(line)))
    return patterns


def _without_trailing_spaces(line: bytes) -> bytes:
    if not line.endswith(b" "):
        return line
    bare = line.rstrip(b" ")
    escapes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + escapes % 2]  # an escaped space stays


def _line(number: int, line: bytes) -> list[Pattern]:
    """Parse one line, mostly to one pattern; to none if it can never match."""
    weight = 2 * number + 1
    if line.startswith(b"!"):
        line = line[1:]
        weight -= 1
    only_directories = line.endswith(b"/")
    line = line.removesuffix(b"/")
    anchored = b"/" in line
    tokens = _tokens(line.removeprefix(b"/"), anchored)
    if not tokens:
        return []
    if not anchored:
        return [Pattern(weight, only_directories, (Gap.DEEP,), tokens)]
    entries = []
    for each in _spread(tokens):
        cut = max((i for i, token in enumerate(each, 1) if _ends_a_directory(token)), default=0)
        if cut < len(each):
            entries.append(Pattern(weight, only_directories, each[:cut], each[cut:]))
    return entries


def _tokens(pattern: bytes, anchored: bool) -> Tokens | None:
    """Split a pattern into tokens; None if it can never match."""
    tokens: list[Token] = []
    at = 0
    literal_so_far = True
    while at < len(pattern):
        char = pattern[at]
        if char == _STAR:
            start = at
            while pattern[at : at + 1] == b"*":
                at += 1
            # Git compares the literal prefix of a pattern separately, so the stars of `a**/b`
            # begin the rest and count as in `**/b`.
            begins = literal_so_far or pattern[start - 1] == _SLASH
            if not (anchored and at - start > 1 and begins):
                tokens.append(Gap.STAR)
            elif at == len(pattern):
                tokens += (Gap.DEEP, Gap.STAR)
            elif pattern[at] == _SLASH:
                tokens.append(Gap.DEEP)
                at += 1
            elif pattern.startswith(b"\\/", at):
                tokens.append(Gap.DEEPER)
                at += 2
            else:
                tokens.append(Gap.STAR)
        elif char == _QUESTION:
            tokens.append(b"[^/]")
            at += 1
        elif char == _OPEN:
            bracket = _bracket(pattern, at + 1)
            if bracket is None:
                return None
            regex, at = bracket
            tokens.append(regex)
        else:
            if char == _BACKSLASH:
                at += 1
                if at == len(pattern):
                    return None
            tokens.append(pattern[at])
            at += 1
        literal_so_far = literal_so_far and char not in b"*?[\\"
    return tuple(tokens)


def _bracket(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    """Parse a bracket expression to a regex; return it and its end, None if unterminated."""
    members: set[int] = set()
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    first = at
    previous = 0  # the character that a range can start from
    while at < len(pattern):
        char = pattern[at]
        if char == _CLOSE and at > first:
            members.add(_SLASH) if negated else members.discard(_SLASH)
            if not members:
                return None
            inside = b"".join(b"\\x%02x" % member for member in sorted(members))
            return (b"[^%b]" if negated else b"[%b]") % inside, at + 1
        if char == _DASH and previous and at + 1 < len(pattern) and pattern[at + 1] != _CLOSE:
            at += 2 if pattern[at + 1] == _BACKSLASH else 1
            if at == len(pattern):
                return None
            members.update(range(previous, pattern[at] + 1))
            previous = 0
        elif char == _OPEN and pattern.startswith(b":", at + 1):
            close = pattern.find(b"]", at + 2)
            if close < 0:
                return None
            if pattern[close - 1 : close] == b":" and close > at + 2:
                named = _CLASSES.get(pattern[at + 2 : close - 1])
                if named is None:
                    return None
                members.update(named)
                previous = 0
                at = close
            else:
                members.add(char)
                previous = char
        else:
            if char == _BACKSLASH:
                at += 1
                if at == len(pattern):
                    return None
            previous = pattern[at]
            members.add(previous)
        at += 1
    return None


_DIGITS = frozenset(b"0123456789")
_UPPER = frozenset(range(ord("A"), ord("Z") + 1))
_LOWER = frozenset(range(ord("a"), ord("z") + 1))
_PRINTED = frozenset(range(0x20, 0x7F))
_CLASSES: dict[bytes, frozenset[int]] = {
    b"alnum": _DIGITS | _UPPER | _LOWER,
    b"alpha": _UPPER | _LOWER,
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset(range(0x20)) | {0x7F},
    b"digit": _DIGITS,
    b"graph": _PRINTED - {0x20},
    b"lower": _LOWER,
    b"print": _PRINTED,
    b"punct": _PRINTED - {0x20} - _DIGITS - _UPPER - _LOWER,
    b"space": frozenset(b" \t\n\r"),  # git has its own isspace, without \v and \f
    b"upper": _UPPER,
    b"xdigit": _DIGITS | frozenset(b"abcdefABCDEF"),
}


def _ends_a_directory(token: Token) -> bool:
    return token in (_SLASH, Gap.DEEP, Gap.DEEPER)


def _spread(tokens: Tokens) -> list[Tokens]:
    """Expand to equivalent patterns without a DEEP in the middle of a name.

    `a**/b` matches `ab` and `ax/y/b`: it becomes two patterns, each with a clear last slash.
    """
    for at in range(1, len(tokens)):
        if tokens[at] is Gap.DEEP and not _ends_a_directory(tokens[at - 1]):
            before, after = tokens[:at], tokens[at + 1 :]
            return _spread(before + after) + _spread((*before, Gap.DEEPER, *after))
    return [tokens]


def literal(tokens: Tokens) -> bytes | None:
    """Return the text of tokens that are all literal; else None."""
    chars = [token for token in tokens if isinstance(token, int)]
    return bytes(chars) if len(chars) == len(tokens) else None


# The first match of the text between two gaps is as good as any later one, since the next gap can
# take up the rest. Atomic groups `(?>...)` use this to avoid exponential time on `*a*a*a*a*a*b`.


def name_regex(tokens: Tokens) -> bytes:
    first, *others = _split(tokens, (Gap.STAR,))
    if not others:
        return _plain(first)
    middle = (b"(?>.*?" + _plain(part[1:]) + b")" for part in others[:-1])
    return _plain(first) + b"".join(middle) + b".*" + _plain(others[-1][1:])


def directory_regex(tokens: Tokens) -> bytes:
    def within(part: Tokens) -> bytes:
        first, *others = _split(part, (Gap.STAR,))
        stars = (b"(?>[^/]*?" + _plain(other[1:]) + b")" for other in others)
        return _plain(first) + b"".join(stars)

    first, *others = _split(tokens, (Gap.DEEP, Gap.DEEPER))
    gaps = [
        (b"(?:.*?/)??" if part[0] is Gap.DEEP else b".*?/") + within(part[1:]) for part in others
    ]
    middle = (b"(?>" + gap + b")" for gap in gaps[:-1])
    return b"(?s:" + within(first) + b"".join(middle) + b"".join(gaps[-1:]) + rb"\Z)"


def _split(tokens: Tokens, gaps: tuple[Gap, ...]) -> list[Tokens]:
    """Cut before each gap; the first part has none."""
    cuts = [at for at, token in enumerate(tokens) if token in gaps]
    starts, ends = [0, *cuts], [*cuts, len(tokens)]
    return [tokens[start:end] for start, end in zip(starts, ends, strict=True)]


def _plain(tokens: Tokens) -> bytes:
    parts = (token if isinstance(token, bytes) else _escape(token) for token in tokens)
    return b"".join(parts)


def _escape(token: int | Gap) -> bytes:
    assert isinstance(token, int)
    return re.escape(bytes((token,)))
