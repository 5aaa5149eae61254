"""A server for each module of tests, and a project for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from serving import Api, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("served") / "home") as server:
        yield server
    assert server.process.returncode == 0
    assert "Traceback" not in server.errors.read_text()


@pytest.fixture
def client(server: Server) -> Iterator[httpx2.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def api(client: httpx2.Client) -> Api:
    return Api(client)


@pytest.fixture
def opened(api: Api, project: Path) -> Api:
    """Requests on a new project with two files and one checkpoint."""
    (project / "a.txt").write_text("one\ntwo\nthree\n")
    (project / "sub").mkdir()
    (project / "sub" / "b.bin").write_bytes(bytes(range(256)))
    found = api.post("/projects", {"path": str(project)})
    below = api.at(f"/projects/{found['project']}")
    below.post("/checkpoints", {"message": "begin"}, 201)
    return below
