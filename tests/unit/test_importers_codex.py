"""Codex's rollouts become sessions, in the forms of all its versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from log_records import entries, last_session, of, read_log, texts, write_jsonl
from mulligan.core.entries import (
    ASSISTANT_OUTPUT,
    COMPACT_MARKER,
    FILE_EDIT,
    SYSTEM_MESSAGE,
    TOOL_CALL,
    TOOL_RESULT,
    USER_INPUT,
)
from mulligan.importers.codex.reader import IMPORTER
from mulligan.importers.records import CallEnded, Compacted, Leaf, Problem, Record, Session

SESSION = "01234567-89ab-7cde-8f01-23456789abcd"
NAME = f"rollout-2026-03-01T10-00-00-{SESSION}.jsonl"
META = {"id": SESSION, "timestamp": "2026-03-01T10:00:00Z", "cwd": "/shop", "source": "cli"}
PATCH = (
    "*** Begin Patch\n*** Add File: new.txt\n+one\n+two\n*** Update File: list.txt\n"
    "*** Move to: prices.txt\n@@\n-pears 3\n+pears 4\n*** Delete File: old.txt\n*** End Patch\n"
)


def line(type: str, /, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-03-01T10:00:01.000Z", "type": type, "payload": payload}


def response(type: str, /, **fields: Any) -> dict[str, Any]:
    return line("response_item", type=type, **fields)


def message(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return response("message", role=role, content=content)


def event(type: str, /, **fields: Any) -> dict[str, Any]:
    return line("event_msg", type=type, **fields)


def item(type: str, /, **fields: Any) -> dict[str, Any]:
    return event("item_completed", item={"type": type, **fields})


def read(tmp_path: Path, *lines: Any, name: str = NAME) -> list[Record]:
    return read_log(IMPORTER, write_jsonl(tmp_path / name, *lines))


def test_a_text_repeated_by_several_types_of_lines_becomes_one_entry(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        line("session_meta", **META),
        message("developer", "Instructions."),
        message("user", "# AGENTS.md instructions for /shop", "<environment_context>…"),
        line("turn_context", cwd="/shop", model="model-one"),
        message("user", "Count the pears."),
        item("UserMessage", content=[{"type": "text", "text": "Count the pears."}]),
        event("user_message", message="Count the pears."),
        item("Reasoning", summary_text=["Hm."], raw_content=[]),
        response("reasoning", summary=[{"type": "summary_text", "text": "Hm."}]),
        item("AgentMessage", content=[{"type": "Text", "text": "Three."}]),
        message("assistant", "Three."),
        event("agent_message", message="Three."),
    )
    assert texts(found) == [
        (USER_INPUT, "Count the pears."),
        (ASSISTANT_OUTPUT, "Hm."),
        (ASSISTANT_OUTPUT, "Three."),
    ]
    assert [(one.id, one.parent) for one in entries(found)] == [
        ("L5", None),
        ("L8", "L5"),
        ("L10", "L8"),
    ]
    assert entries(found)[1].data == {"kind": "reasoning"}
    assert last_session(found) == Session(
        SESSION,
        "/shop",
        model="model-one",
        created_at="2026-03-01T10:00:00.000Z",
        updated_at="2026-03-01T10:00:01.000Z",
    )


def test_a_text_that_is_said_twice_is_kept_twice(tmp_path: Path) -> None:
    twice = [message("user", "Go on."), event("user_message", message="Go on.")] * 2
    assert texts(read(tmp_path, line("session_meta", **META), *twice)) == [
        (USER_INPUT, "Go on."),
        (USER_INPUT, "Go on."),
    ]


def test_a_command_is_a_call_that_ends_with_its_exit_code(tmp_path: Path) -> None:
    run = {"name": "exec_command", "arguments": '{"cmd": "cat list"}', "call_id": "c1"}
    text = "Chunk ID: 1\nWall time: 0.5 seconds\nProcess exited with code 1\nOutput:\nnone\n"
    found = read(
        tmp_path,
        response("function_call", **run),
        response("function_call_output", call_id="c1", output=text),
    )
    call, result = entries(found)
    asked = {"cmd": "cat list"}
    assert call.data == {
        "name": "exec_command",
        "input": asked,
        "status": "pending",
        "call": "c1",
    }
    assert (result.content, result.parent) == (text, call.id)
    assert result.data == {"call": "c1", "name": "exec_command", "is_error": True}
    assert CallEnded("c1", "error", duration=500) in found


def test_the_item_of_a_command_ends_its_call_once(tmp_path: Path) -> None:
    command = {"id": "c1", "command": ["bash", "-lc", "ls"], "exit_code": 0, "status": "completed"}
    found = read(
        tmp_path,
        response("function_call", name="exec_command", arguments="{}", call_id="c1"),
        item("CommandExecution", **command, duration={"secs": 1, "nanos": 500_000_000}),
        response("function_call_output", call_id="c1", output="list"),
    )
    assert of(found, CallEnded) == [CallEnded("c1", "success", duration=1500)]
    assert [one.type for one in entries(found)] == [TOOL_CALL, TOOL_RESULT]


def test_commands_and_edits_of_a_script_are_read_from_items(tmp_path: Path) -> None:
    script = "text(await tools.apply_patch(`*** Begin Patch\n*** End Patch`))"
    changed = {"/shop/new.txt": {"type": "add", "content": "one\n"}}
    found = read(
        tmp_path,
        response("custom_tool_call", name="exec", input=script, call_id="c1"),
        item("FileChange", id="exec-1", changes=changed, status="completed", stdout="Done."),
        item("CommandExecution", id="exec-2", command=["bash", "-lc", "ls"], exit_code=2),
        response("custom_tool_call_output", call_id="c1", output=[{"text": "Script completed"}]),
    )
    assert [(one.id, one.parent, one.type) for one in entries(found)] == [
        ("L1", None, TOOL_CALL),
        ("L2", "L1", TOOL_CALL),
        ("L2:1", "L2", FILE_EDIT),
        ("L2:2", "L2:1", TOOL_RESULT),
        ("L3", "L2:2", TOOL_CALL),
        ("L3:1", "L3", TOOL_RESULT),
        ("L4", "L3:1", TOOL_RESULT),
    ]
    assert entries(found)[4].data is not None
    assert entries(found)[4].data["input"] == {"command": "ls"}
    assert [one[:2] for one in of(found, CallEnded)] == [
        ("exec-1", "success"),
        ("exec-2", "error"),
        ("c1", "success"),
    ]


def test_file_changes_have_a_diff(tmp_path: Path) -> None:
    diff = "@@ -1,2 +1,2 @@\n apples\n-pears 3\n+pears 4\n"
    changed = {
        "/shop/new.txt": {"type": "add", "content": "one\n"},
        "/shop/list.txt": {"type": "update", "unified_diff": diff, "move_path": None},
        "/shop/a.txt": {"type": "update", "unified_diff": "", "move_path": "/shop/b.txt"},
        "/shop/old.txt": {"type": "delete", "content": "gone\n"},
    }
    told = [
        item("FileChange", id="c1", changes=changed, status="completed"),
        event("patch_apply_end", call_id="c1", changes=changed, success=True),
    ]
    older = {path: {one.pop("type"): one} for path, one in json.loads(json.dumps(changed)).items()}
    told.append(event("patch_apply_end", call_id="c1", changes=older, success=True))
    for one in told:
        found = read(
            tmp_path,
            response("custom_tool_call", name="apply_patch", input=PATCH, call_id="c1"),
            one,
            response("custom_tool_call_output", call_id="c1", output="Exit code: 0\nDone"),
        )
        assert [entry.data for entry in entries(found) if entry.type == FILE_EDIT] == [
            {
                "path": "/shop/new.txt",
                "operation": "create",
                "additions": 1,
                "deletions": 0,
                "diff": "--- /dev/null\n+++ b/shop/new.txt\n@@ -0,0 +1 @@\n+one\n",
            },
            {
                "path": "/shop/list.txt",
                "operation": "modify",
                "additions": 1,
                "deletions": 1,
                "diff": "--- a/shop/list.txt\n+++ b/shop/list.txt\n" + diff,
            },
            {
                "path": "/shop/b.txt",
                "operation": "rename",
                "old_path": "/shop/a.txt",
                "additions": 0,
                "deletions": 0,
            },
            {
                "path": "/shop/old.txt",
                "operation": "delete",
                "additions": 0,
                "deletions": 1,
                "diff": "--- a/shop/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n",
            },
        ]


def test_edits_are_read_from_the_patch_if_no_event_lists_them(tmp_path: Path) -> None:
    shell = json.dumps({"command": ["apply_patch", PATCH]})
    output = json.dumps({"output": "Success.", "metadata": {"exit_code": 0}})
    found = read(
        tmp_path,
        line("session_meta", **META),
        response("function_call", name="shell", arguments=shell, call_id="c1"),
        response("function_call_output", call_id="c1", output=output),
        response("custom_tool_call", name="apply_patch", input=PATCH, call_id="c2"),
        response("custom_tool_call_output", call_id="c2", output="verification failed"),
    )
    edits = [one.data or {} for one in entries(found) if one.type == FILE_EDIT]
    assert [(edit["path"], edit["operation"]) for edit in edits] == [
        ("/shop/new.txt", "create"),
        ("/shop/prices.txt", "rename"),
        ("/shop/old.txt", "delete"),
    ]
    assert (edits[0]["additions"], edits[1]["additions"], edits[1]["deletions"]) == (2, 1, 1)
    assert entries(found)[1].content == "Success."
    assert CallEnded("c2", "error") in found


def test_turns_that_were_rolled_back_are_a_branch(tmp_path: Path) -> None:
    lines = [
        event("user_message", message="One"),
        event("agent_message", message="Two"),
        event("user_message", message="Three"),
        event("agent_message", message="Four"),
        event("thread_rolled_back", num_turns=1),
    ]
    assert Leaf("L2") in read(tmp_path, *lines)
    found = read(tmp_path, *lines, event("user_message", message="Five"))
    assert [one.parent for one in entries(found)] == [None, "L1", "L2", "L3", "L2"]
    assert not any(isinstance(one, Leaf) for one in found)


def test_a_compaction_is_a_marker_with_its_summary(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        event("user_message", message="One"),
        event("agent_message", message="Two"),
        line("compacted", message="They counted.", replacement_history=[]),
        event("context_compacted"),
    )
    marker = entries(found)[-1]
    assert (marker.type, marker.parent) == (COMPACT_MARKER, "L2")
    assert marker.data == {"compactedCount": 2, "summary": "They counted."}
    assert Compacted("L3") in found


def test_interruptions_and_errors_are_messages_of_the_system(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        event("turn_aborted", reason="interrupted"),
        event("error", message="No answer."),
    )
    assert [(one.type, one.content, one.data) for one in entries(found)] == [
        (SYSTEM_MESSAGE, "interrupted", {"kind": "interrupted"}),
        (SYSTEM_MESSAGE, "No answer.", {"kind": "error"}),
    ]


def test_forks_and_sub_agents_name_their_origin(tmp_path: Path) -> None:
    talk = event("user_message", message="One")
    fork = read(
        tmp_path,
        line("session_meta", **META, forked_from_id="origin"),
        line("session_meta", **META | {"id": "origin"}),
        talk,
    )
    assert (last_session(fork).id, last_session(fork).forked_from) == (SESSION, "origin")
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}}
    assert last_session(
        read(tmp_path, line("session_meta", **META | {"source": source}), talk)
    ) == (last_session(fork)._replace(forked_from="parent"))


def test_a_fork_begins_with_the_entries_of_its_origin(tmp_path: Path) -> None:
    """Newer rollouts of forks hold only what is new; one may be a fork of a fork."""
    folder = tmp_path / ".codex/sessions/2026/03/01"
    folder.mkdir(parents=True)
    older = tmp_path / ".codex/archived_sessions"
    older.mkdir()

    def rollout(digit: int, place: Path, base: tuple[int, int] | None, *texts: str) -> Path:
        name = f"{digit}1234567-89ab-7cde-8f01-23456789abcd"
        meta: dict[str, Any] = META | {"id": name}
        start = 0
        if base is not None:
            thread, start = base
            origin = f"{thread}1234567-89ab-7cde-8f01-23456789abcd"
            held = {"thread_id": origin, "end_ordinal_exclusive": start}
            meta |= {"forked_from_id": origin, "history_base": held}
        lines = [line("session_meta", **meta), *(message("user", text) for text in texts)]
        path = place / f"rollout-2026-03-01T10-00-0{digit}-{name}.jsonl"
        path.write_text(
            "".join(
                json.dumps(one | {"ordinal": start + at}) + "\n" for at, one in enumerate(lines)
            )
        )
        return path

    rollout(1, older, None, "One", "Two", "Left out")
    rollout(2, folder, (1, 3), "Three", "Left out too")
    third = rollout(3, folder, (2, 5), "Four")
    found = read_log(IMPORTER, third)
    assert [one.content for one in entries(found)] == ["One", "Two", "Three", "Four"]
    ids = [one.id for one in entries(found)]
    assert len(set(ids)) == 4
    assert [one.parent for one in entries(found)] == [None, *ids[:3]]
    assert {one.id for one in of(found, Session)} == {third.stem[-36:]}

    # Without it there is still what is new.
    (folder / f"rollout-2026-03-01T10-00-02-2{SESSION[1:]}.jsonl").unlink()
    found = read_log(IMPORTER, third)
    assert [one.content for one in entries(found)] == ["Four"]


def test_a_sub_agent_is_read_off_path_below_its_call(tmp_path: Path) -> None:
    helper = f"1{SESSION[1:]}"
    source = {"subagent": {"thread_spawn": {"parent_thread_id": SESSION, "depth": 1}}}
    theirs = tmp_path / f"rollout-2026-03-01T10-00-05-{helper}.jsonl"
    lines = [
        line("session_meta", **META | {"id": helper, "source": source}),
        response(
            "agent_message", author="/root", recipient="/root/helper",
            content=[{"type": "input_text", "text": "Help."}],
        ),
        line("inter_agent_communication_metadata", trigger_turn=True),
        response("function_call", name="shell", arguments="{}", call_id="c2"),
        response("function_call_output", call_id="c2", output="Exit code: 0\n"),
        line("compacted", message="Short."),
        message("assistant", "Helped."),
    ]  # fmt: skip
    theirs.write_text("".join(json.dumps(one) + "\n" for one in lines))

    def told(*kinds: str) -> list[dict[str, Any]]:
        return [
            item("SubAgentActivity", id="c1", kind=kind, agent_thread_id=helper) for kind in kinds
        ]

    call = response("function_call", name="spawn_agent", arguments="{}", call_id="c1")
    for activity in (told("started"), told("started", "completed")):
        found = read(
            tmp_path, line("session_meta", **META), message("user", "Begin."), call, *activity,
            message("assistant", "Done."),
        )  # fmt: skip
        assert [one for one in found if isinstance(one, Problem | Compacted | Leaf)] == []
        assert {one.id for one in of(found, Session)} == {SESSION}
        aside = [one for one in entries(found) if one.off_path]
        assert [(one.type, one.content) for one in aside] == [
            (SYSTEM_MESSAGE, "Help."), (TOOL_CALL, ""), (TOOL_RESULT, "Exit code: 0\n"),
            (COMPACT_MARKER, "Short."), (ASSISTANT_OUTPUT, "Helped."),
        ]  # fmt: skip
        main = [one for one in entries(found) if not one.off_path]
        assert [one.type for one in main] == [USER_INPUT, TOOL_CALL, ASSISTANT_OUTPUT]
        assert aside[0].parent == main[1].id
        assert main[2].parent == main[1].id
    # By itself it says nothing more, as long as the other is there.
    assert read_log(IMPORTER, theirs) == []
    (tmp_path / NAME).unlink()
    assert last_session(read_log(IMPORTER, theirs)).forked_from == SESSION


def test_the_name_of_a_thread_is_its_title(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        event("user_message", message="One"),
        event("thread_name_updated", thread_name="Pears"),
    )
    assert last_session(found).title == "Pears"


def test_rollouts_without_envelopes_are_read(tmp_path: Path) -> None:
    content = [{"type": "input_text", "text": "<environment_context><cwd>/shop</cwd>"}]
    failed = {"content": "none", "success": False}
    found = read(
        tmp_path,
        {"id": SESSION, "timestamp": "2025-06-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": content},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "One"}]},
        {"type": "local_shell_call", "call_id": "c1", "action": {"command": ["ls"]}},
        {"type": "function_call_output", "call_id": "c1", "output": failed},
    )
    assert [one.type for one in entries(found)] == [USER_INPUT, TOOL_CALL, TOOL_RESULT]
    assert entries(found)[0].created_at == "2025-06-01T10:00:00.000Z"
    assert (last_session(found).id, last_session(found).directory) == (SESSION, "/shop")
    assert CallEnded("c1", "error") in found


def test_the_very_first_form_is_one_object(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2025-04-20-abc.json"
    items = [{"type": "message", "role": "user", "content": [{"text": "One"}]}, 7]
    whole = {"session": {"id": "abc", "timestamp": "2025-04-20T10:00:00Z"}, "items": items}
    path.write_text(json.dumps(whole))
    found = read_log(IMPORTER, path)
    assert texts(found) == [(USER_INPUT, "One")]
    assert last_session(found).id == "abc"
    assert [one.line for one in of(found, Problem)] == [3]


def test_unknown_types_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        line("hologram"),
        event("hologram"),
        response("hologram"),
        item("Hologram"),
        {"type": 3},
        event("user_message", message="One"),
    )
    assert [one.line for one in of(found, Problem)] == [1, 2, 3, 4, 5]
    assert texts(found) == [(USER_INPUT, "One")]


def test_logs_are_found_by_time_in_both_places(tmp_path: Path) -> None:
    old = tmp_path / "archived_sessions" / "rollout-2026-01-01T10-00-00-a.jsonl"
    new = tmp_path / "sessions" / "2026" / "02" / "01" / "rollout-2026-02-01T10-00-00-b.jsonl"
    for path in (new, old, tmp_path / "sessions" / "history.jsonl"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "sessions" / "rollout-link.jsonl").symlink_to(new)
    found = IMPORTER.find("/nowhere", {"CODEX_HOME": str(tmp_path)})
    assert [source.path for source in found] == [str(old), str(new)]


def test_the_directory_is_also_read_from_the_older_sentence(tmp_path: Path) -> None:
    found = read(tmp_path, message("user", "Current working directory: /shop\nGo."))
    assert last_session(found).directory == "/shop"
