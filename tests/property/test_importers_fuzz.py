"""No log can harm its reader.

Lines of the right shape get random values in known places, files are cut off anywhere and mixed
with garbage. Whatever comes, reading ends without an exception, and what it yields can be kept:
ids that are there once, parents that came before, text and data that can be written down.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from log_records import entries
from mulligan.core.entries import CALL_STATES, ENDED, FILE_OPERATIONS, TOOL_CALL, TYPES, NewEntry
from mulligan.importers.claude_code import reader as claude_code
from mulligan.importers.codex import reader as codex
from mulligan.importers.gemini import reader as gemini
from mulligan.importers.records import (
    CallEnded,
    Compacted,
    Importer,
    Leaf,
    Problem,
    Record,
    Session,
    Source,
)

UUID = "11111111-2222-3333-4444-555555555555"
IDS = st.sampled_from(["a", "b", "c", "a:1", "b:1", "L1", "L2:1", "..", "/", "", UUID])

# Every name and every word that the readers look for may stand in any place.
NAME_LIST = """
type uuid parentUuid logicalParentUuid message content role text id name input tool_use_id
is_error toolUseResult filePath structuredPatch originalFile oldStart oldLines newStart newLines
lines agentId status durationMs isSidechain isMeta isCompactSummary subtype compactMetadata
trigger attachment prompt commandMode sessionId cwd forkedFrom timestamp model thinking source
media_type summary leafUuid customTitle aiTitle payload call_id arguments output metadata
exit_code duration_seconds duration secs nanos action command changes add update delete
unified_diff move_path item stdout aggregated_output invocation server tool result Ok Err
num_turns thread_name forked_from_id subagent thread_spawn parent_thread_id record_type $set
$rewindTo messages history parts toolCalls args functionCall functionResponse response error
resultDisplay fileDiff originalContent newContent isNewFile thoughts subject description
displayContent inlineData mimeType projectHash startTime directories file_path old_string
new_string
"""
NAMES = st.sampled_from(NAME_LIST.split())
WORD_LIST = """
user assistant system attachment summary compact_boundary queued_command text thinking tool_use
tool_result image Write Edit Task create <synthetic> session_meta response_item event_msg
turn_context compacted message reasoning function_call custom_tool_call local_shell_call
web_search_call function_call_output user_message agent_message item_completed UserMessage
AgentMessage CommandExecution FileChange McpToolCall exec_command_end patch_apply_begin
patch_apply_end thread_rolled_back apply_patch exec gemini info success error executing
async_launched <state_snapshot> 2026-03-01T10:00:00Z /shop/list
"""
WORDS = st.sampled_from(WORD_LIST.split())
PATCHES = st.sampled_from(
    [
        "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n*** End Patch",
        '{"output": "x", "metadata": {"exit_code": 1}}',
        "@@ -1 +1 @@\n-a\n+b\n",
        "<command-name>/x</command-name>",
        "Exit Code: 1",
    ]
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), IDS, WORDS, PATCHES
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=6)),
    max_leaves=25,
)

CLAUDE = [
    {"type": "user", "uuid": "a", "parentUuid": None, "message": {"content": "One"}},
    {
        "type": "assistant",
        "uuid": "b",
        "parentUuid": "a",
        "message": {
            "model": "m",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "id": "c", "name": "Edit", "input": {"file_path": "/x"}},
            ],
        },
    },
    {
        "type": "user",
        "uuid": "c",
        "parentUuid": "b",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]},
        "toolUseResult": {
            "filePath": "/x",
            "originalFile": "",
            "agentId": "b",
            "structuredPatch": [
                {"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": 1, "lines": ["+a"]}
            ],
        },
    },
    {"type": "system", "uuid": "d", "subtype": "compact_boundary", "logicalParentUuid": "c"},
    {"type": "user", "uuid": "e", "isCompactSummary": True, "message": {"content": "Sum"}},
    {"type": "attachment", "uuid": "f", "attachment": {"type": "queued_command", "prompt": "x"}},
    {"type": "summary", "summary": "S", "leafUuid": "a"},
]
CODEX = [
    {"type": "session_meta", "payload": {"id": "a", "cwd": "/x", "source": {"subagent": {}}}},
    {"type": "turn_context", "payload": {"model": "m", "cwd": "/x"}},
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"text": "One"}]},
    },
    {
        "type": "response_item",
        "payload": {
            "type": "function_call",
            "name": "shell",
            "call_id": "c",
            "arguments": '{"command": ["apply_patch", "*** Begin Patch"]}',
        },
    },
    {
        "type": "event_msg",
        "payload": {
            "type": "item_completed",
            "item": {
                "type": "FileChange",
                "id": "c",
                "changes": {"/x": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-a\n+b\n"}},
            },
        },
    },
    {
        "type": "event_msg",
        "payload": {
            "type": "item_completed",
            "item": {"type": "CommandExecution", "id": "d", "command": ["a"], "duration": {}},
        },
    },
    {
        "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": "c", "output": {"content": "x"}},
    },
    {"type": "compacted", "payload": {"message": "Sum"}},
    {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
    {"id": "a", "timestamp": "2026-03-01T10:00:00Z"},
    {"type": "reasoning", "summary": [{"text": "Hm."}]},
]
GEMINI = [
    {"sessionId": "a", "projectHash": "x", "startTime": "2026-03-01T10:00:00Z"},
    {"id": "a", "type": "user", "content": [{"text": "One"}]},
    {
        "id": "b",
        "type": "gemini",
        "content": "Two",
        "thoughts": [{"subject": "S", "description": "D"}],
        "toolCalls": [
            {
                "id": "c",
                "name": "run_shell_command",
                "args": {},
                "status": "success",
                "agentId": "b",
                "result": [{"functionResponse": {"response": {"output": "Exit Code: 1"}}}],
                "resultDisplay": {
                    "fileDiff": "@@ -1 +1 @@\n-a\n+b\n",
                    "filePath": "/x",
                    "originalContent": "a",
                    "newContent": "b",
                },
            }
        ],
    },
    {"$set": {"messages": [{"id": "d", "type": "user", "content": "<state_snapshot>"}]}},
    {"$rewindTo": "b"},
    {"history": [{"role": "model", "parts": [{"functionCall": {"name": "x"}}]}]},
]
READERS = [
    pytest.param(claude_code.IMPORTER, CLAUDE, f"{UUID}.jsonl", id="claude-code"),
    pytest.param(codex.IMPORTER, CODEX, f"rollout-{UUID}.jsonl", id="codex"),
    pytest.param(gemini.IMPORTER, GEMINI, "chats/session-x.jsonl", id="gemini"),
]
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize(("importer", "known", "name"), READERS)
@FUZZ
@given(data=st.data())
def test_random_values_in_known_fields_do_not_stop_the_reading(
    importer: Importer, known: list[Any], name: str, data: st.DataObject
) -> None:
    shapes = st.sampled_from(known).flatmap(spoiled)
    lines = data.draw(st.lists(st.one_of(shapes, st.sampled_from(known), VALUES), max_size=12))
    check(importer, name, "".join(json.dumps(line) + "\n" for line in lines).encode())


@pytest.mark.parametrize(("importer", "known", "name"), READERS)
@FUZZ
@given(cut=st.integers(0, 3000), garbage=st.binary(max_size=30), at=st.integers(0, 3000))
def test_files_cut_off_anywhere_and_mixed_with_garbage_are_read(
    importer: Importer, known: list[Any], name: str, cut: int, garbage: bytes, at: int
) -> None:
    whole = "".join(json.dumps(line) + "\n" for line in known).encode()
    check(importer, name, whole[:cut])
    check(importer, name, whole[:at] + garbage + whole[at:])
    check(importer, name.removesuffix("l"), whole[:cut])


@pytest.mark.parametrize(("importer", "known", "name"), READERS)
@FUZZ
@given(content=VALUES)
def test_files_of_the_older_forms_with_random_values_are_read(
    importer: Importer, known: list[Any], name: str, content: Any
) -> None:
    for whole in (
        content,
        {"session": content, "items": [content]},
        {"sessionId": "a", "messages": [content, *known], "history": content},
    ):
        check(importer, name.removesuffix("l"), json.dumps(whole).encode())


@pytest.mark.parametrize(("importer", "known", "name"), READERS)
def test_a_prefix_of_a_log_gives_a_prefix_of_its_entries(
    importer: Importer, known: list[Any], name: str
) -> None:
    lines = [json.dumps(line) + "\n" for line in known]
    all_of_it = entries(check(importer, name, "".join(lines).encode()))
    assert all_of_it
    for length in range(len(lines)):
        part = entries(check(importer, name, "".join(lines[:length]).encode()))
        assert part == all_of_it[: len(part)]


def spoiled(line: Any) -> st.SearchStrategy[Any]:
    """The line with a random value in place of one of its parts, or with one more field."""
    paths = list(places(line))

    def replaced(path: tuple[Any, ...], name: str, value: Any) -> Any:
        copy = json.loads(json.dumps(line))
        inner = copy
        for step in path[:-1]:
            inner = inner[step]
        if name and isinstance(inner, dict):
            inner[name] = value
        elif path:
            inner[path[-1]] = value
        return copy

    more = st.one_of(st.just(""), NAMES)
    return st.builds(replaced, st.sampled_from(paths), more, VALUES)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    steps: list[Any] = []
    if isinstance(value, dict | list):
        steps = list(value) if isinstance(value, dict) else list(range(len(value)))
    for step in steps:
        yield from places(value[step], (*path, step))


def check(importer: Importer, name: str, content: bytes) -> list[Record]:
    """Reads a file of that content twice and looks at all that comes out."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        found = list(importer.read(Source(str(path))))
        assert list(importer.read(Source(str(path)))) == found
    ids: set[str] = set()
    calls: set[str] = set()
    sessions: set[str] = set()
    for record in found:
        match record:
            case Session():
                sessions.add(record.id)
                assert record.id
                writable(record)
            case NewEntry():
                assert sessions, "an entry before its session"
                assert record.id and record.id not in ids
                assert record.parent is None or record.parent in ids
                assert record.type in TYPES
                writable(record)
                ids.add(record.id)
                look_at(record.type, record.data or {})
                if record.type == TOOL_CALL:
                    calls.add((record.data or {})["call"])
            case CallEnded():
                assert record.call in calls
                assert record.status in ENDED
                writable(record)
            case Compacted():
                assert record.before in ids
            case Leaf():
                assert record.id is None or record.id in ids
            case Problem():
                assert record.reason.endswith(".")
                assert record.line >= 0
                writable(record)
    assert len(sessions) <= 1
    return found


def look_at(type: str, data: dict[str, Any]) -> None:
    if type == TOOL_CALL:
        assert isinstance(data["name"], str)
        assert data["status"] in CALL_STATES
    elif type == "file_edit":
        assert isinstance(data["path"], str) and data["path"]
        assert data["operation"] in FILE_OPERATIONS
    elif type == "compact_marker":
        assert isinstance(data["compactedCount"], int)


def writable(record: Any) -> None:
    json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
