"""Which names belong to the project and which are left out: a pure decision, no I/O.

Three kinds of rules speak, and each can only be overruled by the ones before it:

1. `.git`, and the temporary files of a restore, are never touched.
2. `.mulliganignore` files, deepest directory first. They win over all that follows, in both
   directions: `!dist/` brings a directory back that git or the defaults leave out.
3. The default excludes below, and git's own rules: `.gitignore` files deepest first, then the
   repository's `info/exclude`, then the user's global excludes.

Unless the defaults are switched off, git's rules leave out no file that holds rules itself: `*` in
a `.gitignore` would take that file out of the undo of the turn that wrote it.

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
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mulligan.worktree.ignore.git_repo import GitSources
from mulligan.worktree.ignore.ruleset import Names, Rules, Table, verdict


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
RULE_FILES = frozenset({b".gitignore", b".mulliganignore", b".mulligan.toml"})
_ANY_CASE = sys.platform in ("darwin", "win32")


class Scope:
    """The rules in force in one directory. Immutable; shares what it can with its parent."""

    __slots__ = ("_below", "_chain", "_path", "_stack", "key")

    key: bytes
    """A digest of all that can influence decisions in this directory and, together with the
    ignore files below it, in those below. If it has not changed, no decision has."""

    def __init__(self, stack: _Stack, chain: _Chain, path: bytes, key: bytes) -> None:
        self._stack = stack
        self._chain = chain
        self._path = path
        self.key = key
        self._below: dict[bytes, Scope] = {}

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
        is_plain = gitignore is None and mulliganignore is None and info_exclude is None
        if is_plain and name in self._below:
            return self._below[name]
        path = self._path + name + b"/"
        stack = self._stack
        if is_plain:
            key = _digest(self.key + name)
            chain = stack.chain(path) if stack.placed else self._chain
            found = self._below[name] = Scope(stack, chain, path, key)
            return found
        key = _digest(self.key + name, gitignore, mulliganignore, info_exclude)
        stack = stack.grow(len(path), gitignore, mulliganignore, info_exclude)
        return Scope(stack, stack.chain(path), path, key)


@functools.lru_cache(maxsize=8)
def project_scope(
    sources: GitSources, gitignore: bytes | None, mulliganignore: bytes | None
) -> Scope:
    """The scope of a project's root, given what git says of it and its own ignore files.

    The same again while these stay the same, with all that it has found out about names.
    """
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
        self._chains: dict[tuple[tuple[Names, ...], ...], _Chain] = {}
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

    def _half(self, extra_of: dict[int, tuple[Names, ...]], *, is_dir: bool) -> _Half:
        def tables(layers: Iterable[_Layer]) -> list[tuple[Table, ...]]:
            found = (layer.rules.tables(extra_of.get(id(layer), ()), is_dir) for layer in layers)
            return [each for each in found if each]

        git = (*self._git, self._info, self._everywhere)
        own = _default_rules().tables((), is_dir) if self._defaults else ()
        return _Half(tables(self._mulligan), own, tables(git))


class _Half:
    """The decision about the names of one directory: one half for files, one for directories."""

    __slots__ = (
        *("_defaults", "_git", "_literals", "_mulligan", "_prefixes", "_regexes", "_suffixes"),
        "seen",
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
            found = verdict(tables, name)
            if found is not None:
                return Reason.MULLIGANIGNORE if found else Reason.IN_SCOPE
        if verdict(self._defaults, name):
            return Reason.DEFAULT
        for tables in self._git:
            found = verdict(tables, name)
            if found is not None:
                kept = self._defaults and name in RULE_FILES
                return Reason.GITIGNORE if found and not kept else Reason.IN_SCOPE
        return Reason.IN_SCOPE


_Chain = tuple[_Half, _Half]


def _digest(start: bytes, *parts: bytes | None) -> bytes:
    digest = hashlib.blake2b(start, digest_size=16)
    for part in parts:
        # The length first, so that no two lists of parts can look the same.
        digest.update(b"\0-" if part is None else b"\0+%d:%b" % (len(part), part))
    return digest.digest()


@functools.cache
def _default_rules() -> Rules:
    return Rules.parse("\n".join(DEFAULT_EXCLUDES).encode())
