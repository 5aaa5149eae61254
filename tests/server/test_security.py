"""Who may ask, what leaves the project, and what much or slow or broken input does."""

from __future__ import annotations

import os
import random
import re
import resource
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from faces import TOKEN, Socket, serving_here, socket_to
from serving import V1, Api, Server, following
from websockets.exceptions import InvalidStatus

from mulligan.server.http import access, errors_json, limits
from mulligan.workspace.workspace import open_workspace

ROUNDS = int(os.environ.get("MULLIGAN_KILLS", "10"))
HEALTH = f"{V1}/health"
NOBODY = 65534


@pytest.fixture
def stranger(server: Server) -> Iterator[httpx2.Client]:
    """A client without a token."""
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        yield client


def raw(server: Server, text: bytes) -> bytes:
    """What the server answers to some bytes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(text)
        found = b""
        while b"\r\n\r\n" not in found:
            piece = connection.recv(65536)
            if not piece:
                break
            found += piece
        return found


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/index.html", "/api/docs", "/api/v1/openapi.json", HEALTH, f"{V1}/projects"),
        *(f"{V1}/events", "/api/nothing", "/nothing", f"{V1}/projects/x/file?path=a"),
    ],
)
def test_nothing_is_told_without_the_token(stranger: httpx2.Client, path: str) -> None:
    response = stranger.get(path)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.headers["content-security-policy"].startswith("default-src 'self'")
    looked_at = stranger.get(path, headers={"accept": "text/html,*/*"})
    assert looked_at.status_code == 401
    assert "mulligan up" in looked_at.text


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer"},
        {"authorization": "Basic TOKEN"},
        {"authorization": "TOKEN"},
        {"authorization": "Bearer \xff\xfe".encode("latin-1")},
        {"cookie": "mulligan_PORT=wrong"},
        {"cookie": "mulligan_PORT=ffffffffff.00.00"},
        {"cookie": "mulligan_PORT=TOKEN"},
        {"cookie": "mulligan_token=TOKEN"},
        {"cookie": 'mulligan_PORT="; ;;;=\x01"'.encode("latin-1")},
        {"x-token": "TOKEN"},
    ],
)
def test_a_wrong_token_opens_nothing(server: Server, headers: dict[str, Any]) -> None:
    known = {"TOKEN": server.token, "PORT": str(server.port)}
    given = {
        name: re.sub("TOKEN|PORT", lambda found: known[found[0]], value)
        if isinstance(value, str)
        else value.replace(b"PORT", str(server.port).encode())
        for name, value in headers.items()
    }
    # By hand, for a client that minds its manners would not send all of these.
    lines = [f"GET {HEALTH} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", "Connection: close"]
    text = "\r\n".join(lines).encode()
    for name, value in given.items():
        sent = value if isinstance(value, bytes) else value.encode()
        text += b"\r\n" + name.encode() + b": " + sent
    answer = raw(server, text + b"\r\n\r\n")
    assert answer.split()[1] in (b"400", b"401")


def test_a_token_in_the_address_is_only_taken_where_it_must_be(
    server: Server, stranger: httpx2.Client
) -> None:
    assert stranger.get(HEALTH, params={"token": server.token}).status_code == 401
    with following(stranger, token=server.token):
        pass
    assert stranger.get("/", params={"token": server.token}).status_code == 401


def entered(server: Server, browser: httpx2.Client, project: str | None = None) -> httpx2.Response:
    """What a browser gets that opens a new address of the page."""
    return browser.get("/", params=server.page(project).params)


def cookie_of(answer: httpx2.Response) -> str:
    """A cookie as a browser sends it back."""
    return str(answer.headers["set-cookie"]).partition(";")[0]


def test_a_code_gets_a_cookie_that_scripts_cannot_read_and_only_its_host_gets_back(
    server: Server,
) -> None:
    with server.browser() as browser:
        first = entered(server, browser)
        assert first.status_code == 200 and 'content="0;url=/"' in first.text
        name, _, rest = first.headers["set-cookie"].partition("=")
        assert name == f"mulligan_{server.port}"
        flags = {part.strip().lower() for part in rest.split(";")[1:]}
        assert flags == {"httponly", "samesite=strict", "path=/"}
        browser.headers["cookie"] = cookie_of(first)
        assert browser.get("/").status_code == 200
        assert browser.get(HEALTH).status_code == 200


def test_a_code_works_once(server: Server) -> None:
    with server.browser() as browser:
        page = server.page()
        first = browser.get("/", params=page.params)
        assert first.status_code == 200
        browser.cookies.clear()
        again = browser.get("/", params=page.params, headers={"accept": "text/html"})
        assert again.status_code == 401
        assert "mulligan up" in again.text and "set-cookie" not in again.headers
        # Who is in already, and opens it again, is led to the page.
        inside = browser.get("/", params=page.params, headers={"cookie": cookie_of(first)})
        assert inside.status_code == 200 and "set-cookie" not in inside.headers


@pytest.mark.parametrize("code", ["wrong", "", "\udcff", "x" * 5000])
def test_a_wrong_code_opens_nothing(server: Server, code: str) -> None:
    with server.browser() as browser:
        asked = f"/?code={quote(code, errors='surrogateescape')}"
        assert browser.get(asked).status_code == 401


def test_a_prefetch_does_not_use_a_code_up(server: Server) -> None:
    with server.browser() as browser:
        page = server.page()
        for ahead in ({"sec-purpose": "prefetch;prerender"}, {"purpose": "prefetch"}):
            answer = browser.get("/", params=page.params, headers=ahead)
            assert answer.status_code == 503 and "set-cookie" not in answer.headers
        assert browser.head("/", params=page.params).status_code == 401
        assert browser.get("/", params=page.params).status_code == 200


def test_a_cookie_is_worth_nothing_to_another_server_that_gets_it(server: Server) -> None:
    """A browser sends cookies to every port of a name; the page's name is known to no other."""
    with server.browser() as browser:
        given = cookie_of(entered(server, browser))
        value = given.partition("=")[2]
        assert browser.get(HEALTH, headers={"cookie": given}).status_code == 200
    for name in ("127.0.0.1", "localhost"):
        with server.browser(name) as thief:
            assert thief.get(HEALTH, headers={"cookie": given}).status_code == 401
            bearer = {"authorization": f"Bearer {value}"}
            assert thief.get(HEALTH, headers=bearer).status_code == 401
            events = thief.get(f"{V1}/events", params={"token": value})
            assert events.status_code == 401


def test_a_cookie_does_not_make_another(server: Server) -> None:
    with server.browser() as browser:
        browser.headers["cookie"] = cookie_of(entered(server, browser))
        assert browser.post(f"{V1}/page-address", json={}).status_code == 401
        assert browser.get(HEALTH).status_code == 200


def test_the_name_of_the_page_is_its_own(server: Server) -> None:
    page = server.page()
    assert page.host.endswith(".localhost") and page.port == server.port
    assert server.token not in str(page)
    with server.browser("0" * 24 + ".localhost") as other:
        answer = other.get(HEALTH, headers={"authorization": f"Bearer {server.token}"})
        assert answer.status_code == 403


@pytest.mark.parametrize(
    ("project", "leads_to"),
    [
        ("0123456789abcdef", "/p/0123456789abcdef/home"),
        ("/evil.example", "/"),
        ("..", "/"),
        ('"><script>', "/"),
    ],
)
def test_a_code_leads_to_a_project_and_nowhere_else(
    server: Server, project: str, leads_to: str
) -> None:
    with server.browser() as browser:
        asked = {"project": project, "code": server.page().params["code"]}
        assert f'content="0;url={leads_to}"' in browser.get("/", params=asked).text


def test_right_requests_do_not_wait_for_wrong_ones(
    mulligan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "FIRST_DELAY_SECONDS", 3600.0)
    monkeypatch.setattr(access, "MAX_DELAY_SECONDS", 3600.0)
    with serving_here(mulligan_home) as port, ExitStack() as stack:
        request = (
            f"GET {HEALTH} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer %s\r\n\r\n"
        )
        for _ in range(access.MAX_WAITING):
            waiting = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            waiting.sendall((request % "wrong").encode())
        url = f"http://127.0.0.1:{port}{HEALTH}"
        right = {"authorization": f"Bearer {TOKEN}"}
        assert httpx2.get(url, headers=right, timeout=60).status_code == 200
        # As many as may wait do: further ones are answered at once.
        assert httpx2.get(url, headers={"authorization": "Bearer x"}, timeout=60).status_code == 401
        assert httpx2.get(url, headers=right, timeout=60).status_code == 200


@pytest.mark.parametrize(
    ("host", "welcome"),
    [
        ("127.0.0.1:PORT", True),
        ("localhost:PORT", True),
        ("LOCALHOST:PORT", True),
        ("[::1]:PORT", True),
        ("127.0.0.2:PORT", True),
        ("x.localhost:PORT", False),
        ("127.0.0.1", False),
        ("127.0.0.1:1", False),
        ("evil.example:PORT", False),
        ("localhost.evil.example:PORT", False),
        ("10.0.0.1:PORT", False),
        ("0.0.0.0:PORT", False),
        ("127.0.0.1.nip.io:PORT", False),
        ("user@127.0.0.1:PORT", False),
        ("127.0.0.1:PORT/", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_only_its_own_names_are_answered_to(server: Server, host: str, welcome: bool) -> None:
    name = host.replace("PORT", str(server.port))
    answer = raw(
        server,
        f"GET {HEALTH} HTTP/1.1\r\nHost: {name}\r\nAuthorization: Bearer {server.token}\r\n"
        "Connection: close\r\n\r\n".encode(),
    )
    status = int(answer.split()[1])
    assert (status == 200) is welcome
    assert welcome or status in (400, 403)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://localhost:1", "https://127.0.0.1:PORT", "file://", ""],
)
def test_other_pages_are_turned_away_even_with_the_token(
    server: Server, client: httpx2.Client, method: str, origin: str
) -> None:
    headers = {"origin": origin.replace("PORT", str(server.port))}
    response = client.request(method, f"{V1}/projects", headers=headers)
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


def test_what_a_browser_says_of_another_port_is_believed(
    server: Server, client: httpx2.Client
) -> None:
    for site in ("cross-site", "same-site"):
        assert client.get(HEALTH, headers={"sec-fetch-site": site}).status_code == 403
    own = {"origin": server.url, "sec-fetch-site": "same-origin"}
    assert client.get(HEALTH, headers=own).status_code == 200


def test_every_answer_has_the_strict_headers(client: httpx2.Client) -> None:
    for path in ("/", HEALTH, "/api/docs", "/nothing.js", f"{V1}/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


PATHS = [
    "../secret", "sub/../../secret", "/etc/passwd", "sub/../../../../../../etc/passwd",
    "%2e%2e/secret", "..%2fsecret", "a.txt%00.png", "%00", "", ".", "..", "/", "link", "away/x",
    ".git/config", "sub/.git/config", "%ff%fe", "a.txt/", "a.txt/b", "sub", "fifo", "~/x",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("where", ["/file", "/checkpoints/@/file"])
def test_no_path_leaves_the_project(opened: Api, project: Path, path: str, where: str) -> None:
    (project.parent / "secret").write_text("secret")
    (project / "link").symlink_to("../secret")
    (project / "away").symlink_to("/etc")
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("secret")
    os.mkfifo(project / "fifo")
    opened.post("/checkpoints", {}, 201)
    response = opened.client.get(f"{opened.base}{where}?path={path}")
    if path == "link" and where != "/file":
        assert response.content == b"../secret"  # The link itself, which is the project's own.
        return
    if path == "a.txt/":
        assert response.status_code in (200, 404)
        return
    assert response.status_code in (400, 404), response.content
    assert b"root:" not in response.content and response.content != b"secret"


@pytest.mark.parametrize(
    "id",
    [
        "..", "%2e%2e", "..%2f..", "%2fetc", "a%00b", "%00", "@99999999999999999999", "%ff", "*",
        "' OR 1=1 --", "x" * 5000, "%", "_", "\u2603",
    ],
)  # fmt: skip
def test_ids_are_only_ever_looked_up(api: Api, opened: Api, id: str) -> None:
    session = opened.post("/sessions", {}, 201)["session"]
    for path in (
        f"{V1}/projects/{id}", f"{V1}/projects/{id}/sessions", f"{opened.base}/sessions/{id}",
        f"{opened.base}/checkpoints/{id}", f"{V1}/jobs/{id}", f"/{id}", f"/assets/{id}",
        f"{opened.base}/sessions/{session}/tree/{id}", f"{opened.base}/checkpoints/{id}/files",
    ):  # fmt: skip
        response = api.client.get(path)
        assert response.status_code in (200, 400, 404), path
        assert b"root:" not in response.content
        if response.status_code == 200:
            # The page's own address, or one that a client has shortened to another.
            assert path.startswith("/") and not response.content.startswith(b"secret")


def test_a_body_that_is_too_large_is_not_read(server: Server, client: httpx2.Client) -> None:
    told = client.post(f"{V1}/projects", content=b"x" * ((32 << 20) + 1))
    assert (told.status_code, told.json()["error"]["code"]) == (413, "too_large")

    def pieces() -> Iterator[bytes]:
        for _ in range(40):
            yield b"x" * (1 << 20)

    try:
        untold = client.post(f"{V1}/projects", content=pieces())
    except httpx2.TransportError:
        pass  # It was cut off while it was still sending.
    else:
        assert untold.status_code == 413
    assert client.get(HEALTH).status_code == 200


def test_a_head_that_is_too_large_is_refused(server: Server) -> None:
    answer = raw(server, b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"x" * (1 << 20) + b"\r\n")
    assert answer == b"" or b" 400 " in answer.split(b"\r\n")[0]


def test_a_slow_client_is_cut_off_and_nobody_else_notices(
    server: Server, client: httpx2.Client
) -> None:
    """Three kinds of slow: a head that never ends, no head at all, a body that never comes."""
    head = f"POST {V1}/projects HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    token = f"Authorization: Bearer {server.token}\r\n"
    beginnings = [
        head.encode(),
        b"",
        f"{head}{token}Content-Length: 100\r\n\r\n{{".encode(),
        f"{head}Content-Length: 100\r\n\r\n".encode(),  # Without a token it is answered at once.
    ]
    slow = []
    for beginning in beginnings * 25:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        connection.sendall(beginning)
        slow.append(connection)
    begun = time.monotonic()
    left = list(slow)
    while left and time.monotonic() - begun < 120:
        for connection in list(left):
            try:
                connection.sendall(b"X")
                connection.setblocking(False)
                while connection.recv(65536):
                    pass
                left.remove(connection)
            except BlockingIOError:
                connection.settimeout(60)
            except OSError:
                left.remove(connection)
        assert client.get(HEALTH).status_code == 200
        time.sleep(1)
    assert not left
    for connection in slow:
        connection.close()


def test_more_requests_at_once_than_it_takes_are_told_to_come_again(
    mulligan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as it takes, each with a body that is still to come; then one more."""
    monkeypatch.setattr(limits, "MAX_REQUESTS", 3)
    # However long it takes until all are there, none of them is cut off.
    monkeypatch.setattr(errors_json, "BODY_SECONDS", 600.0)
    monkeypatch.setattr(errors_json, "PIECE_SECONDS", 600.0)
    headers = {"authorization": f"Bearer {TOKEN}"}
    with serving_here(mulligan_home) as port, ExitStack() as stack:
        url = f"http://127.0.0.1:{port}"
        client = stack.enter_context(httpx2.Client(base_url=url, headers=headers, timeout=60))
        head = (
            f"POST {V1}/projects HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n\r\n"
        ).encode()
        with ExitStack() as held:
            for _ in range(limits.MAX_REQUESTS):
                connection = socket.create_connection(("127.0.0.1", port))
                held.enter_context(connection)
                connection.sendall(head)
            refused = _until(client, 429)
            assert refused.json()["error"]["code"] == "too_many"
            assert refused.headers["retry-after"] == "1"
            # Streams are counted apart: who follows is not in the way of who asks.
            with following(client):
                pass
        _until(client, 200)


def test_more_streams_at_once_than_it_takes_are_told_to_come_again(
    mulligan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_STREAMS", 2)
    headers = {"authorization": f"Bearer {TOKEN}"}
    with serving_here(mulligan_home) as port:
        url = f"http://127.0.0.1:{port}"
        with httpx2.Client(base_url=url, headers=headers, timeout=60) as client:
            with following(client), following(client):
                assert client.get(f"{V1}/events").json()["error"]["code"] == "too_many"
                chat = client.post("/api/dialogs/any/chat", json={"message": "x"})
                assert chat.status_code == 429
                with pytest.raises(InvalidStatus), socket_to(port, TOKEN):
                    pass
                assert client.get(HEALTH).status_code == 200
            with _once_there_is_room(port) as ws:
                assert ws.ask("code:get-session", id="x") is None


@contextmanager
def _once_there_is_room(port: int) -> Iterator[Socket]:
    """A connection, once the server has noticed that others have gone."""
    with ExitStack() as stack:
        while True:
            try:
                connection = stack.enter_context(socket_to(port, TOKEN))
                break
            except InvalidStatus:
                continue
        yield connection


def _until(client: httpx2.Client, status: int) -> httpx2.Response:
    """What is answered once the server has noticed what came, or went, before."""
    while (found := client.get(HEALTH)).status_code != status:
        pass
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_is_refused_at_the_socket_even_where_the_file_lets_him(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = tmp_path_factory.mktemp("guarded") / "home"
    with (
        tempfile.TemporaryDirectory(prefix="mulligan-", dir="/tmp") as folder,
        Server(home, "--socket", f"{folder}/own.sock"),
    ):
        path = Path(folder, "own.sock")
        path.parent.chmod(0o755)
        assert _asked_as(os.getuid(), path).startswith(b"HTTP/1.1 200")
        assert _asked_as(NOBODY, path) == b"PermissionError"
        path.chmod(0o666)
        assert _asked_as(NOBODY, path) in (b"", b"ConnectionResetError", b"BrokenPipeError")
        assert _asked_as(os.getuid(), path).startswith(b"HTTP/1.1 200")


def _asked_as(user: int, path: Path) -> bytes:
    """What a process of a user gets at a socket: an answer, or the name of a problem."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(30)
                line.connect(str(path))
                line.sendall(f"GET {HEALTH} HTTP/1.1\r\nHost: local\r\n\r\n".encode())
                os.write(writing, line.recv(1000))
        except OSError as problem:
            os.write(writing, type(problem).__name__.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        found = file.read()
    os.waitpid(child, 0)
    return found


@pytest.mark.parametrize(
    "text",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: odd\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n",
    ],
)
def test_what_is_no_request_gets_an_error_and_not_an_answer(server: Server, text: bytes) -> None:
    answer = raw(server, text)
    assert answer == b"" or answer.split()[1] in (b"400", b"401", b"403", b"501"), answer


def test_a_thousand_idle_streams_cost_next_to_nothing(server: Server, opened: Api) -> None:
    count = 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        count = min(count, hard - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 500), hard))
    project = opened.base.rpartition("/")[2]
    request = (
        f"GET {V1}/events?project={project} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n"
    ).encode()
    fds = Path(f"/proc/{server.process.pid}/fd")
    opened.get("/status")
    usual = len(list(fds.iterdir()))
    streams = []
    try:
        for _ in range(count):
            stream = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            stream.sendall(request)
            streams.append(stream)
        for stream in streams:
            assert stream.recv(65536).startswith(b"HTTP/1.1 200")
        # Work, not seconds: how much the server computed while nothing happened.
        before = _cpu(server)
        time.sleep(3)
        idle = _cpu(server) - before
        assert idle < 1.5, f"{idle} s of computing in 3 s in which nothing happened"
        session = opened.post("/sessions", {}, 201)["session"]
        for stream in streams:
            told = b""
            while session.encode() not in told:
                piece = stream.recv(65536)
                assert piece, "the stream ended"
                told += piece
    finally:
        for stream in streams:
            stream.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    # Those that went away are noticed: their descriptors come back.
    end = time.monotonic() + 60
    while len(list(fds.iterdir())) > usual + 50 and time.monotonic() < end:
        time.sleep(0.1)
    assert len(list(fds.iterdir())) <= usual + 50


def _cpu(server: Server) -> float:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.timeout(900)
def test_what_was_acknowledged_is_there_after_a_kill(
    tmp_path_factory: pytest.TempPathFactory, project: Path
) -> None:
    """Entries, turns, decisions, checkpoints and restores; killed in the middle of it, often."""
    home = tmp_path_factory.mktemp("killed") / "home"
    chance = random.Random(1)
    entries: dict[str, str] = {}
    checkpoints: set[str] = set()
    (project / "a.txt").write_text("begin\n")
    session = ""
    for round_number in range(ROUNDS):
        server = Server(home)
        with server.client() as client:
            api = Api(client)
            base = f"/projects/{api.post('/projects', {'path': str(project)})['project']}"
            if not session:
                session = api.post(f"{base}/sessions", {}, 201)["session"]
        workers = [
            threading.Thread(target=_append, args=(server, base, session, entries, n))
            for n in range(2)
        ]
        workers += [
            threading.Thread(target=work, args=(server, base, told, project, round_number))
            for work, told in ((_checkpoint, checkpoints), (_decide, entries))
        ]
        for worker in workers:
            worker.start()
        known = len(checkpoints)
        limit = time.monotonic() + 20
        # Early in one round; in the next after something was acknowledged, however slow it is.
        while round_number % 2 and len(checkpoints) == known and time.monotonic() < limit:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.05, 0.6))
        server.kill()
        for worker in workers:
            worker.join(60)
            assert not worker.is_alive()
    with open_workspace(project, home=str(home)) as workspace:
        found = {
            each.id: each.content
            for one in workspace.sessions.list(limit=1_000).sessions
            for each in workspace.sessions.transcript(one.id, limit=1_000_000).entries
        }
        assert entries.items() <= found.items()
        assert checkpoints <= {each.id for each in workspace.log()}
        assert workspace.maintenance.verify().clean
    assert entries, "nothing was acknowledged at all"
    assert checkpoints


def _append(server: Server, base: str, session: str, told: dict[str, str], n: int) -> None:
    with server.client() as client:
        for word in range(100_000):
            new = {"entries": [{"type": "user_input", "content": f"{n} {word}"}]}
            try:
                response = client.post(f"{V1}{base}/sessions/{session}/entries", json=new)
            except httpx2.TransportError:
                return
            if response.status_code == 201:
                for each in response.json()["entries"]:
                    told[each["entry"]] = each["content"]


def _checkpoint(
    server: Server, base: str, told: set[str], project: Path, round_number: int
) -> None:
    with server.client() as client:
        for n in range(100_000):
            (project / f"{n % 7}.txt").write_text(f"{round_number} {n}\n")
            try:
                response = client.post(f"{V1}{base}/checkpoints", json={"message": str(n)})
                if n % 3 == 2:
                    client.post(f"{V1}{base}/checkpoints/@1/restore", json={})
            except httpx2.TransportError:
                return
            if response.status_code == 201:
                told.add(response.json()["checkpoint"])


def _decide(
    server: Server, base: str, told: dict[str, str], project: Path, round_number: int
) -> None:
    """Turns, each of which writes a file, and half of which are discarded."""
    with server.client() as client:
        below = f"{V1}{base}"
        try:
            session = client.post(f"{below}/sessions", json={}).json()["session"]
            for n in range(100_000):
                begun = client.post(
                    f"{below}/sessions/{session}/turns", json={"message": f"{round_number} {n}"}
                )
                if begun.status_code < 300:
                    told[begun.json()["entry"]] = f"{round_number} {n}"
                (project / f"turn-{n % 5}.txt").write_text(f"{round_number} {n}\n")
                client.post(f"{below}/sessions/{session}/turns/end", json={})
                verb = "keep" if n % 2 else "discard"
                client.post(f"{below}/{verb}", json={"session": session})
        except httpx2.TransportError:
            return
