"""pi's session files: versions 1 to 3, trees, tools, compaction, and what cannot be taken."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from log_records import entries, of, read_log, write_jsonl
from mulligan.core.entries import NewEntry
from mulligan.importers.pi.reader import IMPORTER
from mulligan.importers.records import CallEnded, Compacted, Leaf, Problem, Record, Session, Source

HEADER = {
    "type": "session",
    "version": 3,
    "id": "s1",
    "timestamp": "2026-01-02T10:00:00.000Z",
    "cwd": "/shop",
}


def read(folder: Path, *lines: Any) -> list[Record]:
    return read_log(IMPORTER, write_jsonl(folder / "2026-01-02T10-00-00-000Z_s1.jsonl", *lines))


def line(id: str, parent: str | None, type: str = "message", **fields: Any) -> dict[str, Any]:
    times = {"timestamp": "2026-01-02T10:00:01.000Z"}
    return {"type": type, "id": id, "parentId": parent, **times, **fields}


def said(id: str, parent: str | None, role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return line(id, parent, message={"role": role, "content": content, **fields})


def call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": id, "name": name, "arguments": arguments}


def result(id: str, parent: str, call: str, output: str, **fields: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": output}]
    return said(id, parent, "toolResult", content, toolCallId=call, **fields)


def test_a_conversation_keeps_ids_parents_times_and_models(tmp_path: Path) -> None:
    records = read(
        tmp_path,
        HEADER,
        said("a", None, "user", "Hello"),
        said("b", "a", "assistant", [{"type": "text", "text": "Hi"}], model="m1"),
    )
    assert records[0] == Session("s1", directory="/shop", created_at="2026-01-02T10:00:00.000Z")
    assert records[1] == NewEntry(
        "user_input", "Hello", id="a", parent=None, created_at="2026-01-02T10:00:01.000Z"
    )
    answer = entries(records)[1]
    assert (answer.type, answer.content, answer.id, answer.parent, answer.model) == (
        *("assistant_output", "Hi", "b", "a", "m1"),
    )
    assert Session("s1", model="m1") in records
    assert Session("s1", updated_at="2026-01-02T10:00:01.000Z") in records
    assert not of(records, Leaf) and not of(records, Problem)


def test_entries_of_one_line_become_a_chain(tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "I look."},
        call("c1", "bash", command="ls"),
    ]
    found = entries(
        read(tmp_path, HEADER, said("a", None, "user", "?"), said("b", "a", "assistant", blocks),
             said("c", "b", "user", "!"))
    )  # fmt: skip
    assert [(entry.id, entry.parent) for entry in found] == [
        *(("a", None), ("b", "a"), ("b:1", "b"), ("b:2", "b:1"), ("c", "b:2")),
    ]
    assert found[1].data == {"kind": "reasoning"}
    asked = {"name": "bash", "input": {"command": "ls"}, "status": "running", "call": "c1"}
    assert found[3].data == asked


def test_a_result_ends_its_call_and_is_an_entry(tmp_path: Path) -> None:
    asked = said("b", None, "assistant", [call("c1", "bash", command="false")])
    answered = result("c", "b", "c1", "no", toolName="bash", isError=True)
    answered["timestamp"] = "2026-01-02T10:00:01.250Z"
    records = read(tmp_path, HEADER, asked, answered)
    assert of(records, CallEnded) == [CallEnded("c1", "error", "no", 250.0)]
    assert entries(records)[1].data == {"call": "c1", "name": "bash", "is_error": True}


def test_edits_and_writes_become_file_edits_with_their_diffs(tmp_path: Path) -> None:
    shown = " 1 one\n-2 two\n+2 zwei\n+3 drei\n 3 four\n   ...\n 9 nine\n-10 ten\n 11 end"
    records = read(
        tmp_path,
        HEADER,
        said("a", None, "assistant", [
            call("w", "write", path="new.txt", content="x\ny\n"),
            call("e", "edit", path="a.txt", edits=[{"oldText": "two", "newText": "zwei"}]),
            call("w2", "write", path="new.txt", content="z\n"),
            call("f", "edit", path="no.txt", oldText="a", newText="b"),
            call("p", "edit", path="b.txt", edits=[{"oldText": "p\n", "newText": "q\n"}]),
        ]),
        result("r1", "a", "w", "ok"),
        result("r2", "r1", "e", "ok", details={"diff": shown}),
        result("r3", "r2", "w2", "ok"),
        result("r4", "r3", "f", "not found", isError=True),
        result("r5", "r4", "p", "ok"),
    )  # fmt: skip
    edits = [entry.data for entry in entries(records) if entry.type == "file_edit"]
    assert edits == [
        {
            "path": "new.txt",
            "operation": "create",
            "diff": "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n",
            "additions": 2,
            "deletions": 0,
        },
        {
            "path": "a.txt",
            "operation": "modify",
            "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+zwei\n+drei\n four\n"
            "@@ -9,3 +10,2 @@\n nine\n-ten\n end\n",
            "additions": 2,
            "deletions": 2,
        },
        {"path": "new.txt", "operation": "modify", "additions": 1},
        {
            "path": "b.txt",
            "operation": "modify",
            "diff": "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-p\n+q\n",
            "additions": 1,
            "deletions": 1,
        },
    ]
    assert next(entry for entry in entries(records) if entry.type == "file_edit").parent == "r1"


def test_branches_stay_branches_and_the_last_line_is_the_leaf(tmp_path: Path) -> None:
    records = read(
        tmp_path,
        HEADER,
        said("a", None, "user", "1"),
        said("b", "a", "user", "2"),
        line("s", "a", "branch_summary", summary="tried 2", fromId="b", skipFiles=True),
        said("c", "s", "user", "3"),
        said("d", None, "user", "from the start"),
        line("e", "c", "something-new"),
    )
    assert [(entry.id, entry.parent) for entry in entries(records)] == [
        *(("a", None), ("b", "a"), ("s", "a"), ("c", "s"), ("d", None)),
    ]
    summary = entries(records)[2]
    assert (summary.type, summary.content) == ("branch_summary", "tried 2")
    assert summary.data == {"fromId": "b", "skipFiles": True}
    # The last line made no entry, and stands where its parent is.
    assert of(records, Leaf) == [Leaf("c")]
    assert [problem.line for problem in of(records, Problem)] == [7]


def test_compaction_hides_what_is_above_the_first_entry_kept(tmp_path: Path) -> None:
    records = read(
        tmp_path,
        HEADER,
        said("a", None, "user", "1"),
        said("b", "a", "user", "2"),
        said("c", "b", "user", "3"),
        line("d", "c", "compaction", summary="S", firstKeptEntryId="c", tokensBefore=9),
        line("e", "d", "compaction", summary="T", firstKeptEntryId="gone"),
    )
    first, second = entries(records)[3:]
    assert first.type == "compact_marker" and first.content == "S"
    assert first.data == {"compactedCount": 2, "summary": "S", "tokensBefore": 9}
    assert second.data == {"compactedCount": 4, "summary": "T"}
    assert of(records, Compacted) == [Compacted("c"), Compacted("e")]


def test_snapshots_labels_titles_and_models_are_kept(tmp_path: Path) -> None:
    snapshot = {"baselineTreeHash": None, "snapshotTreeHash": "x", "diff": None, "turnIndex": 0}
    point = {"preRollbackTreeHash": "x", "rolledBackToLeaf": "a", "restoredFiles": []}
    records = read(
        tmp_path,
        HEADER,
        line("a", None, "model_change", provider="p", modelId="m"),
        line("b", "a", "custom", customType="step-snapshot", data=snapshot),
        line("c", "b", "custom", customType="unrevert-point", data=point),
        line("d", "c", "label", targetId="b", label="good"),
        line("e", "d", "session_info", name=" The shop "),
        line("f", "e", "custom", customType="mine", data={"n": 1}),
        line("g", "f", "custom_message", customType="mine", content="note"),
        line("h", "g", "thinking_level_change", thinkingLevel="high"),
    )
    found = {entry.id: entry for entry in entries(records)}
    assert (found["b"].type, found["b"].data) == ("step_snapshot", snapshot)
    assert (found["c"].type, found["c"].data) == ("unrevert_point", point)
    assert found["d"].data == {"label": {"target": "b", "label": "good"}}
    assert found["a"].data == {"model_change": {"provider": "p", "model": "m"}}
    assert found["f"].type == found["h"].type == "ui_event"
    assert (found["g"].type, found["g"].content) == ("system_message", "note")
    assert Session("s1", title="The shop") in records and Session("s1", model="m") in records


def test_version_1_is_a_chain_with_ids_from_line_numbers(tmp_path: Path) -> None:
    def old(role: str, content: str) -> dict[str, Any]:
        return {
            "type": "message",
            "timestamp": "2025-01-01T00:00:00.000Z",
            "message": {"role": role, "content": content},
        }

    records = read(
        tmp_path,
        {"type": "session", "id": "s1", "cwd": "/x", "provider": "p", "modelId": "m",
         "branchedFrom": "/else/2025-01-01T00-00-00-000Z_s0.jsonl"},
        old("user", "1"),
        old("assistant", "2"),
        {"type": "compaction", "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 1},
        old("hookMessage", "3"),
    )  # fmt: skip
    assert records[0] == Session("s1", directory="/x", model="m", forked_from="s0")
    assert [(entry.id, entry.parent) for entry in entries(records)] == [
        *(("L2", None), ("L3", "L2"), ("L4", "L3"), ("L5", "L4")),
    ]
    assert of(records, Compacted) == [Compacted("L3")]
    assert not of(records, Problem)


def test_a_command_of_the_user_is_a_call_with_its_result(tmp_path: Path) -> None:
    message = {"role": "bashExecution", "command": "ls", "output": "a\n", "exitCode": 2}
    records = read(tmp_path, HEADER, line("a", None, message=message))
    asked, answered = entries(records)
    assert asked.data is not None and asked.data["by"] == "user" and asked.data["call"] == "a"
    assert (answered.id, answered.parent, answered.content) == ("a:1", "a", "a\n")
    assert of(records, CallEnded) == [CallEnded("a", "error", "a\n")]


def test_invalid_lines_are_reported_and_the_rest_stays_connected(tmp_path: Path) -> None:
    records = read(
        tmp_path,
        HEADER,
        said("a", None, "user", "1"),
        "{nonsense",
        said("c", "b", "user", "its parent was lost"),
        said("a", "c", "user", "an id again"),
        said("d", "c", "nobody", "?"),
        {**HEADER, "id": "s2"},
        said("e", "d", "user", "below the one nobody knows"),
    )
    assert [(entry.id, entry.parent) for entry in entries(records)] == [
        *(("a", None), ("c", "a"), ("e", "c")),
    ]
    assert [problem.line for problem in of(records, Problem)] == [3, 5, 6, 7]


def test_without_a_header_the_file_name_gives_the_session_id(tmp_path: Path) -> None:
    records = read(tmp_path, said("a", None, "user", "1"))
    assert of(records, Session)[0] == Session("s1")
    assert len(of(records, Problem)) == 1 and len(entries(records)) == 1


def test_reading_twice_gives_the_same_and_an_empty_file_nothing(tmp_path: Path) -> None:
    lines = [HEADER, {"type": "message", "message": {"role": "user", "content": "no id"}}]
    first = read(tmp_path, *lines)
    assert [entry.id for entry in entries(first)] == ["L2"]
    assert read(tmp_path, *lines) == first
    assert read(tmp_path) == []


def test_a_missing_file_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(IMPORTER.read(Source(str(tmp_path / "none.jsonl"))))


def test_logs_are_found_oldest_first_and_links_are_not_followed(tmp_path: Path) -> None:
    sessions = tmp_path / "home" / ".pi" / "agent" / "sessions"
    new = sessions / "--a--" / "2026-02-01T00-00-00-000Z_x.jsonl"
    old = sessions / "--b--" / "2026-01-01T00-00-00-000Z_y.jsonl"
    outside = tmp_path / "outside" / "2025-01-01T00-00-00-000Z_z.jsonl"
    for path in (new, old, outside):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (sessions / "--b--" / "notes.txt").write_text("")
    os.symlink(outside.parent, sessions / "--c--")
    os.symlink(outside, sessions / "--b--" / "2024-01-01T00-00-00-000Z_w.jsonl")
    home = str(tmp_path / "home")
    assert list(IMPORTER.find(home, {})) == [Source(str(old)), Source(str(new))]
    moved = {"PI_CODING_AGENT_DIR": str(tmp_path), "PI_CODING_AGENT_SESSION_DIR": "~/.pi"}
    assert list(IMPORTER.find(home, moved)) == [Source(str(old)), Source(str(new))]
    assert list(IMPORTER.find(str(tmp_path / "nobody"), {})) == []
