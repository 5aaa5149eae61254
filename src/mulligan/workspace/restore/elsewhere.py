"""Writing the files of a checkpoint into another directory than the project's.

1. The directory is opened without following links; the home and everything named `.git` is refused.
2. What is there under the same names and differs is read into the store.
3. With `force` it becomes a checkpoint of its own; without, it is left alone and named.
4. The files are written as every restore writes them (`files/apply`). Nothing is deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from mulligan.core import tree
from mulligan.core.coverage import decode_path, encode_path
from mulligan.core.tree import Change, Entry
from mulligan.errors import NotFound, UsageError
from mulligan.journal import checkpoints
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.store.writer import Writer
from mulligan.workspace.new_id import new_id
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import Skip, plain
from mulligan.workspace.snapshot.diff import within
from mulligan.workspace.snapshot.named_files import record
from mulligan.worktree.fs.safe_paths import Directories
from mulligan.worktree.fs.target_directory import target_directory, what_is_at
from mulligan.worktree.restore import apply
from mulligan.worktree.restore.displaced import CHANGED_CONCURRENTLY
from mulligan.worktree.scan.read_path import entry_at

DIFFERS = "something else is there already"
IN_THE_WAY = "a folder, a link or a special file is in its place or above it"


class RestoredElsewhere(NamedTuple):
    """`restored` names every file that now holds what the checkpoint has, written or not.

    `backup` is a checkpoint of what was overwritten: restoring it to the same directory brings
    that back.
    """

    target: str
    directory: str
    restored: tuple[str, ...]
    written: tuple[str, ...]
    skipped: tuple[Skip, ...]
    backup: str | None
    preview: bool
    verified: bool = True

    def as_json(self) -> dict[str, Any]:
        return plain(self)


class _Plan(NamedTuple):
    """`changes` are to be made; `same` is there already; `differs` would be overwritten."""

    changes: dict[bytes, Change]
    same: tuple[bytes, ...]
    differs: dict[bytes, Entry]
    skipped: dict[bytes, str]


def restore_elsewhere(
    project: OpenProject,
    name: str,
    directory: str,
    paths: tuple[bytes, ...],
    *,
    force: bool = False,
    preview: bool = False,
) -> RestoredElsewhere:
    """Write the files of a checkpoint, or some of them, into another directory."""
    row = checkpoints.resolve(project.journal, name)
    target = _checked(project, directory)
    wanted = dict(_wanted(project, row, paths))
    _keep_out_of_home(project, target, wanted)
    with project.locked(), target_directory(target, create=not preview) as opened:
        with Writer(project.store) as writer:
            plan = _plan(opened, wanted, writer)
            differs = plan.differs if force else {}
            left = {} if force else dict.fromkeys(plan.differs, DIFFERS)
            backup = None
            writer.commit()
            if differs and not preview:
                message = f"Before restoring {row.id} to {decode_path(target)}"
                backup = record(project, writer, message, differs).id
        changes = [change for path, change in plan.changes.items() if path not in left]
        skipped, verified = plan.skipped | left, True
        if changes and not preview:
            assert opened is not None
            done = apply.apply(opened, f"elsewhere-{new_id()}", changes, project.store.stream)
            done.wait_durable()
            skipped |= done.skipped | dict.fromkeys(done.wrong, CHANGED_CONCURRENTLY)
            verified = not (done.wrong or done.failed)
    written = [each.path for each in changes if each.after and not each.after.is_directory]
    written = [path for path in written if path not in skipped]
    return RestoredElsewhere(
        row.id,
        decode_path(target),
        tuple(map(decode_path, sorted((*plan.same, *written)))),
        tuple(map(decode_path, written)),
        tuple(Skip(decode_path(path), reason) for path, reason in sorted(skipped.items())),
        backup,
        preview,
        verified,
    )


def _checked(project: OpenProject, directory: str) -> bytes:
    """The absolute path of a directory that may be written to."""
    if not os.path.isabs(directory) or "\0" in directory:
        raise UsageError(f"{directory!r} is not the absolute path of a directory.")
    path = os.path.normpath(encode_path(directory))
    if not path.strip(b"/"):
        raise UsageError("Files are not restored to the root of the file system.")
    if b".git" in path.lower().split(b"/"):
        raise UsageError(f"{directory} is in a .git, where nothing is ever written.")
    if path == project.location.root:
        raise UsageError(f"{directory} is the project itself; restore without another directory.")
    return path


def _keep_out_of_home(project: OpenProject, target: bytes, wanted: dict[bytes, Entry]) -> None:
    """Refuse if the directory, or a file in it, is in MULLIGAN_HOME."""
    home = project.home_path
    if within(target, home) or any(within(os.path.join(target, each), home) for each in wanted):
        raise UsageError(
            f"{decode_path(target)} holds Mulligan's own home {decode_path(home)} or is in it; "
            "nothing was "
            "written. Choose another directory."
        )


def _wanted(
    project: OpenProject, row: CheckpointRow, paths: tuple[bytes, ...]
) -> Iterator[tuple[bytes, Entry]]:
    """The entries of a checkpoint at and below `paths`, with the folders that they need."""
    missing = set(paths) - {b""}
    for root in (row.tree, row.guarded):
        for path, entry in tree.walk(root, project.load):
            named = [each for each in paths if within(path, each)]
            missing.difference_update(named)
            is_above = entry.is_directory and any(within(each, path) for each in paths)
            if named or is_above or not paths:
                yield path, entry
    if missing:
        raise NotFound(f"{decode_path(min(missing))} is not in checkpoint {row.id}.")


def _plan(opened: bytes | None, wanted: dict[bytes, Entry], writer: Writer) -> _Plan:
    """Compare the directory with what is wanted in it; what differs is put into the store."""
    plan = _Plan({}, (), {}, {})
    if opened is None:
        return plan._replace(changes={p: Change(p, None, e) for p, e in sorted(wanted.items())})
    same = []
    with Directories(opened) as directories:
        for path, entry in sorted(wanted.items()):
            found = what_is_at(directories, path)
            if found is None:
                plan.changes[path] = Change(path, None, entry)
            elif found == "directory" and entry.is_directory:
                continue
            elif found not in ("file", "link") or entry.is_directory:
                if not entry.is_directory:
                    plan.skipped[path] = IN_THE_WAY
            else:
                before = entry_at(opened, path, writer)
                if before == entry:
                    same.append(path)
                    continue
                plan.changes[path] = Change(path, before, entry)
                if before is not None and not before.same_content(entry):
                    plan.differs[path] = before
    return plan._replace(same=tuple(same))
