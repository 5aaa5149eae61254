"""The server is told to end in the middle of things: turns, jobs and verbs are left in order."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from faces import Socket, socket_to
from serving import Api, Server, following
from websockets.exceptions import ConnectionClosed

import mulligan
from mulligan.core.entries import NewEntry
from mulligan.workspace.workspace import Workspace

FILES = 3_000


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ending") / "home"


@contextmanager
def afterwards(home: Path, project: Path) -> Iterator[Workspace]:
    """The project once the server is gone; whatever was in its way, nothing is broken."""
    with mulligan.open(project, home=str(home)) as workspace:
        yield workspace
        assert workspace.maintenance.verify().clean


def end(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    ended(server)


def ended(server: Server) -> None:
    """A server that was told to end does so, in order."""
    assert server.process.wait(60) == 0
    server.stop()
    errors = server.errors.read_text()
    assert "everything is in order" in errors and "Traceback" not in errors


def begun(client: httpx2.Client, project: Path) -> tuple[str, dict[str, str]]:
    """A new dialog, and what names its project."""
    query = {"project": str(project)}
    return str(client.post("/api/dialogs", params=query, json={}).json()["id"]), query


@contextmanager
def chatting(client: httpx2.Client, project: Path) -> Iterator[tuple[str, Iterator[Any]]]:
    """A turn that a client has begun over a stream: its dialog, and its events."""
    dialog, query = begun(client, project)
    address = f"/api/dialogs/{dialog}/chat"
    with client.stream("POST", address, params=query, json={"message": "Go"}) as response:
        lines = response.iter_lines()
        events = (json.loads(line[6:]) for line in lines if line.startswith("data: "))
        assert next(events)["type"] == "user"
        yield dialog, events


def test_a_stream_ends_with_done_and_its_turn_with_it(home: Path, project: Path) -> None:
    server = Server(home)
    with server.client() as client, chatting(client, project) as (dialog, events):
        (project / "half.py").write_text("half\n")
        with mulligan.open(project, home=str(home)) as agent:
            agent.sessions.append(dialog, NewEntry("assistant_output", "Half of it."))
            server.process.send_signal(signal.SIGTERM)
            kinds = [event["type"] for event in events]
            # Told that it is done, a client finds the turn ended.
            assert agent.sessions.get(dialog).status == "waiting_input"
    assert kinds == ["chat_start", "chat", "chat_end", "error", "done"]
    ended(server)
    (project / "mine.txt").write_text("typed by the user\n")
    with afterwards(home, project) as workspace:
        (step,) = workspace.sessions.transcript(dialog, types=["step_snapshot"]).entries
        assert step.data is not None and step.data["interrupted"] is True
        assert step.data["diff"]["added"] == ["half.py"]
        assert [file.path for file in workspace.review.pending(session=dialog).files] == ["half.py"]


def test_a_dialog_goes_on_with_the_next_server(home: Path, project: Path) -> None:
    first = Server(home)
    with first.client() as client, chatting(client, project) as (dialog, events):
        first.process.send_signal(signal.SIGTERM)
        assert [event["type"] for event in events] == ["error", "done"]
    ended(first)
    second = Server(home)
    with second.client() as client:
        query = {"project": str(project)}
        address = f"/api/dialogs/{dialog}/chat"
        with client.stream("POST", address, params=query, json={"message": "On"}) as response:
            lines = response.iter_lines()
            events = (json.loads(line[6:]) for line in lines if line.startswith("data: "))
            assert next(events)["content"] == "On"
            told = {"events": [{"type": "done"}]}
            assert client.post(f"{address}/events", params=query, json=told).json()["ended"]
            assert [event["type"] for event in events] == ["done"]
        history = client.get(f"/api/dialogs/{dialog}/history", params=query).json()
    assert [event["content"] for event in history["events"]] == ["Go", "On"]
    end(second)
    with afterwards(home, project):
        pass


def test_followers_of_both_kinds_are_let_go(home: Path, project: Path) -> None:
    server = Server(home)
    with server.client() as client:
        id = Api(client).post("/projects", {"path": str(project)})["project"]
        with (
            following(client, project=id) as events,
            socket_to(server.port, server.token) as ws,
        ):
            ws.ask("code:subscribe", projectPath=str(project))
            server.process.send_signal(signal.SIGTERM)
            assert list(events) is not None
            with pytest.raises(ConnectionClosed) as closed:
                to_the_end(ws)
    assert closed.value.rcvd is not None and closed.value.rcvd.code in (1001, 1012)
    ended(server)


def to_the_end(ws: Socket) -> None:
    while True:
        ws.next()


def many_files(project: Path) -> dict[str, bytes]:
    found = {f"{number % 50}/{number}": os.urandom(3_000) for number in range(FILES)}
    for path, content in found.items():
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_bytes(content)
    return found


def under_way(api: Api, kind: str) -> None:
    """Waits until a job of a kind is in the middle of it."""
    wait_until(
        lambda: any(
            each["kind"] == kind and (each["done"] > 0 or each["state"] != "running")
            for each in api.get("/jobs")["jobs"]
        )
    )


def wait_until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)


def test_a_first_checkpoint_that_is_under_way_is_given_up_or_finished(
    home: Path, project: Path
) -> None:
    contents = many_files(project)
    server = Server(home)
    with server.client() as client:
        api = Api(client)
        api.post("/projects", {"path": str(project)})
        under_way(api, "checkpoint")
        end(server)
    with afterwards(home, project) as workspace:
        taken = workspace.checkpoint("again")
        assert {path: workspace.read(taken.id, path) for path in contents} == contents
    with Server(home) as again, again.client() as client:
        Api(client).post("/projects", {"path": str(project)})


def test_a_verification_that_is_under_way_is_given_up(home: Path, project: Path) -> None:
    many_files(project)
    with mulligan.open(project, home=str(home)) as workspace:
        workspace.checkpoint("all of it")
    server = Server(home)
    with server.client() as client:
        api = Api(client)
        id = api.post("/projects", {"path": str(project)})["project"]
        for _ in range(3):
            api.post(f"/projects/{id}/verify", {}, 202)
        under_way(api, "verify")
        end(server)
    with afterwards(home, project):
        pass


def test_an_import_that_is_under_way_goes_on_where_it_was(home: Path, project: Path) -> None:
    logs = Path(os.environ["HOME"]) / ".claude" / "projects" / "-x"
    logs.mkdir(parents=True)
    counts = {f"00000000-0000-4000-8000-{number:012}": 150 for number in range(60)}
    for session, count in counts.items():
        lines = (_said(session, number, project) for number in range(count))
        (logs / f"{session}.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    server = Server(home)
    with server.client() as client:
        api = Api(client)
        api.post("/import", {"agent": "claude-code"}, 202)
        under_way(api, "import")
        end(server)
    with Server(home) as again, again.client() as client:
        api = Api(client)
        job = api.post("/import", {"agent": "claude-code"}, 202)["job"]
        wait_until(lambda: bool(api.get(f"/jobs/{job}")["state"] == "done"))
    with afterwards(home, project) as workspace:
        page = workspace.sessions.list(limit=1000).sessions
        found = {each.id: workspace.sessions.count_entries(each.id) for each in page}
        assert found == counts


def _said(session: str, number: int, project: Path) -> dict[str, Any]:
    uuid = f"{session[:24]}{number:012}"
    return {
        "type": "user" if number % 2 == 0 else "assistant",
        "uuid": uuid,
        "parentUuid": f"{session[:24]}{number - 1:012}" if number else None,
        "sessionId": session,
        "cwd": str(project),
        "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000Z",
        "message": {
            "role": "user" if number % 2 == 0 else "assistant",
            "content": [{"type": "text", "text": f"word {number} of {session}"}],
        },
    }


def test_asked_twice_it_ends_at_once_and_a_long_search_with_it(home: Path, project: Path) -> None:
    """The first search makes an index of everything, which may take minutes."""
    with mulligan.open(project, home=str(home)) as workspace:
        workspace.checkpoint("first")
        session = workspace.sessions.create(agent="mine")
        for _ in range(6):
            said = (NewEntry("assistant_output", f"{each} " * 60) for each in range(5_000))
            workspace.sessions.append(session.id, *said)
        workspace.sessions.append(session.id, NewEntry("assistant_output", "needle"))
        id = workspace.project.location.id
    server = Server(home)
    with server.client() as client, ThreadPoolExecutor(1) as threads:
        query = {"project": id, "q": "needle"}
        answer = threads.submit(client.get, "/api/v1/search", params=query)
        wait_until((home / "projects" / id / "search.sqlite").exists)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not reachable(server))
        server.process.send_signal(signal.SIGTERM)
        ended(server)
        try:
            assert answer.result().status_code in (200, 423)
        except httpx2.TransportError:
            pass  # It was cut off.
    with afterwards(home, project) as workspace:
        assert workspace.search("needle").total == 1


def reachable(server: Server) -> bool:
    try:
        socket.create_connection(("127.0.0.1", server.port), timeout=60).close()
    except OSError:
        return False
    return True
