"""Logs of pi, OpenCode, Aider, AgentSmithy and YAAI with anything in them: read on, and sound.

Whatever a log holds, reading raises nothing, and what comes out can be kept: entries belong to a
session that was named, hang below entries that came before them, have ids of their own, and can
be written as JSON and UTF-8.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from mulligan.core.entries import FILE_OPERATIONS, TYPES, NewEntry
from mulligan.importers import agentsmithy, aider, yaai
from mulligan.importers.opencode import reader as opencode
from mulligan.importers.pi import reader as pi
from mulligan.importers.records import (
    CallEnded,
    Compacted,
    Importer,
    Leaf,
    Problem,
    Record,
    Session,
    Snapshot,
    Source,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
IDS = st.sampled_from(["a", "b", "c", "a:1", "L2", "", None, 7])
TIMES = st.sampled_from(["2026-01-02T10:00:00.000Z", 1_794_798_231_000, -1, "soon", None])


def check(importer: Importer, source: Source) -> list[Record]:
    records = list(importer.read(source))
    ids: dict[str, set[str | None]] = {}
    here: set[str | None] = set()
    for record in records:
        match record:
            case Session():
                assert record.id
                here = ids.setdefault(record.id, {None})
            case NewEntry():
                assert ids, "an entry before its session"
                assert record.type in TYPES
                assert record.id and record.id not in here
                assert record.parent in here
                here.add(record.id)
                if record.type == "file_edit":
                    assert record.data and record.data["path"]
                    assert record.data["operation"] in FILE_OPERATIONS
            case Compacted() | Leaf():
                assert (record.before if isinstance(record, Compacted) else record.id) in here
            case CallEnded():
                assert record.status in ("success", "error")
            case Snapshot():
                assert record.id and record.log_path
                assert record.entry in here
                assert all(held.path for held in record.files)
            case Problem():
                assert record.reason
        json.dumps(record, allow_nan=False).encode()
        str(record).encode()
    assert records == list(importer.read(source))
    return records


def holding(**usual: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with the usual fields, each of which may be missing or hold anything."""
    return st.fixed_dictionaries(
        {}, optional={name: st.one_of(value, value, VALUES) for name, value in usual.items()}
    )


def one_of(*words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words)


PATHS = one_of("a.txt", "/b/c", "c", "", "x\n y")
BLOCKS = holding(
    type=one_of("text", "thinking", "toolCall", "image"),
    text=st.text(max_size=8),
    thinking=st.text(max_size=8),
    id=IDS,
    name=one_of("write", "edit", "read", "bash"),
    arguments=holding(
        path=PATHS,
        content=st.text(max_size=8),
        oldText=st.text(max_size=8),
        newText=st.text(max_size=8),
        edits=st.lists(holding(oldText=st.text(max_size=8), newText=st.text(max_size=8))),
    ),
)
DIFFS = st.lists(one_of(" 1 a", "-2 b", "+2 c", "    ...", "+ 9 d", "@@ x", "")).map("\n".join)
PI_LINES = holding(
    type=one_of(
        *("session", "message", "message", "message", "compaction", "label", "session_info"),
        *("model_change", "thinking_level_change", "custom", "custom_message", "branch_summary"),
    ),
    id=IDS,
    parentId=IDS,
    timestamp=TIMES,
    version=st.sampled_from([1, 2, 3, 4]),
    cwd=PATHS,
    parentSession=PATHS,
    message=holding(
        role=one_of(
            *("user", "assistant", "assistant", "toolResult", "toolResult", "bashExecution"),
            *("custom", "hookMessage", "branchSummary", "compactionSummary"),
        ),
        content=st.lists(BLOCKS, max_size=3),
        toolCallId=IDS,
        isError=st.booleans(),
        details=holding(diff=DIFFS),
        timestamp=TIMES,
        exitCode=st.integers(),
        errorMessage=st.text(max_size=8),
    ),
    firstKeptEntryId=IDS,
    firstKeptEntryIndex=st.integers(-2, 6),
    summary=st.text(max_size=8),
    customType=one_of("step-snapshot", "unrevert-point", "else"),
    modelId=st.text(max_size=8),
    name=st.text(max_size=8),
)


def as_lines(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@given(st.lists(PI_LINES, max_size=8), st.integers(0, 40))
def test_pi(lines: list[Any], cut: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "2026_s.jsonl")
        content = as_lines([{"type": "session", "id": "s", "version": 3}] * (cut % 2) + lines)
        path.write_bytes(content[: len(content) - cut // 2])
        check(pi.IMPORTER, Source(str(path)))


DIFF = one_of("@@ -1 +1 @@\n-a\n+b\n", "--- a\n+++ b\n@@ -0,0 +1 @@\n+x", "@@", "")
FILES = st.lists(
    holding(filePath=PATHS, movePath=PATHS, type=one_of("add", "move", "delete"), patch=DIFF)
)
PARTS = holding(
    type=one_of(
        *("text", "text", "reasoning", "tool", "tool", "tool", "file", "subtask", "retry"),
        *("patch", "compaction", "step-start"),
    ),
    text=st.text(max_size=8),
    synthetic=st.booleans(),
    tool=one_of("write", "edit", "multiedit", "apply_patch", "bash"),
    callID=IDS,
    state=holding(
        status=one_of("pending", "running", "completed", "completed", "error"),
        input=holding(filePath=PATHS, content=st.text(max_size=8)),
        output=st.text(max_size=8),
        error=st.text(max_size=8),
        time=holding(start=TIMES, end=TIMES),
        metadata=holding(
            exit=st.integers(),
            exists=st.booleans(),
            diff=DIFF,
            files=FILES,
            results=st.lists(holding(diff=DIFF), max_size=2),
        ),
    ),
    files=st.lists(PATHS),
    tail_start_id=IDS,
    error=holding(name=st.text(max_size=8), data=holding(message=st.text(max_size=8))),
    url=PATHS,
    source=holding(path=PATHS),
)
MESSAGES = holding(
    role=one_of("user", "assistant"),
    time=holding(created=TIMES, completed=TIMES),
    modelID=st.text(max_size=8),
    path=holding(cwd=PATHS, root=one_of("/b", "/", "")),
    summary=st.booleans()
    | holding(diffs=st.lists(holding(file=PATHS, patch=DIFF, status=one_of("added")))),
    error=holding(name=st.text(max_size=8)),
)
CELLS = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.binary(max_size=8)
    | st.text(st.characters(codec="utf-8"), max_size=8)
)
COLUMNS = {
    "session": "id, parent_id, directory, title, revert, model, agent, time_created, time_updated",
    "message": "id, session_id, time_created, data",
    "part": "id, message_id, session_id, time_created, data",
}


def cells(data: st.SearchStrategy[Any], *ids: str) -> st.SearchStrategy[tuple[Any, ...]]:
    written = data.map(json.dumps)
    columns = [one_of(*ids), *(one_of("a", "b") for _ in ids[2:]), TIMES, written]
    return st.tuples(*(st.one_of(column, column, column, CELLS) for column in columns))


def in_database(path: Path, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    with closing(sqlite3.connect(path)) as database:
        for table, columns in COLUMNS.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
            marks = ", ".join("?" * (columns.count(",") + 1))
            for row in rows.get(table, []):
                database.execute(f"INSERT INTO {table} VALUES ({marks})", row)
        database.commit()


SESSIONS = st.tuples(IDS, IDS, PATHS, *[CELLS] * 4, TIMES, TIMES) | st.tuples(*[CELLS] * 9)


@given(
    st.lists(SESSIONS, min_size=1, max_size=2, unique_by=lambda row: str(row[0])),
    st.lists(cells(MESSAGES, "a", "b", "m"), max_size=3),
    st.lists(cells(PARTS, "a", "b", "p", "q"), max_size=6),
)
def test_opencode(sessions: list[Any], messages: list[Any], parts: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "opencode.db")
        in_database(path, {"session": sessions, "message": messages, "part": parts})
        check(opencode.IMPORTER, Source(str(path)))
        sources = list(opencode.IMPORTER.find("/nobody", {"OPENCODE_DB": str(path)}))
        assert sources
        for source in sources:
            check(opencode.IMPORTER, source)


@given(st.lists(MESSAGES, max_size=3), st.lists(PARTS, max_size=4), st.integers(0, 9))
def test_opencode_in_files(messages: list[Any], parts: list[Any], cut: int) -> None:
    with TemporaryDirectory() as folder:
        storage = Path(folder, "storage")
        session = storage / "session" / "p" / "ses_1.json"
        written = {session: {"title": "T"}}
        for number, message in enumerate(messages):
            written[storage / "message" / "ses_1" / f"m{number}.json"] = message
            for place, part in enumerate(parts):
                written[storage / "part" / f"m{number}" / f"p{place * number}.json"] = part
        for path, value in written.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(value)
            path.write_text(text[: len(text) - cut] if cut > 7 else text)
        check(opencode.IMPORTER, Source(str(session)))


def _whole_database() -> bytes:
    parts = [
        (f"p{n}", "m", "s", n, json.dumps({"type": "text", "text": "x" * n})) for n in range(99)
    ]
    message = ("m", "s", 1, json.dumps({"role": "user"}))
    with TemporaryDirectory() as folder:
        path = Path(folder, "opencode.db")
        rows: dict[str, list[tuple[Any, ...]]] = {"part": parts, "message": [message]}
        in_database(path, {"session": [("s", *[None] * 8)], **rows})
        return path.read_bytes()


WHOLE = _whole_database()


@given(
    st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=30),
    st.integers(0, len(WHOLE)),
    st.booleans(),
)
def test_a_damaged_database(changes: list[tuple[int, int]], end: int, is_cut: bool) -> None:
    content = bytearray(WHOLE)
    for place, value in changes:
        content[place] = value
    with TemporaryDirectory() as folder:
        path = Path(folder, "opencode.db")
        path.write_bytes(content[:end] if is_cut else content)
        check(opencode.IMPORTER, Source(str(path)))
        list(opencode.IMPORTER.find("/nobody", {"OPENCODE_DB": str(path)}))
        assert [entry.name for entry in Path(folder).iterdir()] == ["opencode.db"]


PIECES = st.sampled_from(
    [
        *("# aider chat started at 2026-01-02 10:00:00", "# aider chat started at 2026-99-99"),
        *("#### hello  ", "#### hello", "####   ", "> said  ", "> said", ">", "", "  ", "text"),
        *("<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "```", "a.txt", "**b c.txt**:"),
        *("> Applied edit to a.txt  ", "> Applied edit to a.txt", "> Applied edit to b c.txt  "),
        *("> Main model: m with diff  ", "#### # aider chat started at  "),
    ]
)


@given(st.lists(PIECES | st.text(max_size=5), max_size=25), st.binary(max_size=4))
def test_aider(lines: list[str], tail: bytes) -> None:
    lines = [f"{line}{number}" if line == "text" else line for number, line in enumerate(lines)]
    with TemporaryDirectory() as folder:
        path = Path(folder, aider.NAME)
        path.write_bytes("\n".join([*lines, ""]).encode(errors="replace") + tail)
        records = check(aider.IMPORTER, Source(str(path)))
    said = "\n".join(entry.content for entry in records if isinstance(entry, NewEntry))
    assert {line for line in lines if line.startswith("text")} <= {*said.split("\n")}


MESSAGES = holding(
    type=one_of("human", "ai", "ai", "tool", "tool", "system"),
    data=holding(
        content=st.lists(BLOCKS, max_size=2) | st.text(max_size=8),
        additional_kwargs=holding(checkpoint=IDS, session=one_of("session_1")),
        tool_calls=st.lists(holding(name=st.text(max_size=4), args=VALUES, id=IDS), max_size=2),
        tool_call_id=IDS,
        name=one_of("edit", "read"),
        status=one_of("success", "error"),
    ),
)


@given(
    st.lists(MESSAGES | VALUES, max_size=6),
    st.lists(st.tuples(st.none() | PATHS, st.none() | st.binary(max_size=8), st.integers(-1, 6))),
)
def test_agentsmithy(messages: list[Any], edits: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, ".agentsmithy", "dialogs", "d", "journal.sqlite")
        path.parent.mkdir(parents=True)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id, message)")
            db.execute(
                "CREATE TABLE dialog_file_edits (id INTEGER PRIMARY KEY, file, diff, "
                "message_index, dialog_id DEFAULT 'd')"
            )
            for message in messages:
                row = ("d", json.dumps(message))
                db.execute("INSERT INTO message_store VALUES (NULL, ?, ?)", row)
            rows = "INSERT INTO dialog_file_edits (file, diff, message_index) VALUES (?, ?, ?)"
            db.executemany(rows, edits)
        check(agentsmithy.IMPORTER, Source(str(path)))


YAAI_LINES = holding(
    id=IDS,
    sessionId=one_of("s", ""),
    type=st.sampled_from(TYPES),
    content=st.text(max_size=8),
    timestamp=TIMES,
    toolCall=holding(name=st.text(max_size=8), status=one_of("running", "success", "error")),
    fileEdit=holding(
        path=PATHS, operation=st.sampled_from(FILE_OPERATIONS), additions=st.integers()
    ),
    compactMarker=holding(compactedCount=st.integers()),
    restorePointId=IDS,
    isCompacted=st.booleans(),
)
MANIFESTS = holding(
    id=IDS,
    sessionId=one_of("s"),
    transcriptEntryId=IDS,
    timestamp=TIMES,
    files=st.lists(holding(path=PATHS, hash=IDS, mode=st.integers(), size=st.integers())),
)


@given(
    holding(id=one_of("s"), projectPath=PATHS, createdAt=TIMES),
    st.lists(YAAI_LINES, max_size=6),
    st.lists(MANIFESTS, max_size=2),
    st.integers(0, 20),
)
@example({}, [], [{"id": "b", "transcriptEntryId": "b", "sessionId": "s"}], 0)
def test_yaai(info: Any, lines: list[Any], manifests: list[Any], cut: int) -> None:
    with TemporaryDirectory() as folder:
        session = Path(folder, "sessions", "s")
        (session / "manifests").mkdir(parents=True)
        (session / "session.json").write_text(json.dumps(info))
        content = as_lines(lines)
        (session / "transcript.jsonl").write_bytes(content[: len(content) - cut])
        for number, manifest in enumerate(manifests):
            (session / "manifests" / f"{number}.json").write_text(json.dumps(manifest))
        (source,) = yaai.IMPORTER.find("/nobody", {"PWD": folder})
        check(yaai.IMPORTER, source)
