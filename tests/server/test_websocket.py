"""YAAI's requests over a real WebSocket: shapes, errors, limits, live events."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from faces import TOKEN, Socket, serving_here, socket_to
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import Server
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import mulligan
from mulligan.core.entries import NewEntry
from mulligan.server.http import protocol
from mulligan.server.http.errors_json import MESSAGE_LIMIT
from mulligan.server.websocket import connection
from mulligan.server.websocket.connection import Allowance
from mulligan.server.websocket.requests import REQUESTS
from mulligan.workspace.workspace import Workspace


@pytest.fixture
def workspace(server: Server, project: Path) -> Iterator[Workspace]:
    """The project as another process has it, beside the server."""
    (project / "a.txt").write_text("first\n")
    with mulligan.open(project, home=str(server.home)) as workspace:
        # Else the server takes the first one by itself, at some moment.
        workspace.checkpoint("first")
        yield workspace


@pytest.fixture
def ws(server: Server) -> Iterator[Socket]:
    with socket_to(server.port, server.token) as found:
        yield found


@pytest.fixture
def session(ws: Socket, workspace: Workspace) -> str:
    asked = {"projectPath": workspace.root, "agent": "yaai", "title": "A title"}
    return str(ws.ask("code:create-session", **asked)["id"])


def test_ya_14_the_envelope_of_a_response(ws: Socket) -> None:
    found = ws.response("code:list-sessions")
    assert set(found) == {"type", "id", "channel", "payload", "timestamp"}
    assert (found["type"], found["id"], found["channel"]) == (
        "response",
        "r1",
        "code:list-sessions",
    )
    assert abs(found["timestamp"] / 1000 - time.time()) < 3600


def test_ya_14_sessions_are_listed_found_and_deleted(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    (listed,) = ws.ask("code:list-sessions", projectPath=str(project))
    assert listed == ws.ask("code:get-session", id=session)
    assert {name: listed[name] for name in ("id", "projectPath", "status")} == {
        "id": session, "projectPath": str(project), "status": "starting",
    }  # fmt: skip
    assert listed["createdAt"].endswith("Z") and listed["updatedAt"].endswith("Z")
    assert ws.ask("code:get-session", id="nobody") is None
    assert ws.ask("code:delete-session", id=session) is True
    assert ws.ask("code:delete-session", id=session) is False
    assert ws.ask("code:list-sessions", projectPath=str(project)) == []


def test_ya_14_a_transcript_comes_in_pages_with_a_cursor_only_where_there_is_more(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    workspace.sessions.append(
        session, *(NewEntry("assistant_output", f"word {n}") for n in range(5))
    )
    page = ws.ask("code:get-transcript", sessionId=session, limit=3)
    assert [entry["content"] for entry in page["entries"]] == ["word 0", "word 1", "word 2"]
    assert (page["hasMore"], page["nextSeq"]) == (True, 3)
    rest = ws.ask("code:get-transcript", sessionId=session, limit=3, sinceSeq=3)
    assert [entry["seq"] for entry in rest["entries"]] == [4, 5]
    assert rest["hasMore"] is False and "nextSeq" not in rest
    recent = ws.ask("code:get-recent-transcript", sessionId=session, limit=2)
    assert [entry["seq"] for entry in recent] == [4, 5]
    only = ws.ask("code:get-transcript", sessionId=session, types=["user_input"])
    assert only["entries"] == []


def test_ya_14_entries_carry_the_data_of_their_type(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    tool = {"name": "bash", "input": {"command": "ls"}, "status": "success", "duration": 12}
    edit = {"path": "a.txt", "operation": "modify", "additions": 1, "deletions": 0}
    workspace.sessions.append(
        session,
        NewEntry("tool_call", "ls", tool),
        NewEntry("file_edit", "", edit, plan_item="p1"),
    )
    workspace.sessions.compact(session, summary="All of it")
    entries = ws.ask("code:get-transcript", sessionId=session, includeCompacted=True)["entries"]
    assert [entry["type"] for entry in entries] == ["tool_call", "file_edit", "compact_marker"]
    assert tool.items() <= entries[0]["toolCallData"].items()
    assert entries[1]["fileEditData"] == edit and entries[1]["planItemId"] == "p1"
    assert entries[2]["compactData"] == {"compactedCount": 2, "summary": "All of it"}
    assert [entry["isCompacted"] for entry in entries] == [True, True, False]
    for entry in entries:
        assert {"id", "sessionId", "type", "content", "timestamp", "seq"} <= set(entry)
    (found,) = ws.ask("code:get-file-edits", sessionId=session)
    assert found == entries[1]
    shown = ws.ask("code:get-transcript", sessionId=session)["entries"]
    assert [entry["type"] for entry in shown] == ["compact_marker"]


def test_ya_14_search_in_a_session_and_in_all(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    other = ws.ask("code:create-session", projectPath=str(project))["id"]
    workspace.sessions.append(session, NewEntry("assistant_output", "the tests are running now"))
    workspace.sessions.append(other, NewEntry("assistant_output", "a run of luck"))
    (hit,) = ws.ask("code:search-transcript", sessionId=session, query="run")
    assert set(hit) == {"entry", "snippet", "rank"}
    assert hit["entry"]["sessionId"] == session
    assert "<mark>running</mark>" in hit["snippet"]
    found = ws.ask("code:search-all", query="run")
    assert {each["entry"]["sessionId"] for each in found} == {session, other}
    assert [each["rank"] for each in found] == sorted(each["rank"] for each in found)
    for text in ('"', "AND (", "foo-bar*", "C++", "", "\x00" * 3 + "x"):
        answer = ws.response("code:search-transcript", {"sessionId": session, "query": text})
        assert answer.get("payload") == [] or "error" in answer


def test_ya_14_restore_points_are_made_listed_read_and_deleted(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    raw = bytes(range(256))
    (project / "raw.bin").write_bytes(raw)
    (project / "run.sh").write_text("echo\n")
    (project / "run.sh").chmod(0o755)
    made = ws.ask("code:create-restore-point", sessionId=session, description="By hand")
    assert made["description"] == "By hand" and made["sessionId"] == session
    assert made["fileCount"] == 3 and made["totalSize"] == 6 + 256 + 5
    listed = ws.ask("code:list-restore-points", sessionId=session)
    assert listed[0] == made
    assert [each["timestamp"] for each in listed] == sorted(
        (each["timestamp"] for each in listed), reverse=True
    )
    whole = ws.ask("code:get-restore-point", id=made["id"])
    files = {file.pop("path"): file for file in whole.pop("files")}
    assert whole == made
    assert files["a.txt"] | {"objectHash": ""} == {"objectHash": "", "mode": 420, "size": 6}
    assert files["run.sh"]["mode"] == 0o755 and len(files["raw.bin"]["objectHash"]) == 64
    (project / "raw.bin").unlink()
    asked = {"restorePointId": made["id"], "filePath": "raw.bin"}
    content = ws.ask("code:get-file-at-restore-point", **asked)
    assert base64.b64decode(content) == raw
    assert ws.ask("code:get-file-at-restore-point", **asked | {"filePath": "none"}) is None
    assert ws.ask("code:get-file-at-restore-point", restorePointId="x", filePath="a") is None
    assert ws.ask("code:get-restore-point", id="nothing") is None
    ws.ask("code:create-restore-point", sessionId=session, description="Later")
    assert ws.ask("code:delete-restore-point", id=made["id"]) is True
    assert ws.ask("code:delete-restore-point", id=made["id"]) is False
    freed = ws.ask("code:gc", projectPath=str(project))
    assert set(freed) == {"removed", "freedBytes"} and freed["removed"] >= 1


def test_ya_14_restore_writes_pauses_the_session_keeps_a_backup_and_says_so(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    made = ws.ask("code:create-restore-point", sessionId=session, description="Good")
    (project / "a.txt").write_text("second\n")
    (project / "new").write_text("new\n")
    asked = {"restorePointId": made["id"], "targetDir": str(project)}
    plan = ws.ask("code:restore", **asked, dryRun=True)
    assert plan["restoredFiles"] == ["a.txt"] and plan["skippedFiles"] == []
    assert (project / "a.txt").read_text() == "second\n"
    some = ws.ask("code:restore", **asked, files=["a.txt", "elsewhere"])
    assert (some["restoredFiles"], some["skippedFiles"]) == (["a.txt"], ["elsewhere"])
    assert (project / "a.txt").read_text() == "first\n" and (project / "new").exists()
    assert ws.ask("code:get-session", id=session)["status"] == "paused"
    last = ws.ask("code:get-recent-transcript", sessionId=session, limit=1)[0]
    assert last["type"] == "system_message" and made["id"] in last["content"]
    backup = ws.ask(
        "code:get-file-at-restore-point", restorePointId=some["backupPointId"], filePath="a.txt"
    )
    assert base64.b64decode(backup) == b"second\n"
    assert workspace.maintenance.verify().clean


def test_ya_14_restore_leaves_alone_what_the_user_wrote_where_turns_tell_it(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    begun = workspace.sessions.begin_turn(session, "Go")
    (project / "a.txt").write_text("the agent's\n")
    workspace.sessions.end_turn(session)
    (project / "mine.txt").write_text("the user's\n")
    done = ws.ask("code:restore", restorePointId=begun.checkpoint, targetDir=str(project))
    assert (done["restoredFiles"], done["skippedFiles"]) == (["a.txt"], ["mine.txt"])
    assert (project / "mine.txt").read_text() == "the user's\n"
    forced = ws.ask("code:restore", restorePointId=begun.checkpoint, force=True)
    assert forced["deletedFiles"] == ["mine.txt"] and forced["skippedFiles"] == []


def test_ya_14_of_a_session_that_is_not_there_there_is_nothing(ws: Socket) -> None:
    asked = {"sessionId": "nobody"}
    assert ws.ask("code:get-transcript", **asked) == {"entries": [], "hasMore": False}
    assert ws.ask("code:get-recent-transcript", **asked) == []
    assert ws.ask("code:search-transcript", **asked, query="word") == []
    assert ws.ask("code:get-file-edits", **asked) == []
    assert ws.ask("code:list-restore-points", **asked) == []


def test_ya_15_errors_say_what_a_result_would(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    unknown = ws.error("code:restore", {"restorePointId": "x", "targetDir": str(project)})
    assert unknown["code"] == "HANDLER_ERROR"
    assert unknown["details"] == {"code": "NOT_FOUND", "status": 404, "reason": "not_found"}
    missing = ws.error("code:create-restore-point", {"sessionId": "x", "description": "y"})
    assert missing["details"]["code"] == "NOT_FOUND"
    assert ws.error("code:no-such-thing")["code"] == "UNKNOWN_CHANNEL"
    assert ws.error("code:get-session", {})["code"] == "INVALID_MESSAGE"
    assert ws.error("code:get-session", {"id": 7})["code"] == "INVALID_MESSAGE"
    # In the client's own words.
    assert "restorePointId" in ws.error("code:restore", {})["message"]
    elsewhere = {"restorePointId": "", "targetDir": "not/absolute"}
    (made,) = ws.ask("code:list-restore-points", sessionId=session)
    refused = ws.error("code:restore", elsewhere | {"restorePointId": made["id"]})
    assert refused["details"]["code"] == "USAGE"


def test_ya_15_a_journal_that_cannot_be_read_is_a_database_error(
    ws: Socket, session: str, workspace: Workspace
) -> None:
    workspace.project.journal.rows("DROP TABLE labels")
    problem = ws.error("code:get-transcript", {"sessionId": session})
    assert problem["details"]["code"] == "DATABASE_ERROR" and problem["details"]["status"] == 500


def test_ya_16_tool_calls_are_told_when_they_have_ended(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    assert ws.ask("code:subscribe", projectPath=str(project))["subscribed"] is True
    data = {"name": "bash", "input": {}, "status": "running", "call": "c1"}
    workspace.sessions.append(session, NewEntry("tool_call", "", data))
    workspace.sessions.end_call(session, "c1", status="error", duration=7)
    assert ws.event("analytics:tool_event")["payload"] == {
        "sessionId": session, "toolName": "bash", "durationMs": 7, "success": False,
        "errorType": "tool_error",
    }  # fmt: skip


def test_live_events_come_from_other_processes_and_resume_after_a_cursor(
    server: Server, session: str, workspace: Workspace
) -> None:
    with socket_to(server.port, server.token) as ws:
        ws.ask("code:subscribe", projectPath=workspace.root)
        workspace.sessions.append(session, NewEntry("assistant_output", "one"))
        found = ws.event("code:event", kind="entry")
        assert found["type"] == "event" and found["payload"]["entry"]["content"] == "one"
    workspace.sessions.append(session, NewEntry("assistant_output", "two"))
    with socket_to(server.port, server.token) as ws:
        asked = {"projectPath": workspace.root, "after": found["payload"]["cursor"]}
        ws.ask("code:subscribe", **asked)
        again = ws.event("code:event", kind="entry")
        assert again["payload"]["entry"]["content"] == "two"
        assert ws.ask("code:unsubscribe") is True
        problem = ws.error("code:subscribe", asked | {"after": "no cursor"})
        assert problem["details"]["code"] == "USAGE"


def test_more_than_a_hundred_requests_a_second_are_turned_away(ws: Socket) -> None:
    for number in range(300):
        ws.send({"type": "request", "id": str(number), "channel": "code:nothing"})
    codes = [ws.next()["error"]["code"] for _ in range(300)]
    assert codes.count("UNKNOWN_CHANNEL") >= 100
    assert "RATE_LIMITED" in codes


def test_the_allowance_fills_again_with_time() -> None:
    now = [0.0]
    allowance = Allowance(100, lambda: now[0])
    assert [allowance.take() for _ in range(101)] == [True] * 100 + [False]
    now[0] += 0.5
    assert [allowance.take() for _ in range(51)] == [True] * 50 + [False]
    now[0] += 1000
    assert sum(allowance.take() for _ in range(500)) == 100


def test_an_idle_connection_is_closed_and_one_that_follows_is_not(
    mulligan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_here(mulligan_home) as port, socket_to(port, TOKEN) as following:
        following.ask("code:subscribe")
        monkeypatch.setattr(connection, "IDLE_SECONDS", 0.3)
        # From its next request on the shorter time holds.
        following.ask("code:get-session", id="x")
        with socket_to(port, TOKEN) as idle, pytest.raises(ConnectionClosed) as closed:
            idle.next()
        assert closed.value.rcvd is not None and "CONNECTION_CLOSED" in closed.value.rcvd.reason
        time.sleep(1)
        assert following.ask("code:get-session", id="x") is None


@contextmanager
def three_kinds(port: int, token: str, project: str | None) -> Iterator[list[Socket]]:
    """A connection that follows, one that is idle, and one that is kept busy."""
    with (
        socket_to(port, token) as following,
        socket_to(port, token) as idle,
        socket_to(port, token) as busy,
    ):
        following.ask("code:subscribe", **({"projectPath": project} if project else {}))
        yield [following, idle, busy]


def keep_busy(ws: Socket, seconds: float) -> None:
    """Asks again and again for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert ws.ask("code:get-session", id="x") is None
        time.sleep(0.05)


def test_the_timer_of_a_requests_head_is_not_started_again_after_the_upgrade(
    mulligan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 1.0)
    with (
        serving_here(mulligan_home) as port,
        three_kinds(port, TOKEN, None) as (following, idle, busy),
    ):
        keep_busy(busy, 3)
        for each in (following, idle, busy):
            assert each.ask("code:get-session", id="x") is None


def test_a_connection_is_held_for_longer_than_a_requests_head_may_take(
    server: Server, workspace: Workspace
) -> None:
    with three_kinds(server.port, server.token, workspace.root) as (following, idle, busy):
        keep_busy(busy, protocol.HEADER_SECONDS + 5)
        assert idle.ask("code:get-session", id="x") is None
        session = workspace.sessions.create(agent="another")
        assert following.event("code:event", kind="session")["payload"]["session"] == session.id


def test_work_that_takes_too_long_times_out_and_the_connection_goes_on(
    mulligan_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_here(mulligan_home) as port, socket_to(port, TOKEN) as ws:
        monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.0)
        assert ws.error("code:list-sessions")["code"] == "TIMEOUT"
        monkeypatch.undo()
        assert ws.ask("code:get-session", id="x") is None


def test_a_message_that_is_too_large_ends_the_connection_and_not_the_server(
    server: Server,
) -> None:
    with socket_to(server.port, server.token) as ws:
        with suppress(ConnectionClosed):
            ws.send("x" * (MESSAGE_LIMIT + 1))
        with pytest.raises(ConnectionClosed):
            ws.next()
    with socket_to(server.port, server.token) as ws:
        assert ws.ask("code:get-session", id="x") is None


def test_without_the_token_there_is_no_connection(server: Server) -> None:
    with pytest.raises(InvalidStatus), connect(f"ws://127.0.0.1:{server.port}/ws"):
        pass


def test_both_addresses_answer(server: Server) -> None:
    with socket_to(server.port, server.token, "/api/v1/ws") as ws:
        assert ws.ask("code:get-session", id="x") is None


@pytest.mark.parametrize(
    "message",
    [
        "", "{", "null", "[]", "7", '"x"', "{}", '{"type":"request"}',
        '{"type":"request","id":1,"channel":"code:gc"}',
        '{"type":"request","id":"1","channel":["code:gc"]}',
        '{"type":"request","id":"1","channel":"code:gc","payload":[]}',
        '{"type":"response","id":"1","channel":"code:gc"}',
        '{"type":"request","id":"1","channel":"code:gc","payload":' + "[" * 5000 + "]" * 5000 + "}",
        b"\xff\xfe", "NaN", '{"id":NaN}',
    ],
)  # fmt: skip
def test_what_is_no_request_is_invalid_and_the_connection_goes_on(
    ws: Socket, message: str | bytes
) -> None:
    ws.send(message)
    assert ws.next()["error"]["code"] == "INVALID_MESSAGE"
    assert ws.ask("code:get-session", id="x") is None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = ("id", "sessionId", "restorePointId", "filePath", "query", "limit", "sinceSeq", "types",
         "files", "description", "targetDir", "dryRun", "status", "transcriptEntryId", "after",
         "project")  # fmt: skip
CHANNELS = sorted({*REQUESTS, "code:subscribe", "code:unsubscribe"})


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    channel=st.sampled_from(CHANNELS),
    payload=st.dictionaries(st.sampled_from(NAMES), JSON | st.just("@") | st.just("..")),
)
def test_any_payload_gets_one_response_and_no_crash(
    server: Server, channel: str, payload: dict[str, Any]
) -> None:
    with socket_to(server.port, server.token) as ws:
        found = ws.response(channel, payload)
        assert ("payload" in found) != ("error" in found)
        problem = found.get("error", {})
        assert problem.get("details", {}).get("reason") != "failed", (channel, payload, problem)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(message=st.binary(max_size=60) | st.text(max_size=60) | JSON.map(json.dumps))
def test_any_message_gets_an_error_and_no_crash(server: Server, message: str | bytes) -> None:
    with socket_to(server.port, server.token) as ws:
        ws.send(message)
        assert ws.next()["error"]["code"] == "INVALID_MESSAGE"
