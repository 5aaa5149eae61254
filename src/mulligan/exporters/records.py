"""What exporters are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol


class Session(Protocol):
    """A session, as the workspace answers with it."""

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
    """An entry, as the workspace answers with it."""

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
    """A file that was changed. There is no `diff` where lines make no sense, or none are kept."""

    path: str
    status: str
    additions: int = 0
    deletions: int = 0
    diff: str | None = None


ChangesOf = Callable[[Entry], Sequence[FileChange]]
"""What a turn changed, given the entry of its end."""


class Stretch(NamedTuple):
    """Entries that are not on the way to the leaf: another way, or a sub-agent's, off_path."""

    entries: Sequence[Entry]
    off_path: bool


class Story(NamedTuple):
    """A session to be read: the way to its leaf, and what is beside it."""

    session: Session
    way: Sequence[Entry]
    others: Sequence[Stretch]
    changes_of: ChangesOf
