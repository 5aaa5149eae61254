"""Endpoints of the review: list pending changes, keep or undo them."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypedDict

from starlette.routing import BaseRoute

from mulligan.server.api import Router
from mulligan.server.projects.registry import Registry
from mulligan.server.schema import LARGEST, About, With
from mulligan.workspace.results.review import (
    Approved,
    Discarded,
    Kept,
    Position,
    Reset,
    Review,
    Round,
    RoundStatus,
    TurnStatus,
)
from mulligan.workspace.workspace import Workspace

section = Router("review")
TURN = "Only what this turn of the session did, counted from 0 on the branch where it stands."
TurnNumber = Annotated[int | None, About(TURN, 0, LARGEST)]


class PendingQuery(NamedTuple):
    session: str | None = None
    turn: TurnNumber = None
    path: tuple[str, ...] = ()


class PositionPart(TypedDict):
    """Where a reader begins."""

    position: Position


class KeepBody(NamedTuple):
    hunks: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    session: str | None = None
    turn: TurnNumber = None
    all: Annotated[bool, About("Everything, where nothing else is chosen.")] = False


class DiscardBody(NamedTuple):
    hunks: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    session: str | None = None
    turn: TurnNumber = None
    all: Annotated[bool, About("Everything, where nothing else is chosen.")] = False
    force: Annotated[bool, About("Overwrite what others changed since.")] = False
    preview: Annotated[bool, About("Only say what would happen.")] = False


class PositionQuery(NamedTuple):
    current: Annotated[str | None, About("The hunk that the reader is at.")] = None
    step: Annotated[int, About("So many on, or back.", -LARGEST, LARGEST)] = 0
    path: str | None = None
    session: str | None = None


class ApproveBody(NamedTuple):
    message: str = ""


class ResetBody(NamedTuple):
    force: bool = False
    preview: bool = False


class Rounds(TypedDict):
    rounds: list[Round]


class Turns(TypedDict):
    turns: list[TurnStatus]


@section.get("/projects/{project}/pending", "What waits for a decision")
def pending(workspace: Workspace, query: PendingQuery) -> With[Review, PositionPart]:
    found = workspace.review.pending(session=query.session, turn=query.turn, paths=query.path)
    first = found.hunks[0] if found.hunks else None
    position = Position(0, 0)
    if first is not None:
        position = Position(1, len(found.hunks), first.id, first.path, first.session)
    return With(found, {"position": position})


@section.post("/projects/{project}/keep", "Keep hunks, files, a turn, a session, everything")
def keep(workspace: Workspace, body: KeepBody) -> Kept:
    return workspace.review.keep(
        *body.hunks, paths=body.paths, session=body.session, turn=body.turn, everything=body.all
    )


@section.post("/projects/{project}/discard", "Undo hunks, files, a turn, a session, everything")
def discard(workspace: Workspace, body: DiscardBody) -> Discarded:
    return workspace.review.discard(
        *body.hunks, paths=body.paths, session=body.session, turn=body.turn, everything=body.all,
        force=body.force, preview=body.preview,
    )  # fmt: skip


@section.get("/projects/{project}/position", "Which change of how many")
def position(workspace: Workspace, query: PositionQuery) -> Position:
    return workspace.review.position(
        query.current, step=query.step, path=query.path, session=query.session
    )


@section.get("/projects/{project}/sessions/{session}/round", "What a session has pending")
def round_status(workspace: Workspace, session: str) -> RoundStatus:
    return workspace.review.round_status(session)


@section.get("/projects/{project}/sessions/{session}/rounds", "The session's rounds, oldest first")
def rounds(workspace: Workspace, session: str) -> Rounds:
    return {"rounds": workspace.review.rounds(session)}


@section.get("/projects/{project}/sessions/{session}/turns", "What became of each turn's work")
def turns(workspace: Workspace, session: str) -> Turns:
    return {"turns": workspace.review.turn_statuses(session)}


@section.post("/projects/{project}/sessions/{session}/approve", "The disk becomes the baseline")
def approve(workspace: Workspace, session: str, body: ApproveBody) -> Approved:
    return workspace.review.approve(session, body.message)


@section.post("/projects/{project}/sessions/{session}/reset", "The disk goes back to the baseline")
def reset(workspace: Workspace, session: str, body: ResetBody) -> Reset:
    return workspace.review.reset(session, force=body.force, preview=body.preview)


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)
