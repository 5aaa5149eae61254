"""YAAI's legacy folders: sessions, transcripts, restore points, and what is wrong with them."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from log_records import entries, of, read_log, write_json, write_jsonl
from mulligan.core.entries import NewEntry
from mulligan.importers.records import (
    CallEnded,
    InvalidRecord,
    Problem,
    Session,
    Snapshot,
    SnapshotFile,
    Source,
)
from mulligan.importers.yaai import IMPORTER

AT = "2026-01-02T10:00:00.000Z"
INFO = {"id": "s1", "projectPath": "/shop", "status": "stopped", "createdAt": AT, "updatedAt": AT}


def transcript(home: Path, *lines: Any, info: Any = INFO) -> Path:
    folder = home / ".yaai" / "sessions" / "s1"
    if info is not None:
        write_json(folder / "session.json", info)
    return write_jsonl(folder / "transcript.jsonl", *lines)


def line(id: str, type: str, content: str = "", **fields: Any) -> dict[str, Any]:
    common = {"id": id, "sessionId": "s1", "type": type, "content": content, "timestamp": AT}
    return {**common, **fields}


def test_a_session_keeps_ids_times_order_links_and_flags(tmp_path: Path) -> None:
    path = transcript(
        tmp_path,
        line("a", "user_input", "Hello", isCompacted=True, planItemId="p1", restorePointId="r1"),
        "",
        line("b", "assistant_output", "Hi"),
        line("c", "compact_marker", "", compactMarker={"compactedCount": 1, "summary": "S"}),
        line("d", "file_edit", "", fileEdit={"path": "a", "operation": "modify", "additions": 2}),
    )
    records = read_log(IMPORTER, path)
    assert records[0] == Session("s1", directory="/shop", created_at=AT, updated_at=AT)
    first, second, marker, edit = entries(records)
    assert first == NewEntry(
        "user_input",
        "Hello",
        {"restorePointId": "r1"},
        "a",
        None,
        AT,
        plan_item="p1",
        is_compacted=True,
    )
    assert (second.id, second.parent, second.is_compacted) == ("b", "a", False)
    assert marker.data == {"compactedCount": 1, "summary": "S"}
    assert edit.data == {"path": "a", "operation": "modify", "additions": 2}
    assert not of(records, Problem)


def test_tool_calls_keep_their_state_and_results_end_running_ones(tmp_path: Path) -> None:
    done = {"name": "Read", "input": {"f": 1}, "output": "x", "status": "success", "duration": 5}
    path = transcript(
        tmp_path,
        line("a", "tool_call", toolCall=done),
        line("b", "tool_result", "x"),
        line("c", "tool_call", toolCall={"name": "Bash", "input": {}, "status": "running"}),
        line("d", "tool_result", "no", toolCall={"status": "error"}),
    )
    records = read_log(IMPORTER, path)
    first, second, _, fourth = entries(records)
    assert first.data == {**done, "call": "a"}
    assert second.data == {"call": "a", "is_error": False}
    assert fourth.data == {"call": "c", "is_error": True}
    assert of(records, CallEnded) == [CallEnded("c", "error", "no")]


@pytest.mark.parametrize("place", ["manifests", "snapshots/manifests", "sessions/s1/manifests"])
def test_restore_points_are_snapshots_of_the_entry_they_belong_to(
    tmp_path: Path, place: str
) -> None:
    path = transcript(
        tmp_path, line("a", "user_input"), line("b", "user_input", restorePointId="r4")
    )
    files = [{"path": "x", "hash": "AB", "mode": 33188, "size": 3}, {"hash": "nameless"}, 5]
    point = {
        "id": "r1",
        "sessionId": "s1",
        "description": "before",
        "timestamp": AT,
        "files": files,
        "transcriptEntryId": "a",
        "totalSize": 3,
        "fileCount": 1,
    }
    folder = tmp_path / ".yaai" / place
    write_json(folder / "1.json", point)
    write_json(folder / "2.json", {**point, "id": "r2", "sessionId": "another"})
    write_json(folder / "3.json", "{half")
    write_json(folder / "4.json", {**point, "id": "r4", "files": [], "transcriptEntryId": "gone"})
    write_json(folder / "5.json", point)
    write_json(folder / "6.json", {**point, "id": "r6", "files": {}})
    records = read_log(IMPORTER, path)
    first, second = of(records, Snapshot)
    held = (SnapshotFile("x", "ab", 33188),)
    assert first == Snapshot("r1", "before", AT, "a", held, str(folder / "1.json"))
    assert (second.id, second.entry, second.files) == ("r4", "b", ())
    assert len(entries(records)) == 2
    named = [Path(problem.path).name for problem in of(records, Problem)]
    assert named == ["1.json", "1.json", "2.json", "3.json", "4.json", "5.json", "6.json"]


def test_content_is_read_in_pieces_and_checked_by_its_hash(tmp_path: Path) -> None:
    path = transcript(tmp_path)
    assert IMPORTER.contents is not None
    content = IMPORTER.contents(Source(str(path)))
    whole = bytes(3 << 20)
    name = sha256(whole).hexdigest()
    objects = tmp_path / ".yaai" / "snapshots" / "objects" / name[:2]
    objects.mkdir(parents=True)
    (objects / name).write_bytes(whole)
    assert [len(piece) for piece in content(name)] == [1 << 20] * 3
    (objects / name).write_bytes(whole[1:])
    for wrong in (name, "0" * 64, "../sessions/s1/session.json", ""):
        with pytest.raises(InvalidRecord):
            list(content(wrong))


def test_invalid_lines_are_reported_with_their_number(tmp_path: Path) -> None:
    path = transcript(
        tmp_path,
        line("a", "user_input"),
        "nonsense",
        line("", "user_input"),
        line("a", "user_input"),
        line("b", "dance"),
        line("c", "user_input", sessionId="another"),
        line("d", "file_edit", fileEdit={"operation": "modify"}),
        line("e", "file_edit", fileEdit={"path": "x", "operation": "melt"}),
        line("f", "user_input"),
    )
    records = read_log(IMPORTER, path)
    assert [(entry.id, entry.parent) for entry in entries(records)] == [("a", None), ("f", "a")]
    assert [problem.line for problem in of(records, Problem)] == [2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("info", [None, "{", [1], {"id": 5}])
def test_without_session_json_the_folder_gives_the_session_id(tmp_path: Path, info: Any) -> None:
    path = transcript(tmp_path, line("a", "user_input"), info=info)
    records = read_log(IMPORTER, path)
    assert Session("s1") in records
    assert len(entries(records)) == 1
    assert len(of(records, Problem)) == (0 if isinstance(info, dict) else 1)


def test_folders_are_found_oldest_first_and_links_are_not_followed(tmp_path: Path) -> None:
    sessions = tmp_path / ".yaai" / "sessions"
    new = write_json(sessions / "a" / "session.json", {**INFO, "createdAt": "2026-03-01T00:00:00Z"})
    write_json(sessions / "b" / "session.json", INFO)
    old = write_json(sessions / "b" / "transcript.jsonl", "")
    here = write_json(tmp_path / "project" / "sessions" / "c" / "session.json", "{")
    os.symlink(sessions / "b", sessions / "z")
    (sessions / "empty").mkdir()
    environment = {"PWD": str(tmp_path / "project")}
    found = [Source(str(path)) for path in (here, old, new)]
    assert list(IMPORTER.find(str(tmp_path), environment)) == found
    assert list(IMPORTER.find("/nobody", {})) == []
    assert read_log(IMPORTER, new.parent) == read_log(IMPORTER, new)


def test_a_missing_folder_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_log(IMPORTER, tmp_path / "none" / "transcript.jsonl")
