"""Agents' hooks beside a server: told there while there is one, recorded all the same without."""

from __future__ import annotations

import io
import json
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import COMMAND, Api, Server

import mulligan
from mulligan.protocols.hooks import run
from mulligan.workspace import hooks

SESSION = "5b3f1d0a-0000-4000-8000-000000000001"


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hooks") / "home"


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    with Server(home) as server:
        yield server


def hook(home: Path, project: Path, event: str, **more: Any) -> str:
    """What the hook says to the agent."""
    given = {"hook_event_name": event, "session_id": SESSION, "cwd": str(project)} | more
    done = subprocess.run(
        [*COMMAND, "hook", "claude-code"], input=json.dumps(given).encode(), cwd=project,
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == b"" and not (home / "hooks.log").exists()
    return done.stdout.decode()


def a_turn(home: Path, project: Path, message: str, name: str) -> str:
    """An agent's turn that writes one file; gives what it was told at the end."""
    hook(home, project, "UserPromptSubmit", prompt=message)
    (project / name).write_text(f"{message}\n")
    return hook(home, project, "Stop")


def recorded(home: Path, project: Path) -> tuple[list[str], list[str]]:
    """What was said, and the files that wait for a decision; nothing is broken."""
    with mulligan.open(project, home=str(home)) as workspace:
        said = workspace.sessions.transcript(SESSION, types=["user_input"]).entries
        files = workspace.review.pending(session=SESSION).files
        assert workspace.maintenance.verify().clean
        return [entry.content for entry in said], [file.path for file in files]


def is_open(server: Server, project: Path) -> bool:
    """Whether the server has the project open, which nobody but the hook can have asked for."""
    with server.client() as client:
        rows = {row["root"]: row for row in Api(client).get("/projects")["projects"]}
    return "pending" in rows.get(str(project), {})


@pytest.fixture(autouse=True)
def _in_this_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(home))


def test_with_a_server_the_hook_tells_it(server: Server, home: Path, project: Path) -> None:
    assert not is_open(server, project)
    told = a_turn(home, project, "Do it", "made.py")
    assert is_open(server, project)
    assert "1 added" in told
    assert recorded(home, project) == (["Do it"], ["made.py"])


def test_without_a_server_it_is_recorded_all_the_same(home: Path, project: Path) -> None:
    assert "1 added" in a_turn(home, project, "Do it", "made.py")
    assert recorded(home, project) == (["Do it"], ["made.py"])


def test_what_a_killed_server_left_behind_is_passed_by(
    server: Server, home: Path, project: Path
) -> None:
    a_turn(home, project, "One", "one.py")
    server.kill()
    assert (home / "server.sock").exists()
    a_turn(home, project, "Two", "two.py")
    assert recorded(home, project) == (["One", "Two"], ["one.py", "two.py"])


def test_a_turn_that_one_way_began_another_ends(server: Server, home: Path, project: Path) -> None:
    hook(home, project, "UserPromptSubmit", prompt="Begun at the server")
    (project / "made.py").write_text("made\n")
    server.stop()
    assert "1 added" in hook(home, project, "Stop")
    hook(home, project, "UserPromptSubmit", prompt="Begun without")
    (project / "more.py").write_text("more\n")
    with Server(home):
        assert "1 added" in hook(home, project, "Stop")
    said = ["Begun at the server", "Begun without"]
    assert recorded(home, project) == (said, ["made.py", "more.py"])


def test_what_the_server_refuses_is_recorded_here(
    server: Server, home: Path, project: Path
) -> None:
    """More than a request may hold: the server says no, and the hook does it itself."""
    long = "x" * (33 << 20)
    hook(home, project, "UserPromptSubmit", prompt=long)
    assert not is_open(server, project)
    assert recorded(home, project) == ([long], [])


class Slow:
    """A server between the hook and the real one that never answers the hook."""

    def __init__(self, home: Path, *, at_once: bool) -> None:
        """`at_once` has the real server told before the hook gives up, else by `tell`."""
        self._real = home / "real.sock"
        (home / "server.sock").rename(self._real)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(home / "server.sock"))
        self._listener.listen()
        self._at_once = at_once
        self._requests: queue.Queue[bytes] = queue.Queue()
        self.answers: list[bytes] = []
        self._held: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            self._held.append(connection)
            request = b""
            while b"\r\n\r\n" not in request or len(request) < _length(request):
                request += connection.recv(1 << 16)
            self._requests.put(request)
            if self._at_once:
                self.tell()

    def tell(self) -> None:
        """Hands the real server the oldest event that it was not told yet."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(60)
            line.connect(str(self._real))
            line.sendall(self._requests.get(timeout=60))
            answer = b""
            while piece := line.recv(1 << 16):
                answer += piece
            self.answers.append(answer)


def _length(request: bytes) -> int:
    head, gap, _body = request.partition(b"\r\n\r\n")
    told = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    return len(head) + len(gap) + int(told.partition(b":")[2])


def impatient(monkeypatch: pytest.MonkeyPatch, project: Path, event: str, **more: Any) -> None:
    """A hook in this process that gives up on the server soon, and takes no prompt for another."""
    given = {"hook_event_name": event, "session_id": SESSION, "cwd": str(project)} | more
    with monkeypatch.context() as patched:
        patched.setattr(run, "SERVER_TIMEOUT_S", 1.0)
        patched.setattr(hooks, "REPEATED_PROMPT_SECONDS", 0)
        patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(given).encode())))
        assert run.main(["claude-code"]) == 0


def test_what_a_slow_server_has_recorded_is_not_recorded_again(
    server: Server, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(home, at_once=True)
    impatient(monkeypatch, project, "UserPromptSubmit", prompt="Do it")
    (project / "made.py").write_text("made\n")
    impatient(monkeypatch, project, "Stop")
    server.stop()
    assert all(b" 200 " in answer for answer in slow.answers)
    assert not (home / "hooks.log").exists()
    assert recorded(home, project) == (["Do it"], ["made.py"])


def test_what_a_slow_server_comes_to_late_is_not_recorded_again(
    server: Server, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(home, at_once=False)
    impatient(monkeypatch, project, "UserPromptSubmit", prompt="One")
    (project / "one.py").write_text("one\n")
    impatient(monkeypatch, project, "Stop")
    impatient(monkeypatch, project, "UserPromptSubmit", prompt="Two")
    for _ in range(3):
        slow.tell()
    assert [b" 200 " in answer for answer in slow.answers] == [True] * 3
    with mulligan.open(project, home=str(home)) as workspace:
        # The end of the first turn, which came to the server in the second, has not ended that.
        assert workspace.sessions.get(SESSION).status == "running"
    assert recorded(home, project) == (["One", "Two"], ["one.py"])
