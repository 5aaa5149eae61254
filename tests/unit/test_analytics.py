"""Analytics: calls of tools are counted, and nothing else is known of them."""

from __future__ import annotations

import csv
import io
import json
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mulligan.cli.group import mulligan
from mulligan.core.entries import TOOL_CALL, NewEntry
from mulligan.errors import UsageError
from mulligan.journal import append, sessions
from mulligan.journal.append import Appender
from mulligan.workspace.search.tool_stats import (
    Stats,
    calls,
    calls_everywhere,
    delete_stats,
    delete_stats_everywhere,
    stats,
    stats_everywhere,
)
from mulligan.workspace.workspace import Workspace, open_workspace

SECRET = "do-not-keep-this"


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    with open_workspace(project) as opened:
        yield opened


def call(
    tool: str, status: str = "success", duration: float | None = None, at: str | None = None
) -> NewEntry:
    data: dict[str, Any] = {"name": tool, "input": {"command": SECRET}, "status": status}
    if duration is not None:
        data |= {"duration": duration, "output": SECRET}
    return NewEntry(TOOL_CALL, SECRET, data, created_at=at)


def record(workspace: Workspace, agent: str, given: Sequence[NewEntry]) -> int:
    with workspace.project.journal.writing() as db:
        values = {"agent": agent, "title": SECRET}
        session = sessions.insert(db, secrets.token_hex(8), "2026-01-01T00:00:00.000Z", values)
        appender = Appender(db, session, new_id=lambda: secrets.token_hex(8), now=time.time_ns)
        for entry in given:
            appender.append(entry)
        appender.finish()
    return session


def counts(found: Stats) -> dict[tuple[str, ...], int]:
    return {row.key: row.calls for row in found.rows}


def test_success_failure_and_unknown_are_told_apart(workspace: Workspace) -> None:
    states = ["success"] * 3 + ["error"] + ["pending", "running"]
    record(workspace, "pi", [call("Bash", state) for state in states])
    (row,) = stats(workspace.project).rows
    assert (row.key, row.calls) == (("Bash",), 6)
    assert (row.success, row.failure, row.unknown) == (3, 1, 2)
    assert row.success_rate == 0.75


def test_a_running_call_counts_as_soon_as_it_ends(workspace: Workspace) -> None:
    entry = call("Bash", "running")
    number = record(workspace, "pi", [entry._replace(id="e1")])
    assert stats(workspace.project).total.success_rate is None
    with workspace.project.journal.writing() as db:
        append.end_call(db, number, "e1", status="error", duration=70)
    total = stats(workspace.project).total
    assert (total.failure, total.unknown, total.success_rate) == (1, 0, 0.0)
    assert total.average_ms == 70


def test_average_and_95th_percentile(workspace: Workspace) -> None:
    durations = [float(each) for each in range(1, 101)]
    record(workspace, "pi", [call("Bash", duration=each) for each in reversed(durations)])
    record(workspace, "pi", [call("Read"), call("Read", duration=2.25), call("Read", duration=2)])
    bash, read = stats(workspace.project).rows
    assert (bash.average_ms, bash.p95_ms) == (50.5, 95)
    assert (read.average_ms, read.p95_ms) == (2.125, 2)


def test_the_most_used_is_first_and_the_least_used_if_asked(workspace: Workspace) -> None:
    record(workspace, "pi", [call(tool) for tool in ("a", "b", "b", "c", "c", "c")])
    found = stats(workspace.project)
    assert [row.key[0] for row in found.rows] == ["c", "b", "a"]
    assert [row.key[0] for row in found.first(2).rows] == ["c", "b"]
    assert [row.key[0] for row in found.first(1, least=True).rows] == ["a"]
    assert found.total.calls == 6


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (["tool"], {("Bash",): 3, ("Read",): 1}),
        (["agent"], {("pi",): 3, ("codex",): 1}),
        (["hour"], {("2026-01-01T10",): 1, ("2026-01-01T11",): 2, ("2026-02-01T10",): 1}),
        (["day"], {("2026-01-01",): 3, ("2026-02-01",): 1}),
        (["month"], {("2026-01",): 3, ("2026-02",): 1}),
        (["month", "agent"], {("2026-01", "pi"): 3, ("2026-02", "codex"): 1}),
    ],
)
def test_counts_by(
    workspace: Workspace, by: list[str], expected: dict[tuple[str, ...], int]
) -> None:
    times = ["2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", "2026-01-01T11:59:59Z"]
    tools = ["Bash", "Bash", "Read"]
    record(workspace, "pi", [call(tool, at=at) for tool, at in zip(tools, times, strict=True)])
    record(workspace, "codex", [call("Bash", at="2026-02-01T10:00:00Z")])
    found = stats(workspace.project, by)
    assert counts(found) == expected
    assert list(counts(found)) == list(expected)


def test_counts_by_session_name_only_its_id(workspace: Workspace) -> None:
    numbers = [record(workspace, "pi", [call("Bash")] * count) for count in (2, 1)]
    found = [sessions.by_number(workspace.project.journal, number) for number in numbers]
    expected = {(row.id,): count for row, count in zip(found, (2, 1), strict=True) if row}
    assert counts(stats(workspace.project, ["session"])) == expected


def test_filters(workspace: Workspace) -> None:
    number = record(workspace, "pi", [call("Bash", at="2026-01-01T00:00:00Z"), call("Read")])
    record(workspace, "codex", [call("Bash"), call("Bash")])
    session = sessions.by_number(workspace.project.journal, number)
    assert session is not None
    assert stats(workspace.project, agent="pi").total.calls == 2
    assert stats(workspace.project, tool="Bash").total.calls == 3
    assert stats(workspace.project, after="2026-01-02T00:00:00Z").total.calls == 3
    assert stats(workspace.project, before="2026-01-02T00:00:00Z").total.calls == 1
    assert stats(workspace.project, session=session.id).total.calls == 2
    assert stats(workspace.project, agent="nobody").rows == ()
    for wrong in ([], ["weekday"]):
        with pytest.raises(UsageError):
            stats(workspace.project, wrong)


def test_all_projects_are_counted_together_and_a_damaged_one_is_named(
    workspace: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    record(workspace, "pi", [call("Bash", duration=float(each)) for each in range(1, 51)])
    with open_workspace(tmp_path_factory.mktemp("other")) as other:
        record(other, "pi", [call("Bash", duration=float(each)) for each in range(51, 101)])
    (row,) = stats_everywhere(workspace.project.home).rows
    assert (row.calls, row.average_ms, row.p95_ms) == (100, 50.5, 95)
    assert len(calls_everywhere(workspace.project.home).calls) == 100
    Path(other.project.location.path("journal.sqlite")).write_bytes(b"no database" * 1000)
    found = stats_everywhere(workspace.project.home)
    assert found.total.calls == 50
    assert len(found.problems) == 1
    assert other.root in found.problems[0]


def test_no_content_is_in_anything_that_can_be_exported(workspace: Workspace) -> None:
    record(workspace, "pi", [call("Bash", duration=3), call("Bash", "error", 4)])
    for by in ("tool", "agent", "session", "hour", "day", "month"):
        found = stats(workspace.project, [by])
        assert SECRET not in json.dumps(found.as_json()) + found.as_csv()
    each = calls(workspace.project)
    assert SECRET not in json.dumps(each.as_json()) + each.as_csv()
    rows = list(csv.DictReader(io.StringIO(each.as_csv())))
    assert [row["success"] for row in rows] == ["True", "False"]
    assert [row["error_type"] for row in rows] == ["", "tool_error"]


def test_deleting_takes_the_calls_and_leaves_the_entries(workspace: Workspace) -> None:
    number = record(workspace, "pi", [call("Bash"), call("Bash", "running")._replace(id="e2")])
    assert delete_stats(workspace.project) == 2
    assert stats(workspace.project).rows == ()
    assert workspace.project.journal.row("SELECT count(*) FROM entries")[0] == 2
    with workspace.project.journal.writing() as db:
        assert append.end_call(db, number, "e2", status="success")
    assert delete_stats_everywhere(workspace.project.home) == (0, ())


def run(workspace: Workspace, *arguments: str, code: int = 0) -> tuple[str, str]:
    given = ["-C", workspace.root, "stats", *arguments]
    done = CliRunner().invoke(mulligan, given, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout, done.stderr


def test_the_command_shows_exports_and_deletes(workspace: Workspace, tmp_path: Path) -> None:
    record(workspace, "pi", [call("Bash", duration=1500), call("Bash", "error"), call("Read")])
    text, _ = run(workspace)
    assert [line.split()[0] for line in text.splitlines()] == ["tool", "Bash", "Read", "all"]
    assert "50 %" in text
    assert "1.5 s" in text
    data = json.loads(run(workspace, "--json", "--all", "--by", "agent", "--by", "tool")[0])
    assert data["rows"][0]["agent"] == "pi"
    assert data["total"]["calls"] == 3
    assert run(workspace, "--since", "2d", "--tool", "none")[1] == "No tool was called.\n"

    table, each = tmp_path / "table.csv", tmp_path / "each.json"
    run(workspace, "--export", str(table))
    assert table.read_text().splitlines()[1].startswith("Bash,2,1,1,0,0.5,1500.0,1500.0")
    run(workspace, "--by", "call", "--export", str(each))
    assert len(json.loads(each.read_text())["calls"]) == 3
    run(workspace, "--export", str(table), code=2)
    run(workspace, "--export", os.fspath(tmp_path / "table.xls"), code=2)

    run(workspace, "--delete", code=2)
    run(workspace, "--delete", "--yes", "--agent", "pi", code=2)
    assert run(workspace, "--delete", "--yes")[1] == "Forgot 3 calls.\n"
    assert json.loads(run(workspace, "--delete", "--yes", "--json")[0])["deleted"] == 0
