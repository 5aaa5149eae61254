"""Take checkpoints of named files, from given contents or from disk.

They are partial: restoring one writes its files and deletes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mulligan.clock import now_ns
from mulligan.core import coverage
from mulligan.core.coverage import decode_path, storable
from mulligan.core.ids import CheckpointId, ObjectId, TreeId
from mulligan.core.times import stamp_after
from mulligan.core.tree import EMPTY, EMPTY_ID, FORBIDDEN_NAMES, Entry, file_entry, parents
from mulligan.errors import UsageError
from mulligan.journal import checkpoints, sessions
from mulligan.journal.checkpoints import FILES, CheckpointRow
from mulligan.store.writer import Writer
from mulligan.workspace.new_id import new_id
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.snapshot.checkpoints import result
from mulligan.workspace.snapshot.trees import Trees
from mulligan.worktree.scan.read_path import entry_at

if TYPE_CHECKING:
    from mulligan.workspace.results.files import Checkpoint

LONGEST_NAME_BYTES = 255
NOT_NAMED = "was not named"


class GivenFile(NamedTuple):
    """A file to keep; without `content`, as it is on disk."""

    path: bytes
    content: bytes | None = None
    mode: int = 0o644


def take(
    project: OpenProject, message: str, files: Sequence[GivenFile], *, session: str | None
) -> Checkpoint:
    """Take a checkpoint of named files; files missing on disk are left out."""
    _check(project, files)
    with project.locked():
        owner = sessions.resolve(project.journal, session).id if session is not None else None
        with Writer(project.store) as writer:
            held = {}
            for file in files:
                entry = _entry(project, writer, file)
                if entry is not None:
                    held[file.path] = entry
            row = record(project, writer, message, held, session=owner)
    return result(project, row)


def record(
    project: OpenProject,
    writer: Writer,
    message: str,
    held: Mapping[bytes, Entry],
    *,
    session: str | None = None,
) -> CheckpointRow:
    """Commit the objects, then add a checkpoint of the entries. The caller holds the lock."""
    trees = Trees(project, writer)
    root = trees.edit(EMPTY_ID, held) if held else writer.put(EMPTY)
    covered = coverage.make([(b"", NOT_NAMED)], (), 0)
    last = checkpoints.last_made(project.journal)
    row = CheckpointRow(
        CheckpointId(new_id()),
        TreeId(ObjectId(root)),
        TreeId(writer.put(EMPTY)),
        writer.put(covered.encode()),
        complete=False,
        kind=FILES,
        message=storable(message),
        created_at=stamp_after(last.created_at if last else None, now_ns()),
        files=len(held),
        bytes=sum(entry.size for entry in held.values()),
        session=session,
    )
    writer.commit()
    with project.journal.writing() as db:
        checkpoints.insert(db, row)
    return row


def _check(project: OpenProject, files: Iterable[GivenFile]) -> None:
    """Refuse paths that no project can have, and contents above the limit."""
    paths = set()
    for path, content, _mode in files:
        names = path.split(b"/")
        if not path or not FORBIDDEN_NAMES.isdisjoint(names):
            raise UsageError(
                f"{decode_path(path) or 'The project itself'} cannot be a file of a project."
            )
        if max(map(len, names)) > LONGEST_NAME_BYTES:
            raise UsageError(f"A name in a path is longer than {LONGEST_NAME_BYTES} bytes.")
        if path in paths:
            raise UsageError(f"{decode_path(path)} is named twice.")
        if content is not None and len(content) > project.limits.file_bytes:
            raise UsageError(f"{decode_path(path)} is larger than max_file_size allows.")
        paths.add(path)
    for path in paths:
        blocking = paths.intersection(parents(path))
        if blocking:
            raise UsageError(f"{decode_path(min(blocking))} cannot be a file and a folder.")


def _entry(project: OpenProject, writer: Writer, file: GivenFile) -> Entry | None:
    if file.content is None:
        return entry_at(project.location.root, file.path, writer)
    id = writer.put(file.content)
    name = file.path.rpartition(b"/")[2]
    return file_entry(name, file.mode & 0o777, len(file.content), id)
