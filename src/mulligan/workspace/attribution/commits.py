"""A commit that the user makes with git counts as keeping what is in it.

One that an agent makes in its own turn does not: it is as much a proposal as the rest.

Noticed when the repository stands at another commit than at the last operation. Git itself is
asked what the commit holds, by way of `git_program`: with its own idea of the ends of lines, and
without filters, which are programs. Without git on the machine nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mulligan.core.coverage import decode_path
from mulligan.core.tree import Change, Entry
from mulligan.journal import operations
from mulligan.journal.views import View
from mulligan.workspace.attribution.view import quiet
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.snapshot.trees import Trees

if TYPE_CHECKING:
    from mulligan.workspace.git_program import Reader

Id = bytes
TIMEOUT_S = 30
MAX_GIT_QUERIES = 200


def kept_by_commit(
    project: OpenProject, trees: Trees, known: Mapping[int, View], present: Id
) -> tuple[dict[int, View], list[str]]:
    """The views after the commits made since the last operation, and the paths they kept."""
    head = project.head()
    last = operations.last_head(project.journal)
    if head is None or last is None or head == last or not project.settings.keep_on_commit:
        return dict(known), []
    from mulligan.workspace import git_program  # not needed until somebody commits

    with git_program.reader(project.location.root) as git:
        if git is None:
            return dict(known), []
        return _kept_by_commit(git, trees, known, present, last, head)


def _kept_by_commit(
    git: Reader, trees: Trees, known: Mapping[int, View], present: Id, last: str, head: str
) -> tuple[dict[int, View], list[str]]:
    from mulligan.workspace.attribution.carrying import same

    # What an agent had committed before is not the user's doing now, unless they did so anew.
    committed = _names(git, [*_diff(git), f"{last}...{head}".encode()])
    found: dict[int, View] = {}
    paths: set[bytes] = set()
    for number, view in known.items():
        found[number] = view
        # What an agent commits in its own turn is still its proposal.
        if view.approved is None or view.is_open:
            continue
        pending = [
            change
            for change in trees.differences(view.approved, present)
            if not any(each is not None and each.is_directory for each in change[1:])
            and (committed is None or change.path in committed)
        ]
        into = dict(_kept(git, trees, head, pending))
        if into:
            paths |= into.keys()
            now = {change.path: change.after for change in pending}
            whole = {path: entry for path, entry in into.items() if same(entry, now[path])}
            view = view._replace(
                approved=trees.edit(view.approved, into),
                written=trees.edit(view.written or view.approved, whole),
            )
            found[number] = quiet(view, present)
    return found, sorted(map(decode_path, paths))


def _kept(
    git: Reader, trees: Trees, head: str, pending: list[Change]
) -> Iterator[tuple[bytes, Entry | None]]:
    """What is approved now at the paths of which the commit holds something."""
    if not pending:
        return
    held = _held(git, head)
    unlike = _names(git, [*_diff(git), head.encode()])
    if held is None or unlike is None:
        return
    asked = 0
    for path, approved, present in pending:
        if (path in held) == (present is not None) and path not in unlike:
            yield path, present
        elif (
            approved is not None
            and present is not None
            and path in held
            and asked < MAX_GIT_QUERIES
        ):
            asked += 1
            entry = _partly(git, trees, head, Change(path, approved, present))
            if entry is not None:
                yield path, entry


def _partly(git: Reader, trees: Trees, head: str, change: Change) -> Entry | None:
    """The baseline with those hunks that are in the commit, if any is."""
    from mulligan.core.hunks import apply_hunks, hunks
    from mulligan.core.merge import touched
    from mulligan.workspace.attribution.carrying import as_lines

    path, approved, present = change
    old, new = as_lines(approved, trees), as_lines(present, trees)
    committed = _content(git, head, path)
    if approved is None or committed is None or old is None or new is None or committed == old:
        return None
    waiting = hunks(old, new)
    open_ones = touched(waiting, hunks(committed, new))
    kept = [each for at, each in enumerate(waiting) if at not in open_ones]
    return trees.with_content(approved, apply_hunks(old, kept)) if kept else None


def _diff(git: Reader) -> list[bytes]:
    return [
        b"diff", b"--name-only", b"-z", b"--no-renames", b"--no-ext-diff", b"--no-textconv",
        b"--ignore-submodules", b"--relative=" + git.prefix,
    ]  # fmt: skip


def _names(git: Reader, arguments: list[bytes]) -> set[bytes] | None:
    answer = git.ask(arguments, timeout=TIMEOUT_S)
    return None if answer is None else set(answer.split(b"\0")) - {b""}


def _held(git: Reader, head: str) -> set[bytes] | None:
    """The files of a commit below the project."""
    listing = [b"ls-tree", b"-r", b"-z", b"--name-only", b"--full-tree", head.encode()]
    found = _names(git, [*listing, *([git.prefix] if git.prefix else [])])
    return None if found is None else {path.removeprefix(git.prefix) for path in found}


def _content(git: Reader, head: str, path: bytes) -> bytes | None:
    """A file as the commit has it, with the ends of lines that git would write to the disk."""
    name = head.encode() + b":" + git.prefix + path
    return git.ask([b"cat-file", b"--filters", name], timeout=TIMEOUT_S)
