"""A session does not stay `running` when the program that drives it is killed."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from faces import TOKEN, serving_here
from serving import V1

import mulligan
from mulligan.journal import sessions as rows
from mulligan.server.http import peer
from mulligan.server.projects import registry
from mulligan.workspace.project import process as processes
from mulligan.workspace.project.process import client_identity, identity

HTTP = """
import sys, urllib.request
method, address, token, body = sys.argv[1:]
headers = {"authorization": "Bearer " + token, "content-type": "application/json"}
request = urllib.request.Request(address, body.encode(), headers, method=method)
urllib.request.urlopen(request).read()
print("done", flush=True)
sys.stdin.read()
"""
WEBSOCKET = """
import sys
from websockets.sync.client import connect
_method, address, token, body = sys.argv[1:]
with connect(address, additional_headers={"authorization": "Bearer " + token}) as line:
    line.send(body)
    line.recv()
    print("done", flush=True)
    sys.stdin.read()
"""


@contextmanager
def client(program: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that has asked for one thing, and is still there."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        yield process
        process.kill()


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def port(mulligan_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(registry, "CHECK_EVERY_SECONDS", 0.05)
    monkeypatch.setattr(processes, "CLIENT_SILENT_SECONDS", 0)
    with serving_here(mulligan_home) as port:
        yield port


@pytest.fixture
def api(port: int, project: Path) -> Iterator[httpx2.Client]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}{V1}", headers=headers) as opening:
        found = opening.post("/projects", json={"path": str(project)}).json()["project"]
        base = f"http://127.0.0.1:{port}{V1}/projects/{found}"
        with httpx2.Client(base_url=base, headers=headers, timeout=60) as api:
            yield api


def base(api: httpx2.Client) -> str:
    return str(api.base_url).rstrip("/")


def status(api: httpx2.Client, session: str) -> str:
    return str(api.get(f"/sessions/{session}").json()["status"])


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("POST", "/turns", {"message": "Do it"}), ("PATCH", "", {"status": "running"})],
)
def test_a_session_driven_over_http_is_stopped_when_its_client_is_killed(
    api: httpx2.Client, project: Path, method: str, path: str, body: dict[str, Any]
) -> None:
    session = api.post("/sessions", json={}).json()["session"]
    address = f"{base(api)}/sessions/{session}{path}"
    with client(HTTP, method, address, TOKEN, json.dumps(body)) as process:
        assert status(api, session) == "running"
        with mulligan.open(project) as workspace:
            row = rows.by_id(workspace.project.journal, session)
            assert row is not None and row.process == client_identity(process.pid)
        process.kill()
        process.wait()
        # The server writes it down by itself, so that pages that follow are told.
        with mulligan.open(project) as workspace:
            wait_for(
                lambda: workspace.project.journal.row("SELECT status FROM sessions")[0] == "stopped"
            )
        assert status(api, session) == "stopped"


def test_a_session_driven_over_the_websocket_is_stopped_when_its_client_is_killed(
    api: httpx2.Client, port: int, project: Path
) -> None:
    payload = {"projectPath": str(project), "status": "running"}
    asked = {"type": "request", "id": "1", "channel": "code:create-session", "payload": payload}
    address, body = f"ws://127.0.0.1:{port}/ws", json.dumps(asked | {"timestamp": 0})
    with client(WEBSOCKET, "", address, TOKEN, body) as process:
        (made,) = api.get("/sessions").json()["sessions"]
        assert made["status"] == "running"
        process.kill()
        process.wait()
        wait_for(lambda: status(api, made["session"]) == "stopped")


def test_a_script_that_asks_by_a_process_a_request_is_given_time(
    api: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "CLIENT_SILENT_SECONDS", 1 << 30)
    session = api.post("/sessions", json={}).json()["session"]
    address = f"{base(api)}/sessions/{session}/turns"
    with client(HTTP, "POST", address, TOKEN, '{"message": "Do it"}'):
        pass
    assert status(api, session) == "running"
    assert api.post(f"/sessions/{session}/turns/end", json={}).status_code == 200
    assert status(api, session) == "waiting_input"


def test_a_session_driven_over_rpc_is_stopped_when_its_client_is_killed(
    mulligan_home: Path, project: Path
) -> None:
    with mulligan.open(project) as workspace:
        # Made by a process that lives on: the one that drives it is what counts.
        session = workspace.sessions.create(agent="another").id
        rpc = [sys.executable, "-m", "mulligan", "rpc", "--session", session]
        between = (
            "import subprocess, sys\n"
            "rpc = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
            """rpc.stdin.write(b'{"id": "1", "type": "begin_turn", "message": "Do it"}\\n')\n"""
            "rpc.stdin.flush()\n"
            "rpc.stdout.readline()\n"
            "print('done', flush=True)\n"
            "sys.stdin.read()\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", between, *rpc],
            cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"done\n"
            assert workspace.sessions.get(session).status == "running"
            process.kill()
        wait_for(lambda: workspace.sessions.get(session).status == "stopped")


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_UNIX])
def test_the_process_at_the_other_end_is_found(
    family: socket.AddressFamily, tmp_path: Path
) -> None:
    here: Any = {socket.AF_INET: ("127.0.0.1", 0), socket.AF_INET6: ("::1", 0)}
    with socket.socket(family) as listener, socket.socket(family) as caller:
        try:
            listener.bind(here.get(family, str(tmp_path / "s")))
        except OSError:
            pytest.skip("there is no IPv6 here")
        listener.listen()
        caller.connect(listener.getsockname())
        accepted, _ = listener.accept()
        with accepted:
            connection: Any = type("Request", (), {"scope": {"state": {"socket": accepted}}})()
            assert peer.client_process(connection) == f"{identity()} client"
