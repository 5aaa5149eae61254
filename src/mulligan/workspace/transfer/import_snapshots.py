"""Import other programs' snapshots of files as checkpoints.

Under the project's lock: 1. the objects, 2. in one transaction the checkpoint and its link to an
entry. An existing snapshot stays as it is. The checkpoint is inserted at its own time, and is
partial: restoring it leaves other files alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from itertools import chain
from typing import NamedTuple

from mulligan.clock import now_ns
from mulligan.core import coverage, tree
from mulligan.core.ids import CheckpointId, ObjectId, TreeId
from mulligan.core.times import rfc3339
from mulligan.core.tree import EMPTY, EMPTY_ID, FORBIDDEN_NAMES, Entry, Tree
from mulligan.importers.records import InvalidRecord, ReadContent, Snapshot, SnapshotFile
from mulligan.journal import append, checkpoints, entries
from mulligan.journal.checkpoints import IMPORTED, CheckpointRow
from mulligan.journal.db import Database
from mulligan.journal.sessions import SessionRow
from mulligan.store.objects import Store
from mulligan.store.writer import Writer
from mulligan.workspace.project.location import ProjectLocation
from mulligan.workspace.project.lock import locked
from mulligan.worktree.scan.overrides import directories_above
from mulligan.worktree.scan.reader import MIN_STREAMED_BYTES

MAX_NAME_BYTES = 255
PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
Placed = Callable[[str], str]
"""Maps a path to the project's; one outside stays absolute."""


class Taken(NamedTuple):
    """The result for one snapshot: whether it is new, and the problems."""

    is_new: bool
    problems: tuple[str, ...] = ()


class Snapshots:
    """Imports snapshots into the store and journal of one project."""

    def __init__(self, journal: Database, project: ProjectLocation) -> None:
        self._journal, self._project = journal, project
        self._store: Store | None = None
        self._known: dict[str, tuple[ObjectId, int]] = {}

    def close(self) -> None:
        if self._store is not None:
            self._store.close()

    def take(
        self, snapshot: Snapshot, session: SessionRow, content: ReadContent, placed: Placed
    ) -> Taken:
        """Make a checkpoint of a snapshot, with every file that is readable and allowed."""
        with locked(self._project.path("lock")):
            id = self._id(snapshot, session)
            if checkpoints.by_id(self._journal, id) is not None:
                return Taken(is_new=False)
            if self._store is None:
                self._store = Store(self._project.path("objects"))
            with Writer(self._store) as writer:
                held, missing, problems = self._files(writer, snapshot, content, placed)
                root, totals = _store_tree(writer, held)
                rest = (b"", f"was not kept by {session.agent}")
                covered = coverage.make([rest, *missing.items()], (), 0)
                row = CheckpointRow(
                    CheckpointId(id),
                    TreeId(root),
                    TreeId(writer.put(EMPTY)),
                    writer.put(covered.encode()),
                    complete=covered.complete,
                    kind=IMPORTED,
                    message=coverage.storable(snapshot.message),
                    created_at=min(rfc3339(now_ns()), snapshot.created_at or "9999"),
                    files=totals[0],
                    bytes=totals[1],
                    session=session.id,
                    entry=snapshot.entry,
                )
                writer.commit()
            self._add(row, session)
        return Taken(is_new=True, problems=tuple(problems))

    def _id(self, snapshot: Snapshot, session: SessionRow) -> str:
        """Return the snapshot's own id if it is valid and free; else a derived one."""
        other = sha256(f"{session.id}\0{snapshot.id}".encode(errors="replace")).hexdigest()[:16]
        if checkpoints.by_id(self._journal, other) is not None:
            return other
        known = checkpoints.by_id(self._journal, snapshot.id)
        if known is not None:
            is_own = known.kind == IMPORTED and known.session == session.id
        else:
            is_own = not checkpoints.is_prefix(self._journal, snapshot.id)
        return snapshot.id if is_own and PLAIN_ID.fullmatch(snapshot.id) else other

    def _files(
        self, writer: Writer, snapshot: Snapshot, content: ReadContent, placed: Placed
    ) -> tuple[dict[bytes, Entry], dict[bytes, str], list[str]]:
        """Return the snapshot's entries, and the missing paths with their reasons."""
        held: dict[bytes, Entry] = {}
        folders: set[bytes] = set()
        missing: dict[bytes, str] = {}
        problems: list[str] = []
        for file in snapshot.files:
            path = b""
            try:
                inside = _tree_path(placed(file.path))
                above = directories_above((inside,)).keys()
                if inside in held or inside in folders or not above.isdisjoint(held):
                    raise InvalidRecord("Another file was in its place already.")
                path = inside
                held[path] = self._entry(writer, file, content)
                folders |= above
            except (InvalidRecord, OSError) as problem:
                reason = str(problem.strerror if isinstance(problem, OSError) else problem)
                problems.append(f"{file.path}: {reason}")
                if path:
                    missing[path] = f"could not be taken: {reason}"
        return held, missing, problems

    def _entry(self, writer: Writer, file: SnapshotFile, content: ReadContent) -> Entry:
        known = self._known.get(file.content)
        if known is None or not writer.has(known[0]):
            known = self._known[file.content] = _store_content(writer, content(file.content))
        id, size = known
        if file.is_link:
            return tree.link_entry(b"", size, id)
        return tree.file_entry(b"", file.mode & 0o777 or 0o644, size, id)

    def _add(self, row: CheckpointRow, session: SessionRow) -> None:
        with self._journal.writing() as db:
            checkpoints.insert_at_its_time(db, row)
            linked = entries.by_id(self._journal, session.number, row.entry) if row.entry else None
            if linked is not None and linked.checkpoint is None:
                append.link(db, session.number, linked.seq, {"checkpoint": row.id})


def _tree_path(path: str) -> bytes:
    """Return a path as trees hold it; raise `InvalidRecord` if no project can have it."""
    if os.path.isabs(path):
        raise InvalidRecord("The path leads out of the project.")
    encoded = coverage.encode_path(path)
    names = encoded.split(b"/")
    if not FORBIDDEN_NAMES.isdisjoint(names) or b"\0" in encoded:
        raise InvalidRecord("A project has no file of this name.")
    if max(map(len, names)) > MAX_NAME_BYTES:
        raise InvalidRecord(f"A name in the path is longer than {MAX_NAME_BYTES} bytes.")
    return encoded


def _store_content(writer: Writer, pieces: Iterator[bytes]) -> tuple[ObjectId, int]:
    """Store a content; a large one is streamed."""
    start = bytearray()
    for piece in pieces:
        start += piece
        if len(start) >= MIN_STREAMED_BYTES:
            return writer.put_stream(_reader_of(chain((bytes(start),), pieces)))
    return writer.put(bytes(start)), len(start)


def _reader_of(pieces: Iterator[bytes]) -> Callable[[int], bytes]:
    """Make a `read(size)` function from pieces."""
    rest = bytearray()

    def read(count: int) -> bytes:
        while len(rest) < count and (piece := next(pieces, None)) is not None:
            rest.extend(piece)
        piece = bytes(rest[:count])
        del rest[:count]
        return piece

    return read


def _store_tree(writer: Writer, held: Mapping[bytes, Entry]) -> tuple[ObjectId, tuple[int, int]]:
    """Store the tree of these files; return its id, and their count and bytes."""
    made: dict[bytes, Tree] = {EMPTY_ID: Tree(EMPTY)}

    def save(data: bytes, old: bytes | None, tree: Tree) -> ObjectId:
        id = writer.put(data)
        made[id] = tree
        return id

    root = tree.edit(EMPTY_ID, held, made.__getitem__, save)
    return root, made[root].totals
