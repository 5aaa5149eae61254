"""The requests of the WebSocket: YAAI's thirteen, and five of our own.

A client names sessions and restore points by id alone, without their project.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from starlette.websockets import WebSocket

from mulligan.errors import MulliganError, NotFound, UsageError
from mulligan.server.projects import lookup
from mulligan.server.projects.feed import Delivery
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import from_json, hints_of
from mulligan.server.websocket import actions as verbs
from mulligan.server.websocket import points, shapes
from mulligan.server.websocket.payloads import (
    ClearSessions,
    CreatePoint,
    CreateSession,
    FileQuery,
    Id,
    InvalidPayload,
    Nothing,
    OldPoints,
    RecentQuery,
    RestoreBody,
    SearchAllQuery,
    SearchQuery,
    SessionId,
    TranscriptQuery,
)

Answer = TypeVar("Answer")
PYTHON_NAME = re.compile(r"[a-z]+(?:_[a-z]+)+")


class RequestScope(NamedTuple):
    """The registry, the connection and the connection's default project."""

    registry: Registry
    scope: str | None
    socket: WebSocket

    async def project(self, given: str | None, *, create: bool = False) -> str:
        return await self.registry.call(
            lookup.chosen, self.registry, given or self.scope, create=create
        )

    async def in_session(self, id: str, /, verb: Callable[..., Answer], **given: Any) -> Answer:
        """Run a function in the project of a session; raises `NotFound`."""
        project = await self.registry.call(lookup.of_session, self.registry, id)
        if project is None:
            raise NotFound(f"There is no session {id!r}.")
        return await self.registry.work(project, verb, **given)

    async def of_session(
        self, id: str, nothing: Answer, /, verb: Callable[..., Answer], **given: Any
    ) -> Answer:
        """`in_session`, but return `nothing` if there is no such session."""
        try:
            return await self.in_session(id, verb, **given)
        except NotFound:
            return nothing

    async def at_point(
        self, id: str, /, verb: Callable[..., Answer], **given: Any
    ) -> Answer | None:
        """Run a function in the project of a restore point; None if there is no such point."""
        project = await self.registry.call(lookup.of_checkpoint, self.registry, id)
        return None if project is None else await self.registry.work(project, verb, **given)


class Verb(NamedTuple):
    """The payload type and the handler of a channel."""

    payload: type
    run: Callable[..., Awaitable[Any]]

    def read(self, payload: dict[str, Any]) -> Any:
        """Decode the payload; unknown fields are ignored."""
        known = hints_of(self.payload)
        given = {_python_name(name): value for name, value in payload.items()}
        kept = {name: value for name, value in given.items() if name in known and value is not None}
        try:
            return from_json(self.payload, kept, "The payload")
        except UsageError as problem:
            raise InvalidPayload(PYTHON_NAME.sub(_client_name, str(problem))) from None


async def list_sessions(asked: RequestScope, given: Nothing) -> list[dict[str, Any]]:
    named = given.project_path or asked.scope
    only = await asked.project(named) if named else None
    return await asked.registry.call(verbs.all_sessions, asked.registry, only)


async def get_session(asked: RequestScope, given: Id) -> dict[str, Any] | None:
    return await asked.of_session(given.id, None, verbs.session, id=given.id)


async def delete_session(asked: RequestScope, given: Id) -> bool:
    return await asked.of_session(given.id, False, verbs.delete_session, id=given.id)


async def clear_sessions(asked: RequestScope, given: ClearSessions) -> dict[str, Any]:
    project = await asked.project(given.project_path)
    return await asked.registry.work(project, verbs.clear_sessions, confirm=given.confirm)


async def create_session(asked: RequestScope, given: CreateSession) -> dict[str, Any]:
    project = await asked.project(given.project_path, create=True)
    return await asked.registry.work(
        project, verbs.create_session, given=given, socket=asked.socket
    )


async def get_transcript(asked: RequestScope, given: TranscriptQuery) -> dict[str, Any]:
    nothing = {"entries": [], "hasMore": False}
    return await asked.of_session(given.session_id, nothing, verbs.transcript, given=given)


async def get_recent_transcript(asked: RequestScope, given: RecentQuery) -> list[dict[str, Any]]:
    return await asked.of_session(given.session_id, [], verbs.recent, given=given)


async def search_transcript(asked: RequestScope, given: SearchQuery) -> list[dict[str, Any]]:
    return await asked.of_session(given.session_id, [], verbs.search, given=given)


async def search_all(asked: RequestScope, given: SearchAllQuery) -> list[dict[str, Any]]:
    return await asked.registry.call(verbs.search_all, asked.registry, given)


async def get_file_edits(asked: RequestScope, given: SessionId) -> list[dict[str, Any]]:
    return await asked.of_session(given.session_id, [], verbs.file_edits, id=given.session_id)


async def list_restore_points(asked: RequestScope, given: SessionId) -> list[dict[str, Any]]:
    return await asked.of_session(given.session_id, [], verbs.points, id=given.session_id)


async def get_restore_point(asked: RequestScope, given: Id) -> dict[str, Any] | None:
    return await asked.at_point(given.id, verbs.point_with_files, id=given.id)


async def create_restore_point(asked: RequestScope, given: CreatePoint) -> dict[str, Any]:
    return await asked.in_session(given.session_id, points.create, given=given)


async def delete_restore_point(asked: RequestScope, given: Id) -> bool:
    return bool(await asked.at_point(given.id, verbs.delete_point, id=given.id))


async def delete_old_restore_points(asked: RequestScope, given: OldPoints) -> int:
    more = {"older_than": given.older_than, "session": given.session_id}
    if given.session_id is not None:
        return await asked.of_session(given.session_id, 0, points.delete_old, **more)
    named = given.project_path or asked.scope
    if named is None:
        raise InvalidPayload("Give `sessionId` or `projectPath`.")
    return await asked.registry.work(await asked.project(named), points.delete_old, **more)


async def restore(asked: RequestScope, given: RestoreBody) -> dict[str, Any]:
    done = await asked.at_point(given.restore_point_id, points.restore, given=given)
    if done is None:
        raise NotFound("Restore point not found")
    return done


async def get_file_at_restore_point(asked: RequestScope, given: FileQuery) -> str | None:
    return await asked.at_point(given.restore_point_id, verbs.file_at, given=given)


async def gc(asked: RequestScope, given: Nothing) -> dict[str, int]:
    named = given.project_path or asked.scope
    only = await asked.project(named) if named else None
    return await asked.registry.call(verbs.gc, asked.registry, only)


REQUESTS = {
    "code:list-sessions": Verb(Nothing, list_sessions),
    "code:get-session": Verb(Id, get_session),
    "code:delete-session": Verb(Id, delete_session),
    "code:get-transcript": Verb(TranscriptQuery, get_transcript),
    "code:get-recent-transcript": Verb(RecentQuery, get_recent_transcript),
    "code:search-transcript": Verb(SearchQuery, search_transcript),
    "code:get-file-edits": Verb(SessionId, get_file_edits),
    "code:list-restore-points": Verb(SessionId, list_restore_points),
    "code:get-restore-point": Verb(Id, get_restore_point),
    "code:restore": Verb(RestoreBody, restore),
    "code:get-file-at-restore-point": Verb(FileQuery, get_file_at_restore_point),
    "code:delete-restore-point": Verb(Id, delete_restore_point),
    "code:gc": Verb(Nothing, gc),
    "code:create-session": Verb(CreateSession, create_session),
    "code:clear-sessions": Verb(ClearSessions, clear_sessions),
    "code:create-restore-point": Verb(CreatePoint, create_restore_point),
    "code:delete-old-restore-points": Verb(OldPoints, delete_old_restore_points),
    "code:search-all": Verb(SearchAllQuery, search_all),
}


async def told(registry: Registry, found: Delivery) -> list[tuple[str, dict[str, Any]]]:
    """Convert an event to messages (channel and payload), with the entry it is about."""
    event = found.event
    payload = event.as_json() | {"cursor": found.cursor}
    messages = [("code:event", payload)]
    if event.kind in ("entry", "entry_changed") and event.project and "session" in event.data:
        try:
            entry = await registry.work(
                event.project, verbs.entry, session=event.data["session"], seq=event.data["seq"]
            )
        except MulliganError:
            # Deleted meanwhile, with its session.
            return messages
        payload["entry"] = shapes.entry(entry)
        tool = shapes.tool_event(entry)
        if tool is not None:
            messages.append(("analytics:tool_event", tool))
    return messages


def _client_name(found: re.Match[str]) -> str:
    """Convert `session_id` to `sessionId`."""
    first, *rest = found[0].split("_")
    return first + "".join(map(str.capitalize, rest))


def _python_name(name: str) -> str:
    """Convert `sessionId` to `session_id`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
