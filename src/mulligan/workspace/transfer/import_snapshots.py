"""What other programs kept of a project's files, as checkpoints.

The order is that of every checkpoint: objects, then in one transaction the checkpoint and its link
to an entry, all under the project's lock. A snapshot that is there already is left as it is. It
stands among the checkpoints at the time at which it was taken, and is a partial one: what lay
beside the files that it holds was none of its business, and restoring it leaves that alone.
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

LONGEST_NAME = 255
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
Placed = Callable[[str], str]
"""Gives a path as the project knows it; one that is outside of it stays absolute."""


class Taken(NamedTuple):
    """What became of a snapshot: whether it was new, and what of it could not be taken, and why."""

    is_new: bool
    problems: tuple[str, ...] = ()


class Snapshots:
    """Takes snapshots into the store and the journal of one project."""

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
        """Makes a checkpoint of a snapshot, with all of it that is there and fits the project."""
        with locked(self._project.path("lock")):
            id = self._id(snapshot, session)
            if checkpoints.by_id(self._journal, id) is not None:
                return Taken(is_new=False)
            if self._store is None:
                self._store = Store(self._project.path("objects"))
            with Writer(self._store) as writer:
                held, missing, problems = self._files(writer, snapshot, content, placed)
                root, totals = _tree(writer, held)
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
        """Its own id, if it can be typed and is nobody else's; else one that follows from it."""
        other = sha256(f"{session.id}\0{snapshot.id}".encode(errors="replace")).hexdigest()[:16]
        if checkpoints.by_id(self._journal, other) is not None:
            return other
        known = checkpoints.by_id(self._journal, snapshot.id)
        if known is not None:
            is_own = known.kind == IMPORTED and known.session == session.id
        else:
            is_own = not checkpoints.is_prefix(self._journal, snapshot.id)
        return snapshot.id if is_own and PLAIN.fullmatch(snapshot.id) else other

    def _files(
        self, writer: Writer, snapshot: Snapshot, content: ReadContent, placed: Placed
    ) -> tuple[dict[bytes, Entry], dict[bytes, str], list[str]]:
        """What it holds, which paths of the project it should hold and does not, and why."""
        held: dict[bytes, Entry] = {}
        folders: set[bytes] = set()
        missing: dict[bytes, str] = {}
        problems: list[str] = []
        for file in snapshot.files:
            path = b""
            try:
                found = _inside(placed(file.path))
                above = directories_above((found,)).keys()
                if found in held or found in folders or not above.isdisjoint(held):
                    raise InvalidRecord("Another file was in its place already.")
                path = found
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
            known = self._known[file.content] = _stored(writer, content(file.content))
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


def _inside(path: str) -> bytes:
    """A path as trees have it; raises `InvalidRecord` for one that cannot be in the project's."""
    if os.path.isabs(path):
        raise InvalidRecord("The path leads out of the project.")
    found = coverage.encode_path(path)
    names = found.split(b"/")
    if not FORBIDDEN_NAMES.isdisjoint(names) or b"\0" in found:
        raise InvalidRecord("A project has no file of this name.")
    if max(map(len, names)) > LONGEST_NAME:
        raise InvalidRecord(f"A name in the path is longer than {LONGEST_NAME} bytes.")
    return found


def _stored(writer: Writer, pieces: Iterator[bytes]) -> tuple[ObjectId, int]:
    """Puts a content into the store; a large one never lies in memory as a whole."""
    start = bytearray()
    for piece in pieces:
        start += piece
        if len(start) >= MIN_STREAMED_BYTES:
            return writer.put_stream(_reading(chain((bytes(start),), pieces)))
    return writer.put(bytes(start)), len(start)


def _reading(pieces: Iterator[bytes]) -> Callable[[int], bytes]:
    """The pieces as a function that reads so many bytes of them, or fewer at the end."""
    rest = bytearray()

    def read(count: int) -> bytes:
        while len(rest) < count and (piece := next(pieces, None)) is not None:
            rest.extend(piece)
        found = bytes(rest[:count])
        del rest[:count]
        return found

    return read


def _tree(writer: Writer, held: Mapping[bytes, Entry]) -> tuple[ObjectId, tuple[int, int]]:
    """The tree of these files, put into the store; and how many they are, and their bytes."""
    made: dict[bytes, Tree] = {EMPTY_ID: Tree(EMPTY)}

    def save(data: bytes, old: bytes | None, tree: Tree) -> ObjectId:
        id = writer.put(data)
        made[id] = tree
        return id

    root = tree.edit(EMPTY_ID, held, made.__getitem__, save)
    return root, made[root].totals
