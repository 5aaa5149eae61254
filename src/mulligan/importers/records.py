"""What importers yield, and where they find what they read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from mulligan.core.entries import NewEntry


class Source(NamedTuple):
    """One log: a file, or for a database one session in it (`part`)."""

    path: str
    part: str = ""


class Session(NamedTuple):
    """The session that the following entries belong to; may come again, to add what was unknown.

    `directory` is where the agent worked, which decides the project.
    """

    id: str
    directory: str | None = None
    title: str | None = None
    model: str | None = None
    mode: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    forked_from: str | None = None


class Ended(NamedTuple):
    """A tool call, seen before, has ended. `call` is the agent's own id of it."""

    call: str
    status: str
    output: str | None = None
    duration: float | None = None


class Compacted(NamedTuple):
    """Everything on the path before the entry with this id was compacted."""

    before: str


class Leaf(NamedTuple):
    """Where the session stands, if it is not at the last entry that was not aside."""

    id: str | None


class Kept(NamedTuple):
    """What only a session of ours has: the agent that it was had with, and what is set of it."""

    session: str
    agent: str
    values: dict[str, Any]


class Label(NamedTuple):
    """The name that was given to an entry."""

    entry: str
    label: str


class Held(NamedTuple):
    """A file as a log kept it. `content` is the name by which the log knows its bytes."""

    path: str
    content: str
    mode: int = 0o644
    is_link: bool = False


class Snapshot(NamedTuple):
    """How some files of the project were at a moment, for a checkpoint to be made of.

    `entry` is the entry, seen before, that it belongs to. `place` is where the log has it.
    """

    id: str
    message: str
    created_at: str | None
    entry: str | None
    files: tuple[Held, ...]
    place: str


class Problem(NamedTuple):
    """A line that could not be taken, and why. The rest is read on."""

    path: str
    line: int
    reason: str


Record = Session | NewEntry | Ended | Compacted | Leaf | Kept | Label | Snapshot | Problem

Find = Callable[[str, Mapping[str, str]], Iterator[Source]]
"""Finds the logs of a user, given the home directory and the environment."""

Read = Callable[[Source], Iterator[Record]]
"""Reads one log from its beginning."""


Content = Callable[[str], Iterator[bytes]]
"""Gives the bytes of a file that a log kept, in pieces, by the name that the log has for them.

Raises `Untakeable` or OSError if they are not there, or are not what they should be.
"""


class Importer(NamedTuple):
    """An agent whose logs can be read. `agent` is the name that its sessions bear.

    `contents` is there for logs that hold snapshots, and gives access to their bytes.
    """

    agent: str
    find: Find
    read: Read
    where: str
    contents: Callable[[Source], Content] | None = None
