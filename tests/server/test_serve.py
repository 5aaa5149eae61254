"""`mulligan serve`: one a home, found through the home, ended in order, or by itself."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from serving import COMMAND, V1, Api, Server, following

from mulligan.server.lifecycle import server_file

DOCUMENT = Path(__file__).parents[2] / "docs" / "http.md"


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serve") / "home"


def over_socket(path: str, address: str) -> Any:
    with httpx2.Client(transport=httpx2.HTTPTransport(uds=path), base_url="http://local") as client:
        return client.get(address)


def test_it_is_found_through_the_home_while_it_runs(home: Path) -> None:
    assert server_file.running(str(home)) is None
    with Server(home) as server:
        found = server_file.running(str(home))
        assert found is not None
        assert (found.url, found.pid) == (server.url, server.process.pid)
        assert found.token == server.token
        assert json.loads((home / "server.json").read_text())["port"] == server.port
        for name in ("server.json", "server.token", "server.sock", "server.lock"):
            assert (home / name).stat().st_mode & 0o777 == 0o600, name
        answer = over_socket(found.socket, f"{V1}/health").json()
        assert answer["pid"] == server.process.pid
        assert answer["started_at"] == found.started_at
    assert server_file.running(str(home)) is None
    assert not (home / "server.json").exists()
    assert not (home / "server.sock").exists()
    assert not (home / "server.token").exists()


def test_a_second_one_says_where_the_first_is(home: Path) -> None:
    with Server(home) as server:
        second = subprocess.run(
            [*COMMAND, "serve", "--json"], env=server.env, capture_output=True, check=False,
            timeout=60,
        )  # fmt: skip
        assert second.returncode == 5
        assert json.loads(second.stdout)["error"]["code"] == "busy"
        assert server.url in second.stderr.decode()
        assert over_socket(str(home / "server.sock"), f"{V1}/health").status_code == 200


def test_what_a_killed_one_left_behind_is_replaced(home: Path) -> None:
    first = Server(home)
    first.kill()
    assert (home / "server.json").exists()
    assert server_file.running(str(home)) is None
    with Server(home) as second:
        assert second.token != first.token
        assert server_file.running(str(home)) is not None
        assert over_socket(str(home / "server.sock"), f"{V1}/health").status_code == 200


def test_each_start_has_a_new_token_unless_it_is_told_to_keep_one(
    home: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "token"
    seen = []
    for arguments in ((), (), ("--token-file", str(kept)), ("--token-file", str(kept))):
        with Server(home, *arguments) as server:
            seen.append((server.token, server.page().host))
            with server.client() as client:
                assert client.get(f"{V1}/health").status_code == 200
    (first, second, third, fourth) = seen
    assert len({first[0], second[0], third[0]}) == len({first[1], second[1], third[1]}) == 3
    assert third == fourth
    assert kept.read_text() == third[0]
    assert kept.stat().st_mode & 0o777 == 0o600


def test_with_a_kept_token_a_cookie_outlives_the_server(home: Path, tmp_path: Path) -> None:
    def started(*more: str) -> Server:
        return Server(home, "--port", str(port), *more)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    keeping = ("--token-file", str(tmp_path / "token"))
    with started(*keeping) as server, server.browser() as browser:
        answer = browser.get("/", params=server.page().params)
        cookie = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
    with started(*keeping) as server, server.browser() as browser:
        assert browser.get(f"{V1}/health", headers=cookie).status_code == 200
    with started() as server, server.browser() as browser:
        assert browser.get(f"{V1}/health", headers=cookie).status_code == 401


@pytest.mark.parametrize(
    ("content", "mode"), [("", 0o600), ("short", 0o600), ("a" * 43, 0o644), ("a b" * 20, 0o600)]
)
def test_a_token_file_that_others_could_know_is_refused_and_left_alone(
    home: Path, tmp_path: Path, content: str, mode: int
) -> None:
    kept = tmp_path / "token"
    kept.write_text(content)
    kept.chmod(mode)
    refused = subprocess.run(
        [*COMMAND, "serve", "--token-file", str(kept)],
        env=os.environ | {"MULLIGAN_HOME": str(home)}, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert refused.returncode == 2 and str(kept) in refused.stderr.decode()
    assert kept.read_text() == content and server_file.running(str(home)) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_order_with_clients_still_there(
    home: Path, project: Path, number: signal.Signals
) -> None:
    (project / "a").write_text("a")
    server = Server(home)
    with server.client() as client:
        api = Api(client)
        id = api.post("/projects", {"path": str(project)})["project"]
        with server.client() as other, following(other, project=id) as events:
            server.process.send_signal(number)
            assert list(events) is not None  # The stream ends, rather than breaks.
    assert server.stop() == 0
    assert "everything is in order" in server.errors.read_text()
    assert not (home / "projects" / id / "watch.sock").exists()


def test_it_listens_on_loopback_alone(home: Path) -> None:
    with Server(home) as server:
        lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
        bound = [line.split()[1] for line in lines if line.split()[3] == "0A"]
        mine = [each for each in bound if int(each.partition(":")[2], 16) == server.port]
        assert mine == [f"0100007F:{server.port:04X}"]
        lines = Path("/proc/net/tcp6").read_text().splitlines()[1:]
        bound = [line.split()[1] for line in lines if line.split()[3] == "0A"]
        mine = [each for each in bound if int(each.partition(":")[2], 16) == server.port]
        assert mine in ([], [f"{'0' * 24}01000000:{server.port:04X}"])


def test_no_other_program_listens_where_a_browser_looks_for_the_page(home: Path) -> None:
    """A browser tries ::1 and 127.0.0.1 for names below localhost."""
    with socket.socket(socket.AF_INET6) as taken:
        try:
            taken.bind(("::1", 0))
        except OSError:
            pytest.skip("there is no IPv6 here")
        taken.listen()
        port = taken.getsockname()[1]
        refused = subprocess.run(
            [*COMMAND, "serve", "--port", str(port)],
            env=os.environ | {"MULLIGAN_HOME": str(home)}, capture_output=True, check=False,
            timeout=60,
        )  # fmt: skip
        assert refused.returncode == 1 and "::1" in refused.stderr.decode()
    with Server(home) as server:
        health = f"http://[::1]:{server.port}{V1}/health"
        answer = httpx2.get(health, headers={"authorization": f"Bearer {server.token}"})
        assert answer.json()["pid"] == server.process.pid


def test_another_address_is_warned_of_and_checks_names_still(home: Path) -> None:
    with Server(home, "--host", "0.0.0.0") as server:
        assert "Warning" in server.errors.read_text()
        at = f"http://127.0.0.1:{server.port}{V1}/health"
        token = {"authorization": f"Bearer {server.token}"}
        assert httpx2.get(at, headers=token).status_code == 200
        named = {"host": f"evil.example:{server.port}"}
        assert httpx2.get(at, headers=token | named).status_code == 403
        addressed = {"host": f"192.0.2.7:{server.port}"}
        assert httpx2.get(at, headers=token | addressed).status_code == 200


def test_it_takes_the_port_and_the_socket_that_it_is_given(home: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = tmp_path / "own.sock"
    with Server(home, "--port", str(port), "--socket", str(path)) as server:
        assert server.port == port
        assert over_socket(str(path), f"{V1}/health").status_code == 200
        assert over_socket(str(home / "server.sock"), f"{V1}/health").status_code == 200
    assert not path.exists()
    path.write_text("somebody's")
    refused = subprocess.run(
        [*COMMAND, "serve", "--socket", str(path)], env=server.env, capture_output=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert refused.returncode == 2
    assert path.read_text() == "somebody's"


def test_a_home_with_a_long_name_has_a_socket_too(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 25) / ("name" * 25)
    home.parent.mkdir()
    with Server(home) as server:
        found = server_file.running(str(home))
        assert found is not None
        with server_file.connect(found) as connection:
            connection.sendall(f"GET {V1}/health HTTP/1.1\r\nHost: local\r\n\r\n".encode())
            assert b" 200 " in connection.recv(65536)
        assert server.process.poll() is None


def test_many_who_want_one_at_once_get_the_same(home: Path) -> None:
    found: list[server_file.Address] = []

    def want() -> None:
        found.append(server_file.ensure(str(home), idle=60))

    threads = [threading.Thread(target=want) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert len(found) == 5
        assert len({each.pid for each in found}) == 1
        assert server_file.ensure(str(home)).pid == found[0].pid
    finally:
        os.kill(found[0].pid, signal.SIGTERM)
        _wait(lambda: server_file.running(str(home)) is None)


def test_a_starter_that_finds_a_server_ends_its_own_child(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child is so slow that it would come up after the server that was found has ended."""
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(20)\n")
    with Server(home) as server:
        real = server_file.running(str(home))
        answers = iter([None, None])
        monkeypatch.setattr(server_file, "running", lambda home: next(answers, real))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        children = []
        popen = subprocess.Popen

        def start(*arguments: Any, **more: Any) -> Any:
            children.append(popen(*arguments, **more))
            return children[-1]

        monkeypatch.setattr(server_file.subprocess, "Popen", start)
        found = server_file.ensure(str(home), idle=60)
        monkeypatch.undo()
        assert found.pid == server.process.pid
        (child,) = children
        assert child.returncode is not None
    assert server_file.running(str(home)) is None


def test_one_that_was_started_by_itself_stops_by_itself(home: Path) -> None:
    with Server(home, "--idle", "5") as server:
        with server.client() as client, following(client):
            # Somebody listens, if only for a while: it is not idle.
            time.sleep(7)
            assert server.process.poll() is None
        server.process.wait(60)
        assert server.process.returncode == 0


def test_finding_one_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; from mulligan.server.lifecycle import server_file; "
        "server_file.running('/nowhere'); "
        "print([each for each in ('starlette', 'uvicorn', 'anyio', 'apsw', 'click') "
        "if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


def _wait(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_examples_in_the_document_are_true(home: Path, project: Path) -> None:
    """Each `curl` is asked for real; where an answer follows it, its fields are there."""
    (project / "a.txt").write_text("one\ntwo\n")
    blocks = re.findall(r"```(\w+)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    known = {"PROJECT_PATH": str(project)}
    asked = 0
    with Server(home) as server, server.client() as client:
        answer: Any = None
        for kind, text in blocks:
            if kind == "sh" and text.startswith("curl"):
                answer = _ask(client, _filled(text, known))
                asked += 1
            elif kind == "json" and answer is not None:
                _compare(json.loads(_filled(text, known)), answer.json(), known)
                answer = None
            elif kind == "text" and answer is not None:
                assert text.strip() in answer.text
    assert asked >= 12


def _ask(client: httpx2.Client, text: str) -> httpx2.Response:
    """Understands as much of curl as the document uses."""
    words = shlex.split(text.replace("\\\n", " "))[1:]
    method, body, headers, address = None, None, {}, ""
    while words:
        word = words.pop(0)
        if word == "-X":
            method = words.pop(0)
        elif word == "-d":
            body = words.pop(0)
        elif word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name] = value
        elif not word.startswith("-"):
            address = word
    address = address.removeprefix("$URL")
    headers.pop("Authorization", None)
    method = method or ("POST" if body is not None else "GET")
    response = client.request(method, address, content=body, headers=headers)
    assert response.status_code < 400, (text, response.text)
    return response


def _filled(text: str, known: dict[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(f"${name}", value)
    return text


def _compare(shown: Any, real: Any, known: dict[str, str]) -> None:
    """What is shown is there; `…` stands for anything, `$NAME` is remembered."""
    if isinstance(shown, dict):
        for name, value in shown.items():
            assert name in real, (name, real)
            _compare(value, real[name], known)
    elif isinstance(shown, list):
        assert len(real) >= len(shown)
        for one, other in zip(shown, real, strict=False):
            _compare(one, other, known)
    elif isinstance(shown, str) and shown.startswith("$"):
        known[shown[1:]] = real
    elif shown != "…":
        assert shown == real
