"""AgentSmithy's dialogs: its endpoints, word for word, over the verbs of a workspace.

A dialog is a session, its `session_1`, `session_2`, … are rounds, a commit is a checkpoint.
Requests are about one project: the one that `project` names in the query, or the header
`X-Mulligan-Project`, by id or by path; else the server's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypedDict, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from mulligan.errors import NotFound, UsageError
from mulligan.journal import sessions
from mulligan.server.api import Router
from mulligan.server.dialogs import actions as verbs
from mulligan.server.dialogs import events
from mulligan.server.dialogs.actions import (
    Dialog,
    DialogApproved,
    DialogCheckpoints,
    DialogFound,
    DialogReset,
    DialogRestored,
    DialogSession,
    DialogsFound,
)
from mulligan.server.dialogs.events import ChatEvent, DialogHistory
from mulligan.server.dialogs.stream import ChatStream
from mulligan.server.projects import lookup
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import LARGEST, About
from mulligan.workspace.workspace import Workspace

section = Router("dialogs", "/api", tolerant=True)
Found = TypeVar("Found")
Project = Annotated[str | None, About("A project, by id or by path; else the server's own.")]
HEADER = "x-mulligan-project"


class DialogQuery(NamedTuple):
    project: Project = None


class DialogsQuery(NamedTuple):
    project: Project = None
    sort: Annotated[str, About("updated_at or created_at.")] = "updated_at"
    order: Annotated[str, About("desc or asc.")] = "desc"
    limit: Annotated[int, About("", 1, 1000)] = 50
    offset: Annotated[int, About("", 0, LARGEST)] = 0


class CurrentQuery(NamedTuple):
    project: Project = None
    id: str | None = None


class DialogHistoryQuery(NamedTuple):
    project: Project = None
    limit: Annotated[int, About("", 1, 1000)] = 20
    before: Annotated[int | None, About("Only events before this `idx`.", 0, LARGEST)] = None
    after: Annotated[int | None, About("Only events after this `idx`.", 0, LARGEST)] = None


class DialogBody(NamedTuple):
    title: str | None = None
    set_current: bool = True


class DialogTitleBody(NamedTuple):
    title: str | None = None


class DialogCurrentBody(NamedTuple):
    id: str | None = None


class DialogApproveBody(NamedTuple):
    message: str | None = None


class DialogResetBody(NamedTuple):
    force: bool = False


class DialogRestoreBody(NamedTuple):
    checkpoint_id: str
    force: bool = False


class ChatMessage(NamedTuple):
    role: str
    content: str


class ChatBody(NamedTuple):
    """A message, or the last one of the user's in `messages`. The rest is for agents."""

    message: str | None = None
    messages: tuple[ChatMessage, ...] = ()
    context: dict[str, Any] | None = None
    stream: bool = True
    dialog_id: str | None = None
    timeout: Annotated[float | None, About("End after so many silent seconds.", 1)] = None


class ChatEventsBody(NamedTuple):
    events: tuple[ChatEvent, ...]


class DialogDone(TypedDict):
    ok: bool


class ChatEventsTaken(TypedDict):
    taken: int
    ended: bool


@section.get("/dialogs", "The dialogs, newest first")
async def listed(hub: Registry, request: Request, query: DialogsQuery) -> DialogsFound:
    if query.sort not in ("updated_at", "created_at") or query.order not in ("asc", "desc"):
        raise UsageError("`sort` is updated_at or created_at, `order` is desc or asc.")
    return await _in_project(
        hub, request, query.project, verbs.dialogs, sort=query.sort,
        descending=query.order == "desc", limit=query.limit, offset=query.offset,
    )  # fmt: skip


@section.post("/dialogs", "Begin a dialog, with an initial checkpoint")
async def created(hub: Registry, request: Request, query: DialogQuery, body: DialogBody) -> Dialog:
    return await _in_project(
        hub, request, query.project, verbs.create, title=body.title or "",
        set_current=body.set_current,
    )  # fmt: skip


@section.get("/dialogs/current", "The dialog that a client was in last")
async def current(hub: Registry, request: Request, query: DialogQuery) -> DialogFound:
    return await _in_project(hub, request, query.project, verbs.current)


@section.on("PATCH", "/dialogs/current", "Be in another dialog")
async def set_current(
    hub: Registry, request: Request, query: CurrentQuery, body: DialogCurrentBody
) -> DialogDone:
    id = query.id or body.id
    if not id:
        raise UsageError("The field id is missing.")
    await _in_dialog(hub, request, query.project, id, verbs.set_current)
    return {"ok": True}


@section.get("/dialogs/{dialog}", "One dialog")
async def one(hub: Registry, request: Request, dialog: str, query: DialogQuery) -> Dialog:
    return await _in_dialog(hub, request, query.project, dialog, verbs.one)


@section.on("PATCH", "/dialogs/{dialog}", "Give it another title")
async def retitled(
    hub: Registry, request: Request, dialog: str, query: DialogQuery, body: DialogTitleBody
) -> DialogDone:
    await _in_dialog(hub, request, query.project, dialog, verbs.retitle, title=body.title)
    return {"ok": True}


@section.on("DELETE", "/dialogs/{dialog}", "Drop a dialog and what it holds")
async def deleted(hub: Registry, request: Request, dialog: str, query: DialogQuery) -> DialogDone:
    await _in_dialog(hub, request, query.project, dialog, verbs.delete)
    return {"ok": True}


@section.get("/dialogs/{dialog}/history", "What was said and done, as events")
async def history(
    hub: Registry, request: Request, dialog: str, query: DialogHistoryQuery
) -> DialogHistory:
    return await _in_dialog(
        hub, request, query.project, dialog, events.history, limit=query.limit,
        before=query.before, after=query.after,
    )  # fmt: skip


@section.get("/dialogs/{dialog}/checkpoints", "Its checkpoints, oldest first")
async def checkpoints(
    hub: Registry, request: Request, dialog: str, query: DialogQuery
) -> DialogCheckpoints:
    return await _in_dialog(hub, request, query.project, dialog, verbs.checkpoints)


@section.get("/dialogs/{dialog}/session", "What is not approved yet, with every change")
async def session(
    hub: Registry, request: Request, dialog: str, query: DialogQuery
) -> DialogSession:
    return await _in_dialog(hub, request, query.project, dialog, verbs.status)


@section.post("/dialogs/{dialog}/approve", "Keep everything, and begin a new session")
async def approve(
    hub: Registry, request: Request, dialog: str, query: DialogQuery, body: DialogApproveBody
) -> DialogApproved:
    return await _in_dialog(
        hub, request, query.project, dialog, verbs.approve, message=body.message or ""
    )


@section.post("/dialogs/{dialog}/reset", "Back to what was approved")
async def reset(
    hub: Registry, request: Request, dialog: str, query: DialogQuery, body: DialogResetBody
) -> DialogReset:
    return await _in_dialog(hub, request, query.project, dialog, verbs.reset, force=body.force)


@section.post("/dialogs/{dialog}/restore", "Back to a checkpoint")
async def restore(
    hub: Registry, request: Request, dialog: str, query: DialogQuery, body: DialogRestoreBody
) -> DialogRestored:
    return await _in_dialog(
        hub, request, query.project, dialog, verbs.restore, checkpoint=body.checkpoint_id,
        force=body.force,
    )  # fmt: skip


@section.post(
    "/dialogs/{dialog}/chat", "Begin a turn, and follow it", content="text/event-stream"
)  # fmt: skip
async def chat(
    hub: Registry, request: Request, dialog: str, query: DialogQuery, body: ChatBody
) -> Response:
    project = await _project(hub, request, query.project)
    await hub.work(project, _known, dialog=dialog)
    return ChatStream(hub, project, dialog, _message(body), body.timeout)


@section.post("/chat", "The same in the current dialog, or in a new one",
              content="text/event-stream")  # fmt: skip
async def chat_here(
    hub: Registry, request: Request, query: DialogQuery, body: ChatBody
) -> Response:
    message = _message(body)
    project = await _project(hub, request, query.project)
    dialog = body.dialog_id or (await hub.work(project, verbs.current))["id"]
    if dialog is None:
        made = await hub.work(project, verbs.create, title="", set_current=True)
        dialog = made["id"]
    await hub.work(project, _known, dialog=dialog)
    return ChatStream(hub, project, dialog, message, body.timeout)


@section.post("/dialogs/{dialog}/chat/events", "What the client that drives a turn has to tell")
async def chat_events(
    hub: Registry, request: Request, dialog: str, query: DialogQuery, body: ChatEventsBody
) -> ChatEventsTaken:
    ended = await _in_dialog(hub, request, query.project, dialog, events.take, events=body.events)
    return {"taken": len(body.events), "ended": ended}


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)


async def _project(hub: Registry, request: Request, given: str | None) -> str:
    # Whoever names a directory here begins to work in it, whatever is asked first.
    return await hub.call(lookup.chosen, hub, given or request.headers.get(HEADER), create=True)


async def _in_project(
    hub: Registry, request: Request, given: str | None, verb: Callable[..., Found], **more: Any
) -> Found:
    return await hub.work(await _project(hub, request, given), verb, **more)


async def _in_dialog(
    hub: Registry, request: Request, given: str | None, dialog: str, verb: Callable[..., Found],
    **more: Any,
) -> Found:  # fmt: skip
    """Runs a verb on a dialog, which goes by its whole id."""
    project = await _project(hub, request, given)
    await hub.work(project, _known, dialog=dialog)
    return await hub.work(project, verb, dialog=dialog, **more)


def _known(workspace: Workspace, dialog: str) -> None:
    if sessions.by_id(workspace.project.journal, dialog) is None:
        raise NotFound(f"There is no dialog {dialog!r}.")


def _message(body: ChatBody) -> str:
    """What the user says: the message, or the last of several that is the user's."""
    if body.message is not None:
        return body.message
    said = [each.content for each in body.messages if each.role == "user"]
    if not said:
        raise UsageError("No user message found: give `message`.")
    return said[-1]
