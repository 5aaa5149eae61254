"""Gemini CLI's logs of updates become sessions, and so do its older files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from log_records import entries, last_session, of, read_log, shape, write_jsonl
from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    COMPACT_MARKER,
    FILE_EDIT,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    USER_INPUT,
)
from mulligan.importers.gemini.reader import IMPORTER
from mulligan.importers.records import CallEnded, Compacted, Leaf, Problem, Record, Session, Source

SESSION = "abcdef01-2222-3333-4444-555555555555"
HEADER = {"sessionId": SESSION, "projectHash": "x", "startTime": "2026-03-01T10:00:00.000Z"}
NAME = "session-2026-03-01T10-00-abcdef01.jsonl"


def message(id: str, type: str, content: Any, **fields: Any) -> dict[str, Any]:
    common = {"id": id, "timestamp": "2026-03-01T10:00:01.000Z", "type": type}
    return common | {"content": content} | fields


def user(id: str, text: str) -> dict[str, Any]:
    return message(id, "user", [{"text": text}])


def call(id: str, name: str = "read_file", status: str = "success", **fields: Any) -> Any:
    response = {"id": id, "name": name, "response": {"output": "pears"}}
    common = {"id": id, "name": name, "args": {"file_path": "list"}, "status": status}
    return common | {"result": [{"functionResponse": response}]} | fields


def chats(home: Path) -> Path:
    folder = home / ".gemini" / "tmp" / "shop" / "chats"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def read(tmp_path: Path, *lines: Any) -> list[Record]:
    return read_log(IMPORTER, write_jsonl(chats(tmp_path) / NAME, HEADER, *lines))


def test_a_repeated_message_adds_only_its_new_parts(tmp_path: Path) -> None:
    answer = message("a1", "gemini", "I look.", model="model-one", thoughts=[])
    found = read(
        tmp_path,
        {"$set": {"messages": [user("x", "<session_context>\nToday is…")]}},
        user("u1", "Count the pears."),
        answer,
        answer | {"toolCalls": [call("c1", status="executing", result=None)]},
        {"$set": {"lastUpdated": "2026-03-01T10:00:02.000Z", "summary": "Counting"}},
        answer | {"toolCalls": [call("c1", timestamp="2026-03-01T10:00:03.000Z")]},
        message("r1", "user", call("c1")["result"]),
        {"$set": {"messages": [user("u1", "Count the pears."), answer]}},
        message("a2", "gemini", "Three."),
    )
    assert shape(found) == [
        ("u1", None, USER_INPUT),
        ("a1", "u1", ASSISTANT_OUTPUT),
        ("a1:c1", "a1", TOOL_CALL),
        ("a1:c1:result", "a1:c1", TOOL_RESULT),
        ("a2", "a1:c1:result", ASSISTANT_OUTPUT),
    ]
    asked = {"name": "read_file", "input": {"file_path": "list"}, "status": "pending"}
    assert entries(found)[2].data == asked | {"call": "c1"}
    assert entries(found)[3].content == "pears"
    assert entries(found)[3].created_at == "2026-03-01T10:00:03.000Z"
    assert of(found, CallEnded) == [CallEnded("c1", "success")]
    assert last_session(found)[:5] == (SESSION, None, "Counting", "model-one", None)


def test_thoughts_and_notices_have_entries_of_their_own(tmp_path: Path) -> None:
    thought = {"subject": "Pears", "description": "How many?"}
    found = read(
        tmp_path,
        message("a1", "gemini", "Three.", thoughts=[thought]),
        message("e1", "error", "No answer."),
    )
    assert [(one.id, one.type, one.content, one.data) for one in entries(found)] == [
        ("a1:thought1", ASSISTANT_OUTPUT, "Pears\nHow many?", {"kind": "reasoning"}),
        ("a1", ASSISTANT_OUTPUT, "Three.", None),
        ("e1", SYSTEM_MESSAGE, "No answer.", {"kind": "error"}),
    ]


def test_file_edits_have_a_diff(tmp_path: Path) -> None:
    old, new = "apples\npears 3\n", "apples\npears 4\n"
    shown = {"fileDiff": "…", "filePath": "/shop/list", "originalContent": old, "newContent": new}
    made = {"fileDiff": "…", "filePath": "/shop/new", "originalContent": "", "newContent": "x\n"}
    found = read(
        tmp_path,
        message(
            "a1",
            "gemini",
            "",
            toolCalls=[
                call("c1", "replace", resultDisplay=shown | {"isNewFile": False}),
                call("c2", "write_file", resultDisplay=made),
                call("c3", "replace", "error", resultDisplay="Error"),
            ],
        ),
    )
    edits = [one for one in entries(found) if one.type == FILE_EDIT]
    assert [(edit.id, edit.parent) for edit in edits] == [
        ("a1:c1:edit", "a1:c1:result"),
        ("a1:c2:edit", "a1:c2:result"),
    ]
    assert edits[0].data == {
        "path": "/shop/list",
        "operation": "modify",
        "additions": 1,
        "deletions": 1,
        "diff": "--- a/shop/list\n+++ b/shop/list\n@@ -1,2 +1,2 @@\n apples\n-pears 3\n+pears 4\n",
    }
    assert edits[1].data is not None and edits[1].data["operation"] == "create"


def test_a_command_that_fails_is_an_error_though_its_tool_succeeded(tmp_path: Path) -> None:
    def ran(id: str, output: str) -> Any:
        response = {"id": id, "name": "run_shell_command", "response": {"output": output}}
        return call(id, "run_shell_command", result=[{"functionResponse": response}])

    calls = [ran("c1", "Output: none\nExit Code: 1\nPGID: 7"), ran("c2", "Exit Code: 0")]
    found = read(tmp_path, message("a1", "gemini", "", toolCalls=calls))
    ends = [(one.call, one.status) for one in of(found, CallEnded)]
    assert ends == [("c1", "error"), ("c2", "success")]


def test_a_rewound_conversation_continues_from_the_parent_of_the_message(tmp_path: Path) -> None:
    lines = [
        user("u1", "One"),
        message("a1", "gemini", "Two"),
        user("u2", "Three"),
        {"$rewindTo": "u2"},
    ]
    assert Leaf("a1") in read(tmp_path, *lines)
    found = read(tmp_path, *lines, user("u3", "Four"))
    assert shape(found)[-1] == ("u3", "a1", USER_INPUT)
    assert not any(isinstance(one, Leaf) for one in found)


@pytest.mark.parametrize(
    ("snapshot", "answer"),
    [
        ("<state_snapshot>They counted.</state_snapshot>", "Got it."),
        ("They counted.", "Got it. Thanks for the additional context!"),
    ],
    ids=["by its form", "by its answer"],
)
def test_a_compression_is_a_marker_with_its_summary(
    tmp_path: Path, snapshot: str, answer: str
) -> None:
    kept = message("a1", "gemini", "Two")
    made_up = message("y", "gemini", answer)
    found = read(
        tmp_path,
        user("u1", "One"),
        kept,
        {"$set": {"messages": [user("s1", snapshot), made_up, kept]}},
        user("u2", "Three"),
    )
    assert shape(found)[2:] == [("s1", "a1", COMPACT_MARKER), ("u2", "s1", USER_INPUT)]
    assert entries(found)[2].data == {"compactedCount": 2, "summary": snapshot}
    assert Compacted("s1") in found


def test_sub_agents_are_off_path_below_the_call_that_spawned_them(tmp_path: Path) -> None:
    folder = chats(tmp_path) / SESSION
    write_jsonl(
        folder / "sub-1.jsonl",
        {"sessionId": "sub-1", "kind": "subagent"},
        user("s1", "Count."),
        message("s2", "gemini", "Three."),
    )
    write_jsonl(folder / "sub-2.jsonl", {"sessionId": "sub-2"}, user("k1", "Wait."))
    asked = [call("c1", "invoke_agent", agentId="sub-1")]
    found = read(tmp_path, user("u1", "Ask"), message("a1", "gemini", "", toolCalls=asked))
    assert [(one.id, one.parent, one.off_path) for one in entries(found)] == [
        ("u1", None, False),
        ("a1:c1", "u1", False),
        ("sub-1:s1", "a1:c1", True),
        ("sub-1:s2", "sub-1:s1", True),
        ("a1:c1:result", "a1:c1", False),
        ("sub-2:k1", None, True),
    ]


def test_a_sub_agent_alone_belongs_to_the_session_of_its_folder(tmp_path: Path) -> None:
    path = write_jsonl(
        chats(tmp_path) / SESSION / "sub-1.jsonl", {"sessionId": "s"}, user("s1", "Go.")
    )
    assert list(IMPORTER.find(str(tmp_path), {})) == [Source(str(path))]
    found = read_log(IMPORTER, path)
    assert found[0] == Session(SESSION)
    assert [(one.id, one.off_path) for one in entries(found)] == [("sub-1:s1", True)]


def test_the_older_form_of_one_object_gives_the_same_entries(tmp_path: Path) -> None:
    messages = [
        user("u1", "One"),
        message("a1", "gemini", "Two", toolCalls=[call("c1")], model="m"),
    ]
    newer = read(tmp_path, *messages)
    path = chats(tmp_path) / NAME[:-1]
    path.write_text(json.dumps(HEADER | {"messages": messages}, indent=2))
    assert read_log(IMPORTER, path) == newer
    assert [one.path for one in IMPORTER.find(str(tmp_path), {})] == [f"{path}l"]


def test_a_saved_checkpoint_is_read_as_a_session(tmp_path: Path) -> None:
    asked = {"functionCall": {"name": "read_file", "args": {"file_path": "list"}}}
    answered = {"functionResponse": {"name": "read_file", "response": {"output": "pears"}}}
    history = [
        {"role": "user", "parts": [{"text": "One"}]},
        {"role": "model", "parts": [{"text": "I look."}, asked]},
        {"role": "user", "parts": [answered]},
    ]
    path = chats(tmp_path).parent / "checkpoint-pears.json"
    for whole in (history, {"history": history}):
        path.write_text(json.dumps(whole))
        assert list(IMPORTER.find(str(tmp_path), {})) == [Source(str(path))]
        found = read_log(IMPORTER, path)
        types = [one.type for one in entries(found)]
        assert types == [USER_INPUT, ASSISTANT_OUTPUT, TOOL_CALL, TOOL_RESULT]
        assert last_session(found).id == "checkpoint-pears-shop"
        assert all(one.created_at for one in entries(found))


def test_the_directory_is_found_by_word_by_hash_or_in_project_root(
    tmp_path: Path,
) -> None:
    place = tmp_path / ".gemini"
    assert last_session(read(tmp_path, user("u1", "One"))).directory is None
    (place / "projects.json").write_text(json.dumps({"projects": {"/home/ada/shop": "shop"}}))
    assert last_session(read(tmp_path, user("u1", "One"))).directory == "/home/ada/shop"
    digest = hashlib.sha256(b"/home/ada/hashed").hexdigest()
    (place / "trustedFolders.json").write_text(json.dumps({"/home/ada/hashed": "TRUST_FOLDER"}))
    (place / "projects.json").write_text("half a fi")
    found = read(tmp_path, {"sessionId": SESSION, "projectHash": digest}, user("u1", "One"))
    assert last_session(found).directory == "/home/ada/hashed"
    (chats(tmp_path).parent / ".project_root").write_text("/home/ada/told\n")
    assert last_session(read(tmp_path, user("u1", "One"))).directory == "/home/ada/told"


def test_unknown_lines_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, {"a": 1}, message("h", "hologram", "x"), user("u1", "One"))
    assert [one.line for one in of(found, Problem)] == [2, 3]
    assert shape(found) == [("u1", None, USER_INPUT)]


def test_an_id_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    write_jsonl(tmp_path / ".gemini" / "tmp" / "x.jsonl", {"sessionId": "x"}, user("s1", "Secret."))
    asked = [call("c1", "invoke_agent", agentId="../../x")]
    path = write_jsonl(
        chats(tmp_path) / NAME,
        {"sessionId": "../..", "projectHash": "x"},
        message("a1", "gemini", "", toolCalls=asked),
    )
    contents = [one.content for one in entries(read_log(IMPORTER, path))]
    assert contents == ["", "pears"]
