"""Read and write what checkpoints exclude: default excludes and `.mulliganignore`.

The file is the user's. Writing it is an operation like a restore: its old content is stored first,
and one undo brings it back.
"""

from __future__ import annotations

import os
from collections import Counter
from hashlib import sha256
from typing import Any, NamedTuple

from mulligan.core.coverage import decode_path, encode_path
from mulligan.core.tree import file_entry, find
from mulligan.errors import NotFound, UsageError, WouldLoseWork
from mulligan.journal import checkpoints
from mulligan.store.writer import Writer
from mulligan.workspace.attribution.observation import Observation
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.restore.run import RestoreRequest, perform
from mulligan.workspace.restore.target import RestoreTarget, drop_blocked_paths
from mulligan.workspace.results.files import RestoreResult, plain
from mulligan.workspace.settings.accepted import accept
from mulligan.workspace.snapshot.checkpoints import coverage, read_disk
from mulligan.worktree.ignore.ruleset import Rules
from mulligan.worktree.ignore.scope import DEFAULT_EXCLUDES, Reason
from mulligan.worktree.scan import stat_cache
from mulligan.worktree.scan.rule_files import MULLIGANIGNORE, is_accepted, leaves_out
from mulligan.worktree.scan.tree_builder import WHY

FILE = MULLIGANIGNORE
NEW_MODE = 0o644
NOTES: dict[str, tuple[str, ...]] = {
    "Installed JavaScript packages": ("node_modules/",),
    "Python environments": (".venv/", "venv/", "env/", ".env/"),
    "Compiled Python": ("__pycache__/", "*.pyc", "*.pyo", "*.pyd"),
    "What Python's tools keep for themselves": (
        *(".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".tox/", ".nox/", ".hypothesis/"),
        *(".benchmarks/", ".ipynb_checkpoints/", "*.egg-info/", ".eggs/"),
    ),
    "Packages and programs that were built": ("dist/", "build/", "out/", "target/"),
    "Web pages that were built, and caches for that": (
        *(".next/", ".nuxt/", ".output/", ".svelte-kit/"),
        *(".cache/", ".parcel-cache/", ".turbo/"),
    ),
    "Compiled code and libraries": (
        *("*.o", "*.a", "*.so", "*.dylib", "*.dll", "*.exe"),
        *("*.class", "*.jar", "*.war"),
    ),
    "Dependencies that were copied or downloaded": ("vendor/", ".gradle/", ".terraform/"),
    "Reports of test coverage": (".coverage", "coverage/", "htmlcov/", ".nyc_output/"),
    "Logs": ("*.log", "logs/", "npm-debug.log*", "yarn-debug.log*"),
    "Settings and swap files of editors": (".idea/", ".vscode/", "*.swp", "*.swo"),
    "Leftovers of operating systems": (".DS_Store", "Thumbs.db", "desktop.ini"),
    "Other version control, and data of other agents": (
        *(".svn/", ".hg/", ".jj/", ".agentsmithy/", "chroma_db/", ".pi/", ".yaai/"),
    ),
}
"""What each default exclude covers, in words."""


class DefaultExclude(NamedTuple):
    """A default exclude; `files` counts the files it excluded in the last scan."""

    pattern: str
    note: str
    left_out: bool
    files: int


class Excludes(NamedTuple):
    """The excludes of a project; `version` is a hash of `.mulliganignore`, null without one.

    `single_files` are excluded by some default exclude that is not known at present.
    """

    text: str
    version: str | None
    defaults: tuple[DefaultExclude, ...]
    single_files: int

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def excludes(project: OpenProject) -> Excludes:
    """Return what is excluded, and by which rule."""
    content = _content(project)
    own = Rules.parse(content or b"")
    counted, single = _count_files(project)
    return Excludes(
        decode_path(content or b""),
        _version(content),
        tuple(
            DefaultExclude(pattern, note, _verdict(own, pattern) is not False, counted[pattern])
            for note, patterns in NOTES.items()
            for pattern in patterns
        ),
        single,
    )


def write_excludes(project: OpenProject, wanted: str, version: str | None) -> RestoreResult:
    """Write `.mulliganignore`, or delete it if it would be empty.

    Raises `WouldLoseWork` if the file is not the `version` that the caller has read.
    """
    new = encode_path(wanted)
    with project.locked():
        present = _content(project)
        if _version(present) != version:
            raise WouldLoseWork(
                f"{decode_path(FILE)} was changed meanwhile, and was left as it is; "
                "look at it again."
            )
        # Accept the user's text before writing it, so that it takes effect at once.
        if not _keeps_unaccepted(project, present or b"", new):
            accept(project.location.directory, {FILE: new})
        with Writer(project.store) as writer:
            id = writer.put(new)
            writer.commit()

        def target(now: Observation) -> RestoreTarget:
            entry = find(now.seen.tree, FILE, project.load)
            mode = entry.mode if entry is not None else NEW_MODE
            entry = file_entry(FILE, mode, len(new), id) if new else None
            wish = RestoreTarget("excludes", None, {FILE: entry}, {}, {})
            return drop_blocked_paths(project, now.seen, wish)

        return perform(project, RestoreRequest(target)).result


def _keeps_unaccepted(project: OpenProject, present: bytes, new: bytes) -> bool:
    """True if the new file keeps excluding patterns that the user has not accepted."""
    if is_accepted(FILE, present, project.rule_files.accepted):
        return False
    return not set(leaves_out(present)).isdisjoint(leaves_out(new))


def _content(project: OpenProject) -> bytes | None:
    try:
        return read_disk(project, FILE)
    except NotFound:
        if os.path.lexists(os.path.join(project.location.root, FILE)):
            raise UsageError(
                f"{decode_path(FILE)} is not a regular file; edit its target by hand."
            ) from None
        return None


def _version(content: bytes | None) -> str | None:
    return None if content is None else sha256(content).hexdigest()


def _verdict(rules: Rules, pattern: str) -> bool | None:
    """Return what rules say of an excluded name; a pattern matches itself."""
    return rules.match(encode_path(pattern).rstrip(b"/"), pattern.endswith("/"))


def _count_files(project: OpenProject) -> tuple[Counter[str], int]:
    """Count the files of each default exclude, and those that cannot be assigned to one.

    The saved stat cache knows each file. Without it, the latest checkpoint's coverage has only a
    total of single files.
    """
    counts: Counter[str] = Counter()
    rules = {pattern: Rules.parse(encode_path(pattern)) for pattern in DEFAULT_EXCLUDES}

    def blamed(name: bytes, is_directory: bool) -> str:
        return next((each for each, rule in rules.items() if rule.match(name, is_directory)), "")

    seen = stat_cache.load(project.location.path("index"), project.location.root).root
    if seen is not None:
        for _path, node in seen.walk():
            for name, (reason, is_directory, files, _modified) in node.excluded.items():
                if reason == Reason.DEFAULT:
                    counts[blamed(name, is_directory)] += files if is_directory else 1
        return counts, counts.pop("", 0)
    latest = checkpoints.latest(project.journal)
    for path, files, why in () if latest is None else coverage(project, latest).excluded:
        if why == WHY[Reason.DEFAULT]:
            name = path.rstrip(b"/").rpartition(b"/")[2]
            counts[blamed(name, True) if path.endswith(b"/") else ""] += files
    return counts, counts.pop("", 0)
