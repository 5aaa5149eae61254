"""Add checkpoints, and read what they hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import apsw

from mulligan.clock import now_ns
from mulligan.core import tree
from mulligan.core.coverage import Coverage, decode_path
from mulligan.core.ids import CheckpointId, ObjectId, TreeId
from mulligan.core.times import stamp_after
from mulligan.core.tree import Change
from mulligan.errors import NotFound
from mulligan.journal import always_included, checkpoints, operations
from mulligan.journal.checkpoints import CheckpointRow
from mulligan.journal.operations import OperationRow
from mulligan.workspace.imported import check_files_allowed
from mulligan.workspace.new_id import new_id
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.snapshot.snapshot import Snapshot
from mulligan.worktree.fs.safe_paths import Directories, read_small

if TYPE_CHECKING:
    from mulligan.workspace.results.files import Changes, Checkpoint, Operation, TreeEntry

KINDS = {tree.FILE: "file", tree.LINK: "link", tree.DIRECTORY: "directory"}
Id = bytes


def add(
    db: apsw.Connection,
    before: CheckpointRow | None,
    seen: Snapshot,
    *,
    kind: str,
    message: str,
    session: str | None = None,
    entry: str | None = None,
) -> CheckpointRow:
    """Add a checkpoint of a snapshot, inside the caller's transaction."""
    row = CheckpointRow(
        id=CheckpointId(new_id()),
        tree=TreeId(ObjectId(seen.tree)),
        guarded=TreeId(ObjectId(seen.guarded)),
        coverage=ObjectId(seen.covered),
        complete=seen.coverage.complete,
        kind=kind,
        message=message,
        created_at=stamp_after(before.created_at if before else None, now_ns()),
        files=seen.files,
        bytes=seen.bytes,
        session=session,
        entry=entry,
        max_file_size=seen.max_file_size,
    )
    checkpoints.insert(db, row)
    return row


def always_include(
    project: OpenProject, include: Iterable[bytes], since: int | None = None
) -> None:
    """Include these paths from now on, even if an ignore rule excludes them.

    `since` is the `seq` of the last checkpoint that may lack them although they existed.
    """
    paths = [path for path in include if path]
    if paths:
        with project.journal.writing() as db:
            always_included.add(db, paths, since)


def log(
    project: OpenProject, limit: int | None = None, before: str | None = None
) -> list[Checkpoint]:
    start = checkpoints.resolve(project.journal, before).id if before is not None else None
    rows = checkpoints.newest_first(project.journal, limit, start)
    return [result(project, row) for row in rows]


def find(project: OpenProject, name: str) -> Checkpoint:
    return result(project, checkpoints.resolve(project.journal, name))


def read(project: OpenProject, name: str, path: bytes) -> bytes:
    """Return the bytes of a file in a checkpoint, guarded files included."""
    row = checkpoints.resolve(project.journal, name)
    for root in (row.tree, row.guarded):
        entry = tree.find(root, path, project.load) if path else None
        if entry is not None and entry.is_directory:
            raise NotFound(
                f"{decode_path(path)} is a folder in checkpoint {row.id}; `mulligan show "
                f"{row.id[:8]}` "
                "lists its files."
            )
        if entry is not None:
            return project.store.get(entry.id)
    raise NotFound(
        f"Checkpoint {row.id} has no file {decode_path(path)}; paths count from the top of the "
        "project."
    )


def entries(project: OpenProject, name: str) -> list[TreeEntry]:
    """Return every path of a checkpoint."""
    row = checkpoints.resolve(project.journal, name)
    return [
        _shown(path, entry, guarded)
        for root, guarded in ((row.tree, False), (row.guarded, True))
        for path, entry in tree.walk(root, project.load)
        if not (guarded and entry.is_directory)
    ]


def entry(project: OpenProject, name: str, path: bytes) -> TreeEntry:
    """Return one path of a checkpoint."""
    row = checkpoints.resolve(project.journal, name)
    for root, guarded in ((row.tree, False), (row.guarded, True)):
        held = tree.find(root, path, project.load) if path else None
        if held is not None and not (guarded and held.is_directory):
            return _shown(path, held, guarded)
    raise NotFound(f"Checkpoint {row.id} has no {decode_path(path)}.")


def read_disk(project: OpenProject, path: bytes) -> bytes:
    """Return the bytes of a regular file on disk, without following links."""
    check_files_allowed(project)
    directory, _slash, name = path.rpartition(b"/")
    with Directories(project.location.root) as directories:
        parent = directories.open_if_there(directory)
        content = (
            read_small(parent, name, project.limits.file_bytes) if parent is not None else None
        )
    if content is None or b".git" in path.split(b"/"):
        raise NotFound(f"There is no ordinary file {decode_path(path)} on the disk.")
    return content


def operation_log(
    project: OpenProject, limit: int | None = None, before: int | None = None
) -> list[Operation]:
    return [operation(row) for row in operations.newest_first(project.journal, limit, before)]


def _shown(path: bytes, entry: tree.Entry, guarded: bool) -> TreeEntry:
    from mulligan.workspace.results.files import TreeEntry

    return TreeEntry(
        decode_path(path),
        KINDS[entry.kind],
        f"{entry.mode:04o}",
        entry.size,
        entry.id.hex(),
        guarded,
    )


def operation(row: OperationRow) -> Operation:
    from mulligan.workspace.results.files import Operation

    return Operation(
        row.number, row.kind, row.state, row.changed, row.created_at, row.session, row.undoes,
        row.target, row.before, row.after, row.summary,
    )  # fmt: skip


def result(
    project: OpenProject,
    row: CheckpointRow,
    changes: Changes | None = None,
    covered: Coverage | None = None,
) -> Checkpoint:
    """Convert a checkpoint's row to a result; `covered` saves reading its coverage."""
    from mulligan.workspace.results.files import Checkpoint

    return Checkpoint(
        id=row.id,
        tree=row.tree.hex(),
        kind=row.kind,
        message=row.message,
        created_at=row.created_at,
        files=row.files,
        bytes=row.bytes,
        coverage=covered or coverage(project, row),
        changes=changes,
        session=row.session,
        entry=row.entry,
    )


def coverage(project: OpenProject, row: CheckpointRow) -> Coverage:
    return Coverage.decode(project.store.get(row.coverage))


def count(changes: Iterable[Change]) -> Changes:
    """Count added, modified and deleted files; folders do not count."""
    from mulligan.workspace.results.files import Changes

    added = modified = deleted = 0
    for _path, before, after in changes:
        was = before is not None and not before.is_directory
        now = after is not None and not after.is_directory
        added += now and not was
        deleted += was and not now
        modified += was and now
    return Changes(added, modified, deleted)
