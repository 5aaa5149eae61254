"""Claude Code's logs become sessions: their tree, calls, edits, compactions and sub-agents."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

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
from mulligan.importers.claude_code.reader import IMPORTER
from mulligan.importers.records import CallEnded, Compacted, Problem, Record, Session, Source

SESSION = "11111111-2222-3333-4444-555555555555"
TIME = "2026-03-01T10:00:0{}.000Z"


def line(kind: str, uuid: str | None, parent: str | None, **fields: Any) -> dict[str, Any]:
    common = {"type": kind, "parentUuid": parent, "sessionId": SESSION, "cwd": "/home/ada/shop"}
    return common | ({"uuid": uuid} if uuid else {}) | {"timestamp": TIME.format(1)} | fields


def user(uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    return line("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def assistant(uuid: str, parent: str | None, *blocks: Any, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "model": "model-one", "content": list(blocks)}
    return line("assistant", uuid, parent, message=message, **fields)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str, name: str, **asked: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": asked}


def result(id: str, content: Any, **fields: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": id, "content": content, **fields}]


def read(tmp_path: Path, *lines: Any) -> list[Record]:
    return read_log(IMPORTER, write_jsonl(tmp_path / f"{SESSION}.jsonl", *lines))


def test_a_conversation_keeps_ids_times_parents_and_session_fields(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION},
        user("u1", None, "Count the pears.", timestamp="2026-03-01T10:00:01Z"),
        assistant("a1", "u1", text("Three."), timestamp="2026-03-01T12:00:02.5+02:00"),
    )
    assert shape(found) == [("u1", None, USER_INPUT), ("a1", "u1", ASSISTANT_OUTPUT)]
    first, second = entries(found)
    assert first.content == "Count the pears."
    assert (second.content, second.model) == ("Three.", "model-one")
    assert second.created_at == "2026-03-01T10:00:02.500Z"
    assert found[0] == Session(SESSION, "/home/ada/shop", created_at=TIME.format(1))
    assert last_session(found)._replace(created_at=None) == Session(
        SESSION, "/home/ada/shop", model="model-one", updated_at="2026-03-01T10:00:02.500Z"
    )


def test_children_of_lines_without_entries_get_the_nearest_entry_above_as_parent(
    tmp_path: Path,
) -> None:
    found = read(
        tmp_path,
        user("u1", None, "One"),
        line("attachment", "x1", "u1", attachment={"type": "skill_listing", "content": "…"}),
        line("progress", "x2", "x1", data={"type": "hook_progress"}),
        assistant("x3", "x2", {"type": "thinking", "thinking": "", "signature": "s"}),
        assistant("a1", "x3", text("Two")),
    )
    assert shape(found) == [("u1", None, USER_INPUT), ("a1", "u1", ASSISTANT_OUTPUT)]


def test_a_rewound_conversation_forks(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        user("u1", None, "One"),
        assistant("a1", "u1", text("Two")),
        user("u2", "a1", "Three"),
        user("u3", "a1", "Rather this"),
    )
    assert [entry.parent for entry in entries(found)] == [None, "u1", "a1", "a1"]


def test_a_parent_that_is_missing_does_not_break_the_chain(tmp_path: Path) -> None:
    found = read(tmp_path, user("u1", None, "One"), assistant("a1", "lost", text("Two")))
    assert shape(found)[1] == ("a1", "u1", ASSISTANT_OUTPUT)


def test_several_blocks_of_a_line_become_a_chain(tmp_path: Path) -> None:
    thinking = {"type": "thinking", "thinking": "Hm."}
    found = read(
        tmp_path,
        user("u1", None, "One"),
        assistant("a1", "u1", thinking, text("I look."), call("c1", "Read", file_path="/p")),
        user("u2", "a1", result("c1", [text("pears"), {"type": "image", "source": {}}])),
    )
    assert shape(found)[1:] == [
        ("a1", "u1", ASSISTANT_OUTPUT),
        ("a1:1", "a1", ASSISTANT_OUTPUT),
        ("a1:2", "a1:1", TOOL_CALL),
        ("u2", "a1:2", TOOL_RESULT),
    ]
    assert entries(found)[1].data == {"kind": "reasoning"}
    assert entries(found)[4].content == "pears\n\n[image]"


def test_results_of_parallel_calls_do_not_fork_the_conversation(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        user("u1", None, "Both"),
        assistant("a1", "u1", call("c1", "Bash", command="left")),
        assistant("a2", "a1", call("c2", "Bash", command="right")),
        user("r1", "a1", result("c1", "")),
        user("r2", "a2", result("c2", "", is_error=True)),
        assistant("a3", "r2", text("Done")),
    )
    assert [(id, parent) for id, parent, _ in shape(found)] == [
        ("u1", None), ("a1", "u1"), ("a2", "a1"), ("r1", "a2"), ("r2", "r1"), ("a3", "r2"),
    ]  # fmt: skip
    ends = of(found, CallEnded)
    assert ends == [CallEnded("c1", "success"), CallEnded("c2", "error")]


def test_a_call_has_name_input_and_id_and_is_pending_until_its_result(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        user("u1", None, "Go"),
        assistant("a1", "u1", call("c1", "Bash", command="ls")),
        user("r1", "a1", result("c1", "pears.txt"), toolUseResult={"durationMs": 12}),
        assistant("a2", "r1", call("c2", "Bash", command="sleep 9")),
    )
    _, first, answer, second = entries(found)
    asked = {"name": "Bash", "input": {"command": "ls"}, "status": "pending", "call": "c1"}
    assert first.data == asked
    assert answer.data == {"call": "c1", "name": "Bash", "is_error": False}
    assert second.data is not None and second.data["status"] == "pending"
    assert of(found, CallEnded) == [CallEnded("c1", "success", duration=12)]


def test_file_edits_have_a_diff(tmp_path: Path) -> None:
    hunk = {
        "oldStart": 1,
        "oldLines": 2,
        "newStart": 1,
        "newLines": 2,
        "lines": [" apples", "-pears 3", "+pears 4"],
    }
    changed = {"filePath": "/shop/list", "originalFile": "x", "structuredPatch": [hunk]}
    made = {"type": "create", "filePath": "/shop/new", "content": "a\nb\n", "originalFile": None}
    found = read(
        tmp_path,
        assistant("a1", None, call("c1", "Edit", file_path="/shop/list")),
        user("r1", "a1", result("c1", "ok"), toolUseResult=changed),
        assistant("a2", "r1", call("c2", "Write", file_path="/shop/new")),
        user("r2", "a2", result("c2", "ok"), toolUseResult=made | {"structuredPatch": []}),
        assistant("a3", "r2", call("c3", "Edit", file_path="/shop/list")),
        user("r3", "a3", result("c3", "no", is_error=True), toolUseResult="Error: no"),
    )
    edits = [entry for entry in entries(found) if entry.type == FILE_EDIT]
    assert [(edit.id, edit.parent) for edit in edits] == [("r1:1", "r1"), ("r2:1", "r2")]
    assert edits[0].data == {
        "path": "/shop/list",
        "operation": "modify",
        "diff": "--- a/shop/list\n+++ b/shop/list\n@@ -1,2 +1,2 @@\n apples\n-pears 3\n+pears 4\n",
        "additions": 1,
        "deletions": 1,
    }
    assert edits[1].data == {
        "path": "/shop/new",
        "operation": "create",
        "diff": "--- /dev/null\n+++ b/shop/new\n@@ -0,0 +1,2 @@\n+a\n+b\n",
        "additions": 2,
        "deletions": 0,
    }


def test_an_edit_without_details_is_described_by_the_input_of_its_call(tmp_path: Path) -> None:
    asked = {"file_path": "/shop/list", "old_string": "3", "new_string": "4\n5"}
    found = read(
        tmp_path,
        assistant("a1", None, call("c1", "Edit", **asked)),
        user("r1", "a1", result("c1", "ok")),
    )
    data = entries(found)[-1].data or {}
    assert (data["path"], data["additions"], data["deletions"]) == ("/shop/list", 2, 1)


def test_a_compaction_is_a_marker_with_its_summary_below_what_it_compacts(tmp_path: Path) -> None:
    boundary = line(
        "system", "b1", None, subtype="compact_boundary", content="Conversation compacted",
        logicalParentUuid="a1", compactMetadata={"trigger": "auto"},
    )  # fmt: skip
    found = read(
        tmp_path,
        user("u1", None, "One"),
        assistant("a1", "u1", text("Two")),
        boundary,
        user("s1", "b1", "They counted.", isCompactSummary=True),
        user("u2", "s1", "Three"),
    )
    assert shape(found)[2:] == [("b1", "a1", COMPACT_MARKER), ("u2", "b1", USER_INPUT)]
    marker = entries(found)[2]
    assert marker.data == {"compactedCount": 2, "summary": "They counted.", "trigger": "auto"}
    assert found[found.index(marker) + 1] == Compacted("b1")


def test_an_older_compaction_has_no_boundary(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        user("u1", None, "One"),
        user("s1", None, "They counted.", isCompactSummary=True),
        user("u2", "s1", "Two"),
    )
    assert shape(found)[1:] == [("s1", "u1", COMPACT_MARKER), ("u2", "s1", USER_INPUT)]


def test_a_boundary_waits_for_its_summary(tmp_path: Path) -> None:
    lines = [
        user("u1", None, "One"),
        line("system", "b1", None, subtype="compact_boundary", logicalParentUuid="u1"),
    ]
    assert shape(read(tmp_path, *lines)) == [("u1", None, USER_INPUT)]
    lines.append(user("u2", "b1", "Two"))
    assert shape(read(tmp_path, *lines))[1:] == [
        ("b1", "u1", COMPACT_MARKER),
        ("u2", "b1", USER_INPUT),
    ]


def test_older_sub_agents_in_the_same_file_are_off_path_below_their_call(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        user("u1", None, "Ask somebody"),
        assistant("a1", "u1", call("c1", "Task", prompt="Count.")),
        user("s1", None, "Count.", isSidechain=True),
        assistant("s2", "s1", text("Three."), isSidechain=True),
        user("r1", "a1", result("c1", "Three.")),
        user("s9", None, "Nobody asked for this.", isSidechain=True),
    )
    assert [(entry.id, entry.parent, entry.off_path) for entry in entries(found)[2:]] == [
        ("s1", "a1", True),
        ("s2", "s1", True),
        ("r1", "a1", False),
        ("s9", None, True),
    ]


def test_sub_agents_with_files_of_their_own_are_read_before_their_result(
    tmp_path: Path,
) -> None:
    project = tmp_path / "projects" / "-shop"
    told = {"status": "completed", "agentId": "b7", "totalDurationMs": 5}
    main = write_jsonl(
        project / f"{SESSION}.jsonl",
        user("u1", None, "Ask somebody"),
        assistant("a1", "u1", call("c1", "Agent", prompt="Count.")),
        user("r1", "a1", result("c1", "Three."), toolUseResult=told),
        assistant("a2", "r1", text("So it is.")),
    )
    agents = project / SESSION / "subagents"
    aside = {"isSidechain": True, "agentId": "b7"}
    write_jsonl(
        agents / "agent-b7.jsonl",
        user("s1", None, "Count.", **aside),
        assistant("s2", "s1", text("Three."), **aside),
    )
    write_jsonl(agents / "agent-killed.jsonl", user("k1", None, "Wait.", **aside))
    found = read_log(IMPORTER, main)
    assert [(entry.id, entry.parent, entry.off_path) for entry in entries(found)] == [
        ("u1", None, False),
        ("a1", "u1", False),
        ("s1", "a1", True),
        ("s2", "s1", True),
        ("r1", "a1", False),
        ("a2", "r1", False),
        ("k1", None, True),
    ]
    assert [source.path for source in IMPORTER.find(str(tmp_path / "home"), {})] == []
    sources = IMPORTER.find("/", {"CLAUDE_CONFIG_DIR": str(tmp_path)})
    assert [source.path for source in sources] == [str(main)]


def test_a_sub_agent_without_its_session_is_found_and_read_alone(tmp_path: Path) -> None:
    path = write_jsonl(
        tmp_path / ".claude" / "projects" / "-shop" / "agent-b7.jsonl",
        user("s1", None, "Count.", isSidechain=True),
        assistant("s2", "s1", text("Three."), isSidechain=True),
    )
    assert list(IMPORTER.find(str(tmp_path), {})) == [Source(str(path))]
    found = read_log(IMPORTER, path)
    assert found[0] == Session(SESSION, "/home/ada/shop")
    assert [(entry.parent, entry.off_path) for entry in entries(found)] == [
        (None, True),
        ("s1", True),
    ]


def test_logs_are_found_oldest_first_and_links_are_not_followed(tmp_path: Path) -> None:
    root = tmp_path / ".claude" / "projects"
    new = write_jsonl(root / "-a" / "22222222-2222-3333-4444-555555555555.jsonl")
    old = write_jsonl(root / "-b" / f"{SESSION}.jsonl")
    outside = write_jsonl(tmp_path / "elsewhere" / "33333333-2222-3333-4444-555555555555.jsonl")
    (root / "-c").symlink_to(outside.parent)
    (root / "-a" / "link.jsonl").symlink_to(outside)
    os.utime(old, (1000, 1000))
    assert [source.path for source in IMPORTER.find(str(tmp_path), {})] == [str(old), str(new)]


def test_a_resumed_session_that_copied_another_names_it(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        user("u1", None, "One", sessionId="older"),
        user("u1", None, "One"),
        user("u2", "u1", "Two"),
    )
    assert last_session(found).id == SESSION
    assert last_session(found).forked_from == "older"
    assert [entry.id for entry in entries(found)] == ["u1", "u2"]


def test_the_title_is_the_user_s_or_the_program_s_but_never_another_session_s(
    tmp_path: Path,
) -> None:
    lines = [
        {"type": "summary", "summary": "Another session", "leafUuid": "elsewhere"},
        {"type": "summary", "summary": "Counting", "leafUuid": "u1"},
        user("u1", None, "One"),
    ]
    assert last_session(read(tmp_path, *lines)).title == "Counting"
    lines.append({"type": "ai-title", "aiTitle": "Counting pears"})
    assert last_session(read(tmp_path, *lines)).title == "Counting pears"
    lines.append({"type": "custom-title", "customTitle": "Pears!"})
    assert last_session(read(tmp_path, *lines)).title == "Pears!"


def test_commands_and_notices_are_not_user_messages(tmp_path: Path) -> None:
    command = "<command-name>/model</command-name><command-args>one</command-args>"
    found = read(
        tmp_path,
        user("u1", None, command),
        user("u2", "u1", "<local-command-stdout>Set.</local-command-stdout>"),
        user("u3", "u2", "<bash-input>ls</bash-input>"),
        user("u4", "u3", "[Request interrupted by user]"),
        user("u5", "u4", "A skill's text", isMeta=True),
        line("system", "y1", "u5", subtype="informational", content="Try again."),
        line("attachment", "q1", "y1", attachment={"type": "queued_command", "prompt": "Wait!"}),
    )
    assert [(one.type, one.content, (one.data or {}).get("kind")) for one in entries(found)] == [
        (USER_INPUT, "/model one", "command"),
        (SYSTEM_MESSAGE, "Set.", "local-command-stdout"),
        (USER_INPUT, "!ls", "command"),
        (SYSTEM_MESSAGE, "[Request interrupted by user]", "interrupted"),
        (SYSTEM_MESSAGE, "A skill's text", "meta"),
        (SYSTEM_MESSAGE, "Try again.", "informational"),
        (USER_INPUT, "Wait!", None),
    ]


def test_every_invalid_line_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    good = json.dumps(user("u1", None, "One")).encode()
    path.write_bytes(
        b"\n".join(
            [
                b"not json",
                b"[1]",
                b'{"type": "user", "message": "\xff"}',
                b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}",
                good,
                json.dumps({"type": "hologram", "uuid": "h"}).encode(),
                json.dumps(assistant("a1", "u1", {"type": "hologram"})).encode(),
                good[:40],
            ]
        )
    )
    found = read_log(IMPORTER, path)
    problems = of(found, Problem)
    assert [problem.line for problem in problems] == [1, 2, 3, 4, 6, 7, 8]
    assert problems[1].reason == "Not a JSON object."
    assert problems[2].reason == "Not UTF-8 at byte 29."
    assert problems[3].reason == "Nested deeper than 100 levels."
    assert problems[4].reason == "Unknown type of line: hologram."
    assert problems[6].reason == "The last line is not complete yet."
    assert [entry.id for entry in entries(found)] == ["u1"]


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "log.jsonl", user("u1", None, "One"), line("user", None, "u1"))
    first = read_log(IMPORTER, path)
    assert [entry.id for entry in entries(first)] == ["u1"]
    assert read_log(IMPORTER, path) == first
