"""AgentSmithy's databases: messages, calls, thoughts, edits, and what is wrong with them."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from log_records import entries, of, read_log
from mulligan.importers.agentsmithy import IMPORTER
from mulligan.importers.records import CallEnded, Problem, Session, Source

TABLES = """
    CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id, message);
    CREATE TABLE dialog_reasoning (id INTEGER PRIMARY KEY, dialog_id, content, message_index);
    CREATE TABLE dialog_file_edits (id INTEGER PRIMARY KEY, dialog_id, file, diff, message_index);
    CREATE TABLE tool_results (tool_call_id PRIMARY KEY, dialog_id, result_json);
"""
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+new\n"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "shop" / ".agentsmithy" / "dialogs" / "d1" / "journal.sqlite"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(TABLES)
    return path


def put(journal: Path, table: str, *values: Any) -> None:
    marks = ", ".join("?" * len(values))
    with closing(sqlite3.connect(journal)) as db, db:
        db.execute(f"INSERT INTO {table} VALUES (NULL, {marks})", values)


def say(journal: Path, type: Any, content: Any, **data: Any) -> None:
    message = {"type": type, "data": {"content": content, **data}}
    put(journal, "message_store", "d1", json.dumps(message))


def test_messages_reasoning_and_edits_come_in_the_order_of_the_conversation(
    journal: Path,
) -> None:
    say(journal, "system", "Be brief.")
    say(journal, "human", [{"type": "text", "text": "Change x."}])
    call = {"name": "edit", "args": {"path": "x.py"}, "id": "c1"}
    say(journal, "ai", "", tool_calls=[call])
    say(journal, "tool", "kept elsewhere", tool_call_id="c1", name="edit", status="error")
    say(journal, "ai", "Done.")
    put(journal, "dialog_reasoning", "d1", zlib.compress(b"I should edit."), 2)
    put(journal, "dialog_file_edits", "d1", "x.py", zlib.compress(DIFF.encode()), 3)
    put(journal, "dialog_file_edits", "d1", "y.py", None, -1)
    put(journal, "dialog_file_edits", "another", "z.py", None, 0)
    with closing(sqlite3.connect(journal)) as db, db:
        result = zlib.compress(b'{"error": "no such file"}')
        db.execute("INSERT INTO tool_results VALUES ('c1', 'd1', ?)", (result,))
    records = read_log(IMPORTER, journal)
    assert records[0] == Session("d1", directory=str(journal.parents[3]))
    found = entries(records)
    assert [(entry.type, entry.content) for entry in found] == [
        ("system_message", "Be brief."),
        ("user_input", "Change x."),
        ("assistant_output", "I should edit."),
        ("tool_call", ""),
        ("tool_result", '{"error": "no such file"}'),
        ("file_edit", ""),
        ("assistant_output", "Done."),
        ("file_edit", ""),
    ]
    assert [entry.parent for entry in found] == [None, *(entry.id for entry in found[:-1])]
    assert found[2].data == {"kind": "reasoning"}
    assert found[3].data == {
        "name": "edit", "input": {"path": "x.py"}, "status": "pending", "call": "c1",
    }  # fmt: skip
    assert found[5].data == {
        "path": "x.py", "operation": "modify", "diff": DIFF, "additions": 1, "deletions": 1,
    }  # fmt: skip
    ended = of(records, CallEnded)
    assert ended == [CallEnded("c1", "error", '{"error": "no such file"}')]
    assert not of(records, Problem)


def test_invalid_messages_are_reported_and_the_rest_is_read(journal: Path) -> None:
    say(journal, "human", "one")
    put(journal, "message_store", "d1", "{half")
    put(journal, "message_store", "d1", None)
    put(journal, "message_store", "d1", "[]")
    say(journal, "dance", "two")
    put(journal, "dialog_file_edits", "d1", "", None, 0)
    put(journal, "dialog_file_edits", "d1", "x", b"not compressed", 0)
    say(journal, "human", {"content": 5})
    records = read_log(IMPORTER, journal)
    found = entries(records)
    assert [entry.id for entry in found] == ["message-1", "message-1:1", "message-6"]
    assert found[1].data is not None and found[1].data["diff"] == "not compressed"
    problems = [record.reason for record in of(records, Problem)]
    assert [reason.partition(":")[0] for reason in problems] == [
        "message-1", *(f"message-{number}" for number in (2, 3, 4, 5)),
    ]  # fmt: skip


def test_an_invalid_database_and_an_empty_one_are_reported(journal: Path) -> None:
    for content in (b"nothing of the kind" * 100, b""):
        journal.write_bytes(content)
        assert [type(record) for record in read_log(IMPORTER, journal)] == [Session, Problem]


def test_dialogs_are_found_from_anywhere_in_the_project(journal: Path, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    bare = project / ".agentsmithy/dialogs/d0/checkpoints/.git"
    bare.mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/master\n")
    (project / "src" / "deep").mkdir(parents=True)
    os.symlink(journal.parent, journal.parent.with_name("d2"))
    found = [Source(str(bare / "HEAD")), Source(str(journal))]
    for place in (project, project / "src" / "deep", journal.parent):
        assert list(IMPORTER.find("/nobody", {"PWD": str(place)})) == found
    (project / "src" / ".git").mkdir()
    for place in (project / "src" / "deep", tmp_path):
        assert list(IMPORTER.find("/nobody", {"PWD": str(place)})) == []
    assert read_log(IMPORTER, bare / "HEAD") == [Session("d0", directory=str(project))]
