"""Aider's chat history: who said what in a text for people, and the edits in it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from log_records import entries, of, read_log, texts
from mulligan.importers.aider import IMPORTER, NAME
from mulligan.importers.records import Problem, Record, Session, Source

BEGIN = "\n# aider chat started at 2026-01-02 10:00:00\n\n"


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def user(words: str) -> str:
    return "\n#### " + "  \n#### ".join(words.split("\n")) + "  \n"


def aider(*lines: str) -> str:
    return "".join(f"> {line}  \n" for line in lines)


def model(words: str) -> str:
    return f"\n{words}\n\n"


def read(folder: Path, *parts: str | bytes) -> list[Record]:
    path = folder / NAME
    path.write_bytes(b"".join(x if isinstance(x, bytes) else x.encode() for x in parts))
    return read_log(IMPORTER, path)


def test_a_session_tells_who_said_what(tmp_path: Path) -> None:
    records = read(
        tmp_path,
        BEGIN,
        aider("Aider v0.86.0", "Main model: gpt-4o with diff edit format"),
        user("Tidy up,\n\nplease."),
        model("Of course.\n\n- done"),
        aider("Tokens: 1k sent"),
        user("/exit"),
    )
    assert isinstance(records[0], Session)
    session = records[0].id
    assert records[0] == Session(
        session, directory=str(tmp_path), created_at="2026-01-02T10:00:00.000Z"
    )
    assert Session(session, model="gpt-4o") in records
    assert texts(records) == [
        ("system_message", "Aider v0.86.0"),
        ("system_message", "Main model: gpt-4o with diff edit format"),
        ("user_input", "Tidy up,\n\nplease."),
        ("assistant_output", "Of course.\n\n- done"),
        ("system_message", "Tokens: 1k sent"),
        ("user_input", "/exit"),
    ]
    chain = entries(records)
    assert [entry.parent for entry in chain] == [None, *(entry.id for entry in chain[:-1])]
    assert {entry.created_at for entry in chain} == {"2026-01-02T10:00:00.000Z"}


def test_headings_and_quotations_belong_to_the_model(tmp_path: Path) -> None:
    answer = "#### A heading\n\n> a quotation\n\n# aider chat started at noon, I think"
    records = read(tmp_path, BEGIN, aider("Aider"), user("?"), model(answer), user("and?"))
    assert texts(records)[1:] == [
        *(("user_input", "?"), ("assistant_output", answer), ("user_input", "and?")),
    ]


def test_speakers_are_told_apart_without_trailing_spaces(tmp_path: Path) -> None:
    text = BEGIN + "> Aider v0.1\n\n#### Hello\n#### there\n\nHi.\n\n> Tokens: 1\n"
    assert texts(read(tmp_path, text)) == [
        ("system_message", "Aider v0.1"),
        ("user_input", "Hello\nthere"),
        ("assistant_output", "Hi."),
        ("system_message", "Tokens: 1"),
    ]


def test_a_message_of_several_lines_becomes_one_entry(tmp_path: Path) -> None:
    text = "> Traceback:\n  File x\n  line 3  \n"
    records = read(tmp_path, BEGIN, aider("Aider"), text, model("I see."))
    assert texts(records)[1:] == [
        ("system_message", "Traceback:\n  File x\n  line 3"),
        ("assistant_output", "I see."),
    ]


BLOCKS = """I change it.

shop/prices.txt
```text
<<<<<<< SEARCH
pears 3
=======
pears 4
> quoted  
>>>>>>> REPLACE
<<<<<<< SEARCH
plums
=======
>>>>>>> REPLACE
```

**new.txt**
```
<<<<<<< SEARCH
=======
hello
>>>>>>> REPLACE
```
"""  # noqa: W291


def test_applied_blocks_become_file_edits(tmp_path: Path) -> None:
    applied = aider(
        *("Applied edit to shop/prices.txt", "Applied edit to new.txt", "Applied edit to else.txt"),
        "Did not apply edit to never.txt (--dry-run)",
    )
    records = read(tmp_path, BEGIN, aider("Aider"), user("go"), model(BLOCKS), applied)
    assert [entry.data for entry in entries(records) if entry.type == "file_edit"] == [
        {
            "path": "shop/prices.txt",
            "operation": "modify",
            "diff": "--- a/shop/prices.txt\n+++ b/shop/prices.txt\n"
            "@@ -1 +1,2 @@\n-pears 3\n+pears 4\n+> quoted  \n@@ -1 +0,0 @@\n-plums\n",
            "additions": 2,
            "deletions": 2,
        },
        {
            "path": "new.txt",
            "operation": "create",
            "diff": "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n",
            "additions": 1,
            "deletions": 0,
        },
        {"path": "else.txt", "operation": "modify"},
    ]
    assert [type for type, _ in texts(records)].count("assistant_output") == 1


def test_blocks_that_were_not_applied_change_nothing(tmp_path: Path) -> None:
    records = read(tmp_path, BEGIN, aider("Aider"), model(BLOCKS), user("no"))
    assert "file_edit" not in [type for type, _ in texts(records)]


def test_every_start_line_begins_a_session(tmp_path: Path) -> None:
    records = read(tmp_path, BEGIN, user("1"), BEGIN, user("1"), BEGIN.replace("02", "03"))
    sessions = [record.id for record in of(records, Session)]
    assert len(set(sessions)) == 3
    assert len({entry.id for entry in entries(records)}) == 2
    assert [entry.parent for entry in entries(records)] == [None, None]


def test_ids_stay_when_the_history_grows(tmp_path: Path) -> None:
    before = read(tmp_path, BEGIN, aider("Aider", "Model"))
    after = read(tmp_path, BEGIN, aider("Aider", "Model", "Repo-map"), user("1"))
    assert len(entries(before)) == 2
    assert before == after[: len(before)]
    assert after == read_log(IMPORTER, tmp_path / NAME)


def test_lines_above_the_first_start_line_are_read(tmp_path: Path) -> None:
    records = read(tmp_path, model("Hello."), BEGIN, user("1"))
    assert texts(records) == [("assistant_output", "Hello."), ("user_input", "1")]
    assert [entry.parent for entry in entries(records)] == [None, None]


def test_invalid_utf_8_is_reported_and_replaced(tmp_path: Path) -> None:
    records = read(tmp_path, BEGIN, user("caf"), b"\nna\xefve\n")
    assert texts(records)[1] == ("assistant_output", "na\ufffdve")
    assert [record.line for record in of(records, Problem)] == [7]


def test_an_impossible_time_is_none(tmp_path: Path) -> None:
    records = read(tmp_path, "# aider chat started at 2026-99-99 10:00:00\n", user("1"))
    assert isinstance(records[0], Session) and records[0].created_at is None


def test_the_history_of_the_project_around_pwd_is_found(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src" / "deep").mkdir(parents=True)
    (project / NAME).write_text("")
    (tmp_path / NAME).write_text("")
    found = [Source(str(project / NAME))]
    assert list(IMPORTER.find("/nobody", {"PWD": str(project / "src" / "deep")})) == found
    (project / "src" / ".git").mkdir()
    assert list(IMPORTER.find("/nobody", {"PWD": str(project / "src" / "deep")})) == []
    named = {"AIDER_CHAT_HISTORY_FILE": str(tmp_path / NAME), "PWD": str(project)}
    assert list(IMPORTER.find("/nobody", named)) == [Source(str(tmp_path / NAME))]
    os.remove(project / NAME)
    os.symlink(tmp_path / NAME, project / NAME)
    (project / ".git").mkdir()
    assert list(IMPORTER.find("/nobody", {"PWD": str(project)})) == []
    assert list(IMPORTER.find("/nobody", {})) == []
