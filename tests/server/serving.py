"""A real server in a process of its own, and a client that holds it to its own description."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import httpx2
from jsonschema import Draft202012Validator

from mulligan.server.openapi import document

COMMAND = [sys.executable, "-m", "mulligan"]
V1 = "/api/v1"
OPEN_ENDED = {"StatsRow"}  # it has a field for each thing that was counted by


class Server:
    """`mulligan serve` on a home."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.home = home
        self.env = os.environ | {"MULLIGAN_HOME": str(home)}
        self.errors = home.parent / f"{home.name}.stderr"
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [*COMMAND, "serve", "--json", *arguments],
                env=self.env,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.errors.read_text()
        self.told = json.loads(line)
        self.url: str = self.told["url"]
        self.port = int(self.url.rpartition(":")[2])
        self.token = (home / "server.token").read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.stop()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def kill(self) -> None:
        """As a power switch would."""
        self.process.kill()
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def client(self, **more: Any) -> httpx2.Client:
        headers = {"authorization": f"Bearer {self.token}"} | more.pop("headers", {})
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60, **more)

    def page(self, project: str | None = None) -> httpx2.URL:
        """A new one-time address of the page."""
        with self.client() as client:
            given = {} if project is None else {"project": project}
            return httpx2.URL(client.post(f"{V1}/page-address", json=given).json()["page"])

    def browser(self, name: str | None = None) -> httpx2.Client:
        """A client without a token that calls the server by the page's name, or another."""
        host = f"{name or self.page().host}:{self.port}"
        return httpx2.Client(base_url=self.url, headers={"host": host}, timeout=60)

    def mull(self, *arguments: str, cwd: Path) -> Any:
        """The command line on the same home, in another process; gives its JSON."""
        done = subprocess.run(
            [*COMMAND, *arguments, "--json"],
            cwd=cwd, env=self.env, capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        return json.loads(done.stdout)


class Answer(NamedTuple):
    status: int
    json: Any
    headers: httpx2.Headers

    @property
    def error(self) -> str:
        """The code of an error."""
        assert set(self.json) == {"error"}, self.json
        assert set(self.json["error"]) == {"code", "message"}
        return str(self.json["error"]["code"])


class Api:
    """Asks, and checks every answer against the OpenAPI document."""

    def __init__(self, client: httpx2.Client, base: str = V1) -> None:
        self.client = client
        self.base = base

    def at(self, path: str) -> Api:
        """The same below a path."""
        return Api(self.client, self.base + path)

    def ask(self, method: str, path: str, **more: Any) -> Answer:
        response = self.client.request(method, self.base + path, **more)
        found = json.loads(response.content) if response.content else None
        check_described(method, self.base + path, response.status_code, found)
        return Answer(response.status_code, found, response.headers)

    def get(self, path: str = "", status: int = 200, /, **query: Any) -> Any:
        return self._expect(status, "GET", path, params=query)

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        return self._expect(status, "POST", path, json={} if body is None else body)

    def patch(self, path: str, body: Any, status: int = 200) -> Any:
        return self._expect(status, "PATCH", path, json=body)

    def put(self, path: str, body: Any, status: int = 200) -> Any:
        return self._expect(status, "PUT", path, json=body)

    def delete(self, path: str, status: int = 200) -> Any:
        return self._expect(status, "DELETE", path)

    def _expect(self, status: int, method: str, path: str, **more: Any) -> Any:
        answer = self.ask(method, path, **more)
        assert answer.status == status, (method, path, more, answer)
        return answer.json if status < 400 else answer.error


def check_described(method: str, path: str, status: int, body: Any) -> None:
    """An answer is one that the document speaks of: its status, its shape, no field more."""
    operation = operation_at(method, path)
    if operation is None:
        assert status in (404, 405), (method, path, status)
        return
    responses = operation["responses"]
    assert str(status) in responses, f"{method} {path}: {status} is not described: {body}"
    schema = closed(responses[str(status)])
    problems = sorted(Draft202012Validator(schema).iter_errors(body), key=str)
    assert not problems, f"{method} {path}: {problems[0]}"


def operation_at(method: str, path: str) -> Any:
    parts = path.partition("?")[0].split("/")
    for known, methods in document()["paths"].items():
        names = known.split("/")
        if len(names) == len(parts) and all(
            name == part or name.startswith("{") for name, part in zip(names, parts, strict=True)
        ):
            found = methods.get(method.lower())
            if found is not None:
                return found
    return None


def closed(response: Any) -> Any:
    """The schema of a response's JSON, in which objects have no fields but those described."""
    found = response
    if "$ref" in found:
        found = document()["components"]["responses"][found["$ref"].rpartition("/")[2]]
    return _closed(found["content"]["application/json"]["schema"])


def _closed(schema: Any) -> Any:
    if "$ref" in schema:
        return _component(schema["$ref"].rpartition("/")[2])
    if "allOf" in schema:
        parts = [_closed(each) for each in schema["allOf"]]
        merged: dict[str, Any] = {"type": "object", "additionalProperties": False}
        merged["properties"] = {k: v for part in parts for k, v in part["properties"].items()}
        merged["required"] = [name for part in parts for name in part.get("required", ())]
        return merged
    found = dict(schema)
    if "anyOf" in found:
        found["anyOf"] = [_closed(each) for each in found["anyOf"]]
    if "items" in found:
        found["items"] = _closed(found["items"])
    if "properties" in found:
        found["properties"] = {k: _closed(v) for k, v in found["properties"].items()}
        found["additionalProperties"] = False
    elif isinstance(found.get("additionalProperties"), dict):
        found["additionalProperties"] = _closed(found["additionalProperties"])
    return found


@cache
def _component(name: str) -> Any:
    found = _closed(document()["components"]["schemas"][name])
    if name in OPEN_ENDED:
        del found["additionalProperties"]
    return found


class Seen(NamedTuple):
    """One event of a stream."""

    id: str | None
    kind: str
    data: Any


@contextmanager
def following(client: httpx2.Client, **query: Any) -> Iterator[Iterator[Seen]]:
    """The events of a stream, as they come."""
    headers = query.pop("headers", {})
    with client.stream("GET", f"{V1}/events", params=query, headers=headers) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.iter_lines()
        # The first line is there at once: from here on nothing is missed.
        assert next(lines).startswith("retry:")
        yield _events(lines)


def _events(lines: Iterator[str]) -> Iterator[Seen]:
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Seen(fields.get("id"), fields["event"], json.loads(fields["data"]))
            fields = {}
        else:
            fields = {}


def until(events: Iterator[Seen], kind: str, **wanted: Any) -> list[Seen]:
    """The events up to the first of a kind that says what is wanted."""
    found = []
    for event in events:
        found.append(event)
        if event.kind == kind and all(event.data.get(k) == v for k, v in wanted.items()):
            return found
    raise AssertionError(f"the stream ended without {kind}: {found}")
