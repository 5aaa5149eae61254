"""Decide which names are in scope. Pure: no I/O.

Precedence, highest first:

1. `.git`, and the staging directories of a restore, are always out of scope.
2. `.mulliganignore` files, deepest directory first, in both directions: `!dist/` includes a
   directory that git's rules or the defaults exclude.
3. The default excludes below.
4. Git's rules: `.gitignore` files deepest first, then the repository's `info/exclude`, then the
   user's global excludes. Unless the defaults are off, they exclude no file that holds rules: `*`
   in a `.gitignore` would exclude that file from the undo of the turn that wrote it.

All rule files have git's syntax and exact semantics. As in git, everything below an excluded
directory is excluded, and no rule includes a part of it again. The project root is always in scope.

The scanner asks about every name, so the work is done once per directory. On entering a directory,
the part of each pattern before its last slash is matched; only patterns for names are left, mostly
literals, prefixes and suffixes. Directories with the same patterns share a cache of verdicts.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mulligan.worktree.ignore.git_repo import GitSources
from mulligan.worktree.ignore.ruleset import Names, Rules, Table, verdict


class Reason(enum.IntEnum):
    """Why a name is out of scope; IN_SCOPE is the only false value."""

    IN_SCOPE = 0
    GITIGNORE = 1
    DEFAULT = 2
    MULLIGANIGNORE = 3
    ALWAYS = 4


# Files that can be generated again, in git's syntax. Lock files such as `Cargo.lock` are not in
# the list, because generating them again may give other content.
DEFAULT_EXCLUDES: tuple[str, ...] = (
    # agents and version control
    *(".agentsmithy/", "chroma_db/", ".pi/", ".yaai/", ".svn/", ".hg/", ".jj/"),
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
MAX_CACHED_VERDICTS = 20_000
RULE_FILES = frozenset({b".gitignore", b".mulliganignore", b".mulligan.toml"})
_ANY_CASE = sys.platform in ("darwin", "win32")


class Scope:
    """The rules in force in one directory. Immutable; shares state with its parent."""

    __slots__ = ("_below", "_matchers", "_path", "_stack", "key")

    key: bytes
    """Digest of all rules in force here: while it is equal, decisions are equal. Ignore files in
    subdirectories add to it there."""

    def __init__(self, stack: _Stack, matchers: _Matchers, path: bytes, key: bytes) -> None:
        self._stack = stack
        self._matchers = matchers
        self._path = path
        self.key = key
        self._below: dict[bytes, Scope] = {}

    def decide(self, name: bytes, is_dir: bool) -> Reason:
        """Return the reason to exclude a name. `is_dir` is false for a symlink."""
        matcher = self._matchers[is_dir]
        reason = matcher.verdicts.get(name)
        return matcher.decide(name) if reason is None else reason

    def enter(
        self,
        name: bytes,
        *,
        gitignore: bytes | None = None,
        mulliganignore: bytes | None = None,
        info_exclude: bytes | None = None,
    ) -> Scope:
        """Return the scope of a subdirectory, given the contents of its ignore files.

        Pass `info_exclude` if the subdirectory is the top of a nested repository (`b""` if it has
        no such file): it replaces the outer repository's, and the global excludes are matched
        from here. The outer `.gitignore` files stay in force.
        """
        is_plain = gitignore is None and mulliganignore is None and info_exclude is None
        if is_plain and name in self._below:
            return self._below[name]
        path = self._path + name + b"/"
        stack = self._stack
        if is_plain:
            key = _digest(self.key + name)
            matchers = stack.matchers(path) if stack.placed else self._matchers
            scope = self._below[name] = Scope(stack, matchers, path, key)
            return scope
        key = _digest(self.key + name, gitignore, mulliganignore, info_exclude)
        stack = stack.extend(len(path), gitignore, mulliganignore, info_exclude)
        return Scope(stack, stack.matchers(path), path, key)


@functools.lru_cache(maxsize=8)
def project_scope(
    sources: GitSources, gitignore: bytes | None, mulliganignore: bytes | None
) -> Scope:
    """Return the scope of a project root; cached, with its verdicts."""
    return root_scope(
        outer=sources.outer,
        info_prefix=sources.info_prefix,
        info_exclude=sources.info_exclude,
        global_excludes=sources.global_excludes,
        gitignore=gitignore,
        mulliganignore=mulliganignore,
    )


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
    """Return the scope of a project root.

    `outer` and `info_prefix` are those of `GitSources`.
    """
    top = info_prefix + b"/" if info_prefix else b""
    git = [_Layer(Rules.parse(data), prefix + b"/", 0) for prefix, data in reversed(outer)]
    stack = _Stack(
        mulligan=(),
        git=tuple(layer for layer in git if layer.rules),
        info=_Layer(Rules.parse(info_exclude or b""), top, 0),
        everywhere=_Layer(Rules.parse(global_excludes or b""), top, 0),
        defaults=defaults,
    ).extend(0, gitignore, mulliganignore, None)
    own = "\n".join(DEFAULT_EXCLUDES).encode() if defaults else b""
    files = (info_exclude, global_excludes, gitignore, mulliganignore)
    key = _digest(b"scope 1", own, top, *files, *(part for pair in outer for part in pair))
    return Scope(stack, stack.matchers(b""), b"", key)


class _Layer(NamedTuple):
    """An ignore file; a path relative to its directory is `outer + path[cut:]`."""

    rules: Rules
    outer: bytes
    cut: int


class _Stack:
    """The ignore files in force in a directory, and below it until another one is found."""

    __slots__ = ("_defaults", "_everywhere", "_git", "_info", "_matchers", "_mulligan", "placed")

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
        self._matchers: dict[tuple[tuple[Names, ...], ...], _Matchers] = {}
        layers = (*mulligan, *git, info, everywhere)
        self.placed = tuple(layer for layer in layers if layer.rules.placed)

    def extend(
        self,
        cut: int,
        gitignore: bytes | None,
        mulliganignore: bytes | None,
        info_exclude: bytes | None,
    ) -> _Stack:
        """Add the ignore files of a directory whose path has `cut` bytes."""
        mulligan, git, info, everywhere = self._mulligan, self._git, self._info, self._everywhere
        if mulliganignore is not None and (rules := Rules.parse(mulliganignore)):
            mulligan = (_Layer(rules, b"", cut), *mulligan)
        if gitignore is not None and (rules := Rules.parse(gitignore)):
            git = (_Layer(rules, b"", cut), *git)
        if info_exclude is not None:
            info = _Layer(Rules.parse(info_exclude), b"", cut)
            everywhere = _Layer(everywhere.rules, b"", cut)
        return _Stack(mulligan, git, info, everywhere, self._defaults)

    def matchers(self, path: bytes) -> _Matchers:
        """Return the matchers of a directory; shared by directories with the same patterns."""
        extras = tuple([rules.extra(outer + path[cut:]) for rules, outer, cut in self.placed])
        matchers = self._matchers.get(extras)
        if matchers is None:
            extra_of = dict(zip(map(id, self.placed), extras, strict=True))
            matchers = self._matchers[extras] = (
                self._matcher(extra_of, is_dir=False),
                self._matcher(extra_of, is_dir=True),
            )
        return matchers

    def _matcher(self, extra_of: dict[int, tuple[Names, ...]], *, is_dir: bool) -> _Matcher:
        def tables(layers: Iterable[_Layer]) -> list[tuple[Table, ...]]:
            all_tables = (
                layer.rules.tables(extra_of.get(id(layer), ()), is_dir) for layer in layers
            )
            return [each for each in all_tables if each]

        git = (*self._git, self._info, self._everywhere)
        defaults = _default_rules().tables((), is_dir) if self._defaults else ()
        return _Matcher(tables(self._mulligan), defaults, tables(git))


class _Matcher:
    """Decides about the files, or about the subdirectories, of a directory."""

    __slots__ = (
        *("_defaults", "_git", "_literals", "_mulligan", "_prefixes", "_regexes", "_suffixes"),
        "verdicts",
    )

    def __init__(
        self,
        mulligan: list[tuple[Table, ...]],
        defaults: tuple[Table, ...],
        git: list[tuple[Table, ...]],
    ) -> None:
        self._mulligan = mulligan
        self._defaults = defaults
        self._git = git
        # Most names match no pattern: these reject them for all ignore files at once.
        tables = [table for each in (*mulligan, defaults, *git) for table in each]
        self._literals = {b".git"}.union(*(table.literals for table in tables))
        self._prefixes = (TEMPORARY_PREFIX, *(each for table in tables for each in table.prefixes))
        self._suffixes = tuple(each for table in tables for each in table.suffixes)
        self._regexes = [table.regex for table in tables if table.regex is not None]
        self.verdicts: dict[bytes, Reason] = {}

    def decide(self, name: bytes) -> Reason:
        """Decide on a name and cache the verdict."""
        if len(self.verdicts) >= MAX_CACHED_VERDICTS:
            self.verdicts.clear()
        reason = Reason.IN_SCOPE
        if (
            name in self._literals
            or name.endswith(self._suffixes)
            or name.startswith(self._prefixes)
            or _ANY_CASE
        ):
            reason = self._decide_by_layers(name)
        else:
            for regex in self._regexes:
                if regex(name):
                    reason = self._decide_by_layers(name)
                    break
        self.verdicts[name] = reason
        return reason

    def _decide_by_layers(self, name: bytes) -> Reason:
        if name == b".git" or name.startswith(TEMPORARY_PREFIX):
            return Reason.ALWAYS
        if _ANY_CASE and name.lower() == b".git":
            return Reason.ALWAYS
        for tables in self._mulligan:
            is_ignored = verdict(tables, name)
            if is_ignored is not None:
                return Reason.MULLIGANIGNORE if is_ignored else Reason.IN_SCOPE
        if verdict(self._defaults, name):
            return Reason.DEFAULT
        for tables in self._git:
            is_ignored = verdict(tables, name)
            if is_ignored is not None:
                kept = self._defaults and name in RULE_FILES
                return Reason.GITIGNORE if is_ignored and not kept else Reason.IN_SCOPE
        return Reason.IN_SCOPE


_Matchers = tuple[_Matcher, _Matcher]
"""For files, and for directories."""


def _digest(start: bytes, *parts: bytes | None) -> bytes:
    digest = hashlib.blake2b(start, digest_size=16)
    for part in parts:
        # With its length, so that different lists of parts never give the same bytes.
        digest.update(b"\0-" if part is None else b"\0+%d:%b" % (len(part), part))
    return digest.digest()


@functools.cache
def _default_rules() -> Rules:
    return Rules.parse("\n".join(DEFAULT_EXCLUDES).encode())
