"""Export a session as text, or its checkpoints as git commits.

Nothing in the project or its history changes. In a git repository only the export's branches
change: no work tree, no index, no checked-out branch. Git is called through `git_program`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mulligan.core import tree
from mulligan.core.coverage import decode_lossy, decode_path, usable
from mulligan.core.diff import compare, is_binary
from mulligan.core.tree import EMPTY_ID
from mulligan.errors import MissingObject, MulliganError, NotFound, UsageError
from mulligan.exporters import git, html, jsonl, markdown
from mulligan.exporters.records import Branch, FileChange, SessionContent
from mulligan.exporters.records import Entry as ExportedEntry
from mulligan.journal import entries, sessions
from mulligan.journal.sessions import SessionRow
from mulligan.workspace import git_program
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import plain
from mulligan.workspace.results.sessions import Entry
from mulligan.workspace.sessions import sessions as keeping
from mulligan.workspace.sessions.entries import entry_result
from mulligan.workspace.transfer.git_history import MAIN, git_history

FORMATS = ("jsonl", "markdown", "html")
PAGE_ENTRIES = 1000
MAX_COMPARED_BYTES = 1 << 20
SESSION_KEY = "mulligan.session"
"""The git configuration key that names the session of an export repository."""


class GitExport(NamedTuple):
    """What was written to a repository: branches `main` and one per round.

    `branch` is that of the active round.
    """

    session: str
    repository: str
    created: bool
    branch: str
    commits: int
    head: str
    branches: tuple[str, ...]
    empty_folders: tuple[str, ...]
    refused: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def export(project: OpenProject, name: str, format: str) -> Iterator[str]:
    """Return a session as pieces of text; raise at once if session or format is unknown."""
    if format not in FORMATS:
        raise UsageError(f"A session is exported as {', '.join(FORMATS)}, or to git.")
    row = sessions.resolve(project.journal, name)
    if format == "jsonl":
        return jsonl.lines(keeping.result(project, row), _all(project, row))
    story = _story(project, row)
    return markdown.document(story) if format == "markdown" else html.page(story)


def export_git(
    project: OpenProject, name: str, repository: str, prefix: str | None = None
) -> GitExport:
    """Write the session's checkpoints as commits to a repository, creating it if needed.

    The branches are `main` and one per round (`session_1`, …) in a repository that was created for
    this session; in any other one below `prefix`. Existing branches are only extended; a checked-
    out one is refused.
    """
    row = sessions.resolve(project.journal, name)
    history = git_history(project, row)
    if not history.commits:
        raise NotFound(f"Session {row.id} has no checkpoints here that could be commits.")
    directory = os.path.abspath(usable(repository))
    if prefix:
        _check_prefix(prefix)
    git_dir, created = _find_or_create(directory, row.id)
    is_its_own = _session_of_repository(git_dir) == row.id
    below = f"{prefix}/" if prefix else "" if is_its_own else f"mulligan-{row.id[:8]}/"
    branches = [f"{below}{each}" for each in history.heads]
    active = f"{below}{history.active}"
    if not created:
        _refuse_checked_out(git_dir, branches)
    stream = git.stream(history.commits, history.heads, below, project.load, project.store.stream)
    _fast_import(git_dir, stream)
    if is_its_own:
        # The repository has no work tree, so HEAD may move to the newest work.
        _git(git_dir, "symbolic-ref", "HEAD", f"refs/heads/{active}")
    left_out = git.find_unsupported((each.tree for each in history.commits), project.load)
    return GitExport(
        row.id,
        directory,
        created,
        active,
        len(history.commits),
        _git(git_dir, "rev-parse", f"refs/heads/{active}").strip(),
        tuple(branches),
        tuple(map(decode_path, left_out.empty_folders)),
        tuple(map(decode_path, left_out.refused)),
    )


def _story(project: OpenProject, row: SessionRow) -> SessionContent:
    way = entries.on_path(project.journal, row.number, row.leaf)
    taken = {each.seq for each in way}
    by_branch: dict[int, list[Entry]] = {}
    for entry in _all(project, row):
        if entry.seq not in taken:
            by_branch.setdefault(entry.branch, []).append(entry)
    others = [Branch(each, each[0].off_path) for each in by_branch.values()]

    def changes_of(entry: ExportedEntry) -> list[FileChange]:
        return _changes(project, entry)

    shown = [entry_result(row, each) for each in way]
    return SessionContent(keeping.result(project, row), shown, others, changes_of)


def _all(project: OpenProject, row: SessionRow) -> Iterator[Entry]:
    since = 0
    while True:
        page = entries.page(
            project.journal, row.number, since=since, limit=PAGE_ENTRIES, include_compacted=True
        )
        yield from (entry_result(row, each) for each in page)
        if len(page) < PAGE_ENTRIES:
            return
        since = page[-1].seq


def _changes(project: OpenProject, entry: ExportedEntry) -> list[FileChange]:
    """Return the changes of a turn from its two trees; none if they were deleted."""
    data = entry.data or {}
    try:
        before, after = (
            bytes.fromhex(data.get(each) or EMPTY_ID.hex())
            for each in ("baselineTreeHash", "snapshotTreeHash")
        )
        return [
            _described(project, *change)
            for change in project.differences(before, after)
            if any(each is not None and not each.is_directory for each in change[1:])
        ]
    except (MissingObject, ValueError, TypeError):
        # The trees were forgotten or are another agent's: use the entry's own lists.
        return []


def _described(
    project: OpenProject, path: bytes, old: tree.Entry | None, new: tree.Entry | None
) -> FileChange:
    held = [None if each is None or each.is_directory else each for each in (old, new)]
    status = "created" if held[0] is None else "deleted" if held[1] is None else "modified"
    if any(each is not None and each.size > MAX_COMPARED_BYTES for each in held):
        return FileChange(decode_path(path), status)
    was, now = (b"" if each is None else project.store.get(each.id) for each in held)
    if is_binary(was) or is_binary(now):
        return FileChange(decode_path(path), status)
    diff, additions, deletions = compare(
        was,
        now,
        old_name=b"a/" + path if held[0] is not None else b"/dev/null",
        new_name=b"b/" + path if held[1] is not None else b"/dev/null",
    )
    return FileChange(decode_path(path), status, additions, deletions, decode_lossy(diff) or None)


def _check_prefix(prefix: str) -> None:
    done = git_program.run(os.devnull, ["check-ref-format", f"refs/heads/{prefix}/{MAIN}"])
    if done.returncode or prefix.startswith(("@", "-")):
        raise UsageError(f"{prefix!r} cannot begin the name of a branch.")


def _find_or_create(directory: str, session: str) -> tuple[str, bool]:
    """Find or create the repository; return its git directory, and whether it is new."""
    if not os.path.exists(directory) or (os.path.isdir(directory) and not os.listdir(directory)):
        os.makedirs(directory, exist_ok=True)
        _git(directory, "init", "--quiet", "--bare", "--template=")
        _git(directory, "config", SESSION_KEY, session)
        return directory, True
    git_dir = git_program.git_directory(directory)
    if git_dir is None:
        raise UsageError(
            f"{directory} is neither a git repository nor empty; name one, or a new directory."
        )
    return git_dir, False


def _session_of_repository(git_dir: str) -> str:
    """Return the session that a bare repository was created for; else empty."""
    if _git(git_dir, "rev-parse", "--is-bare-repository").strip() != "true":
        return ""
    done = git_program.run(git_dir, ["config", "--local", "--get", SESSION_KEY])
    return done.stdout.decode("utf-8", "replace").strip()


def _refuse_checked_out(git_dir: str, branches: Iterable[str]) -> None:
    """Raise `UsageError` if a branch is checked out in a work tree."""
    for listed in _git(git_dir, "worktree", "list", "--porcelain").split("\n\n"):
        lines = listed.splitlines()
        for each in branches:
            if f"branch refs/heads/{each}" in lines and "bare" not in lines:
                raise UsageError(f"{each} is checked out; choose another --prefix.")


def _fast_import(git_dir: str, stream: Iterable[bytes]) -> None:
    """Stream the commits to `git fast-import`, which moves all branches or none."""
    importing = ["fast-import", "--quiet", "--done", "--date-format=raw"]
    with git_program.start(git_dir, importing) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            for piece in stream:
                process.stdin.write(piece)
            process.stdin.close()
        except BrokenPipeError:
            pass
        except BaseException:
            process.kill()
            raise
        words = process.stderr.read().decode("utf-8", "replace")
    if process.returncode:
        if "Not updating" in words:
            raise UsageError(
                "A branch is there already and holds something else; choose another --prefix."
            )
        raise MulliganError(f"git fast-import failed: {words.strip()}")


def _git(git_dir: str, *arguments: str) -> str:
    done = git_program.run(git_dir, arguments)
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip()
        raise MulliganError(f"git {arguments[0]} failed in {git_dir}: {words}")
    return done.stdout.decode("utf-8", "surrogateescape")
