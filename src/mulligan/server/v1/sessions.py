"""Sessions: made, listed, changed, read, appended to, navigated, forked, compacted."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypedDict

from starlette.requests import Request
from starlette.routing import BaseRoute

from mulligan.core.entries import LEAF, RUNNING, NewEntry
from mulligan.errors import UsageError
from mulligan.server.api import Router
from mulligan.server.http.peer import client_process
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import LARGEST, About, With
from mulligan.server.v1.projects import Limit, pending_stats
from mulligan.workspace.results.review import PendingStats
from mulligan.workspace.results.sessions import (
    Branch,
    Entry,
    EntryPage,
    FileDifference,
    ModifiedFile,
    Navigation,
    Session,
)
from mulligan.workspace.results.turns import Step, Turn
from mulligan.workspace.search.search import moment
from mulligan.workspace.sessions.clear_all import Cleared
from mulligan.workspace.workspace import Workspace

section = Router("sessions")
Seq = Annotated[int, About("The `seq` of an entry.", 0, LARGEST)]


class SessionsQuery(NamedTuple):
    limit: Limit = 50
    cursor: Annotated[str | None, About("The `next_cursor` of the page before.")] = None
    offset: Annotated[int, About("How many to pass over.", 0, LARGEST)] = 0
    status: str | None = None
    agent: str | None = None


class PendingPart(TypedDict):
    """What waits for a decision; null if nothing does."""

    pending: PendingStats | None


class Sessions(TypedDict):
    """Newest first; go on with `next_cursor` or `next_offset`."""

    sessions: list[With[Session, PendingPart]]
    has_more: bool
    next_cursor: str | None
    next_offset: int | None


class SessionBody(NamedTuple):
    agent: str = ""
    title: str = ""
    model: str | None = None
    mode: str | None = None
    id: Annotated[str | None, About("The agent's own id of it; one is made otherwise.")] = None


class ClearBody(NamedTuple):
    confirm: Annotated[str | None, About("The `confirm` that the call without it gave.")] = None


class SessionChange(NamedTuple):
    title: str | None = None
    agent: str | None = None
    model: str | None = None
    mode: str | None = None
    status: str | None = None
    memory: str | None = None
    auto_approve_commands: bool | None = None
    auto_approve_sensitive_edits: bool | None = None
    sensitive_file_patterns: dict[str, bool] | None = None


class EntriesQuery(NamedTuple):
    since: Seq = 0
    limit: Limit = 50
    type: tuple[str, ...] = ()
    include_compacted: bool = False


class ConversationQuery(NamedTuple):
    before: Annotated[int | None, About("Only entries with a smaller `seq`.", 0, LARGEST)] = None
    since: Seq = 0
    limit: Limit = 100
    newest: Annotated[bool, About("The last ones, instead of the first.")] = True
    leaf: Annotated[str | None, About("An entry; without, where the session stands.")] = None


class Conversation(TypedDict):
    """In order. With `newest`, `next_before` leads further back."""

    entries: list[Entry]
    has_more: bool
    next_before: int | None


class EntryBody(NamedTuple):
    type: str
    content: str = ""
    data: dict[str, Any] | None = None
    id: str | None = None
    parent: Annotated[str | None, About("An entry; without, the leaf; null for a new root.")] = LEAF
    created_at: str | None = None
    model: str | None = None
    checkpoint: str | None = None
    plan_item: str | None = None
    off_path: Annotated[bool, About("It does not become the leaf.")] = False


class EntriesBody(NamedTuple):
    entries: tuple[EntryBody, ...]


class Entries(TypedDict):
    entries: list[Entry]


class CallBody(NamedTuple):
    status: str = "success"
    output: str | None = None
    duration: Annotated[float | None, About("Milliseconds.", 0)] = None


class CallEnded(TypedDict):
    changed: bool


class Tree(TypedDict):
    """`files_skipped` says that the session was moved to its leaf without the files."""

    branches: list[Branch]
    leaf: str | None
    files_skipped: bool


class TurnBody(NamedTuple):
    message: str


class EndTurnBody(NamedTuple):
    status: str = "waiting_input"
    interrupted: bool = False


class GotoBody(NamedTuple):
    entry: str
    skip_files: bool = False
    summarize: bool = False
    summary: str | None = None
    preview: bool = False
    force: bool = False


class ForkBody(NamedTuple):
    entry: str | None = None
    title: str | None = None


class CompactBody(NamedTuple):
    before: Annotated[str | int | None, About("An entry, or its `seq`.")] = None
    summary: str | None = None


class Compacted(TypedDict):
    compacted: int
    entry: Entry


class LabelBody(NamedTuple):
    label: str | None


class BetweenQuery(NamedTuple):
    from_: Annotated[str | None, About("An entry; without, the beginning.")] = None
    to: Annotated[str | None, About("An entry; without, the leaf.")] = None


class FileDiffQuery(NamedTuple):
    path: str
    from_: str | None = None
    to: str | None = None


class ModifiedFiles(TypedDict):
    files: list[ModifiedFile]


@section.get("/projects/{project}/sessions", "The sessions of a project, newest first")
def listed(workspace: Workspace, query: SessionsQuery) -> Sessions:
    page = workspace.sessions.list(
        limit=query.limit, offset=query.offset, cursor=query.cursor, status=query.status,
        agent=query.agent,
    )  # fmt: skip
    pending = pending_stats(workspace)
    return {
        "sessions": [With(each, {"pending": pending.get(each.id)}) for each in page.sessions],
        "has_more": page.has_more,
        "next_cursor": page.next_cursor,
        "next_offset": page.next_offset,
    }


@section.post("/projects/{project}/sessions", "Begin a session", status=201)
def created(workspace: Workspace, body: SessionBody) -> Session:
    # Who runs it is not known here, and it must not end with the server.
    return workspace.sessions.create(
        id=body.id, agent=body.agent, title=body.title, model=body.model, mode=body.mode, process=0
    )


@section.post("/projects/{project}/sessions/clear", "Delete all sessions, asked for twice")
def clear(workspace: Workspace, body: ClearBody) -> Cleared:
    return workspace.sessions.clear(body.confirm)


@section.get("/projects/{project}/sessions/{session}", "One session")
def one(workspace: Workspace, session: str) -> Session:
    return workspace.sessions.get(session)


@section.on("PATCH", "/projects/{project}/sessions/{session}", "Change what can be changed of it")
def changed(workspace: Workspace, session: str, body: SessionChange, request: Request) -> Session:
    process = client_process(request) if body.status == RUNNING else 0
    return workspace.sessions.change(session, process=process, **body._asdict())


@section.on("DELETE", "/projects/{project}/sessions/{session}", "Drop a session and what it holds")
def deleted(workspace: Workspace, session: str) -> Session:
    return workspace.sessions.delete(session)


@section.get("/projects/{project}/sessions/{session}/entries", "All branches, as appended")
def entries(workspace: Workspace, session: str, query: EntriesQuery) -> EntryPage:
    return workspace.sessions.transcript(
        session, types=query.type, since=query.since, limit=query.limit,
        include_compacted=query.include_compacted,
    )  # fmt: skip


@section.post("/projects/{project}/sessions/{session}/entries", "Append entries", status=201)
def append(workspace: Workspace, session: str, body: EntriesBody) -> Entries:
    new = [
        NewEntry(**each._asdict())._replace(created_at=moment(each.created_at))
        for each in body.entries
    ]
    return {"entries": workspace.sessions.append(session, *new)}


@section.get(
    "/projects/{project}/sessions/{session}/conversation", "The path from the root to the leaf"
)
def conversation(workspace: Workspace, session: str, query: ConversationQuery) -> Conversation:
    # One more than asked for, to know whether there is more.
    found = workspace.sessions.conversation(
        session, leaf=query.leaf, before=query.before, since=query.since, limit=query.limit + 1,
        newest=query.newest,
    )  # fmt: skip
    more = len(found) > query.limit
    rows = found[-query.limit :] if query.newest else found[: query.limit]
    return {
        "entries": rows,
        "has_more": more,
        "next_before": rows[0].seq if more and query.newest else None,
    }


@section.post("/projects/{project}/sessions/{session}/calls/{call}", "A tool call has ended")
def end_call(workspace: Workspace, session: str, call: str, body: CallBody) -> CallEnded:
    ended = workspace.sessions.end_call(
        session, call, status=body.status, output=body.output, duration=body.duration
    )
    return {"changed": ended}


@section.get("/projects/{project}/sessions/{session}/tree", "Its tree, as its unforked stretches")
def tree(workspace: Workspace, session: str) -> Tree:
    return {
        "branches": workspace.sessions.branches(session),
        "leaf": workspace.sessions.get(session).leaf,
        "files_skipped": workspace.sessions.files_skipped(session),
    }


@section.post("/projects/{project}/sessions/{session}/turns", "A turn begins", status=201)
def begin_turn(workspace: Workspace, session: str, body: TurnBody, request: Request) -> Turn:
    return workspace.sessions.begin_turn(session, body.message, process=client_process(request))


@section.post("/projects/{project}/sessions/{session}/turns/end", "The turn has ended")
def end_turn(workspace: Workspace, session: str, body: EndTurnBody) -> Step:
    return workspace.sessions.end_turn(session, status=body.status, interrupted=body.interrupted)


@section.post("/projects/{project}/sessions/{session}/goto", "Move the session, and its files")
def goto(workspace: Workspace, session: str, body: GotoBody) -> Navigation:
    return workspace.sessions.goto(
        body.entry, session=session, skip_files=body.skip_files, summarize=body.summarize,
        summary=body.summary, preview=body.preview, force=body.force,
    )  # fmt: skip


@section.post(
    "/projects/{project}/sessions/{session}/fork", "A new session from here", status=201
)  # fmt: skip
def fork(workspace: Workspace, session: str, body: ForkBody) -> Session:
    return workspace.sessions.fork(session, body.entry, title=body.title)


@section.post("/projects/{project}/sessions/{session}/compact", "Hide what came before")
def compact(workspace: Workspace, session: str, body: CompactBody) -> Compacted:
    hidden, entry = workspace.sessions.compact(session, body.before, summary=body.summary)
    return {"compacted": hidden, "entry": entry}


@section.on(
    "PUT", "/projects/{project}/sessions/{session}/entries/{entry}/label", "A name to return to"
)
def label(workspace: Workspace, session: str, entry: str, body: LabelBody) -> Entry:
    return workspace.sessions.label(entry, body.label, session)


@section.get("/projects/{project}/sessions/{session}/modified", "What differs between two entries")
def modified(workspace: Workspace, session: str, query: BetweenQuery) -> ModifiedFiles:
    return {"files": workspace.sessions.modified_files(session, query.from_, query.to)}


@section.get("/projects/{project}/sessions/{session}/file-diff", "One file at two entries")
def file_diff(workspace: Workspace, session: str, query: FileDiffQuery) -> FileDifference | None:
    if not query.path:
        raise UsageError("The parameter path is empty.")
    return workspace.sessions.file_diff(session, query.path, query.from_, query.to)


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)
