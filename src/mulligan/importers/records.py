"""Define the records that importers yield."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from mulligan.core.entries import NewEntry


class InvalidRecord(Exception):
    """A line, row or object that cannot be read. The message becomes a `Problem`'s reason."""


class Source(NamedTuple):
    """One log: a file, or one session (`part`) of a database."""

    path: str
    part: str = ""


class Session(NamedTuple):
    """The session of the entries that follow; repeated when more of it becomes known.

    `directory` is the agent's working directory, which decides the project.
    """

    id: str
    directory: str | None = None
    title: str | None = None
    model: str | None = None
    mode: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    forked_from: str | None = None


class CallEnded(NamedTuple):
    """An earlier tool call has ended. `call` is the agent's id for it."""

    call: str
    status: str
    output: str | None = None
    duration: float | None = None


class Compacted(NamedTuple):
    """All entries on the path before the entry `before` were compacted."""

    before: str


class Leaf(NamedTuple):
    """The session's leaf, if it is not the last entry on the path."""

    id: str | None


class SessionSettings(NamedTuple):
    """The agent and the settings of a session that Mulligan exported."""

    session: str
    agent: str
    values: dict[str, Any]


class Label(NamedTuple):
    """The label of an entry."""

    entry: str
    label: str


class SnapshotFile(NamedTuple):
    """A file in a snapshot. `content` is the log's own name for its bytes."""

    path: str
    content: str
    mode: int = 0o644
    is_link: bool = False


class Snapshot(NamedTuple):
    """Some files of the project at one moment, to become a checkpoint.

    `entry` is the earlier entry that it belongs to, `log_path` the file that describes it.
    """

    id: str
    message: str
    created_at: str | None
    entry: str | None
    files: tuple[SnapshotFile, ...]
    log_path: str


class Problem(NamedTuple):
    """A line that could not be read, and the reason. `line` is 0 if there is no line number."""

    path: str
    line: int
    reason: str


Record = (
    Session | NewEntry | CallEnded | Compacted | Leaf | SessionSettings | Label | Snapshot | Problem
)

FindLogs = Callable[[str, Mapping[str, str]], Iterator[Source]]
"""Find a user's logs, given the home directory and the environment."""

ReadLog = Callable[[Source], Iterator[Record]]
"""Read one log from its beginning."""

ReadContent = Callable[[str], Iterator[bytes]]
"""Read the bytes of a snapshot file in pieces, by `SnapshotFile.content`.

Raises `InvalidRecord` or OSError if they are missing or damaged.
"""


class Importer(NamedTuple):
    """A reader for one agent's logs. `agent` becomes the agent of its sessions.

    `contents` opens the file contents of a log with snapshots.
    """

    agent: str
    find: FindLogs
    read: ReadLog
    contents: Callable[[Source], ReadContent] | None = None


def chain_entries(id: str, parent: str | None, entries: Iterable[NewEntry]) -> Iterator[NewEntry]:
    """Give the entries of one line ids and parents in a row: `id`, `id:1`, `id:2`…"""
    for number, entry in enumerate(entries):
        entry_id = f"{id}:{number}" if number else id
        yield entry._replace(id=entry_id, parent=parent)
        parent = entry_id
