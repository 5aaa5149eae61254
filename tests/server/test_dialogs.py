"""AgentSmithy's endpoints over a real server: each shape as the document has it."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from faces import TOKEN, serving_here
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import Server

import mulligan
from mulligan.core.entries import NewEntry
from mulligan.server.dialogs import stream
from mulligan.workspace.workspace import Workspace


class Dialogs:
    """Requests about the dialogs of one project."""

    def __init__(self, client: httpx2.Client, project: Path) -> None:
        self.client = client
        self.query = {"project": str(project)}

    def ask(self, method: str, path: str, status: int = 200, body: Any = None, **query: Any) -> Any:
        more = {} if body is None else {"json": body}
        response = self.client.request(
            method, f"/api/dialogs{path}", params=self.query | query, **more
        )
        assert response.status_code == status, response.text
        return response.json()

    def get(self, path: str = "", status: int = 200, **query: Any) -> Any:
        return self.ask("GET", path, status, **query)

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        return self.ask("POST", path, status, body)

    @contextmanager
    def chat(self, dialog: str, body: Any) -> Iterator[Iterator[dict[str, Any]]]:
        """The events of a turn, as they come."""
        with self.client.stream(
            "POST", f"/api/dialogs/{dialog}/chat", params=self.query, json=body
        ) as response:
            assert response.status_code == 200, response.read()
            assert response.headers["content-type"].startswith("text/event-stream")
            yield (
                json.loads(line.removeprefix("data: "))
                for line in response.iter_lines()
                if line.startswith("data: ")
            )


@pytest.fixture
def workspace(server: Server, project: Path) -> Iterator[Workspace]:
    """The project as an agent has it, in another process than the server."""
    (project / "main.py").write_text("def main():\n    print('old')\n    return 0\n")
    (project / "old_file.py").write_text("# old\n# file\n")
    with mulligan.open(project, home=str(server.home)) as workspace:
        # Else the server takes the first one by itself, at some moment.
        workspace.checkpoint("first")
        yield workspace


@pytest.fixture
def dialogs(client: httpx2.Client, workspace: Workspace) -> Dialogs:
    return Dialogs(client, Path(workspace.root))


@pytest.fixture
def dialog(dialogs: Dialogs) -> str:
    return str(dialogs.post("", {"title": "My Feature"})["id"])


def turn(workspace: Workspace, dialog: str, message: str, **files: str | None) -> None:
    """A turn of an agent that writes or deletes files."""
    workspace.sessions.begin_turn(dialog, message)
    for name, content in files.items():
        path = Path(workspace.root, name.replace("_py", ".py"))
        path.unlink() if content is None else path.write_text(content)
    workspace.sessions.end_turn(dialog)


def test_as_1_a_new_dialog_has_an_initial_checkpoint_and_session_1(
    dialogs: Dialogs, workspace: Workspace
) -> None:
    made = dialogs.post("", {"title": "My Feature"})
    found = dialogs.get(f"/{made['id']}")
    assert found == made
    assert (found["title"], found["active_session"]) == ("My Feature", "session_1")
    assert found["last_approved_at"] is None
    assert workspace.find(found["initial_checkpoint"]).kind == "initial"
    assert found["created_at"].endswith("Z") and found["updated_at"] >= found["created_at"]


def test_as_1_dialogs_are_listed_retitled_chosen_and_deleted(dialogs: Dialogs) -> None:
    first = dialogs.post("", {"title": "first"})["id"]
    second = dialogs.post("", {"title": "second"})["id"]
    third = dialogs.post("", {"title": "third", "set_current": False})["id"]
    found = dialogs.get()
    assert [each["id"] for each in found["dialogs"]] == [third, second, first]
    assert found["current_dialog_id"] == second == dialogs.get("/current")["id"]
    assert dialogs.ask("PATCH", "/current", id=first) == {"ok": True}
    assert dialogs.get("/current")["meta"]["title"] == "first"
    assert dialogs.ask("PATCH", f"/{first}", body={"title": "renamed"}) == {"ok": True}
    assert dialogs.get(f"/{first}")["title"] == "renamed"
    oldest = dialogs.get(sort="created_at", order="asc", limit=2)["dialogs"]
    assert [each["id"] for each in oldest] == [first, second]
    assert dialogs.ask("DELETE", f"/{first}") == {"ok": True}
    dialogs.get(f"/{first}", 404)
    assert dialogs.get("/current")["id"] == third
    dialogs.ask("PATCH", "/current", 404, id="nobody")
    dialogs.get(sort="mood", status=400)


def test_as_2_a_checkpoint_before_each_message_and_none_after_tools(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    turn(workspace, dialog, "Create a TODO app", app_py="todo\n")
    turn(workspace, dialog, "x" * 60)
    messages = [each["message"] for each in dialogs.get(f"/{dialog}/checkpoints")["checkpoints"]]
    assert messages[1:] == [
        "Before user message: Create a TODO app",
        f"Before user message: {'x' * 50}...",
    ]


def test_as_3_the_stream_begins_with_the_user_and_ends_with_done(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    with dialogs.chat(dialog, {"message": "Create a TODO app"}) as events:
        first = next(events)
        assert set(first) == {"type", "content", "checkpoint", "session", "dialog_id"}
        assert (first["type"], first["content"]) == ("user", "Create a TODO app")
        assert (first["session"], first["dialog_id"]) == ("session_1", dialog)
        assert workspace.find(first["checkpoint"]).message == (
            "Before user message: Create a TODO app"
        )
        # Others append by whatever way; the stream tells it all.
        edit = workspace.sessions.start_edit(dialog, ["app.py"])
        Path(workspace.root, "app.py").write_text("todo\n")
        workspace.sessions.append(dialog, NewEntry("assistant_output", "hm", {"kind": "reasoning"}))
        workspace.sessions.append(dialog, NewEntry("assistant_output", "I'll create it."))
        workspace.sessions.append(
            dialog, NewEntry("tool_call", "", {"name": "write", "input": {"path": "app.py"}})
        )
        workspace.sessions.finalize_edit(edit)
        workspace.sessions.end_turn(dialog)
        rest = list(events)
    assert [event["type"] for event in rest] == [
        "reasoning_start", "reasoning", "reasoning_end", "chat_start", "chat", "chat_end",
        "tool_call", "file_edit", "done",
    ]  # fmt: skip
    assert all(event["dialog_id"] == dialog for event in rest)
    assert rest[4]["content"] == "I'll create it."
    assert (rest[6]["name"], rest[6]["args"]) == ("write", {"path": "app.py"})
    assert rest[7]["file"] == os.path.join(workspace.root, "app.py")
    assert "+todo" in rest[7]["diff"] and "checkpoint" not in rest[7]
    assert rest[8] == {"type": "done", "done": True, "dialog_id": dialog}


def test_as_3_the_client_that_drives_may_tell_the_events_itself(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    body = {"messages": [{"role": "user", "content": "Go"}], "context": {}, "stream": True}
    with dialogs.chat(dialog, body) as events:
        assert next(events)["content"] == "Go"
        Path(workspace.root, "new.log").write_text("ignored by default\n")
        told = [
            {"type": "reasoning", "content": "hm"},
            {"type": "tool_call", "id": "c1", "name": "write", "args": {"a": 1}},
            {"type": "tool_result", "id": "c1", "output": "fine", "duration": 3},
            {"type": "file_edit", "file": os.path.join(workspace.root, "new.log")},
            {"type": "chat", "content": "There."},
            {"type": "error", "error": "One thing failed."},
        ]
        taken = dialogs.post(f"/{dialog}/chat/events", {"events": told})
        assert taken == {"taken": 6, "ended": False}
        taken = dialogs.post(f"/{dialog}/chat/events", {"events": [{"type": "done"}]})
        assert taken["ended"] is True
        rest = list(events)
    assert [event["type"] for event in rest] == [
        "reasoning_start", "reasoning", "reasoning_end", "tool_call", "file_edit", "chat_start",
        "chat", "chat_end", "error", "done",
    ]  # fmt: skip
    assert rest[-2]["error"] == "One thing failed."
    # What a tool wrote is kept, even where a rule would leave it out.
    paths = [each["path"] for each in dialogs.get(f"/{dialog}/session")["changed_files"]]
    assert paths == ["new.log"]
    (call,) = workspace.sessions.transcript(dialog, types=["tool_call"]).entries
    assert call.data is not None and call.data["status"] == "success"


def test_as_3_a_summary_is_told_and_hides_what_came_before(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    with dialogs.chat(dialog, {"message": "Go"}) as events:
        next(events)
        told = [{"type": "summary", "content": "All so far"}, {"type": "done"}]
        dialogs.post(f"/{dialog}/chat/events", {"events": told})
        assert [event["type"] for event in events] == ["summary_start", "summary_end", "done"]


def test_as_3_events_that_make_no_sense_append_nothing(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    for wrong in ({"type": "dance"}, {"type": "chat", "content": 7}, {}, "chat"):
        told = [{"type": "chat", "content": "x"}, wrong]
        dialogs.post(f"/{dialog}/chat/events", {"events": told}, 400)
    assert workspace.sessions.count_entries(dialog) == 0
    dialogs.post(f"/{dialog}/chat", {"messages": [{"role": "system", "content": "x"}]}, 400)
    dialogs.post("/nobody/chat", {"message": "x"}, 404)


def test_as_3_a_turn_whose_client_vanished_is_ended(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    with dialogs.chat(dialog, {"message": "Go"}) as events:
        next(events)
        Path(workspace.root, "half.py").write_text("half\n")
    for _ in range(600):
        if workspace.sessions.get(dialog).status == "waiting_input":
            break
        time.sleep(0.05)
    (step,) = workspace.sessions.transcript(dialog, types=["step_snapshot"]).entries
    assert step.data is not None and step.data["interrupted"] is True
    assert step.data["diff"]["added"] == ["half.py"]


def test_as_3_another_turn_ends_the_stream_of_the_one_before(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    with dialogs.chat(dialog, {"message": "One"}) as events:
        next(events)
        begun = workspace.sessions.begin_turn(dialog, "Two")
        assert [event["type"] for event in events] == ["done"]
    # The stream that ended does not end the turn that came after it.
    assert workspace.sessions.end_turn(dialog).turn == begun.turn


def test_as_3_silence_and_the_end_of_the_server_are_told_and_done(
    mulligan_home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "SILENT_SECONDS", 600)
    with serving_here(mulligan_home) as port:
        url, headers = f"http://127.0.0.1:{port}", {"authorization": f"Bearer {TOKEN}"}
        with httpx2.Client(base_url=url, headers=headers, timeout=60) as client:
            dialogs = Dialogs(client, project)
            dialog = dialogs.post("", {})["id"]
            with dialogs.chat(dialog, {"message": "Go", "timeout": 1}) as events:
                assert [event["type"] for event in events] == ["user", "error", "done"]
    with mulligan.open(project) as workspace:
        assert workspace.sessions.get(dialog).status == "waiting_input"


def test_the_plain_chat_address_goes_to_the_current_dialog_or_to_a_new_one(
    client: httpx2.Client, dialogs: Dialogs, workspace: Workspace
) -> None:
    for expected in (1, 1):
        with client.stream(
            "POST", "/api/chat", params=dialogs.query, json={"message": "Hello"}
        ) as response:
            lines = (line.removeprefix("data: ") for line in response.iter_lines() if line)
            workspace.sessions.end_turn(json.loads(next(lines))["dialog_id"])
            assert [json.loads(line)["type"] for line in lines] == ["done"]
        assert len(dialogs.get()["dialogs"]) == expected


def test_as_4_history_has_user_events_with_checkpoint_session_and_idx(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    begun = workspace.sessions.begin_turn(dialog, "Create a TODO app")
    workspace.sessions.append(dialog, NewEntry("assistant_output", "I'll create the app..."))
    Path(workspace.root, "app.py").write_text("todo\n")
    workspace.sessions.end_turn(dialog)
    dialogs.post(f"/{dialog}/approve")
    second = workspace.sessions.begin_turn(dialog, "Add authentication")
    assert dialogs.get(f"/{dialog}/history", limit=20) == {
        "dialog_id": dialog,
        "events": [
            {"type": "user", "content": "Create a TODO app", "checkpoint": begun.checkpoint,
             "session": "session_1", "idx": 0},
            {"type": "chat", "content": "I'll create the app...", "idx": 1},
            {"type": "user", "content": "Add authentication", "checkpoint": second.checkpoint,
             "session": "session_2", "idx": 2},
        ],
        "total_events": 3,
        "has_more": False,
        "first_idx": 0,
        "last_idx": 2,
        "cursor": None,
    }  # fmt: skip


def test_as_4_history_is_paged_both_ways_and_nothing_is_left_out(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    workspace.sessions.append(dialog, *(NewEntry("assistant_output", str(n)) for n in range(47)))
    path = f"/{dialog}/history"
    page = dialogs.get(path)
    assert len(page["events"]) == 20 and (page["first_idx"], page["last_idx"]) == (27, 46)
    back = page["events"]
    while page["has_more"]:
        page = dialogs.get(path, before=page["cursor"])
        back = page["events"] + back
    assert [event["idx"] for event in back] == list(range(47))
    page = dialogs.get(path, after=4, limit=10)
    forth = page["events"]
    while page["has_more"]:
        page = dialogs.get(path, after=page["cursor"], limit=10)
        forth += page["events"]
    assert forth == back[5:]
    assert dialogs.get(path, after=46)["events"] == []
    assert dialogs.get(path, before=0) == page | {
        "events": [], "first_idx": None, "last_idx": None, "has_more": False, "cursor": None,
    }  # fmt: skip
    dialogs.get(path, 400, before=1, after=1)
    dialogs.get(path, 400, limit=0)
    dialogs.get("/nobody/history", 404)


def test_as_4_history_shows_where_the_dialog_stands_and_no_other_branch(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    turn(workspace, dialog, "One", one_py="1\n")
    turn(workspace, dialog, "Two", two_py="2\n")
    last = next(e for e in workspace.sessions.conversation(dialog) if e.content == "Two")
    workspace.sessions.goto(last.id, session=dialog)
    turn(workspace, dialog, "Three", three_py="3\n")
    events = dialogs.get(f"/{dialog}/history")["events"]
    assert [event["content"] for event in events] == ["One", "Three"]


def test_as_5_checkpoints_are_listed_oldest_first_after_any_number_of_approvals(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    for number in range(3):
        turn(workspace, dialog, f"turn {number}", app_py=f"{number}\n")
        dialogs.post(f"/{dialog}/approve", {"message": f"good {number}"})
    found = dialogs.get(f"/{dialog}/checkpoints")
    assert set(found) == {"dialog_id", "checkpoints", "initial_checkpoint"}
    assert found["initial_checkpoint"] == found["checkpoints"][0]["commit_id"]
    times = [workspace.find(each["commit_id"]).created_at for each in found["checkpoints"]]
    assert times == sorted(times)
    messages = [each["message"] for each in found["checkpoints"]]
    before = [each for each in messages if each.startswith("Before user message")]
    assert before == [f"Before user message: turn {number}" for number in range(3)]


def test_as_6_the_session_with_and_without_something_to_approve(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    quiet = {
        "active_session": None, "session_ref": None, "has_unapproved": False,
        "last_approved_at": None, "changed_files": [],
    }  # fmt: skip
    assert dialogs.get(f"/{dialog}/session") == quiet
    turn(workspace, dialog, "Change", main_py="def main():\n    print('new')\n    return 0\n")
    found = dialogs.get(f"/{dialog}/session")
    assert found["active_session"] == "session_1"
    assert found["session_ref"] == "refs/heads/session_1"
    assert found["has_unapproved"] is True
    dialogs.post(f"/{dialog}/approve")
    again = dialogs.get(f"/{dialog}/session")
    assert again["last_approved_at"].endswith("Z")
    assert again | {"last_approved_at": None} == quiet
    dialogs.get("/nobody/session", 404)


def test_as_7_changed_files_have_exactly_the_fields_of_the_document(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    root = Path(workspace.root)
    (root / "large.txt").write_text("x" * (1 << 20))
    (root / "larger.txt").write_text("x" * (1 << 20) + "y")
    (root / "image.bin").write_bytes(b"\0\1")
    workspace.sessions.observe()
    made = dialogs.post("", {"title": "with large files"})["id"]
    workspace.sessions.begin_turn(made, "Change")
    (root / "main.py").write_text("def main():\n    print('new')\n    return 0\n")
    (root / "new.py").write_text("1\n2\n")
    (root / "old_file.py").unlink()
    (root / "image.bin").write_bytes(b"\0\2")
    (root / "larger.txt").write_text("z" * (1 << 20) + "y")
    (root / "large.txt").write_text("z" + "x" * ((1 << 20) - 1))
    workspace.sessions.end_turn(made)
    rows = dialogs.get(f"/{made}/session")["changed_files"]
    assert [row["path"] for row in rows] == sorted(row["path"] for row in rows)
    found = {row.pop("path"): row for row in rows}
    diff = found["main.py"].pop("diff")
    assert diff.startswith("--- a/main.py\n+++ b/main.py\n@@ -1,3 +1,3 @@\n")
    assert found["main.py"] == {
        "status": "modified", "additions": 1, "deletions": 1, "is_binary": False,
        "base_content": "def main():\n    print('old')\n    return 0\n", "is_too_large": False,
    }  # fmt: skip
    assert found["new.py"] == {
        "status": "added", "additions": 2, "deletions": 0, "diff": None, "base_content": None,
        "is_binary": False, "is_too_large": False,
    }  # fmt: skip
    assert found["old_file.py"] == {
        "status": "deleted", "additions": 0, "deletions": 2, "diff": None,
        "base_content": "# old\n# file\n", "is_binary": False, "is_too_large": False,
    }  # fmt: skip
    assert found["image.bin"] == {
        "status": "modified", "additions": 0, "deletions": 0, "diff": None, "base_content": None,
        "is_binary": True, "is_too_large": False,
    }  # fmt: skip
    assert found["larger.txt"] == {
        "status": "modified", "additions": 0, "deletions": 0, "diff": None, "base_content": None,
        "is_binary": False, "is_too_large": True,
    }  # fmt: skip
    assert found["large.txt"]["is_too_large"] is False and found["large.txt"]["base_content"]


def test_as_8_changes_by_commands_and_by_tools_are_shown_once_before_the_turn_ends(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    workspace.sessions.begin_turn(dialog, "Go")
    edit = workspace.sessions.start_edit(dialog, ["tool.py"])
    Path(workspace.root, "tool.py").write_text("tool\n")
    workspace.sessions.finalize_edit(edit)
    Path(workspace.root, "command.py").write_text("command\n")
    rows = dialogs.get(f"/{dialog}/session")["changed_files"]
    assert [row["path"] for row in rows] == ["command.py", "tool.py"]


def test_as_9_approve_answers_as_the_document_says_any_number_of_times(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    for number in range(1, 4):
        turn(workspace, dialog, f"turn {number}", app_py=f"{number}\n")
        done = dialogs.post(f"/{dialog}/approve", {"message": "Feature complete"})
        assert set(done) == {"approved_commit", "new_session", "commits_approved"}
        assert done["new_session"] == f"session_{number + 1}"
        assert done["commits_approved"] >= 1
        assert workspace.read(done["approved_commit"], "app.py") == f"{number}\n".encode()
    nothing = dialogs.post(f"/{dialog}/approve")
    assert (nothing["commits_approved"], nothing["new_session"]) == (0, "session_5")
    states = [each.status for each in workspace.review.rounds(dialog)]
    assert states == ["merged"] * 4 + ["active"]


def test_as_9_commits_approved_counts_what_checkpoints_lists(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    def listed() -> list[str]:
        return [each["commit_id"] for each in dialogs.get(f"/{dialog}/checkpoints")["checkpoints"]]

    before = listed()
    for number in range(1, 4):
        # A turn for each round more; the last state is in no checkpoint until it is approved.
        for step in range(number):
            turn(workspace, dialog, f"turn {number}.{step}", app_py=f"{number}.{step}\n")
        if number == 2:
            dialogs.post(f"/{dialog}/restore", {"checkpoint_id": before[-1]})
        done = dialogs.post(f"/{dialog}/approve")
        after = listed()
        assert after[: len(before)] == before and after[-1] == done["approved_commit"]
        assert done["commits_approved"] == len(after) - len(before) == number + 1
        assert workspace.review.rounds(dialog)[number - 1].checkpoints == done["commits_approved"]
        before = after
    assert dialogs.post(f"/{dialog}/approve")["commits_approved"] == 0 and listed() == before


def test_as_11_a_restore_to_where_the_files_already_are_makes_a_new_checkpoint(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    turn(workspace, dialog, "Go", app_py="1\n")
    target = workspace.checkpoint("Here", session=dialog).id
    done = dialogs.post(f"/{dialog}/restore", {"checkpoint_id": target})
    assert done["restored_to"] == target and done["new_checkpoint"] != target
    last = dialogs.get(f"/{dialog}/checkpoints")["checkpoints"][-1]
    assert last == {"commit_id": done["new_checkpoint"], "message": f"Restored to {target}"}
    again = dialogs.post(f"/{dialog}/restore", {"checkpoint_id": done["new_checkpoint"]})
    assert again["restored_to"] == done["new_checkpoint"] != again["new_checkpoint"]


def test_as_10_reset_brings_back_what_was_approved_and_saves_what_was_there(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    turn(workspace, dialog, "Good", app_py="good\n")
    approved = dialogs.post(f"/{dialog}/approve")
    turn(workspace, dialog, "Bad", app_py="bad\n", more_py="more\n", main_py=None)
    done = dialogs.post(f"/{dialog}/reset")
    assert {"reset_to", "new_session"} <= set(done) and done["new_session"] == "session_3"
    root = Path(workspace.root)
    assert (root / "app.py").read_text() == "good\n" and (root / "main.py").exists()
    assert not (root / "more.py").exists()
    assert done["reset_to"] == approved["approved_commit"]
    assert workspace.read(done["pre_reset_checkpoint"], "more.py") == b"more\n"
    assert dialogs.get(f"/{dialog}/session")["has_unapproved"] is False
    assert [each.status for each in workspace.review.rounds(dialog)] == [
        "merged",
        "abandoned",
        "active",
    ]


def test_as_10_reset_leads_to_the_beginning_or_to_where_the_user_went_on_from(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    first = dialogs.get(f"/{dialog}")["initial_checkpoint"]
    turn(workspace, dialog, "Bad", app_py="bad\n")
    assert dialogs.post(f"/{dialog}/reset")["reset_to"] == first
    Path(workspace.root, "mine.txt").write_text("typed by hand\n")
    turn(workspace, dialog, "Worse", app_py="worse\n")
    done = dialogs.post(f"/{dialog}/reset")
    assert workspace.read(done["reset_to"], "mine.txt") == b"typed by hand\n"
    assert done["reset_to"] != first


def test_what_a_client_says_beyond_what_is_known_is_passed_over(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    body = {
        "messages": [{"role": "user", "content": "Go", "timestamp": 1}], "stream": True,
        "context": {"current_file": {"path": "a"}}, "model": "large",
    }  # fmt: skip
    with dialogs.chat(dialog, body) as events:
        assert next(events)["content"] == "Go"
        told = [{"type": "chat", "content": "x", "tokens": 3}, {"type": "done"}]
        assert dialogs.post(f"/{dialog}/chat/events", {"events": told, "seq": 1})["taken"] == 2
        assert [event["type"] for event in events][-1] == "done"
    assert dialogs.post(f"/{dialog}/approve", {"message": "x", "author": "me"})["approved_commit"]
    assert dialogs.get(f"/{dialog}/history", limit=1, verbose="yes")["total_events"] == 2
    dialogs.get(f"/{dialog}/history", 400, limit="many")


def test_as_11_restore_makes_a_new_checkpoint_and_stays_in_the_session(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    turn(workspace, dialog, "One", app_py="1\n")
    turn(workspace, dialog, "Two", app_py="2\n")
    listed = dialogs.get(f"/{dialog}/checkpoints")["checkpoints"]
    target = listed[-1]["commit_id"]
    done = dialogs.post(f"/{dialog}/restore", {"checkpoint_id": target})
    assert (done["restored_to"], done["skipped"]) == (target, [])
    assert Path(workspace.root, "app.py").read_text() == "1\n"
    after = dialogs.get(f"/{dialog}/checkpoints")["checkpoints"]
    assert after[-1] == {
        "commit_id": done["new_checkpoint"], "message": f"Restored to {target}"
    }  # fmt: skip
    assert dialogs.get(f"/{dialog}")["active_session"] == "session_1"
    workspace.undo()
    assert Path(workspace.root, "app.py").read_text() == "2\n"
    dialogs.post(f"/{dialog}/restore", {"checkpoint_id": "nothing"}, 404)
    dialogs.post(f"/{dialog}/restore", {}, 400)


def test_as_12_and_13_restore_removes_what_came_since_and_spares_what_the_user_wrote(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    root = Path(workspace.root)
    (root / "ignored.log").write_text("the user's\n")
    first = dialogs.get(f"/{dialog}")["initial_checkpoint"]
    workspace.sessions.begin_turn(dialog, "Go")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "made.py").write_text("made\n")
    workspace.sessions.end_turn(dialog)
    (root / "mine.txt").write_text("typed by hand\n")
    done = dialogs.post(f"/{dialog}/restore", {"checkpoint_id": first})
    assert not (root / "deep").exists()
    assert (root / "ignored.log").read_text() == "the user's\n"
    assert (root / "mine.txt").read_text() == "typed by hand\n" and done["skipped"] == ["mine.txt"]
    assert workspace.maintenance.verify().clean


def test_as_14_what_a_tool_wrote_is_in_the_next_checkpoint_even_where_ignored(
    dialogs: Dialogs, dialog: str, workspace: Workspace
) -> None:
    with dialogs.chat(dialog, {"message": "Go"}) as events:
        next(events)
        venv = Path(workspace.root, ".venv")
        venv.mkdir()
        (venv / "config.py").write_text("by a tool\n")
        (venv / "other.py").write_text("by a command\n")
        told = [{"type": "file_edit", "file": ".venv/config.py"}, {"type": "done"}]
        dialogs.post(f"/{dialog}/chat/events", {"events": told})
        assert [event["type"] for event in events] == ["file_edit", "done"]
    done = dialogs.post(f"/{dialog}/approve")
    assert workspace.read(done["approved_commit"], ".venv/config.py") == b"by a tool\n"
    with pytest.raises(mulligan.NotFound):
        workspace.read(done["approved_commit"], ".venv/other.py")
    escaping = [{"type": "file_edit", "file": "../elsewhere"}]
    dialogs.post(f"/{dialog}/chat/events", {"events": escaping}, 400)


def test_dialogs_of_another_project_are_not_seen(
    client: httpx2.Client, dialog: str, tmp_path: Path
) -> None:
    elsewhere = Dialogs(client, tmp_path)
    elsewhere.post("", {})
    elsewhere.get(f"/{dialog}", 404)
    by_header = client.get("/api/dialogs", headers={"x-mulligan-project": str(tmp_path)})
    assert len(by_header.json()["dialogs"]) == 1
    assert client.get("/api/dialogs", params={"project": "no-such"}).status_code == 404


def test_several_turns_are_followed_at_once(dialogs: Dialogs, workspace: Workspace) -> None:
    made = [dialogs.post("", {})["id"] for _ in range(4)]
    seen: dict[str, list[str]] = {}

    def drive(dialog: str) -> None:
        with dialogs.chat(dialog, {"message": dialog}) as events:
            told = [{"type": "chat", "content": dialog}, {"type": "done"}]
            seen[dialog] = [next(events)["type"]]
            dialogs.post(f"/{dialog}/chat/events", {"events": told})
            seen[dialog] += [event.get("content", event["type"]) for event in events]

    threads = [threading.Thread(target=drive, args=(dialog,)) for dialog in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {id: ["user", "chat_start", id, "chat_end", "done"] for id in made}


def test_a_server_killed_in_the_middle_of_a_turn_loses_nothing(
    tmp_path: Path, project: Path
) -> None:
    home = tmp_path / "home"
    told = [{"type": "chat", "content": "So far."}]
    with Server(home) as first, first.client() as client:
        dialogs = Dialogs(client, project)
        dialog = dialogs.post("", {})["id"]
        with dialogs.chat(dialog, {"message": "Go"}) as events:
            next(events)
            (project / "made.py").write_text("made\n")
            dialogs.post(f"/{dialog}/chat/events", {"events": told})
            first.kill()
            with pytest.raises(httpx2.HTTPError):
                list(events)
    with Server(home) as second, second.client() as client:
        dialogs = Dialogs(client, project)
        assert dialogs.post(f"/{dialog}/chat/events", {"events": [{"type": "done"}]})["ended"]
        events = dialogs.get(f"/{dialog}/history")["events"]
        assert [event["content"] for event in events] == ["Go", "So far."]
        (changed,) = dialogs.get(f"/{dialog}/session")["changed_files"]
        assert (changed["path"], changed["status"]) == ("made.py", "added")
        assert dialogs.get("/current")["id"] == dialog
    with mulligan.open(project, home=str(home)) as workspace:
        assert workspace.maintenance.verify().clean


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
FIELDS = ("title", "set_current", "id", "message", "messages", "checkpoint_id", "force", "events",
          "timeout", "dialog_id")  # fmt: skip
PARTS = ("", "/current", "/ID", "/ID/history", "/ID/checkpoints", "/ID/session", "/ID/approve",
         "/ID/reset", "/ID/restore", "/ID/chat/events", "/..", "/%00", "/%ff/session")  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "POST", "PATCH"]),
    path=st.sampled_from(PARTS),
    body=st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON,
    query=st.dictionaries(
        st.sampled_from(["limit", "before", "after", "id", "sort", "offset", "x"]),
        st.text(max_size=6) | st.integers().map(str),
    ),
)
def test_whatever_is_asked_of_dialogs_is_answered_and_nothing_breaks(
    dialogs: Dialogs, dialog: str, method: str, path: str, body: Any, query: dict[str, str]
) -> None:
    response = dialogs.client.request(
        method, f"/api/dialogs{path.replace('ID', dialog)}", params=dialogs.query | query,
        content=json.dumps(body), headers={"content-type": "application/json"},
    )  # fmt: skip
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        assert set(response.json()["error"]) == {"code", "message"}
