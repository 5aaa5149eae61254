"""What the requests of the WebSocket hold, by their Python names."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from mulligan.errors import MulliganError
from mulligan.server.schema import About

Limit = Annotated[int, About("", 1, 10_000)]


class InvalidPayload(MulliganError):
    """A payload that is not what its channel takes."""

    code = "usage"


class Nothing(NamedTuple):
    project_path: str | None = None


class Id(NamedTuple):
    id: str


class ClearSessions(NamedTuple):
    """Without `confirm`, only the word to confirm with is given."""

    project_path: str | None = None
    confirm: str | None = None


class SessionId(NamedTuple):
    session_id: str


class OldPoints(NamedTuple):
    """`older_than` is a time: RFC 3339, or milliseconds since the epoch."""

    older_than: str | int
    session_id: str | None = None
    project_path: str | None = None


class TranscriptQuery(NamedTuple):
    session_id: str
    types: tuple[str, ...] = ()
    since_seq: Annotated[int, About("", 0)] = 0
    limit: Limit = 50
    include_compacted: bool = False


class RecentQuery(NamedTuple):
    session_id: str
    limit: Limit = 50


class SearchQuery(NamedTuple):
    session_id: str
    query: str
    limit: Limit = 20
    raw: bool = False


class SearchAllQuery(NamedTuple):
    query: str
    limit: Limit = 50
    raw: bool = False


class RestoreBody(NamedTuple):
    restore_point_id: str
    target_dir: str | None = None
    files: tuple[str, ...] = ()
    dry_run: bool = False
    force: bool = False


class FileQuery(NamedTuple):
    restore_point_id: str
    file_path: str


class CreateSession(NamedTuple):
    project_path: str | None = None
    status: str = "starting"
    title: str = ""
    agent: str = ""


class CreatePoint(NamedTuple):
    session_id: str
    description: str
    files: tuple[Any, ...] | None = None
    transcript_entry_id: str | None = None
