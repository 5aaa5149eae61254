"""The line protocol of `mulligan rpc`: a real process, spoken to over its pipes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mulligan
from mulligan.core.entries import NewEntry
from mulligan.protocols.rpc.commands import COMMANDS
from mulligan.protocols.rpc.lines import MAX_LINE_BYTES, answer, serve
from mulligan.protocols.rpc.rpc_session import RpcSession
from mulligan.workspace.workspace import Workspace

RPC = [sys.executable, "-m", "mulligan", "rpc"]


class Rpc:
    """A running `mulligan rpc`."""

    def __init__(self, project: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*RPC, *arguments], cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.events: list[dict[str, Any]] = []
        self._count = 0

    def line(self, line: bytes) -> dict[str, Any]:
        """Sends a line as it is; gives the response, and keeps events that came before it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        while True:
            found: dict[str, Any] = json.loads(self.process.stdout.readline())
            if found["type"] == "response":
                return found
            self.events.append(found)

    def response(self, command: str, **given: Any) -> dict[str, Any]:
        self._count += 1
        id = f"req-{self._count}"
        found = self.line(json.dumps({"id": id, "type": command, **given}).encode())
        assert (found["id"], found["command"]) == (id, command), found
        return found

    def ask(self, command: str, **given: Any) -> Any:
        found = self.response(command, **given)
        assert found["success"] is True, found
        assert set(found) == {"id", "type", "command", "success", "data"}
        return found["data"]

    def fail(self, command: str, **given: Any) -> dict[str, Any]:
        found = self.response(command, **given)
        assert found["success"] is False and isinstance(found["error"], str), found
        return found

    def close(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        rest = self.process.stdout.read()
        self.process.stdout.close()
        assert rest == b""
        return self.process.wait(30)


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    (project / "foo.ts").write_text("original content\n")
    with mulligan.open(project) as workspace:
        yield workspace


@pytest.fixture
def session(workspace: Workspace, project: Path) -> str:
    """Three turns: foo is modified, bar added, foo modified again and old deleted."""
    (project / "old.ts").write_text("old\n")
    made = workspace.sessions.create(agent="pi").id
    changes: list[dict[str, str | None]] = [
        {"foo.ts": "modified content\n"},
        {"bar.ts": "bar\n"},
        {"foo.ts": "again\n", "old.ts": None},
    ]
    for number, files in enumerate(changes):
        workspace.sessions.begin_turn(made, f"turn {number}")
        for name, content in files.items():
            path = project / name
            path.unlink() if content is None else path.write_text(content)
        workspace.sessions.append(made, NewEntry("assistant_output", f"done {number}"))
        workspace.sessions.end_turn(made)
    return made


@pytest.fixture
def rpc(session: str, project: Path) -> Iterator[Rpc]:
    found = Rpc(project, "--session", session)
    yield found
    assert found.close() == 0


def steps(workspace: Workspace, session: str) -> list[str]:
    """The entries of the ends of turns."""
    page = workspace.sessions.transcript(session, types=["step_snapshot"])
    return [entry.id for entry in page.entries]


def test_pi_7_modified_files_of_the_whole_session_with_their_earliest_turn(
    rpc: Rpc, workspace: Workspace, session: str
) -> None:
    first, second, third = steps(workspace, session)
    assert rpc.ask("get_modified_files") == {
        "files": [
            {"path": "bar.ts", "status": "added", "turnIndex": 1, "entryId": second},
            {"path": "foo.ts", "status": "modified", "turnIndex": 0, "entryId": first},
            {"path": "old.ts", "status": "deleted", "turnIndex": 2, "entryId": third},
        ]
    }
    between = rpc.ask("get_modified_files", fromEntryId=first, toEntryId=second)
    assert [file["path"] for file in between["files"]] == ["bar.ts"]
    assert rpc.fail("get_modified_files", fromEntryId="nothing")["code"] == "not_found"


def test_pi_8_the_difference_of_a_file_between_two_entries(
    rpc: Rpc, workspace: Workspace, session: str
) -> None:
    first = steps(workspace, session)[0]
    found = rpc.ask("get_file_diff", filePath="foo.ts", toEntryId=first)
    hashes = {found.pop("oldHash"), found.pop("newHash")}
    assert all(len(each) == 64 for each in hashes) and len(hashes) == 2
    assert found == {
        "path": "foo.ts",
        "oldContent": "original content\n",
        "newContent": "modified content\n",
        "unifiedDiff": (
            "--- foo.ts\n+++ foo.ts\n@@ -1 +1 @@\n-original content\n+modified content\n"
        ),
    }
    added = rpc.ask("get_file_diff", filePath="bar.ts")
    assert (added["oldContent"], added["oldHash"]) == (None, None)
    deleted = rpc.ask("get_file_diff", filePath="old.ts")
    assert (deleted["newContent"], deleted["newHash"]) == (None, None)
    assert rpc.ask("get_file_diff", filePath="nowhere.ts") is None
    assert rpc.fail("get_file_diff")["code"] == "usage"
    assert rpc.fail("get_file_diff", filePath="../outside")["code"] == "usage"


def test_pi_5_navigate_moves_the_leaf_and_the_files_or_the_leaf_alone(
    rpc: Rpc, workspace: Workspace, session: str, project: Path
) -> None:
    first, second, _ = steps(workspace, session)
    leaf = workspace.sessions.get(session).leaf
    moved = rpc.ask("navigate_tree", targetId=second)
    assert (moved["newLeafId"], moved["oldLeafId"]) == (second, leaf)
    assert (project / "foo.ts").read_text() == "modified content\n"
    assert moved["files"]["restored"] == ["foo.ts", "old.ts"]
    rpc.ask("navigate_tree", targetId=first, skipFiles=True)
    assert workspace.sessions.get(session).leaf == first
    assert (project / "bar.ts").exists()


def test_pi_5_a_message_as_the_target_is_gone_back_before_and_handed_back(
    rpc: Rpc, workspace: Workspace, session: str
) -> None:
    message = next(e for e in workspace.sessions.conversation(session) if e.content == "turn 2")
    moved = rpc.ask("navigate_tree", targetId=message.id)
    assert moved["newLeafId"] == message.parent and moved["editorText"] == "turn 2"
    first = next(e for e in workspace.sessions.conversation(session) if e.content == "turn 0")
    assert first.parent is None
    moved = rpc.ask("navigate_tree", targetId=first.id)
    assert moved["newLeafId"] is None and moved["editorText"] == "turn 0"
    assert moved["files"]["skipped"] == []
    assert workspace.sessions.get(session).leaf is None


def test_pi_6_skipped_files_are_kept_on_the_summary_and_only_there(
    rpc: Rpc, workspace: Workspace, session: str
) -> None:
    first, second, third = steps(workspace, session)
    rpc.ask("navigate_tree", targetId=second, summarize=True, skipFiles=True)
    entry = rpc.events[-1]["summaryEntry"]
    assert (entry["type"], entry["skipFiles"]) == ("summary", True) and "turn 2" in entry["summary"]
    rpc.ask("navigate_tree", targetId=first, summarize=True)
    assert "skipFiles" not in rpc.events[-1]["summaryEntry"]
    rpc.ask("navigate_tree", targetId=third, skipFiles=True)
    assert "summaryEntry" not in rpc.events[-1]


def test_pi_9_and_14_a_preview_is_really_returned_and_changes_nothing(
    rpc: Rpc, workspace: Workspace, session: str, project: Path
) -> None:
    first = steps(workspace, session)[0]
    leaf = workspace.sessions.get(session).leaf
    plan = rpc.ask("navigate_tree", targetId=first, preview=True)
    assert plan["preview"] is True
    assert plan["files"]["restored"] == ["foo.ts", "old.ts"]
    assert plan["files"]["deleted"] == ["bar.ts"]
    assert workspace.sessions.get(session).leaf == leaf and (project / "bar.ts").exists()
    assert rpc.events == [
        {"type": "session_tree", "newLeafId": first, "oldLeafId": leaf, "preview": True}
    ]
    rpc.ask("navigate_tree", targetId=first)
    assert rpc.events[-1] == {"type": "session_tree", "newLeafId": first, "oldLeafId": leaf}


def veto(rpc: Rpc, target: str) -> dict[str, Any]:
    """Asks to go somewhere with a veto; gives the event that waits for the reply."""
    assert rpc.process.stdin is not None and rpc.process.stdout is not None
    asked = {"id": "v", "type": "navigate_tree", "targetId": target, "canVeto": True}
    rpc.process.stdin.write(json.dumps(asked).encode() + b"\n")
    rpc.process.stdin.flush()
    event: dict[str, Any] = json.loads(rpc.process.stdout.readline())
    assert event["type"] == "session_before_tree"
    return event


def test_f_pi_1_before_a_session_moves_its_clients_are_told(
    rpc: Rpc, workspace: Workspace, session: str
) -> None:
    first = steps(workspace, session)[0]
    leaf = workspace.sessions.get(session).leaf
    rpc.ask("navigate_tree", targetId=first, summarize=True, skipFiles=True)
    before, after = rpc.events
    assert before == {
        "type": "session_before_tree", "targetId": first, "oldLeafId": leaf,
        "userWantsSummary": True, "skipFiles": True,
    }  # fmt: skip
    assert after["type"] == "session_tree" and after["oldLeafId"] == leaf


@pytest.mark.parametrize(
    "reply", [{"cancel": True}, {"cancel": "false"}, {"cancel": False, "summary": 7}]
)
def test_f_pi_1_a_client_can_veto_and_nothing_has_changed(
    rpc: Rpc, workspace: Workspace, session: str, project: Path, reply: dict[str, Any]
) -> None:
    first = steps(workspace, session)[0]
    leaf = workspace.sessions.get(session).leaf
    entries = workspace.sessions.count_entries(session)
    event = veto(rpc, first)
    assert event["targetId"] == first and event["files"]["deleted"] == ["bar.ts"]
    reply = {"type": "session_before_tree_result"} | reply
    answer = rpc.line(json.dumps(reply).encode())
    assert answer["success"] and answer["data"] == {
        "newLeafId": leaf, "oldLeafId": leaf, "files": None, "cancelled": True, "preview": False,
    }  # fmt: skip
    assert workspace.sessions.get(session).leaf == leaf and (project / "bar.ts").exists()
    assert workspace.sessions.count_entries(session) == entries and rpc.events == []


def test_f_pi_1_a_client_that_agrees_can_give_the_summary(
    rpc: Rpc, workspace: Workspace, session: str, project: Path
) -> None:
    veto(rpc, steps(workspace, session)[0])
    reply = {"type": "session_before_tree_result", "summary": "It led nowhere."}
    answer = rpc.line(json.dumps(reply).encode())["data"]
    assert answer["cancelled"] is False and not (project / "bar.ts").exists()
    assert answer["summaryEntry"]["summary"] == "It led nowhere."


def test_f_pi_1_another_line_in_place_of_a_reply_cancels_and_is_answered(
    rpc: Rpc, workspace: Workspace, session: str, project: Path
) -> None:
    assert rpc.process.stdin is not None and rpc.process.stdout is not None
    first = steps(workspace, session)[0]
    veto(rpc, first)
    cancelled = rpc.line(b'{"id": "other", "type": "get_state"}')
    assert cancelled["command"] == "navigate_tree" and cancelled["data"]["cancelled"] is True
    state = json.loads(rpc.process.stdout.readline())
    assert (state["id"], state["command"], state["success"]) == ("other", "get_state", True)
    veto(rpc, first)
    rpc.process.stdin.close()
    assert json.loads(rpc.process.stdout.readline())["data"]["cancelled"] is True
    assert rpc.process.wait(60) == 0 and (project / "bar.ts").exists()


def test_f_pi_2_the_tree_says_that_files_were_skipped(
    rpc: Rpc, workspace: Workspace, session: str
) -> None:
    first = steps(workspace, session)[0]
    assert "skipFiles" not in rpc.ask("get_tree")
    rpc.ask("navigate_tree", targetId=first, skipFiles=True)
    assert rpc.ask("get_tree")["skipFiles"] is True
    workspace.sessions.append(session, NewEntry("assistant_output", "On from there"))
    assert "skipFiles" not in rpc.ask("get_tree")
    rpc.ask("navigate_tree", targetId=first, force=True)
    assert "skipFiles" not in rpc.ask("get_tree")


def test_pi_10_what_the_user_changed_is_dirty_whether_it_is_skipped_or_forced(
    rpc: Rpc, workspace: Workspace, session: str, project: Path
) -> None:
    first = steps(workspace, session)[0]
    (project / "foo.ts").write_text("the user's\n")
    for asked in ({"preview": True}, {}):
        done = rpc.ask("restore_files", targetEntryId=first, **asked)
        assert (done["skipped"], done["dirty"]) == (["foo.ts"], ["foo.ts"])
        assert list(done["reasons"]) == ["foo.ts"]
    forced = rpc.ask("restore_files", targetEntryId=first, force=True)
    assert (forced["skipped"], forced["dirty"]) == ([], ["foo.ts"])
    assert (project / "foo.ts").read_text() == "modified content\n"


def test_pi_9_files_are_restored_some_or_all_without_moving_the_session(
    rpc: Rpc, workspace: Workspace, session: str, project: Path
) -> None:
    first = steps(workspace, session)[0]
    leaf = workspace.sessions.get(session).leaf
    some = {"targetEntryId": first, "files": ["foo.ts"]}
    plan = rpc.ask("restore_files", **some, preview=True)
    assert (plan["restored"], plan["deleted"]) == (["foo.ts"], [])
    assert (project / "foo.ts").read_text() == "again\n"
    assert rpc.ask("restore_files", **some)["restored"] == ["foo.ts"]
    assert (project / "foo.ts").read_text() == "modified content\n" and (
        project / "bar.ts"
    ).exists()
    (step,) = [e for e in workspace.sessions.conversation(session) if e.id == first]
    assert step.data is not None
    done = rpc.ask("restore_files", snapshotHash=step.data["snapshotTreeHash"])
    assert (done["restored"], done["deleted"]) == (["old.ts"], ["bar.ts"])
    again = rpc.ask("restore_files", targetEntryId=first)
    assert (again["restored"], again["deleted"], again["skipped"]) == ([], [], [])
    assert workspace.sessions.get(session).leaf == leaf
    assert rpc.fail("restore_files")["code"] == "usage"
    assert rpc.fail("restore_files", snapshotHash="f" * 64)["code"] == "not_found"


def test_pi_9_restored_files_leave_an_unrevert_point_that_leads_back(
    rpc: Rpc, workspace: Workspace, session: str, project: Path
) -> None:
    def points() -> list[dict[str, Any]]:
        found = rpc.ask("get_entries", limit=1000)["entries"]
        return [each for each in found if each.get("customType") == "unrevert-point"]

    first = steps(workspace, session)[0]
    leaf = workspace.sessions.get(session).leaf
    before = workspace.checkpoint("Before").tree
    asked = {"targetEntryId": first, "files": ["foo.ts"]}
    rpc.ask("restore_files", **asked, preview=True)
    assert points() == []
    rpc.ask("restore_files", **asked)
    (point,) = points()
    assert point["type"] == "custom" and point["parentId"] == leaf
    assert point["data"] == {
        "preRollbackTreeHash": before, "rolledBackToLeaf": leaf, "restoredFiles": ["foo.ts"],
    }  # fmt: skip
    # Where the files are already there, nothing is restored, and there is nothing to revert.
    rpc.ask("restore_files", **asked)
    assert points() == [point]
    assert rpc.ask("navigate_tree", targetId=point["id"])["files"]["restored"] == ["foo.ts"]
    assert (project / "foo.ts").read_text() == "again\n"


def test_pi_14_a_turn_driven_over_lines_sees_what_commands_did(
    workspace: Workspace, project: Path
) -> None:
    rpc = Rpc(project)
    assert rpc.fail("get_state")["code"] == "not_found"
    state = rpc.ask("new_session", name="over lines")
    assert state["sessionName"] == "over lines" and state["leafId"] is None
    begun = rpc.ask("begin_turn", message="Go")
    subprocess.run("echo made > made.txt; rm foo.ts", shell=True, cwd=project, check=True)
    rpc.ask("append_entry", entryType="assistant_output", content="Made it.")
    ended = rpc.ask("end_turn")
    assert ended["diff"] == {"added": ["made.txt"], "modified": [], "deleted": ["foo.ts"]}
    entries = rpc.ask("get_entries")["entries"]
    assert [entry["type"] for entry in entries] == ["message", "message", "custom"]
    assert entries[0]["message"] == {"role": "user", "content": "Go"}
    assert entries[0]["id"] == begun["entryId"] and entries[1]["parentId"] == entries[0]["id"]
    assert entries[2]["customType"] == "step-snapshot" and entries[2]["id"] == ended["entryId"]
    assert entries[2]["data"]["turnIndex"] == 0
    undone = rpc.ask("undo")
    assert undone["restored"] == ["foo.ts"]
    assert rpc.fail("undo", expect=undone["undoes"])["code"] == "nothing_to_undo"
    redone = rpc.ask("redo", expect=undone["operation"])
    assert redone["deleted"] == ["foo.ts"]
    assert rpc.fail("undo", expect=undone["undoes"])["code"] == "would_lose_work"
    assert rpc.ask("undo", preview=True, expect=redone["operation"])["restored"] == ["foo.ts"]
    (listed,) = rpc.ask("list_sessions")["sessions"]
    assert listed["sessionId"] == state["sessionId"]
    assert rpc.ask("get_tree")["branches"][0]["active"] is True
    assert rpc.ask("switch_session", sessionId=state["sessionId"])["entryCount"] == 3
    assert rpc.close() == 0
    # Its process is gone.
    assert workspace.sessions.get(state["sessionId"]).status == "stopped"
    assert workspace.maintenance.verify().clean


@pytest.mark.parametrize(
    "line",
    [
        b"{", b"[]", b"7", b"null", b"{}", b'{"type":7}', b"\xff\xfe", b"\0", b'{"type":"\\ud800"}',
        b'{"id":{"a":1},"type":"nonsense"}', b"[" * 100_000, b"9" * 10_000,
        b'{"type":"get_entries","limit":-1}', b'{"type":"get_entries","limit":1e400}',
        b'{"type":"get_entries","sinceSeq":99999999999999999999}',
        b'{"type":"get_entries","limit":true}', b'{"type":"append_entry","entryType":"x"}',
        b'{"type":"get_file_diff","filePath":"\\u0000"}', b'{"type":"navigate_tree","targetId":""}',
    ],
)  # fmt: skip
def test_hostile_lines_get_an_error_line_and_the_next_command_an_answer(
    rpc: Rpc, line: bytes
) -> None:
    found = rpc.line(line)
    assert found["success"] is False and found["error"] and found["code"] != "failed"
    assert rpc.ask("get_state")["status"] == "waiting_input"


def test_a_line_that_never_ends_is_passed_over_and_an_unfinished_one_is_answered(
    session: str, project: Path
) -> None:
    lines = io.BytesIO(b"x" * (MAX_LINE_BYTES + 10) + b"\n" + b'{"id":"1","type":"get_state"}')
    out = io.BytesIO()
    rpc = RpcSession(lambda: mulligan.open(project))
    serve(rpc, lines, out)
    rpc.close()
    refused, state = [json.loads(line) for line in out.getvalue().splitlines()]
    assert refused["success"] is False and state["success"] is True


def test_it_starts_without_loading_what_it_does_not_need() -> None:
    code = (
        "import sys; import mulligan.cli.agents.rpc, mulligan.protocols.rpc.lines; "
        "print([m for m in ('apsw', 'asyncio', 'mcp', 'starlette', 'mulligan.workspace.workspace') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
HALF = "foo\ud83d.ts"
ODD = ("@", "..", "foo.ts", "x" * 64, HALF, "\udcff", [HALF], {HALF: HALF})
NAMES = sorted(
    {name for command in COMMANDS.values() for name in command.params.__struct_encode_fields__}
    | {"id"}
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    command=st.sampled_from(sorted(COMMANDS)) | st.text(max_size=10),
    given_=st.dictionaries(st.sampled_from(NAMES), JSON | st.sampled_from(ODD)),
)
def test_any_command_gets_one_answer_and_no_crash(
    workspace: Workspace, session: str, command: str, given_: dict[str, Any]
) -> None:
    rpc = RpcSession(lambda: workspace, session)
    line = json.dumps({"type": command} | given_).encode()
    *events, found = answer(rpc, line)
    json.dumps([*events, found])
    assert found["type"] == "response" and found.get("code") != "failed", (line, found)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_half_a_character_in_any_text_is_refused_in_words(
    workspace: Workspace, session: str, command: str
) -> None:
    rpc = RpcSession(lambda: workspace, session)
    for name in COMMANDS[command].params.__struct_encode_fields__:
        for value in (HALF, [HALF], {HALF: HALF}):
            (found,) = answer(rpc, json.dumps({"type": command, name: value}).encode())[-1:]
            assert found.get("code") != "failed", (name, found)


@settings(max_examples=200)
@given(line=st.binary(max_size=80))
def test_any_bytes_get_one_answer_and_no_crash(line: bytes) -> None:
    def never() -> Workspace:
        raise AssertionError("no project is needed for what is no command")

    (found,) = answer(RpcSession(never), line)
    assert found["success"] is False and found["command"] == "parse"
