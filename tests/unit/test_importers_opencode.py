"""OpenCode's database and the files before it; and that a foreign database is left as it is."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from subprocess import PIPE, Popen, run
from typing import Any

import pytest

from log_records import entries, of, read_log, write_json
from mulligan.core.entries import NewEntry
from mulligan.importers.opencode.reader import IMPORTER
from mulligan.importers.records import CallEnded, Compacted, Leaf, Problem, Record, Session, Source
from mulligan.workspace.opening import open_location
from mulligan.workspace.project.location import known_projects
from mulligan.workspace.transfer.import_logs import import_logs
from mulligan.workspace.workspace import Workspace

TIME = 1_794_798_231_000
AT = "2026-11-16T03:03:51.000Z"
SCHEMA = """
CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT NOT NULL, title TEXT,
    version TEXT, revert TEXT, agent TEXT, model TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER,
    data TEXT);
"""


TRUNCATE = "PRAGMA wal_checkpoint(TRUNCATE)"
"""Returns a row that begins with 1 if a reader blocks it; never raises for that."""


class Written:
    """A database as OpenCode would write it, one message after another."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.executescript("PRAGMA journal_mode = WAL;" + SCHEMA)
        self.count = 0

    def session(self, id: str = "ses_1", **fields: Any) -> None:
        row = {"id": id, "directory": "/shop", "title": "Tidy", "time_created": TIME, **fields}
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        self.database.execute(f"INSERT INTO session ({names}) VALUES ({marks})", [*row.values()])

    def message(self, role: str, *parts: Any, session: str = "ses_1", **fields: Any) -> str:
        self.count += 1
        id = f"msg_{self.count:03}"
        info = {"role": role, "time": {"created": TIME}, **fields}
        self.database.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?)", (id, session, TIME, json.dumps(info))
        )
        for part in parts:
            self.count += 1
            data = part if isinstance(part, str | bytes) else json.dumps(part)
            row = (f"prt_{self.count:03}", id, session, TIME, data)
            self.database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", row)
        return id

    def empty_wal(self) -> None:
        """Move everything from the WAL into the database file."""
        assert self.database.execute(TRUNCATE).fetchone()[0] == 0, "a reader blocks the checkpoint"

    def leave_wal_mode(self) -> None:
        """Delete the WAL; SQLite answers with the old mode if a reader is in the way."""
        mode = self.database.execute("PRAGMA journal_mode = DELETE").fetchone()
        assert mode == ("delete",), "a reader keeps the database in WAL mode"

    def elsewhere(self, sql: str) -> list[Any]:
        """Run a statement in another process, which waits for no lock, and give its first row.

        Two SQLite libraries in one process do not see each other's locks.
        """
        code = """
import json, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
print(json.dumps(database.execute(sys.argv[2]).fetchone()))
"""
        command = [sys.executable, "-c", code, str(self.path), sql]
        done = run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout) or []

    def read(self, part: str = "ses_1") -> list[Record]:
        return read_log(IMPORTER, self.path, part)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    written = Written(tmp_path / "data" / "opencode" / "opencode.db")
    with closing(written.database):
        yield written


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def tool(name: str, status: str = "completed", **state: Any) -> dict[str, Any]:
    times = {"time": {"start": TIME + 10, "end": TIME + 35}}
    state = {"status": status, "input": {}, "output": "ok", "metadata": {}, **times, **state}
    return {"type": "tool", "tool": name, "callID": f"call_{name}", "state": state}


def test_a_session_keeps_its_fields(written: Written) -> None:
    model = json.dumps({"id": "m", "providerID": "p"})
    written.session(model=model, agent="build", parent_id="ses_0", time_updated=TIME + 5)
    written.message("user", text("Hello"))
    written.message("assistant", {"type": "step-start"}, text("Hi"), modelID="m")
    assert written.read() == [
        Session("ses_1", "/shop", "Tidy", "m", "build", AT, AT[:-2] + "5Z", "ses_0"),
        NewEntry("user_input", "Hello", id="prt_002", parent=None, created_at=AT),
        NewEntry(
            "assistant_output", "Hi", id="prt_005", parent="prt_002", created_at=AT, model="m"
        ),
        Leaf("prt_005"),
    ]


def test_sub_agents_are_read_off_path_below_their_calls(written: Written) -> None:
    """One that a call names below that call; one that nothing names at the end."""
    written.session()
    for id, above in (("ses_2", "ses_1"), ("ses_3", "ses_2"), ("ses_4", "ses_1")):
        written.session(id, parent_id=above)
    written.message("user", text("Begin."))
    call = tool("task", metadata={"sessionId": "ses_2"})
    written.message("assistant", call, text("Done."))
    written.message("user", text("Help."), session="ses_2")
    inner = tool("task", metadata={"sessionId": "ses_3"}) | {"callID": "call_inner"}
    written.message("assistant", inner, text("Helped."), session="ses_2", modelID="other")
    written.message("assistant", text("Deeper."), session="ses_3")
    written.message("assistant", text("Short."), session="ses_4", summary=True)

    records = written.read()
    assert [each.id for each in of(records, Session)] == ["ses_1"]
    assert len(of(records, Leaf)) == 1
    assert of(records, Compacted) == of(records, Problem) == []
    found = entries(records)
    main = [(each.type, each.content) for each in found if not each.off_path]
    assert main == [
        ("user_input", "Begin."), ("tool_call", ""), ("tool_result", "ok"),
        ("assistant_output", "Done."),
    ]  # fmt: skip
    aside = [each for each in found if each.off_path]
    assert [each.content for each in aside] == ["Help.", "", "Deeper.", "ok", "Helped.", "Short."]
    assert aside[0].parent == found[1].id
    assert aside[2].parent == aside[1].id
    assert aside[5].parent is None

    # They come with the session that they work for, and not by themselves too.
    data = str(written.path.parent.parent)
    found_ids = [each.part for each in IMPORTER.find("/nowhere", {"XDG_DATA_HOME": data})]
    assert found_ids == ["ses_1"]
    assert [each.id for each in of(written.read(""), Session)] == ["ses_1"]


def test_a_default_title_is_none(written: Written) -> None:
    written.session(title="New session - 2026-11-16T03:03:51.887Z")
    assert of(written.read(), Session)[0].title is None


def test_a_tool_part_is_a_call_its_end_and_its_result(written: Written) -> None:
    written.session()
    written.message(
        "assistant",
        {"type": "reasoning", "text": "Hm."},
        tool("bash", input={"command": "false"}, metadata={"exit": 1}),
        tool("grep", status="error", error="bad pattern"),
        tool("task", status="running"),
    )
    records = written.read()
    thought, asked, answered, *_ = entries(records)
    assert thought.data == {"kind": "reasoning"}
    assert asked.data == {
        "name": "bash",
        "input": {"command": "false"},
        "status": "running",
        "call": "call_bash",
    }
    assert (answered.id, answered.parent) == (f"{asked.id}:1", asked.id)
    assert answered.data == {"call": "call_bash", "name": "bash", "is_error": True}
    assert of(records, CallEnded) == [
        CallEnded("call_bash", "error", "ok", 25),
        CallEnded("call_grep", "error", "bad pattern", 25),
    ]
    assert [entry.type for entry in entries(records)][-1] == "tool_call"


def test_a_call_that_has_ended_since_keeps_its_entry(written: Written) -> None:
    written.session()
    written.message("assistant", tool("bash", status="running"), tool("grep"))
    before = written.read()
    written.database.execute("UPDATE part SET data = ? WHERE id = 'prt_002'", (
        json.dumps(tool("bash")),
    ))  # fmt: skip
    after = written.read()
    assert entries(before)[0] == entries(after)[0]
    assert {entry.id for entry in entries(before)} < {entry.id for entry in entries(after)}
    assert before[-1] == after[-1] == Leaf("prt_003:1")


DIFF = "Index: /shop/a\n====\n--- /shop/a\n+++ /shop/a\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
OURS = "--- a/shop/a\n+++ b/shop/a\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"


@pytest.mark.parametrize(
    ("part", "edits"),
    [
        (
            tool("write", input={"filePath": "/n", "content": "x\n"}, metadata={"exists": False}),
            [
                {
                    "path": "/n",
                    "operation": "create",
                    "additions": 1,
                    "deletions": 0,
                    "diff": "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n",
                }
            ],
        ),
        (
            tool("write", input={"filePath": "/n", "content": "x\n"}, metadata={"exists": True}),
            [{"path": "/n", "operation": "modify", "additions": 1}],
        ),
        (
            tool("edit", input={"filePath": "/shop/a"}, metadata={"diff": DIFF}),
            [
                {
                    "path": "/shop/a",
                    "operation": "modify",
                    "diff": OURS,
                    "additions": 1,
                    "deletions": 1,
                }
            ],
        ),
        (
            tool(
                "multiedit",
                input={"filePath": "/shop/a"},
                metadata={"results": [{"diff": DIFF}, {"diff": ""}]},
            ),
            [
                {
                    "path": "/shop/a",
                    "operation": "modify",
                    "diff": OURS,
                    "additions": 1,
                    "deletions": 1,
                }
            ],
        ),
        (
            tool(
                "apply_patch",
                metadata={
                    "files": [
                        {"filePath": "/shop/a", "type": "update", "patch": DIFF},
                        {"filePath": "/o", "movePath": "/p", "type": "move"},
                        {"filePath": "/d", "type": "delete"},
                        {"type": "delete"},
                    ]
                },
            ),
            [
                {
                    "path": "/shop/a",
                    "operation": "modify",
                    "diff": OURS,
                    "additions": 1,
                    "deletions": 1,
                },
                {"path": "/p", "operation": "rename", "old_path": "/o"},
                {"path": "/d", "operation": "delete"},
            ],
        ),
        (tool("edit", status="error", error="no", metadata={"diff": DIFF}), []),
        (tool("read", input={"filePath": "/shop/a"}), []),
    ],
)
def test_edits_become_file_edits(written: Written, part: Any, edits: list[Any]) -> None:
    written.session()
    written.message("assistant", part)
    found = [entry for entry in entries(written.read()) if entry.type == "file_edit"]
    assert [entry.data for entry in found] == edits
    assert all(entry.parent is not None for entry in found)


def test_files_changed_by_a_command_are_read_from_the_patch(written: Written) -> None:
    hunk = "@@ -1 +0,0 @@\n-x\n"
    gone = {"file": "sub/gone.txt", "status": "deleted", "patch": f"Index: x\n===\n{hunk}"}
    written.session()
    written.message("user", text("go"), summary={"diffs": [gone]})
    for _ in range(2):
        written.message(
            "assistant",
            tool("write", input={"filePath": "/shop/n", "content": ""}, metadata={"exists": True}),
            {"type": "patch", "files": ["/shop/n", "/shop/sub/gone.txt", "/shop/gone.txt"]},
            path={"root": "/shop", "cwd": "/shop"},
        )
    found = [entry.data for entry in entries(written.read()) if entry.type == "file_edit"]
    assert found[1:3] == [
        {"path": "/shop/gone.txt", "operation": "modify"},
        {
            "path": "/shop/sub/gone.txt",
            "operation": "delete",
            "additions": 0,
            "diff": f"--- a/shop/sub/gone.txt\n+++ /dev/null\n{hunk}",
            "deletions": 1,
        },
    ]
    # The turn's one difference is told once.
    assert found[5] == {"path": "/shop/sub/gone.txt", "operation": "delete"}


def test_compaction_hides_what_is_above_the_tail(written: Written) -> None:
    written.session()
    written.message("user", text("1"))
    tail = written.message("user", text("2"))
    written.message("user", {"type": "compaction", "auto": True, "tail_start_id": tail})
    written.message("assistant", text("all about 1"), summary=True)
    records = written.read()
    marker = entries(records)[-1]
    assert (marker.type, marker.content) == ("compact_marker", "all about 1")
    assert marker.data == {"compactedCount": 1, "summary": "all about 1"}
    assert of(records, Compacted) == [Compacted(str(entries(records)[1].id))]


def test_the_leaf_of_a_reverted_session_is_before_the_message(written: Written) -> None:
    written.message("user", text("1"))
    gone = written.message("user", text("2"))
    written.session(revert=json.dumps({"messageID": gone}))
    assert of(written.read(), Leaf) == [Leaf("prt_002")]


def test_attachments_errors_and_synthetic_texts_are_kept(written: Written) -> None:
    picture = {"type": "file", "mime": "image/png", "filename": "a.png", "url": "data:;base64,AA"}
    written.session()
    written.message("user", text("look"), text("read for you", synthetic=True), picture)
    error = {"name": "APIError", "data": {"message": "overloaded"}}
    failed = written.message("assistant", text(""), error=error)
    found = entries(written.read())
    assert [entry.type for entry in found] == ["user_input", *["system_message"] * 3]
    assert found[2].data == {"attachment": {"mime": "image/png", "name": "a.png"}}
    assert (found[3].id, found[3].content) == (failed, "overloaded")


def test_invalid_rows_are_reported_and_the_rest_is_read(written: Written) -> None:
    written.session()
    written.message("user", "{half", b"\xff{}", "[1]", {"type": "hologram"}, text("fine"))
    written.database.execute("INSERT INTO message VALUES ('msg_9', 'ses_1', 1, NULL)")
    records = written.read()
    reasons = [problem.reason for problem in of(records, Problem)]
    assert len(reasons) == 5
    assert all(any(id in reason for id in ("prt_", "msg_9")) for reason in reasons)
    assert [entry.content for entry in entries(records)] == ["fine"]


def test_a_whole_database_is_read_session_by_session(written: Written) -> None:
    written.session("ses_b", time_created=TIME + 9)
    written.session("ses_a")
    written.message("user", text("a"), session="ses_a")
    written.message("user", text("b"), session="ses_b")
    sessions = of(written.read(""), Session)
    assert [session.id for session in sessions] == ["ses_a", "ses_b"]
    assert [problem.reason for problem in of(written.read("ses_c"), Problem)] == [
        "There is no session ses_c any more."
    ]


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Names, sizes and times; of the shared memory, which readers lock in, the name alone."""
    return {
        entry.name: (0, 0) if entry.name.endswith("-shm") else (
            entry.stat().st_size, entry.stat().st_mtime_ns
        )
        for entry in os.scandir(folder)
    }  # fmt: skip


@pytest.mark.parametrize("kept", [("", "-wal", "-shm"), ("", "-wal"), ("",)])
def test_nothing_is_written_or_left_beside_the_database(
    written: Written, tmp_path: Path, kept: tuple[str, ...]
) -> None:
    written.session()
    written.message("user", text("in the log"))
    if kept == ("",):
        written.empty_wal()
    folder = tmp_path / "copy" / "opencode"
    folder.mkdir(parents=True)
    for suffix in kept:
        shutil.copyfile(f"{written.path}{suffix}", f"{folder}/opencode.db{suffix}")
    before = listing(folder)
    sources = list(IMPORTER.find("/nobody", {"XDG_DATA_HOME": str(folder.parent)}))
    assert [source.part for source in sources] == ["" if kept == ("", "-wal") else "ses_1"]
    records = list(IMPORTER.read(sources[0]))
    assert [entry.content for entry in entries(records)] == ["in the log"]
    assert not of(records, Problem)
    assert listing(folder) == before


def test_opencode_can_write_while_the_importer_reads(written: Written) -> None:
    written.session()
    written.message("user", text("1"), text("2"))
    reading = IMPORTER.read(Source(str(written.path), "ses_1"))
    next(reading)
    next(reading)
    data = json.dumps(text("3"))
    written.elsewhere(f"INSERT INTO part VALUES ('prt_9', 'msg_001', 'ses_1', {TIME}, '{data}')")
    assert [entry.content for entry in entries(list(reading))] == ["2"]
    assert [entry.content for entry in entries(written.read())] == ["1", "2", "3"]
    assert written.elsewhere(TRUNCATE)[0] == 0, "the importer still holds a read lock"


def test_a_reading_that_stops_half_way_releases_its_lock(written: Written) -> None:
    written.session()
    written.message("user", text("1"), text("2"))
    reading = iter(IMPORTER.read(Source(str(written.path), "ses_1")))
    next(reading)
    next(reading)
    assert written.elsewhere(TRUNCATE)[0] == 1, "the importer holds no read lock"
    reading.close()  # type: ignore[attr-defined]
    assert written.elsewhere(TRUNCATE)[0] == 0, "the importer still holds a read lock"


@pytest.fixture
def without_wal(written: Written) -> sqlite3.Connection:
    written.session()
    written.message("user", *(text("old" + "." * 5000) for _ in range(50)))
    written.leave_wal_mode()
    written.database.execute("PRAGMA cache_size = 1")
    return written.database


HOLDER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("without_wal")
def test_a_locked_database_is_reported_as_locked(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mulligan.importers.database.BUSY_TIMEOUT_MS", 1)
    command = [sys.executable, "-c", HOLDER, str(written.path)]
    # Another process: within one, locks do not keep anybody out.
    with Popen(command, stdin=PIPE, stdout=PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"locked\n"
        (problem,) = written.read()
        holder.communicate(timeout=60)
    assert isinstance(problem, Problem) and "locked" in problem.reason


def test_an_unfinished_transaction_is_not_read(
    written: Written, without_wal: sqlite3.Connection, tmp_path: Path
) -> None:
    without_wal.execute("BEGIN")
    without_wal.execute("UPDATE part SET data = replace(data, 'old', 'new')")
    path = tmp_path / "opencode.db"
    for suffix in ("", "-journal"):
        shutil.copyfile(f"{written.path}{suffix}", f"{path}{suffix}")
    assert b"new...." in path.read_bytes()
    before = listing(tmp_path)
    found = entries(read_log(IMPORTER, path))
    assert {entry.content[:4] for entry in found} == {"old."}
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    "content", [b"", b"SQLite format 3\0" + b"\0" * 5000, b"garbage" * 999, None]
)
def test_a_damaged_database_is_one_problem(
    written: Written, tmp_path: Path, content: bytes | None
) -> None:
    written.session()
    written.message("user", *(text("x" * 5000) for _ in range(20)))
    written.empty_wal()
    if content is None:
        content = written.path.read_bytes()[:9000]
    folder = tmp_path / "copy" / "opencode"
    folder.mkdir(parents=True)
    path = folder / "opencode.db"
    path.write_bytes(content)
    assert list(IMPORTER.find("/nobody", {"XDG_DATA_HOME": str(folder.parent)}))[:1]
    (problem,) = of(read_log(IMPORTER, path), Problem)
    assert problem.path == str(path) and problem.reason


def test_a_view_in_place_of_a_table_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n"
    )
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE VIEW session AS {endless}")
        database.commit()
    (problem,) = IMPORTER.read(Source(str(path)))
    assert isinstance(problem, Problem)


HOSTILE = {
    "a view": "CREATE VIEW {0} AS SELECT 'x' AS id, 'x' AS message_id, 'x' AS session_id",
    "an endless view": "CREATE VIEW {0} AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
    "SELECT i + 1 FROM n) SELECT i AS id, i AS session_id, i AS message_id, i AS data FROM n",
    "a virtual table": "CREATE VIRTUAL TABLE {0} USING fts5(id, session_id, message_id, data)",
    "computed columns": "CREATE TABLE {0} (id TEXT, data TEXT, session_id TEXT AS "
    "(hex(zeroblob(100000000))), message_id TEXT AS (hex(zeroblob(100000000))))",
    "an unknown collation": "CREATE TABLE {0} (id TEXT, data TEXT, session_id TEXT, "
    "message_id TEXT, time_created)",
    "no columns of use": "CREATE TABLE {0} (other TEXT)",
}


@pytest.mark.parametrize("table", ["message", "part"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_table_is_reported_for_each_session(
    written: Written, table: str, kind: str
) -> None:
    for id in ("ses_1", "ses_2"):
        written.session(id)
        written.message("user", text("hello"), session=id)
    written.database.execute(f"DROP TABLE {table}")
    written.database.execute(HOSTILE[kind].format(table))
    if kind == "computed columns":
        written.database.execute(f"INSERT INTO {table} (id, data) VALUES ('x', '{{}}')")
    if kind == "an unknown collation":
        written.database.execute("PRAGMA writable_schema = ON")
        written.database.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'id TEXT, data', "
            "'id TEXT COLLATE nosuch, data') WHERE name = ?",
            (table,),
        )
    found = written.read("")
    assert [each.id for each in of(found, Session)] == ["ses_1", "ses_2"]
    problems = of(found, Problem)
    assert [each.reason[:13] for each in problems] == ["Session ses_1", "Session ses_2"]


def test_a_damaged_page_affects_only_its_session(written: Written) -> None:
    ids = [f"ses_{number}" for number in range(6)]
    for id in ids:
        written.session(id)
        for _ in range(5):
            written.message("user", text(id * 2000), session=id)
    written.database.execute("CREATE INDEX m ON message (session_id, time_created, id)")
    written.database.execute("CREATE INDEX p ON part (message_id, id)")
    written.leave_wal_mode()
    content = bytearray(written.path.read_bytes())
    # In the middle of the long texts: each goes on in a chain of pages, whose numbers lead astray.
    pages = [at for at in range(0, len(content), 4096) if b"ses_3ses_3" in content[at : at + 4096]]
    for at in pages:
        if content[at : at + 4] != b"\0\0\0\0" and content[at] != 13:
            content[at : at + 4] = b"\xff\xff\xff\xff"
    written.path.write_bytes(content)
    found = written.read("")
    assert [each.id for each in of(found, Session)] == ids
    (problem,) = of(found, Problem)
    assert problem.reason.startswith("Session ses_3 cannot be read, or not to its end: ")
    said = {entry.content[:5] for entry in entries(found)}
    assert said >= {id for id in ids if id != "ses_3"}


@pytest.mark.parametrize("size", [2, 3, 700])
def test_sessions_in_a_cycle_of_parents_are_read(written: Written, size: int) -> None:
    for number in range(size):
        parent = f"ses_{(number + 1) % size}"
        written.session(f"ses_{number}", parent_id=parent)
        written.message("user", text(f"said in {number}"), session=f"ses_{number}")
    written.session("below", parent_id="ses_0")
    written.message("user", text("said below"), session="below")
    said = {f"said in {number}" for number in range(size)} | {"said below"}
    assert {entry.content for entry in entries(written.read(""))} == said
    folder = str(written.path.parents[1])
    sources = list(IMPORTER.find("/nobody", {"XDG_DATA_HOME": folder}))
    assert len(sources) == 1
    assert {entry.content for entry in entries(list(IMPORTER.read(sources[0])))} == said


def test_deeply_nested_sub_agents_are_read(written: Written) -> None:
    for number in range(400):
        parent = {"parent_id": f"ses_{number - 1}"} if number else {}
        written.session(f"ses_{number}", **parent)
        task = tool("task", metadata={"sessionId": f"ses_{number + 1}"})
        written.message("assistant", text(f"said {number}"), task, session=f"ses_{number}")
    found = written.read("ses_0")
    said = [entry.content for entry in entries(found) if entry.content.startswith("said")]
    assert sorted(said) == sorted(f"said {number}" for number in range(400))
    assert any("too deep" in each.reason for each in of(found, Problem))


ODD: list[Any] = [
    None,
    7,
    -1,
    1e308,
    float("inf"),
    "",
    "\0",
    "a\0b",
    b"\xff\xfe",
    2**62,
    "x" * 3000,
]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("table", ["session", "message", "part"])
def test_values_of_any_type_affect_no_other_session(
    tmp_path: Path, written: Written, table: str, value: Any
) -> None:
    database = written.database
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    # Without types and keys, so that the value stays what it is.
    database.execute(f"CREATE TABLE plain ({', '.join(columns)})")
    database.execute(f"DROP TABLE {table}")
    database.execute(f"ALTER TABLE plain RENAME TO {table}")
    written.session("good")
    written.message("user", text("good"), session="good")
    for column in columns:
        id = f"bad_{column}"
        written.session(id)
        message = written.message("user", text("bad"), session=id)
        key = {"session": ("id", id), "message": ("id", message), "part": ("message_id", message)}
        name, own = key[table]
        database.execute(f"UPDATE {table} SET {column} = ? WHERE {name} = ?", (value, own))
    folder, home = str(written.path.parents[1]), str(tmp_path / "home")
    done = import_logs(home, "opencode", user_home="/nobody", environment={"XDG_DATA_HOME": folder})
    assert not any("cannot be read: " in each.reason for each in done.problems), done.problems
    with ExitStack() as stack:
        found = [
            stack.enter_context(Workspace(open_location(each, home)))
            for each in known_projects(home)
        ]
        said = [
            entry.content
            for each in found
            if "good" in {session.id for session in each.sessions.list().sessions}
            for entry in each.sessions.transcript("good").entries
        ]
    assert said == ["good"], done


def test_oversized_values_are_skipped_and_reported(written: Written) -> None:
    written.session("ses_1")
    written.session("ses_2", title="x" * (3 << 20))
    message = written.message("user", text("good"))
    written.database.execute(
        "INSERT INTO part VALUES ('huge', ?, 'ses_1', 0, zeroblob(200000000))", (message,)
    )
    written.message("user", text("fine"), session="ses_2")
    found = written.read("")
    assert {entry.content for entry in entries(found)} == {"good", "fine"}
    (problem,) = of(found, Problem)
    assert "huge" in problem.reason and "too large" in problem.reason


def test_a_read_with_too_many_steps_is_interrupted(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mulligan.importers.database.MIN_VM_STEPS", 0)
    monkeypatch.setattr("mulligan.importers.database.VM_STEPS_PER_BYTE", 0)
    monkeypatch.setattr("mulligan.importers.database.VM_STEPS_PER_CALLBACK", 1000)
    written.session()
    for _ in range(100):
        written.message("user", text("hello"))
    (problem,) = of(written.read(), Problem)
    assert "too long" in problem.reason


def test_a_journal_that_names_another_file_deletes_nothing(
    written: Written, without_wal: sqlite3.Connection, tmp_path: Path
) -> None:
    without_wal.execute("BEGIN")
    without_wal.execute("UPDATE part SET data = replace(data, 'old', 'new')")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "opencode.db"
    shutil.copyfile(written.path, path)
    name = os.fsencode(victim)
    end = struct.pack(">II", len(name), sum(name)) + bytes.fromhex("d9d505f920a163d7")
    journal = Path(f"{written.path}-journal").read_bytes()
    Path(f"{path}-journal").write_bytes(
        journal + struct.pack(">I", (1 << 30) // 4096 + 1) + name + end
    )
    (problem,) = IMPORTER.read(Source(str(path)))
    assert isinstance(problem, Problem) and "several databases" in problem.reason
    assert victim.read_text() == "precious"


def test_an_unsupported_newer_form_is_reported(written: Written) -> None:
    written.session()
    written.database.execute("CREATE TABLE session_message (id TEXT, session_id TEXT)")
    written.database.execute("INSERT INTO session_message VALUES ('x', 'ses_1')")
    assert ["session_message" in problem.reason for problem in of(written.read(), Problem)] == [
        True
    ]


def test_files_of_older_versions_are_read_the_same_way(tmp_path: Path) -> None:
    storage = tmp_path / "opencode" / "storage"
    info = {"id": "old", "title": "T", "time": {"created": TIME}, "parentID": "ses_0"}
    where = {"cwd": "/shop", "root": "/"}
    write_json(storage / "session" / "p" / "ses_1.json", info)
    write_json(
        storage / "message" / "ses_1" / "msg_1.json", {"role": "user", "time": {"created": TIME}}
    )
    write_json(
        storage / "message" / "ses_1" / "msg_2.json",
        {"role": "assistant", "modelID": "m", "path": where},
    )
    write_json(storage / "message" / "ses_1" / "msg_3.json", "{half")
    write_json(storage / "part" / "msg_1" / "prt_1.json", text("Hello"))
    write_json(storage / "part" / "msg_2" / "prt_2.json", tool("bash"))
    sources = list(IMPORTER.find("/nobody", {"XDG_DATA_HOME": str(tmp_path)}))
    assert sources == [Source(str(storage / "session" / "p" / "ses_1.json"))]
    records = list(IMPORTER.read(sources[0]))
    assert records[0] == Session("ses_1", title="T", created_at=AT, forked_from="ses_0")
    assert Session("ses_1", directory="/shop", model="m") in records
    assert [(entry.id, entry.parent) for entry in entries(records)] == [
        *(("prt_1", None), ("prt_2", "prt_1"), ("prt_2:1", "prt_2")),
    ]
    assert [problem.path for problem in of(records, Problem)] == [
        str(storage / "message" / "ses_1" / "msg_3.json")
    ]


def test_a_session_in_both_is_found_in_the_database(written: Written) -> None:
    written.session("ses_1")
    written.session("ses_0", time_created=TIME - 9)
    storage = written.path.parent / "storage" / "session" / "p"
    write_json(storage / "ses_1.json", {})
    write_json(storage / "ses_9.json", {})
    data = {"XDG_DATA_HOME": str(written.path.parent.parent)}
    assert list(IMPORTER.find("/nobody", data)) == [
        Source(str(storage / "ses_9.json")),
        Source(str(written.path), "ses_0"),
        Source(str(written.path), "ses_1"),
    ]
    assert list(IMPORTER.find(str(written.path), {})) == []
