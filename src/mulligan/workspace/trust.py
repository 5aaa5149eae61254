"""List a project's rule files and what each weakens, and accept them.

Only `.mulligan.toml` at the top and the `.mulliganignore` files count. The user accepts a content
by its hash, so any later change must be accepted again.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from mulligan.core.coverage import decode_lossy, decode_path, encode_path
from mulligan.core.tree import join
from mulligan.errors import Corrupt, NotFound, UsageError, WouldLoseWork
from mulligan.journal import checkpoints
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import plain
from mulligan.workspace.settings import accepted as acceptance
from mulligan.workspace.settings.settings import PROJECT_FILE, read_project_file, weakened_by
from mulligan.workspace.snapshot.checkpoints import coverage
from mulligan.worktree.fs.safe_paths import OPEN_DIRECTORY, Directories
from mulligan.worktree.ignore.scope import Scope, root_scope
from mulligan.worktree.scan.classify import MAX_DEPTH
from mulligan.worktree.scan.rule_files import (
    IGNORE_FILE_MAX_BYTES,
    MULLIGANIGNORE,
    RuleFile,
    is_accepted,
    leaves_out,
    read_rule_file,
)


class ProjectRuleFile(NamedTuple):
    """A rule file; `weakens` lists the settings it weakens, or the patterns that exclude paths.

    `problem` says why a file cannot be read; such a file has no effect. `sha256` is null without a
    content.
    """

    path: str
    accepted: bool
    weakens: tuple[str, ...]
    problem: str | None
    content: str
    sha256: str | None

    @property
    def can_be_accepted(self) -> bool:
        return bool(self.weakens) and not self.accepted and self.problem is None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def rule_files(project: OpenProject, paths: Collection[bytes] = ()) -> list[ProjectRuleFile]:
    """Return the rule files that weaken something or are broken; `paths` selects some."""
    rows = [row for row, _content in _rows(project, paths)]
    for path in paths:
        if decode_path(path) not in {row.path for row in rows}:
            raise NotFound(f"{decode_path(path)} is not a rule file that weakens anything.")
    return rows


def accept(project: OpenProject, shown: Collection[ProjectRuleFile]) -> tuple[str, ...]:
    """Accept what the user was shown; files that have changed since are not accepted."""
    wanted = {row.path: row for row in shown if row.can_be_accepted}
    paths = [encode_path(path) for path in wanted]
    files = {
        encode_path(row.path): content
        for row, content in (_rows(project, paths) if paths else ())
        if wanted[row.path] == row
    }
    acceptance.accept(project.location.directory, files)
    return tuple(map(decode_path, files))


def accept_one(project: OpenProject, path: str, sha256: str) -> None:
    """Accept one file; raise `WouldLoseWork` if its hash has changed."""
    (row,) = rule_files(project, [encode_path(path)])
    if row.accepted and row.sha256 == sha256:
        return
    if row.sha256 != sha256 or not accept(project, [row]):
        raise WouldLoseWork(f"{path} was changed meanwhile, and is not accepted; look at it again.")


def revoke(project: OpenProject) -> None:
    """Revoke the acceptance of all rule files."""
    acceptance.revoke(project.location.directory)


def _rows(
    project: OpenProject, paths: Collection[bytes]
) -> Iterator[tuple[ProjectRuleFile, bytes]]:
    with Directories(project.location.root) as disk:
        for path in sorted(_candidates(project)):
            if paths and path not in paths:
                continue
            file = _read(project, disk, path)
            row = _row(project, path, file)
            if row is not None:
                yield row, file.content or b""


def _read(project: OpenProject, disk: Directories, path: bytes) -> RuleFile:
    if path == PROJECT_FILE:
        return read_project_file(project.location.root)
    directory, _slash, name = path.rpartition(b"/")
    parent = disk.open_if_there(directory)
    if parent is None:
        return RuleFile(None)
    return read_rule_file(parent, name, IGNORE_FILE_MAX_BYTES)


def _row(project: OpenProject, path: bytes, file: RuleFile) -> ProjectRuleFile | None:
    """Describe a file; `None` if it is missing or weakens nothing."""
    content, problem = file
    weakens: list[str] = []
    if content is not None and path == PROJECT_FILE:
        try:
            weakens = weakened_by(project.home, project.location.directory, content)
        except UsageError as mistake:
            problem = str(mistake)
    elif content is not None:
        weakens = [decode_lossy(each) for each in leaves_out(content)]
    if not (weakens or problem):
        return None
    known = content is not None and is_accepted(path, content, project.rule_files.accepted)
    return ProjectRuleFile(
        decode_path(path), known, tuple(weakens), problem or None, decode_lossy(content or b""),
        None if content is None else sha256(content).hexdigest(),
    )  # fmt: skip


def _candidates(project: OpenProject) -> set[bytes]:
    """Return possible rule files: on disk, ignored by a scan, or accepted before."""
    paths = {PROJECT_FILE, *(path for path, _digest in project.rule_files.accepted)}
    latest = checkpoints.latest(project.journal)
    if latest is not None:
        try:
            paths |= {each.path for each in coverage(project, latest).passed_over}
        except Corrupt:
            pass
    root = os.open(project.location.root, OPEN_DIRECTORY & ~os.O_NOFOLLOW)
    try:
        paths |= set(_ignore_files(root, b"", root_scope(), 0))
    finally:
        os.close(root)
    return paths


def _ignore_files(fd: int, directory: bytes, defaults: Scope, depth: int) -> Iterator[bytes]:
    """Return the `.mulliganignore` files below a directory, except in default excludes."""
    folders = []
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                name = os.fsencode(entry.name)
                if name == MULLIGANIGNORE:
                    yield join(directory, name)
                elif entry.is_dir(follow_symlinks=False) and not defaults.decide(name, True):
                    folders.append(name)
    except OSError:
        return
    for name in folders if depth < MAX_DEPTH else ():
        try:
            inner = os.open(name, OPEN_DIRECTORY, dir_fd=fd)
        except OSError:
            continue
        try:
            yield from _ignore_files(inner, join(directory, name), defaults, depth + 1)
        finally:
            os.close(inner)
