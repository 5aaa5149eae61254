"""Which names belong to the project and which are left out: a pure decision, no I/O.

Three kinds of rules speak, and each can only be overruled by the ones before it:

1. `.git`, and the temporary files of a restore, are never touched.
2. `.mulliganignore` files, deepest directory first. They win over all that follows, in both
   directions: `!dist/` brings a directory back that git or the defaults leave out.
3. The default excludes below, and git's own rules: `.gitignore` files deepest first, then the
   repository's `info/exclude`, then the user's global excludes.

All of them have git's syntax, and git's semantics to the letter, oddities included: a pattern
here means what it means to git. As in git, what lies below a directory that is out of scope is
out of scope, and no rule can bring a part of it back. The project's root itself is not judged.

Scanning asks about every name there is, so the work is arranged around the directory. A pattern
with a slash is a pattern for directories, up to its last slash, and a pattern for names, after
it. On entering a directory the first half is settled once; all that is left in the directory are
patterns for names, most of which are plain words, prefixes and suffixes that need no regular
expression. Directories in which the same patterns count share one memory of verdicts.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Reason(enum.IntEnum):
    """Why a name is out of scope; IN_SCOPE, the only false one, if it is not."""

    IN_SCOPE = 0
    GITIGNORE = 1
    DEFAULT = 2
    MULLIGANIGNORE = 3
    ALWAYS = 4


# What can be made again, in git's syntax. `.git` is missing because it can never be switched on,
# `Cargo.lock` and other lock files because they are precious: they cannot always be made again
# as they were.
DEFAULT_EXCLUDES: tuple[str, ...] = (
    # agents and version control
    *(".agentsmithy/", "chroma_db/", ".svn/", ".hg/", ".jj/"),
    # Python
    *(".venv/", "venv/", "env/", ".env/"),
    *("__pycache__/", "*.pyc", "*.pyo", "*.pyd"),
    *(".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".tox/", ".nox/"),
    *(".coverage", "coverage/", "htmlcov/"),
    *("*.egg-info/", ".eggs/", "dist/", "build/"),
    *(".ipynb_checkpoints/", ".hypothesis/", ".benchmarks/"),
    # JavaScript and TypeScript
    *("node_modules/", ".next/", ".nuxt/", ".cache/", ".parcel-cache/", ".turbo/", ".svelte-kit/"),
    *("out/", ".output/", ".nyc_output/"),
    # Rust, Go, C and C++, Java, Terraform
    *("target/", "vendor/"),
    *("*.o", "*.a", "*.so", "*.dylib", "*.dll", "*.exe"),
    *("*.class", "*.jar", "*.war", ".gradle/", ".terraform/"),
    # editors, logs, operating systems
    *(".idea/", ".vscode/", "*.swp", "*.swo"),
    *("*.log", "logs/", "npm-debug.log*", "yarn-debug.log*"),
    *(".DS_Store", "Thumbs.db", "desktop.ini"),
)

TEMPORARY_PREFIX = b".mulligan-tmp-"
_ANY_CASE = sys.platform in ("darwin", "win32")


class Rules:
    """One parsed ignore file."""

    __slots__ = ("_at", "_entries", "_everywhere", "_extras", "_somewhere", "_within", "placed")

    @classmethod
    def parse(cls, data: bytes) -> Rules:
        """The rules that an ignore file with this content holds; any bytes will do."""
        return _parse(data)

    def __init__(self, entries: Sequence[_Entry]) -> None:
        everywhere: list[_Entry] = []
        self._entries = entries
        self._at: dict[bytes, tuple[int, ...]] = {}
        self._within: list[tuple[re.Pattern[bytes], int]] = []
        for number, entry in enumerate(entries):
            if all(token is _Gap.DEEP for token in entry.directory) and entry.directory != ():
                everywhere.append(entry)
            elif (literal := _literal(entry.directory)) is not None:
                self._at[literal] = (*self._at.get(literal, ()), number)
            else:
                self._within.append((re.compile(_directory_regex(entry.directory)), number))
        # One question for all of them, as hardly any directory answers it with yes.
        self._somewhere: re.Pattern[bytes] | None = None
        if self._within:
            self._somewhere = re.compile(b"|".join(regex.pattern for regex, _ in self._within))
        self._everywhere = _names(everywhere)
        self._extras: dict[tuple[int, ...], _Names] = {}
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
        return _verdict(tables, name)

    def extra(self, directory: bytes) -> _Names | None:
        """The patterns that count in this directory (`b""` or ending in a slash) only."""
        found = self._at.get(directory, ())
        if self._somewhere is not None and self._somewhere.match(directory):
            found += tuple(number for regex, number in self._within if regex.match(directory))
        if not found:
            return None
        names = self._extras.get(found)
        if names is None:
            names = self._extras[found] = _names([self._entries[number] for number in found])
        return names

    def tables(self, extra: _Names | None, is_dir: bool) -> tuple[_Table, ...]:
        """The tables in which to look up a name, given what `extra` said of its directory."""
        both = (self._everywhere,) if extra is None else (self._everywhere, extra)
        return tuple(names[is_dir] for names in both if names[is_dir])


class Scope:
    """The rules in force in one directory. Immutable; shares what it can with its parent."""

    __slots__ = ("_chain", "_path", "_stack", "key")

    key: bytes
    """A digest of all that can influence decisions in this directory and, together with the
    ignore files below it, in those below. If it has not changed, no decision has."""

    def __init__(self, stack: _Stack, chain: _Chain, path: bytes, key: bytes) -> None:
        self._stack = stack
        self._chain = chain
        self._path = path
        self.key = key

    def decide(self, name: bytes, is_dir: bool) -> Reason:
        """Whether the name is in scope. `is_dir` is false for a symlink, whatever it points to."""
        half = self._chain[is_dir]
        reason = half.seen.get(name)
        return half.judge(name) if reason is None else reason

    def enter(
        self,
        name: bytes,
        *,
        gitignore: bytes | None = None,
        mulliganignore: bytes | None = None,
        info_exclude: bytes | None = None,
    ) -> Scope:
        """The scope of the subdirectory, given the contents of the ignore files that lie in it.

        `info_exclude` says that the subdirectory is the top of a repository of its own; `b""` if
        that has no such file. It takes the place of the outer repository's, and the global
        excludes then count from here. The outer `.gitignore` files go on.
        """
        path = self._path + name + b"/"
        stack = self._stack
        if gitignore is None and mulliganignore is None and info_exclude is None:
            key = _digest(self.key + name)
            return Scope(stack, stack.chain(path) if stack.placed else self._chain, path, key)
        key = _digest(self.key + name, gitignore, mulliganignore, info_exclude)
        stack = stack.grow(len(path), gitignore, mulliganignore, info_exclude)
        return Scope(stack, stack.chain(path), path, key)

    def decide_path(
        self, path: bytes, is_dir: bool, read: Callable[[bytes], tuple[bytes | None, ...]]
    ) -> Reason:
        """Decide on a path of several components below this directory.

        Walks down and stops at the first directory that is out of scope. `read` is given each
        directory on the way, as a path from here, and answers with the contents of its
        `.gitignore` and `.mulliganignore`, and, if it likes, the `info_exclude` for `enter`.
        """
        scope = self
        *parents, last = path.split(b"/")
        for depth, name in enumerate(parents, 1):
            if reason := scope.decide(name, True):
                return reason
            gitignore, mulliganignore, *rest = read(b"/".join(parents[:depth]))
            scope = scope.enter(
                name,
                gitignore=gitignore,
                mulliganignore=mulliganignore,
                info_exclude=rest[0] if rest else None,
            )
        return scope.decide(last, is_dir)


def root_scope(
    *,
    outer: Sequence[tuple[bytes, bytes]] = (),
    info_prefix: bytes = b"",
    info_exclude: bytes | None = None,
    global_excludes: bytes | None = None,
    gitignore: bytes | None = None,
    mulliganignore: bytes | None = None,
    defaults: bool = True,
) -> Scope:
    """The scope of the project's root.

    `outer` holds, topmost first, the `.gitignore` files of a work tree in which the project is
    only a folder: where the project lies, seen from the directory of the file, and its content.
    `info_prefix` is where it lies seen from the top of the work tree.
    """
    top = info_prefix + b"/" if info_prefix else b""
    git = [_Layer(Rules.parse(data), prefix + b"/", 0) for prefix, data in reversed(outer)]
    stack = _Stack(
        mulligan=(),
        git=tuple(layer for layer in git if layer.rules),
        info=_Layer(Rules.parse(info_exclude or b""), top, 0),
        everywhere=_Layer(Rules.parse(global_excludes or b""), top, 0),
        defaults=defaults,
    ).grow(0, gitignore, mulliganignore, None)
    own = "\n".join(DEFAULT_EXCLUDES).encode() if defaults else b""
    files = (info_exclude, global_excludes, gitignore, mulliganignore)
    key = _digest(b"scope 1", own, top, *files, *(part for pair in outer for part in pair))
    return Scope(stack, stack.chain(b""), b"", key)


class _Layer(NamedTuple):
    """An ignore file and where it lies: paths are seen from there as `outer + path[cut:]`."""

    rules: Rules
    outer: bytes
    cut: int


class _Stack:
    """The ignore files in force in a directory and all below it that have none of their own."""

    __slots__ = ("_chains", "_defaults", "_everywhere", "_git", "_info", "_mulligan", "placed")

    def __init__(
        self,
        mulligan: tuple[_Layer, ...],
        git: tuple[_Layer, ...],
        info: _Layer,
        everywhere: _Layer,
        defaults: bool,
    ) -> None:
        self._mulligan = mulligan
        self._git = git
        self._info = info
        self._everywhere = everywhere
        self._defaults = defaults
        self._chains: dict[tuple[_Names | None, ...], _Chain] = {}
        layers = (*mulligan, *git, info, everywhere)
        self.placed = tuple(layer for layer in layers if layer.rules.placed)

    def grow(
        self,
        cut: int,
        gitignore: bytes | None,
        mulliganignore: bytes | None,
        info_exclude: bytes | None,
    ) -> _Stack:
        mulligan, git, info, everywhere = self._mulligan, self._git, self._info, self._everywhere
        if mulliganignore is not None and (rules := Rules.parse(mulliganignore)):
            mulligan = (_Layer(rules, b"", cut), *mulligan)
        if gitignore is not None and (rules := Rules.parse(gitignore)):
            git = (_Layer(rules, b"", cut), *git)
        if info_exclude is not None:
            info = _Layer(Rules.parse(info_exclude), b"", cut)
            everywhere = _Layer(everywhere.rules, b"", cut)
        return _Stack(mulligan, git, info, everywhere, self._defaults)

    def chain(self, path: bytes) -> _Chain:
        """What counts in this directory; the same object wherever the same patterns count."""
        extras = tuple([rules.extra(outer + path[cut:]) for rules, outer, cut in self.placed])
        chain = self._chains.get(extras)
        if chain is None:
            extra_of = dict(zip(map(id, self.placed), extras, strict=True))
            chain = self._chains[extras] = (
                self._half(extra_of, is_dir=False),
                self._half(extra_of, is_dir=True),
            )
        return chain

    def _half(self, extra_of: dict[int, _Names | None], *, is_dir: bool) -> _Half:
        def tables(layers: Iterable[_Layer]) -> list[tuple[_Table, ...]]:
            found = (layer.rules.tables(extra_of.get(id(layer)), is_dir) for layer in layers)
            return [each for each in found if each]

        git = (*self._git, self._info, self._everywhere)
        own = _default_rules().tables(None, is_dir) if self._defaults else ()
        return _Half(tables(self._mulligan), own, tables(git))


class _Half:
    """The decision about the names of one directory: one half for files, one for directories."""

    __slots__ = (
        *("_defaults", "_git", "_literals", "_mulligan", "_prefixes", "_regexes", "_suffixes"),
        "seen",
    )

    def __init__(
        self,
        mulligan: list[tuple[_Table, ...]],
        defaults: tuple[_Table, ...],
        git: list[tuple[_Table, ...]],
    ) -> None:
        self._mulligan = mulligan
        self._defaults = defaults
        self._git = git
        # Most names are mentioned nowhere. These find that out for all ignore files together.
        tables = [table for each in (*mulligan, defaults, *git) for table in each]
        self._literals = {b".git"}.union(*(table.literals for table in tables))
        self._prefixes = (TEMPORARY_PREFIX, *(each for table in tables for each in table.prefixes))
        self._suffixes = tuple(each for table in tables for each in table.suffixes)
        self._regexes = [table.regex for table in tables if table.regex is not None]
        self.seen: dict[bytes, Reason] = {}

    def judge(self, name: bytes) -> Reason:
        """Decide on a name for the first time, and remember it."""
        if len(self.seen) >= 20_000:
            self.seen.clear()
        reason = Reason.IN_SCOPE
        if (
            name in self._literals
            or name.endswith(self._suffixes)
            or name.startswith(self._prefixes)
            or _ANY_CASE
        ):
            reason = self._judge(name)
        else:
            for regex in self._regexes:
                if regex(name):
                    reason = self._judge(name)
                    break
        self.seen[name] = reason
        return reason

    def _judge(self, name: bytes) -> Reason:
        if name == b".git" or name.startswith(TEMPORARY_PREFIX):
            return Reason.ALWAYS
        if _ANY_CASE and name.lower() == b".git":
            return Reason.ALWAYS
        for tables in self._mulligan:
            verdict = _verdict(tables, name)
            if verdict is not None:
                return Reason.MULLIGANIGNORE if verdict else Reason.IN_SCOPE
        if _verdict(self._defaults, name):
            return Reason.DEFAULT
        for tables in self._git:
            verdict = _verdict(tables, name)
            if verdict is not None:
                return Reason.GITIGNORE if verdict else Reason.IN_SCOPE
        return Reason.IN_SCOPE


_Chain = tuple[_Half, _Half]


class _Table:
    """Patterns for names, arranged so that one look finds the last one that matches."""

    __slots__ = ("_starts", "_stops", "_weights", "literals", "prefixes", "regex", "suffixes")

    def __init__(self, entries: Iterable[_Entry]) -> None:
        self.literals: dict[bytes, int] = {}
        starts: list[tuple[int, bytes]] = []
        stops: list[tuple[int, bytes]] = []
        others: list[tuple[int, bytes]] = []
        for weight, _, _, name in entries:
            if (literal := _literal(name)) is not None:
                self.literals[literal] = max(weight, self.literals.get(literal, 0))
            elif name[0] is _Gap.STAR and (literal := _literal(name[1:])) is not None:
                stops.append((weight, literal))
            elif name[-1] is _Gap.STAR and (literal := _literal(name[:-1])) is not None:
                starts.append((weight, literal))
            else:
                others.append((weight, _name_regex(name)))
        self._starts = sorted(starts, reverse=True)
        self._stops = sorted(stops, reverse=True)
        self.prefixes = tuple(literal for _, literal in self._starts)
        self.suffixes = tuple(literal for _, literal in self._stops)
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


_Names = tuple[_Table, _Table]


def _names(entries: Sequence[_Entry]) -> _Names:
    files = [entry for entry in entries if not entry.only_directories]
    table = _Table(files)
    return (table, table if len(files) == len(entries) else _Table(entries))


def _verdict(tables: tuple[_Table, ...], name: bytes) -> bool | None:
    """What one ignore file says of a name: patterns further down weigh more, odd ones ignore."""
    weight = 0
    for table in tables:
        found = table.weight(name)
        weight = max(weight, found)
    return weight & 1 == 1 if weight else None


def _digest(start: bytes, *parts: bytes | None) -> bytes:
    digest = hashlib.blake2b(start, digest_size=16)
    for part in parts:
        # The length first, so that no two lists of parts can look the same.
        digest.update(b"\0-" if part is None else b"\0+%d:%b" % (len(part), part))
    return digest.digest()


@functools.cache
def _default_rules() -> Rules:
    return Rules.parse("\n".join(DEFAULT_EXCLUDES).encode())


# From the text of an ignore file to patterns, as git's dir.c and wildmatch.c have it.


class _Gap(enum.Enum):
    """The parts of a pattern that can match more than one character."""

    STAR = enum.auto()  # any characters within one name
    DEEP = enum.auto()  # any number of directories, each with its slash, or none
    DEEPER = enum.auto()  # anything up to and including some slash


# A literal character, the regular expression for one character, or a gap.
_Token = int | bytes | _Gap
_Tokens = tuple[_Token, ...]


class _Entry(NamedTuple):
    """A pattern, cut at its last slash."""

    weight: int
    only_directories: bool
    directory: _Tokens
    name: _Tokens


_SLASH, _BACKSLASH, _STAR, _QUESTION, _OPEN, _CLOSE, _DASH = b"/\\*?[]-"


@functools.lru_cache(maxsize=512)
def _parse(data: bytes) -> Rules:
    entries: list[_Entry] = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.startswith(b"#"):
            line = line.removesuffix(b"\r").partition(b"\0")[0]
            entries.extend(_line(number, _without_trailing_spaces(line)))
    return Rules(entries)


def _without_trailing_spaces(line: bytes) -> bytes:
    if not line.endswith(b" "):
        return line
    bare = line.rstrip(b" ")
    escapes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + escapes % 2]  # an escaped space stays


def _line(number: int, line: bytes) -> list[_Entry]:
    """The entries for one line: none if it can never match, mostly one."""
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
        return [_Entry(weight, only_directories, (_Gap.DEEP,), tokens)]
    entries = []
    for each in _spread(tokens):
        cut = max((i for i, token in enumerate(each, 1) if _ends_a_directory(token)), default=0)
        if cut < len(each):
            entries.append(_Entry(weight, only_directories, each[:cut], each[cut:]))
    return entries


def _tokens(pattern: bytes, anchored: bool) -> _Tokens | None:
    """The parts of a pattern, or None if it can never match."""
    tokens: list[_Token] = []
    at = 0
    literal_so_far = True
    while at < len(pattern):
        char = pattern[at]
        if char == _STAR:
            start = at
            while pattern[at : at + 1] == b"*":
                at += 1
            # Git cuts off the literal beginning of a pattern before it looks at the rest, so in
            # `a**/b` the two stars stand at the beginning and count as much as those in `**/b`.
            begins = literal_so_far or pattern[start - 1] == _SLASH
            if not (anchored and at - start > 1 and begins):
                tokens.append(_Gap.STAR)
            elif at == len(pattern):
                tokens += (_Gap.DEEP, _Gap.STAR)
            elif pattern[at] == _SLASH:
                tokens.append(_Gap.DEEP)
                at += 1
            elif pattern.startswith(b"\\/", at):
                tokens.append(_Gap.DEEPER)
                at += 2
            else:
                tokens.append(_Gap.STAR)
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
    """The regular expression for a bracket expression, and where it ends; None if it does not."""
    members: set[int] = set()
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    first = at
    previous = 0  # where a range can begin
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


def _ends_a_directory(token: _Token) -> bool:
    return token in (_SLASH, _Gap.DEEP, _Gap.DEEPER)


def _spread(tokens: _Tokens) -> list[_Tokens]:
    """Patterns without a DEEP in the middle of a name, that together match the same.

    `a**/b` matches `ab` as well as `ax/y/b`: it becomes the two patterns that can be cut at
    their last slash.
    """
    for at in range(1, len(tokens)):
        if tokens[at] is _Gap.DEEP and not _ends_a_directory(tokens[at - 1]):
            before, after = tokens[:at], tokens[at + 1 :]
            return _spread(before + after) + _spread((*before, _Gap.DEEPER, *after))
    return [tokens]


def _literal(tokens: _Tokens) -> bytes | None:
    chars = [token for token in tokens if isinstance(token, int)]
    return bytes(chars) if len(chars) == len(tokens) else None


# Of all places where the text between two gaps can match, the first is as good as any later one,
# since the gap after it can take up the rest. The atomic groups `(?>...)` say so, and spare us
# the exponential time that `*a*a*a*a*a*b` would take otherwise.


def _name_regex(tokens: _Tokens) -> bytes:
    first, *others = _split(tokens, (_Gap.STAR,))
    if not others:
        return _plain(first)
    middle = (b"(?>.*?" + _plain(part[1:]) + b")" for part in others[:-1])
    return _plain(first) + b"".join(middle) + b".*" + _plain(others[-1][1:])


def _directory_regex(tokens: _Tokens) -> bytes:
    def within(part: _Tokens) -> bytes:
        first, *others = _split(part, (_Gap.STAR,))
        stars = (b"(?>[^/]*?" + _plain(other[1:]) + b")" for other in others)
        return _plain(first) + b"".join(stars)

    first, *others = _split(tokens, (_Gap.DEEP, _Gap.DEEPER))
    gaps = [
        (b"(?:.*?/)??" if part[0] is _Gap.DEEP else b".*?/") + within(part[1:]) for part in others
    ]
    middle = (b"(?>" + gap + b")" for gap in gaps[:-1])
    return b"(?s:" + within(first) + b"".join(middle) + b"".join(gaps[-1:]) + rb"\Z)"


def _split(tokens: _Tokens, gaps: tuple[_Gap, ...]) -> list[_Tokens]:
    """Cut before each of the gaps; the first part is what comes before any of them."""
    cuts = [at for at, token in enumerate(tokens) if token in gaps]
    starts, ends = [0, *cuts], [*cuts, len(tokens)]
    return [tokens[start:end] for start, end in zip(starts, ends, strict=True)]


def _plain(tokens: _Tokens) -> bytes:
    parts = (token if isinstance(token, bytes) else _escape(token) for token in tokens)
    return b"".join(parts)


def _escape(token: int | _Gap) -> bytes:
    assert isinstance(token, int)
    return re.escape(bytes((token,)))
