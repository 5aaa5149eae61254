"""A commit that the user makes with git counts as keeping what is in it.

One that an agent makes in its own turn does not: it is as much a proposal as the rest.

Noticed when the repository stands at another commit than at the last operation. Git itself is
asked what the commit holds, through its own filters; without git on the machine there is nobody
who commits, and nothing is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from mulligan.core.coverage import text
from mulligan.core.tree import Change, Entry
from mulligan.journal import operations
from mulligan.journal.views import View
from mulligan.workspace.attribution.standing import quiet
from mulligan.workspace.snapshot.trees import Trees

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace

Id = bytes
LISTING = (
    b"--name-only", b"-z", b"--no-renames", b"--no-ext-diff", b"--no-textconv",
    b"--ignore-submodules", b"--relative",
)  # fmt: skip
SECONDS = 30
QUESTIONS = 200


def kept_by_commit(
    workspace: Workspace, trees: Trees, known: Mapping[int, View], present: Id
) -> tuple[dict[int, View], list[str]]:
    """The views after the commits made since the last operation, and the paths they kept."""
    head = workspace.head()
    last = operations.last_head(workspace.journal)
    if head is None or last is None or head == last or not workspace.settings.keep_on_commit:
        return dict(known), []
    from mulligan.workspace.attribution.carrying import same

    # What an agent had committed before is not the user's doing now, unless they did so anew.
    committed = _names(workspace, [b"diff", *LISTING, f"{last}...{head}".encode()])
    found: dict[int, View] = {}
    paths: set[bytes] = set()
    for number, view in known.items():
        found[number] = view
        # What an agent commits in its own turn is still its proposal.
        if view.approved is None or view.base is not None:
            continue
        pending = [
            change
            for change in trees.differences(view.approved, present)
            if not any(each is not None and each.is_directory for each in change[1:])
            and (committed is None or change.path in committed)
        ]
        into = dict(_kept(workspace, trees, head, pending))
        if into:
            paths |= into.keys()
            now = {change.path: change.after for change in pending}
            whole = {path: entry for path, entry in into.items() if same(entry, now[path])}
            view = view._replace(
                approved=trees.edit(view.approved, into),
                written=trees.edit(view.written or view.approved, whole),
            )
            found[number] = quiet(view, present)
    return found, sorted(map(text, paths))


def _kept(
    workspace: Workspace, trees: Trees, head: str, pending: list[Change]
) -> Iterator[tuple[bytes, Entry | None]]:
    """What is approved now at the paths of which the commit holds something."""
    if not pending:
        return
    held = _names(workspace, [b"ls-tree", b"-r", b"-z", b"--name-only", head.encode()])
    unlike = _names(workspace, [b"diff", *LISTING, head.encode()])
    if held is None or unlike is None:
        return
    asked = 0
    for path, approved, present in pending:
        if (path in held) == (present is not None) and path not in unlike:
            yield path, present
        elif approved is not None and present is not None and path in held and asked < QUESTIONS:
            asked += 1
            entry = _partly(workspace, trees, head, Change(path, approved, present))
            if entry is not None:
                yield path, entry


def _partly(workspace: Workspace, trees: Trees, head: str, change: Change) -> Entry | None:
    """The baseline with those hunks that are in the commit, if any is."""
    from mulligan.core.hunks import apply_hunks, hunks
    from mulligan.core.merge import touched
    from mulligan.workspace.attribution.carrying import as_lines

    path, approved, present = change
    old, new = as_lines(approved, trees), as_lines(present, trees)
    committed = _content(workspace, head, path)
    if approved is None or committed is None or old is None or new is None or committed == old:
        return None
    waiting = hunks(old, new)
    open_ones = touched(waiting, hunks(committed, new))
    kept = [each for at, each in enumerate(waiting) if at not in open_ones]
    return trees.with_content(approved, apply_hunks(old, kept)) if kept else None


def _names(workspace: Workspace, arguments: list[bytes]) -> set[bytes] | None:
    answer = _git(workspace, arguments)
    return None if answer is None else set(answer.split(b"\0")) - {b""}


def _content(workspace: Workspace, head: str, path: bytes) -> bytes | None:
    """A file as the commit has it, the way git would write it to the disk."""
    name = head.encode() + b":./" + path
    return _git(workspace, [b"cat-file", b"--filters", name])


def _git(workspace: Workspace, arguments: list[bytes]) -> bytes | None:
    import subprocess  # not needed until somebody commits

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # To look is not to touch: git must not refresh its index because of us.
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        done = subprocess.run(
            [b"git", b"-c", b"core.fsmonitor=false", *arguments],
            cwd=workspace.project.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None
