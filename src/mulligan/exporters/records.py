"""Define the input of exporters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol


class Session(Protocol):
    """A session, as the workspace returns it."""

    @property
    def id(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def model(self) -> str | None: ...
    @property
    def project(self) -> str: ...
    @property
    def leaf(self) -> str | None: ...
    @property
    def created_at(self) -> str: ...
    @property
    def updated_at(self) -> str: ...
    def as_json(self) -> dict[str, Any]: ...


class Entry(Protocol):
    """An entry, as the workspace returns it."""

    @property
    def id(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def parent(self) -> str | None: ...
    @property
    def type(self) -> str: ...
    @property
    def created_at(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def data(self) -> dict[str, Any] | None: ...
    @property
    def checkpoint(self) -> str | None: ...
    @property
    def is_compacted(self) -> bool: ...
    @property
    def off_path(self) -> bool: ...
    @property
    def label(self) -> str | None: ...
    def as_json(self) -> dict[str, Any]: ...


class FileChange(NamedTuple):
    """A changed file. `diff` is None for binary files, or if no diff is stored."""

    path: str
    status: str
    additions: int = 0
    deletions: int = 0
    diff: str | None = None


ChangesOf = Callable[[Entry], Sequence[FileChange]]
"""Return the files that a turn changed, given the entry of its end."""


class Branch(NamedTuple):
    """Entries that are not on the path to the leaf. `off_path` is True for a sub-agent."""

    entries: Sequence[Entry]
    off_path: bool


class SessionContent(NamedTuple):
    """A session to export: the path to its leaf, and all other branches."""

    session: Session
    path: Sequence[Entry]
    branches: Sequence[Branch]
    changes_of: ChangesOf
