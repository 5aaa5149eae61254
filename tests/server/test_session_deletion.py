"""Deleting sessions and restore points, as clients of the server see it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faces import Socket, socket_to
from serving import COMMAND, Api, Server, following, until

import mulligan
from mulligan.core.entries import NewEntry
from mulligan.workspace.workspace import Workspace


@pytest.fixture
def workspace(server: Server, project: Path) -> Iterator[Workspace]:
    """The project as another process has it, beside the server."""
    (project / "a.txt").write_text("first\n")
    with mulligan.open(project, home=str(server.home)) as workspace:
        workspace.checkpoint("first")
        yield workspace
        assert workspace.maintenance.verify().clean


@pytest.fixture
def ws(server: Server) -> Iterator[Socket]:
    with socket_to(server.port, server.token) as found:
        yield found


def begun(ws: Socket, project: Path) -> str:
    return str(ws.ask("code:create-session", projectPath=str(project))["id"])


def test_oc_10_the_event_of_a_deleted_session_names_it(
    server: Server, ws: Socket, workspace: Workspace, project: Path
) -> None:
    session = begun(ws, project)
    ws.ask("code:subscribe", projectPath=str(project))
    with (
        server.client() as client,
        following(client, project=workspace.project.location.id) as events,
    ):
        assert ws.ask("code:delete-session", id=session) is True
        assert until(events, "session_deleted")[-1].data["session"] == session
    assert ws.event("code:event", kind="session_deleted")["payload"]["session"] == session


def test_ya_1_the_points_of_a_deleted_session_are_gone(
    ws: Socket, workspace: Workspace, project: Path
) -> None:
    session = begun(ws, project)
    turn = workspace.sessions.begin_turn(session, "a secret wish")
    (project / "a.txt").write_text("the agent's\n")
    workspace.sessions.end_turn(session)
    points = [each["id"] for each in ws.ask("code:list-restore-points", sessionId=session)]
    assert turn.checkpoint in points and len(points) >= 2
    assert ws.ask("code:delete-session", id=session) is True
    assert [ws.ask("code:get-restore-point", id=each) for each in points] == [None] * len(points)
    for each in workspace.log():
        assert each.session is None and "secret" not in each.message
    # What the session did can still be taken back.
    workspace.undo()
    assert (project / "a.txt").read_text() == "first\n"
    workspace.redo()
    assert (project / "a.txt").read_text() == "the agent's\n"


def test_ya_1_a_fork_keeps_the_points_on_its_path(
    ws: Socket, workspace: Workspace, project: Path
) -> None:
    session = begun(ws, project)
    turn = workspace.sessions.begin_turn(session, "Go")
    (project / "a.txt").write_text("the agent's\n")
    workspace.sessions.end_turn(session)
    fork = workspace.sessions.fork(session).id
    ws.ask("code:delete-session", id=session)
    point = ws.ask("code:get-restore-point", id=turn.checkpoint)
    assert point["sessionId"] == fork
    assert point["id"] in {p["id"] for p in ws.ask("code:list-restore-points", sessionId=fork)}


def test_ya_8_the_newest_point_can_be_deleted(
    ws: Socket, workspace: Workspace, project: Path
) -> None:
    session = begun(ws, project)
    (project / "a.txt").write_text("second\n")
    asked = {"sessionId": session, "description": "Newest"}
    newest = ws.ask("code:create-restore-point", **asked)["id"]
    assert ws.ask("code:delete-restore-point", id=newest) is True
    assert ws.ask("code:get-restore-point", id=newest) is None
    listed = ws.ask("code:list-restore-points", sessionId=session)
    assert newest not in {each["id"] for each in listed}
    assert not workspace.status().changed_files
    (project / "a.txt").write_text("third\n")
    workspace.restore("@")
    assert (project / "a.txt").read_text() == "second\n"


def test_ya_8_points_are_forgotten_by_session(
    ws: Socket, workspace: Workspace, project: Path
) -> None:
    one, two = begun(ws, project), begun(ws, project)
    for session in (one, two):
        for number in range(2):
            (project / "a.txt").write_text(f"{session} {number}\n")
            ws.ask("code:create-restore-point", sessionId=session, description=str(number))
    workspace.checkpoint("last")
    mine = {each["id"] for each in ws.ask("code:list-restore-points", sessionId=one)}
    others = ws.ask("code:list-restore-points", sessionId=two)
    assert workspace.maintenance.forget(session=one, older_than=3600).forgotten == ()
    assert set(workspace.maintenance.forget(session=one, dry_run=True).forgotten) == mine
    assert set(workspace.maintenance.forget(session=one).forgotten) == mine
    assert ws.ask("code:list-restore-points", sessionId=one) == []
    assert ws.ask("code:list-restore-points", sessionId=two) == others


def test_ya_8_forgetting_by_session_keeps_so_many_of_it(
    api: Api, server: Server, ws: Socket, workspace: Workspace, project: Path
) -> None:
    session = begun(ws, project)
    for number in range(3):
        (project / "a.txt").write_text(f"{number}\n")
        ws.ask("code:create-restore-point", sessionId=session, description=str(number))
    workspace.checkpoint("last")
    done = server.mull("forget", "--session", session, "--keep-last", "1", cwd=project)
    left = ws.ask("code:list-restore-points", sessionId=session)
    assert [each["description"] for each in left] == ["2"]
    assert len(done["forgotten"]) == 3


def test_f_ya_1_all_sessions_are_cleared_over_the_websocket_when_asked_twice(
    ws: Socket, workspace: Workspace, project: Path
) -> None:
    ids = [begun(ws, project) for _ in range(2)]
    workspace.sessions.append(ids[0], NewEntry("user_input", "walrus"))
    told = ws.ask("code:clear-sessions", projectPath=str(project))
    assert (told["cleared"], told["count"]) == (False, 2)
    assert len(ws.ask("code:list-sessions", projectPath=str(project))) == 2
    asked = {"projectPath": str(project), "confirm": told["confirm"]}
    # What was confirmed is not what is there any more.
    begun(ws, project)
    assert ws.error("code:clear-sessions", asked)["details"]["reason"] == "would_lose_work"
    assert ws.error("code:clear-sessions", asked | {"confirm": "yes"})["code"] == "HANDLER_ERROR"
    asked["confirm"] = ws.ask("code:clear-sessions", projectPath=str(project))["confirm"]
    assert ws.ask("code:clear-sessions", **asked) == {
        "cleared": True, "count": 3, "projectPath": str(project), "sessions": [],
        "hasMore": False, "nextOffset": None,
    }  # fmt: skip
    assert ws.ask("code:list-sessions", projectPath=str(project)) == []
    index = workspace.project.location.path("search.sqlite")
    assert not os.path.exists(index) or b"walrus" not in Path(index).read_bytes()


def test_f_ya_1_all_sessions_are_cleared_by_lines_and_commands_when_asked_twice(
    server: Server, workspace: Workspace, project: Path
) -> None:
    workspace.sessions.create()
    asked = [{"id": "1", "type": "clear_sessions"}, {"id": "2", "type": "get_state"}]
    first, state = lines(server, project, *asked)
    assert first["data"]["cleared"] is False and state["success"]
    again = {"id": "3", "type": "clear_sessions", "confirm": first["data"]["confirm"]}
    done, state = lines(server, project, again, {"id": "4", "type": "get_state"})
    assert done["data"]["cleared"] is True and state["code"] == "not_found"
    workspace.sessions.create()
    code, told = command(server, project, "session", "clear")
    assert code == 4 and told["sessions"] == 1
    assert len(workspace.sessions.list().sessions) == 1
    code, told = command(server, project, "session", "clear", "--confirm", told["confirm"])
    assert (code, told["cleared"]) == (0, True)
    assert workspace.sessions.list().sessions == ()


def lines(server: Server, project: Path, *asked: Any) -> list[Any]:
    done = subprocess.run(
        [*COMMAND, "rpc"], cwd=project, env=server.env, capture_output=True, check=True,
        input=b"".join(json.dumps(each).encode() + b"\n" for each in asked),
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def command(server: Server, project: Path, *arguments: str) -> tuple[int, Any]:
    done = subprocess.run(
        [*COMMAND, *arguments, "--json"], cwd=project, env=server.env, capture_output=True,
        check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)
