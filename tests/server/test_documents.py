"""The documents of the wire formats are true: their examples are run, their tables complete."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
from faces import socket_to
from serving import Server

import mulligan
from mulligan.protocols.mcp.tools import TOOLS
from mulligan.protocols.rpc.commands import COMMANDS
from mulligan.protocols.rpc.lines import answer
from mulligan.protocols.rpc.rpc_session import RpcSession
from mulligan.server.dialogs.events import TYPES
from mulligan.server.dialogs.routes import section
from mulligan.server.websocket.requests import REQUESTS

DOCUMENTS = Path(__file__).parents[2] / "docs"
NAME = re.compile(r"[A-Z]+(_[A-Z]+)*$")


def blocks(document: str) -> Iterator[tuple[str, str]]:
    """The examples of a document: their language, and what they say."""
    yield from re.findall(r"```(\w+)\n(.*?)\n```", (DOCUMENTS / document).read_text(), re.DOTALL)


def compare(told: Any, found: Any, known: dict[str, str]) -> None:
    """What a document tells is what is found: `…` stands for anything, NAMES are learnt."""
    if told == "…":
        return
    if isinstance(told, str) and NAME.fullmatch(told):
        assert known.setdefault(told, found) == found
    elif isinstance(told, dict):
        assert isinstance(found, dict) and set(told) == set(found), (told, found)
        for name in told:
            compare(told[name], found[name], known)
    elif isinstance(told, list) and told:
        for one, other in zip(told, found, strict=True):
            compare(one, other, known)
    else:
        assert told == found


def test_the_requests_in_dialogs_md(server: Server, client: httpx2.Client, project: Path) -> None:
    known = {"PROJECT_PATH": str(project)}
    found: Any = None
    asked = 0
    for language, text in blocks("dialogs.md"):
        for name, value in known.items():
            text = text.replace(name, value)
        if language == "sh":
            words = shlex.split(text.replace('"$URL', f'"{server.url}'))
            body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
            address = next(word for word in words if word.startswith(server.url))
            response = client.request("POST" if body else "GET", address, json=body)
            assert response.status_code == 200, response.text
            found = response.json()
            asked += 1
        else:
            compare(json.loads(text), found, known)
    assert asked == 5


def test_the_tables_in_dialogs_md_are_complete() -> None:
    text = (DOCUMENTS / "dialogs.md").read_text()
    for endpoint in section.endpoints:
        assert f"`{endpoint.method} {endpoint.path.replace('{dialog}', 'ID')}" in text, (
            endpoint.path
        )
    for kind in TYPES:
        assert f"`{kind}`" in text


def test_the_messages_in_websocket_md(server: Server, project: Path) -> None:
    (project / "a.txt").write_text("a file\n\n")
    known: dict[str, str] = {"PROJECT_PATH": str(project)}
    request, response, session, point, event, error = [
        json.loads(text) for _, text in blocks("websocket.md")
    ]
    with socket_to(server.port, server.token) as ws:
        ws.send(request)
        found = ws.next()
        assert set(found) == set(response) and found["id"] == request["id"]
        made = ws.ask("code:create-session", projectPath=str(project))
        compare(session, made, known)
        ws.ask("code:subscribe", projectPath=str(project))
        asked = {"sessionId": made["id"], "description": "By hand"}
        compare(point, ws.ask("code:create-restore-point", **asked), known)
        with mulligan.open(project, home=str(server.home)) as workspace:
            workspace.sessions.begin_turn(made["id"], "Go")
        told = ws.event("code:event", kind="entry")
        assert set(told) == set(event) and set(told["payload"]) == set(event["payload"])
        refused = ws.response(error["channel"], {"restorePointId": "nothing"})
        assert refused["error"] == error["error"]


def test_the_tables_in_websocket_md_are_complete() -> None:
    text = (DOCUMENTS / "websocket.md").read_text()
    for channel, verb in REQUESTS.items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{channel}` |")]
        for name in verb.payload._fields:  # type: ignore[attr-defined]
            shown = re.sub(r"_(\w)", lambda found: found[1].upper(), name)
            assert re.search(rf"\b{shown}\b", row), (channel, shown)


def test_the_lines_in_rpc_md(project: Path) -> None:
    (project / "foo.ts").write_text("original content\n")
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create().id
        entries = []
        for content in ("modified content\n", "again\n"):
            workspace.sessions.begin_turn(session, "Go")
            (project / "foo.ts").write_text(content)
            entries.append(workspace.sessions.end_turn(session).entry)
        rpc = RpcSession(lambda: workspace, session)
        lines = [text.replace("ENTRY", str(entries[0])) for kind, text in blocks("rpc.md")
                 if kind == "json"]  # fmt: skip
        for command, response in zip(lines[::2], lines[1::2], strict=True):
            *_, found = answer(rpc, command.encode())
            compare(json.loads(response), found, {})


def test_the_tables_in_rpc_md_and_mcp_md_are_complete() -> None:
    for document, kinds in (("rpc.md", COMMANDS), ("mcp.md", TOOLS)):
        rows = [line for line in (DOCUMENTS / document).read_text().splitlines() if line[:1] == "|"]
        for name, kind in kinds.items():
            (row,) = [row for row in rows if f"`{name}`" in row.split("|")[1]]
            for parameter in kind.params.__struct_encode_fields__:
                assert re.search(rf"\b{parameter}\b", row), (name, parameter)
