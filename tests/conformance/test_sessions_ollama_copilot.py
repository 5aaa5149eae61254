"""The promises of Ollama Copilot about sessions, messages and their times."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from acts import write

import mulligan
from mulligan import Workspace
from mulligan.core.entries import NewEntry
from mulligan.journal.db import Database
from mulligan.journal.migrations import JOURNAL
from mulligan.workspace.search.search import rebuild, search

DAMAGES = {
    "rubbish": b"this is no database " * 500,
    "empty": b"",
    "cut": None,
}
RUNNING = """
import sys, time, mulligan
workspace = mulligan.open(sys.argv[1])
session = workspace.sessions.create(agent="child", status="running")
workspace.sessions.begin_turn(session.id, "work for ever")
print(session.id, flush=True)
time.sleep(600)
"""


def journal_file(home: Path) -> Path:
    (found,) = home.glob("projects/*/journal.sqlite")
    return found


def make_old_journal(project: Path, home: Path) -> list[str]:
    """A project with checkpoints and a restore, as the first format had it."""
    write(project, {"a": "one"})
    with mulligan.open(project) as workspace:
        ids = [workspace.checkpoint("first").id]
        write(project, {"a": "two"})
        ids.append(workspace.checkpoint("second").id)
        workspace.restore(ids[0])
        tables = {
            name: workspace.project.journal.rows(
                f"SELECT {', '.join(columns(workspace.project.journal, name))} FROM {name}"
            )
            for name in ("checkpoints", "operations", "forced")
        }
    path = journal_file(home)
    for each in path.parent.glob("journal.sqlite*"):
        each.unlink()
    old = Database(str(path), JOURNAL[:1])
    with old.writing() as db:
        for name, rows in tables.items():
            for row in rows:
                marks = ", ".join("?" * len(row))
                db.execute(f"INSERT INTO {name} VALUES ({marks})", row)
    assert old.row("PRAGMA user_version") == (1,)
    old.close()
    return ids


def columns(journal: Database, table: str) -> list[str]:
    """Those that the first format has."""
    added = {"operations": {"head", "intent"}}.get(table, set())
    return [row[1] for row in journal.rows(f"PRAGMA table_info({table})") if row[1] not in added]


def test_oc_1_sessions_messages_and_checkpoints_are_one_file_and_search_is_another(
    project: Path, workspace: Workspace, mulligan_home: Path
) -> None:
    session = workspace.sessions.create().id
    workspace.sessions.append(session, NewEntry("user_input", "walrus"))
    assert len(search(workspace.project, "walrus").hits) == 1
    folder = journal_file(mulligan_home).parent
    with closing(sqlite3.connect(folder / "journal.sqlite")) as db:
        (count,) = db.execute("SELECT count(*) FROM entries WHERE content = 'walrus'").fetchone()
    assert count == 1
    for each in folder.glob("search.sqlite*"):
        each.unlink()
    assert len(search(workspace.project, "walrus").hits) == 1


def test_oc_2_a_session_has_these_defaults(workspace: Workspace) -> None:
    made = workspace.sessions.create()
    assert (made.title, made.model, made.mode, made.memory) == ("", None, None, "")
    assert (made.auto_approve_commands, made.auto_approve_sensitive_edits) == (False, False)
    assert made.sensitive_file_patterns == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("title", "Tidy up: ü, 'quotes'\nand a second line"),
        ("model", "llama"),
        ("mode", "agent"),
        ("memory", "x" * 100_000),
        ("memory", ""),
        ("auto_approve_commands", True),
        ("auto_approve_sensitive_edits", True),
        ("sensitive_file_patterns", {"**/*": True, "**/.env*": False, "a": True}),
    ],
)
def test_oc_2_everything_of_a_session_can_be_given_changed_and_read_after_reopening(
    project: Path, workspace: Workspace, name: str, value: Any
) -> None:
    given = workspace.sessions.create(**{name: value}).id
    changed = workspace.sessions.create().id
    workspace.sessions.change(changed, **{name: value})
    with mulligan.open(project) as again:
        for id in (given, changed):
            found = getattr(again.sessions.get(id), name)
            assert found == value
            if isinstance(value, dict):
                # The last match wins, so their order is part of what they say.
                assert list(found) == list(value)


@pytest.mark.parametrize(
    "values",
    [
        {"auto_approve_commands": "no"},
        {"sensitive_file_patterns": ["*.env"]},
        {"sensitive_file_patterns": "*.env"},
        {"sensitive_file_patterns": {"*.env": "yes"}},
        {"number": 1},
        {"id": "other"},
        {"created_at": "2026-01-01T00:00:00.000Z"},
        {"leaf": 3},
    ],
)
def test_oc_2_what_makes_no_sense_is_refused(workspace: Workspace, values: dict[str, Any]) -> None:
    made = workspace.sessions.create()
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.change(made.id, **values)
    assert workspace.sessions.get(made.id) == made


def test_oc_3_a_message_without_words_or_data_is_kept_as_such(workspace: Workspace) -> None:
    session = workspace.sessions.create().id
    (made,) = workspace.sessions.append(session, NewEntry("tool_call"))
    assert (made.content, made.data, made.model) == ("", None, None)


def test_oc_3_a_journal_of_the_first_format_goes_on_with_its_checkpoints(
    project: Path, mulligan_home: Path
) -> None:
    ids = make_old_journal(project, mulligan_home)
    with mulligan.open(project) as workspace:
        assert {row.id for row in workspace.log()} >= set(ids)
        assert workspace.read(ids[1], "a") == b"two"
        assert workspace.undo().restored == ("a",)
        assert (project / "a").read_text() == "two"
        session = workspace.sessions.create().id
        workspace.sessions.begin_turn(session, "one")
        write(project, {"a": "three"})
        step = workspace.sessions.end_turn(session)
        workspace.restore(ids[0])
        workspace.sessions.goto(step.entry or "", session=session)
        assert workspace.maintenance.verify().clean
        assert workspace.project.journal.row("PRAGMA user_version") == (len(JOURNAL),)
    with mulligan.open(project) as workspace:
        assert workspace.sessions.count_entries(session) > 0


def test_oc_3_several_processes_may_find_the_old_format_at_once(
    project: Path, mulligan_home: Path
) -> None:
    ids = make_old_journal(project, mulligan_home)
    code = "import sys, mulligan; print(len(mulligan.open(sys.argv[1]).log()))"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(project)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(6)
    ]  # fmt: skip
    answers = [each.communicate(timeout=120) for each in running]
    assert {err for _out, err in answers} == {""}
    assert len({out for out, _err in answers}) == 1
    with mulligan.open(project) as workspace:
        assert {row.id for row in workspace.log()} >= set(
            ids
        ) and workspace.maintenance.verify().clean


def test_oc_3_a_migration_that_is_killed_leaves_the_old_format_whole(
    project: Path, mulligan_home: Path
) -> None:
    ids = make_old_journal(project, mulligan_home)
    broken = (*JOURNAL[:1], JOURNAL[1] + "; SELECT * FROM nowhere;")
    with pytest.raises(Exception, match="nowhere"):
        Database(str(journal_file(mulligan_home)), broken)
    with closing(sqlite3.connect(journal_file(mulligan_home))) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        names = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
        assert "sessions" not in names
    with mulligan.open(project) as workspace:
        assert {row.id for row in workspace.log()} >= set(ids)


def test_oc_4_a_turn_has_a_checkpoint_that_belongs_to_its_session_and_message(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    turn = workspace.sessions.begin_turn(session, "one")
    (entry,) = workspace.sessions.linked_entries(checkpoint=turn.checkpoint)
    assert (entry.id, entry.session) == (turn.entry, session)
    write(project, {"a": "1"})
    step = workspace.sessions.end_turn(session)
    assert [status.status for status in workspace.review.turn_statuses(session)] == ["pending"]
    assert [each.id for each in workspace.sessions.linked_entries(checkpoint=step.checkpoint)] == [
        step.entry
    ]


def test_oc_5_an_edit_has_its_path_from_the_top_and_what_it_did(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"d/a": "one\n"})
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "one")
    edit = workspace.sessions.start_edit(session, [str(project / "d/a"), "new"])
    write(project, {"d/a": "one\ntwo\n", "new": "1\n"})
    workspace.sessions.finalize_edit(edit)
    found = {
        (entry.data or {})["path"]: (
            (entry.data or {})["operation"],
            (entry.data or {})["additions"],
            (entry.data or {})["deletions"],
        )
        for entry in workspace.sessions.file_edits(session).entries
    }
    assert found == {"d/a": ("modify", 1, 0), "new": ("create", 1, 0)}


@pytest.mark.parametrize("damage", DAMAGES)
def test_oc_9_a_damaged_search_index_stops_nothing(
    project: Path, workspace: Workspace, mulligan_home: Path, damage: str
) -> None:
    session = workspace.sessions.create().id
    workspace.sessions.append(session, NewEntry("user_input", "walrus"))
    search(workspace.project, "walrus")
    index = journal_file(mulligan_home).with_name("search.sqlite")
    for each in index.parent.glob("search.sqlite-*"):
        each.unlink()
    content = DAMAGES[damage]
    index.write_bytes(index.read_bytes()[:5000] if content is None else content)
    with mulligan.open(project) as again:
        again.sessions.append(session, NewEntry("user_input", "another walrus"))
        again.sessions.begin_turn(session, "a turn")
        again.sessions.end_turn(session)
        again.sessions.compact(session)
        assert again.sessions.count_entries(session) == 4
        assert len(search(again.project, "walrus").hits) == 2
        again.sessions.delete(session)
        rebuild(again.project)
        assert search(again.project, "walrus").hits == ()


def test_oc_9_a_damaged_journal_is_never_replaced(project: Path, mulligan_home: Path) -> None:
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create().id
        for _ in range(50):
            workspace.sessions.append(session, NewEntry("user_input", "x" * 2000))
    path = journal_file(mulligan_home)
    for each in path.parent.glob("journal.sqlite-*"):
        each.unlink()
    content = bytearray(path.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(mulligan.Corrupt), mulligan.open(project) as workspace:
            workspace.maintenance.verify()
    assert path.read_bytes()[4096:8192] == b"\xff" * 4096
    assert len(path.read_bytes()) >= len(content)


@pytest.mark.parametrize("version", [len(JOURNAL) + 1, 1000])
def test_oc_9_a_journal_of_a_later_format_is_refused_and_left_alone(
    project: Path, mulligan_home: Path, version: int
) -> None:
    with mulligan.open(project) as workspace:
        workspace.sessions.create()
    path = journal_file(mulligan_home)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(mulligan.NewerFormat):
            mulligan.open(project)
    assert path.read_bytes() == before


def test_oc_10_deleting_removes_from_both_stores_and_clearing_leaves_nothing(
    workspace: Workspace,
) -> None:
    ids = [workspace.sessions.create().id for _ in range(3)]
    for id in ids:
        workspace.sessions.append(id, NewEntry("user_input", "walrus"))
    assert len(search(workspace.project, "walrus").hits) == 3
    workspace.sessions.delete(ids[1])
    assert {hit.session for hit in search(workspace.project, "walrus").hits} == {ids[0], ids[2]}
    assert workspace.sessions.delete_all() == 2
    page = workspace.sessions.list()
    assert (page.sessions, page.has_more, page.next_offset, page.next_cursor) == (
        *((), False, None),
        None,
    )
    assert search(workspace.project, "walrus").hits == ()
    assert workspace.sessions.delete_all() == 0


def test_oc_11_pages_by_offset_and_by_cursor_say_how_to_go_on(workspace: Workspace) -> None:
    made = [workspace.sessions.create(checkpoint=False).id for _ in range(7)][::-1]
    page = workspace.sessions.list(limit=3)
    assert [each.id for each in page.sessions] == made[:3]
    assert (page.has_more, page.next_offset) == (True, 3)
    for go_on in ({"offset": page.next_offset}, {"cursor": page.next_cursor}):
        second = workspace.sessions.list(limit=3, **go_on)
        assert [each.id for each in second.sessions] == made[3:6]
        assert second.has_more
    last = workspace.sessions.list(limit=3, offset=6)
    assert ([each.id for each in last.sessions], last.has_more) == (made[6:], False)
    assert (last.next_offset, last.next_cursor) == (None, None)
    assert workspace.sessions.list(limit=7).next_offset is None
    assert workspace.sessions.list(offset=7).sessions == ()


def test_oc_11_by_cursor_no_session_is_missed_or_doubled_while_others_come_and_change(
    workspace: Workspace,
) -> None:
    made = [workspace.sessions.create(checkpoint=False).id for _ in range(12)]
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = workspace.sessions.list(limit=3, cursor=cursor)
        seen += [each.id for each in page.sessions]
        workspace.sessions.create(checkpoint=False)
        workspace.sessions.change(made[-1], title="again")
        if not page.has_more:
            break
        cursor = page.next_cursor
    assert seen == made[::-1]


@pytest.mark.parametrize("cursor", ["", "/", "x", "x/y", "/1", "2026/-1", "a/" + "9" * 30, "١/١"])
def test_oc_11_a_cursor_that_no_page_gave_is_refused(workspace: Workspace, cursor: str) -> None:
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.list(cursor=cursor)


def test_oc_11_sessions_can_be_told_by_agent_and_status(workspace: Workspace) -> None:
    for agent in ("a", "b"):
        for status in ("running", "paused"):
            workspace.sessions.create(agent=agent, status=status, checkpoint=False)
    page = workspace.sessions.list(agent="a", status="paused")
    assert [(each.agent, each.status) for each in page.sessions] == [("a", "paused")]
    first = workspace.sessions.list(agent="b", limit=1)
    assert first.has_more
    rest = workspace.sessions.list(agent="b", cursor=first.next_cursor)
    assert [(each.agent, each.status) for each in rest.sessions] == [("b", "running")]


def test_oc_12_times_go_on_from_the_last_one_after_a_restart(
    project: Path, workspace: Workspace
) -> None:
    session, other = (workspace.sessions.create().id for _ in range(2))
    workspace.sessions.append(
        session, NewEntry("user_input", created_at="2999-12-31T23:59:59.999Z")
    )
    with mulligan.open(project) as again:
        again.sessions.append(other, NewEntry("user_input"))
        again.sessions.append(session, *(NewEntry("user_input") for _ in range(3)))
        times = [entry.created_at for entry in again.sessions.transcript(session).entries]
        assert times == [
            "2999-12-31T23:59:59.999Z",
            "3000-01-01T00:00:00.000Z",
            "3000-01-01T00:00:00.001Z",
            "3000-01-01T00:00:00.002Z",
        ]
        (free,) = again.sessions.transcript(other).entries
        assert free.created_at < "2999"


@pytest.mark.parametrize(
    "at", ["0001-01-01T00:00:00Z", "0999-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"]
)
def test_oc_12_even_the_earliest_time_lets_others_follow(workspace: Workspace, at: str) -> None:
    session = workspace.sessions.create().id
    workspace.sessions.append(session, NewEntry("user_input", created_at=at))
    workspace.sessions.append(
        session, NewEntry("user_input", created_at=at), NewEntry("user_input")
    )
    found = workspace.sessions.transcript(session).entries
    assert len(found) == 3
    assert all(one.created_at < other.created_at for one, other in pairwise(found))
    assert len(found[0].created_at) == len("2026-01-01T00:00:00.000Z")


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59.999Z", "yesterday", "", "2026-13-01"])
def test_oc_12_a_time_that_none_can_follow_is_refused(workspace: Workspace, at: str) -> None:
    session = workspace.sessions.create().id
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.append(session, NewEntry("user_input", created_at=at))
    assert [entry.seq for entry in workspace.sessions.append(session, NewEntry("user_input"))] == [
        1
    ]


def test_oc_13_what_happens_in_a_turn_is_kept_in_its_order_as_it_happens(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id

    def kept() -> list[tuple[str, str]]:
        with mulligan.open(project) as other:
            return [
                (entry.type, entry.content) for entry in other.sessions.transcript(session).entries
            ]

    workspace.sessions.begin_turn(session, "Do it")
    assert kept()[-1] == ("user_input", "Do it")
    workspace.sessions.append(session, NewEntry("assistant_output", "I shall"))
    assert kept()[-1] == ("assistant_output", "I shall")
    running = {"name": "sh", "status": "running", "call": "c1"}
    workspace.sessions.append(session, NewEntry("tool_call", data=running))
    workspace.sessions.end_call(session, "c1", output="ok")
    workspace.sessions.append(session, NewEntry("tool_result", "ok", {"call": "c1"}))
    workspace.sessions.append(session, NewEntry("assistant_output", "Done"))
    workspace.sessions.end_turn(session)
    assert [type for type, _words in kept()] == [
        *("user_input", "assistant_output", "tool_call", "tool_result", "assistant_output"),
    ]


def test_oc_13_a_call_that_has_ended_stays_as_it_is(workspace: Workspace) -> None:
    session = workspace.sessions.create().id
    data = {"name": "sh", "input": {"c": 1}, "status": "pending", "call": "c1"}
    (made,) = workspace.sessions.append(session, NewEntry("tool_call", data=data))
    assert workspace.sessions.end_call(session, "c1", status="running")
    assert not workspace.sessions.end_call(session, "c1", status="running")
    assert workspace.sessions.end_call(session, made.id, status="error", output="no", duration=7)
    assert not workspace.sessions.end_call(session, "c1", status="success", output="yes")
    assert not workspace.sessions.end_call(session, "c1", status="pending")
    assert not workspace.sessions.end_call(session, "c2")
    assert workspace.sessions.entry(made.id, session) == made._replace(
        data=data | {"status": "error", "output": "no", "duration": 7}
    )
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.end_call(session, "c1", status="done")


def test_oc_14_closing_leaves_everything_written(project: Path, mulligan_home: Path) -> None:
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create().id
        workspace.sessions.append(session, NewEntry("user_input", "walrus"))
        search(workspace.project, "walrus")
    assert not list(mulligan_home.glob("projects/*/*-wal"))
    with mulligan.open(project) as workspace:
        assert workspace.sessions.count_entries(session) == 1


def test_oc_16_a_hit_names_its_message_and_session_with_a_short_snippet_best_first(
    workspace: Workspace,
) -> None:
    session = workspace.sessions.create(title="About animals").id
    workspace.sessions.append(
        session,
        NewEntry("assistant_output", "lorem ipsum " * 200 + "walrus" + " dolor" * 200),
        NewEntry("user_input", "walrus walrus"),
    )
    hits = search(workspace.project, "walrus").hits
    assert [hit.seq for hit in hits] == [2, 1]
    assert all(hit.session == session and hit.title == "About animals" for hit in hits)
    assert all("<mark>walrus</mark>" in hit.snippet and len(hit.snippet) < 500 for hit in hits)
    assert hits[0].score > hits[1].score
    assert len(search(workspace.project, "walrus", session=session, limit=1).hits) == 1


def test_oc_43_a_session_whose_process_was_killed_is_stopped_at_the_next_opening(
    project: Path,
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", RUNNING, str(project)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        session = child.stdout.readline().strip()
        with mulligan.open(project) as workspace:
            assert workspace.sessions.get(session).status == "running"
            mine = workspace.sessions.create(status="running").id
            nobodys = workspace.sessions.create(status="running", process=0).id
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(30)
        assert child.stdout is not None
        child.stdout.close()
    with mulligan.open(project) as workspace:
        assert workspace.sessions.get(session).status == "stopped"
        assert workspace.sessions.get(mine).status == "running"
        assert workspace.sessions.get(nobodys).status == "running"
        assert [each.id for each in workspace.sessions.list(status="stopped").sessions] == [session]
        # It can be gone on with.
        workspace.sessions.begin_turn(session, "once more")
        assert workspace.sessions.get(session).status == "running"
        assert json.dumps(workspace.sessions.get(session).as_json())


def test_oc_43_a_process_that_was_gone_before_its_session_began_is_gone(
    project: Path, workspace: Workspace
) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    session = workspace.sessions.create(process=gone.pid, status="running").id
    with mulligan.open(project) as again:
        assert again.sessions.get(session).status == "stopped"


def test_oc_43_a_process_that_ended_and_was_not_waited_for_is_gone(
    project: Path, workspace: Workspace
) -> None:
    ended = subprocess.Popen(["sleep", "600"])
    session = workspace.sessions.create(process=ended.pid, status="running").id
    ended.kill()
    try:
        while Path(f"/proc/{ended.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            pass
        with mulligan.open(project) as again:
            assert again.sessions.get(session).status == "stopped"
    finally:
        ended.wait(30)
