"""The benchmark of the server: both servers answer alike, and nobody who follows misses a thing."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import bare, server
from bench.client import Follower, Server, load


def test_it_runs_and_sets_every_figure_beside_the_bare_server_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    options = ["--entries", "40", "--count", "5", "--clients", "3", "--checkpoints", "2"]
    options += ["--requests", "40", "--place", str(tmp_path), "--json", str(file)]
    assert server.main(options) == 0
    shown = capsys.readouterr().out
    results = json.loads(file.read_text())
    names = ("health", "status", "conversation", "history", "search")
    assert set(results["requests"]) == {f"{name}, {at}" for name in names for at in (1, 8)}
    for what, row in results["requests"].items():
        assert all(row[who]["per_second"] > 0 for who in (server.OURS, server.BARE))
        assert row["ratio"].keys() == {"a second", "p50", "p99"}
        assert what in shown
    for row in results["events"].values():
        assert (row["told"], row["lost"], row["twice"]) == (6, 0, 0)
    assert results["memory"][server.OURS]["after 40 requests"] > 0
    assert list(tmp_path.iterdir()) == [file]


def test_the_bare_server_says_what_mulligan_said(tmp_path: Path) -> None:
    said = {"entries": [{"content": "grüß dich"}], "has_more": False}
    (tmp_path / "answers.json").write_text(json.dumps({"/history": said}))
    command = [bare.__file__, str(tmp_path / "answers.json")]
    with Server(command, tmp_path) as plain:
        assert asyncio.run(server.first(plain, "/history")) == said
        with pytest.raises(RuntimeError, match="404"):
            asyncio.run(load(plain, [plain.asking("/elsewhere")], 1, 1))


def test_an_event_that_a_client_was_not_told_or_was_told_twice_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.0)
    clients = [Follower(), Follower()]
    clients[0].told = {1: [0.0, 0.0]}
    clients[1].told = {1: [0.0], 2: [0.0]}

    async def take(number: int) -> str:
        return str(number + 1)

    row = asyncio.run(server.delays_of_events(clients, take, lambda: {"1": 1, "2": 2}, 2))
    assert (row["told"], row["lost"], row["twice"]) == (3, 1, 1)
