"""The promises of YAAI about sessions and their transcripts."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from acts import write

import mulligan
from mulligan import Workspace
from mulligan.clock import now_ns
from mulligan.core.entries import CALL_STATES, FILE_OPERATIONS, TYPES, NewEntry
from mulligan.core.times import nanoseconds, rfc3339
from mulligan.workspace.results.sessions import Entry, EntryPage
from mulligan.workspace.search.search import search
from mulligan.workspace.search.tool_stats import calls, stats
from mulligan.workspace.transfer.import_logs import import_logs

STATUSES = ("starting", "running", "waiting_input", "paused", "stopped")
SEVEN = TYPES[:7]


@pytest.fixture
def session(workspace: Workspace) -> str:
    return workspace.sessions.create(agent="test").id


def say(workspace: Workspace, session: str, count: int, type: str = "user_input") -> list[Entry]:
    return workspace.sessions.append(
        session, *(NewEntry(type, f"{type} {n}") for n in range(count))
    )


def seqs(page: EntryPage) -> list[int]:
    return [entry.seq for entry in page.entries]


def tool_call(name: str, status: str, **more: Any) -> NewEntry:
    return NewEntry("tool_call", data={"name": name, "input": {}, "status": status, **more})


def test_ya_1_a_session_begins_as_starting_in_its_project(
    project: Path, workspace: Workspace
) -> None:
    made = workspace.sessions.create()
    assert made.status == "starting"
    assert made.project == made.directory == str(project)
    assert made.created_at == made.updated_at
    assert workspace.sessions.get(made.id) == made


@pytest.mark.parametrize("status", STATUSES)
def test_ya_1_every_status_can_be_begun_with_and_changed_to(
    workspace: Workspace, status: str
) -> None:
    assert workspace.sessions.create(status=status).status == status
    id = workspace.sessions.create().id
    assert workspace.sessions.change(id, status=status).status == status
    assert workspace.sessions.list(status=status).sessions[0].id == id


@pytest.mark.parametrize("status", ["idle", "", "Running", "completed"])
def test_ya_1_another_status_is_refused_and_nothing_changes(
    workspace: Workspace, session: str, status: str
) -> None:
    before = workspace.sessions.get(session)
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.change(session, status=status)
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.create(status=status)
    assert workspace.sessions.list().sessions == (before,)


def test_ya_1_sessions_are_listed_by_their_last_change_newest_first(workspace: Workspace) -> None:
    made = [workspace.sessions.create(checkpoint=False).id for _ in range(4)]
    assert [each.id for each in workspace.sessions.list().sessions] == made[::-1]
    time.sleep(0.002)  # times count in milliseconds
    say(workspace, made[1], 1)
    time.sleep(0.002)
    workspace.sessions.change(made[0], title="now")
    found = [each.id for each in workspace.sessions.list().sessions]
    assert found == [made[0], made[1], made[3], made[2]]


def test_ya_1_a_change_touches_the_time_of_the_last_change_and_never_sets_it_back(
    workspace: Workspace, session: str
) -> None:
    # A clock that is a little ahead; by much, and it is wrong.
    given = rfc3339(now_ns() + 50_000_000_000)
    workspace.sessions.append(session, NewEntry("user_input", created_at=given))
    ahead = workspace.sessions.get(session).updated_at
    assert ahead == given
    assert workspace.sessions.change(session, status="paused").updated_at == ahead
    workspace.sessions.append(session, NewEntry("user_input", created_at="2999-01-01T00:00:00Z"))
    assert workspace.sessions.change(session, status="running").updated_at < "2999"
    other = workspace.sessions.create(checkpoint=False)
    changed = workspace.sessions.change(other.id, status="running")
    assert changed.updated_at >= other.updated_at and changed.created_at == other.created_at


def test_ya_1_deleting_a_session_takes_all_that_belongs_to_it(
    project: Path, workspace: Workspace
) -> None:
    kept, gone = (workspace.sessions.create(agent="test").id for _ in range(2))
    for session in (kept, gone):
        workspace.sessions.begin_turn(session, "Change it")
        edit = workspace.sessions.start_edit(session, ["a"])
        write(project, {"a": session})
        workspace.sessions.finalize_edit(edit)
        workspace.sessions.append(session, tool_call("edit", "success"))
        workspace.sessions.end_turn(session)
        workspace.sessions.label(f"#{workspace.sessions.count_entries(session)}", "here", session)
    workspace.checkpoint("afterwards")
    assert workspace.sessions.delete(gone).id == gone
    left = {
        table: workspace.project.journal.row(f"SELECT count(*) FROM {table}")[0]
        for table in ("sessions", "labels", "tool_events", "ledger")
    }
    assert left == {"sessions": 1, "labels": 1, "tool_events": 1, "ledger": 1}
    owners = workspace.project.journal.rows("SELECT DISTINCT s.id FROM entries e JOIN sessions s "
                                    "ON s.number = e.session")  # fmt: skip
    assert owners == [(kept,)]
    assert workspace.project.journal.rows("PRAGMA foreign_key_check") == []
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.get(gone)
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.delete(gone)
    assert workspace.sessions.count_entries(kept) == 4


@pytest.mark.parametrize("type", SEVEN)
def test_ya_2_every_type_of_entry_is_kept(workspace: Workspace, session: str, type: str) -> None:
    (made,) = workspace.sessions.append(session, NewEntry(type, "words"))
    assert (made.type, made.content, made.is_compacted) == (type, "words", False)
    assert workspace.sessions.transcript(session, types=[type]).entries == (made,)


def test_ya_2_another_type_is_refused_and_nothing_is_appended(
    workspace: Workspace, session: str
) -> None:
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.append(session, NewEntry("user_input"), NewEntry("thought"))
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.transcript(session, types=["thought"])
    assert workspace.sessions.count_entries(session) == 0


@pytest.mark.parametrize(
    ("type", "data"),
    [
        *(
            ("tool_call", {"name": "sh", "input": {"c": ["ls", 1, None]}, "status": state})
            for state in CALL_STATES
        ),
        ("tool_call", {"name": "x", "input": {}, "output": {"a": [1.5]}, "status": "success",
                       "duration": 12.5}),
        *(
            ("file_edit", {"path": "ü\n", "operation": kind, "diff": "@@", "beforeHash": "a",
                           "afterHash": "b", "additions": 1, "deletions": 0})
            for kind in FILE_OPERATIONS
        ),
        ("compact_marker", {"compactedCount": 3, "summary": "all of it"}),
        ("compact_marker", {"compactedCount": 0}),
    ],
)  # fmt: skip
def test_ya_2_typed_data_comes_back_as_it_was(
    workspace: Workspace, session: str, type: str, data: dict[str, Any]
) -> None:
    (made,) = workspace.sessions.append(session, NewEntry(type, data=data))
    assert made.data == data
    assert workspace.sessions.entry(made.id, session) == made


def test_ya_3_seq_counts_from_one_in_each_session_and_the_returned_one_is_the_real_one(
    workspace: Workspace,
) -> None:
    one, other = (workspace.sessions.create().id for _ in range(2))
    made = [
        entry
        for number in range(5)
        for entry in say(workspace, (one, other)[number % 2], number + 1)
    ]
    for session in (one, other):
        mine = [entry for entry in made if entry.session == session]
        assert [entry.seq for entry in mine] == list(range(1, len(mine) + 1))
        assert list(workspace.sessions.transcript(session).entries) == mine


def test_ya_3_an_append_that_fails_leaves_no_hole(workspace: Workspace, session: str) -> None:
    say(workspace, session, 2)
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.append(
            session, NewEntry("user_input"), NewEntry("user_input", parent="nobody")
        )
    assert [entry.seq for entry in say(workspace, session, 1)] == [3]


@pytest.mark.parametrize("at", ["1999-01-01T00:00:00Z", "2026-01-01T00:00:00+05:00", None])
def test_ya_3_times_strictly_increase_whatever_the_clock_says(
    workspace: Workspace, session: str, at: str | None
) -> None:
    workspace.sessions.append(
        session, NewEntry("user_input", created_at="2040-05-05T05:05:05.005Z")
    )
    workspace.sessions.append(session, *(NewEntry("user_input", created_at=at) for _ in range(50)))
    found = workspace.sessions.transcript(session, limit=100).entries
    assert len(found) == 51
    assert all(one.created_at < next.created_at for one, next in pairwise(found))
    if at is None:
        # The clock is asked again: the time ahead of it was wrong.
        assert workspace.sessions.get(session).updated_at < "2040"
    else:
        assert workspace.sessions.get(session).updated_at == found[-1].created_at
        # What the log said is not lost, though it could not be the time.
        assert {(entry.data or {})["at"] for entry in found[1:]} == {at}


def test_ya_3_adding_an_entry_touches_the_session(workspace: Workspace, session: str) -> None:
    (made,) = workspace.sessions.append(session, NewEntry("user_input"))
    assert workspace.sessions.get(session).updated_at == made.created_at


def test_ya_4_since_is_exclusive_and_the_cursor_is_there_only_if_there_is_more(
    workspace: Workspace, session: str
) -> None:
    say(workspace, session, 7)
    page = workspace.sessions.transcript(session, limit=3)
    assert (seqs(page), page.has_more, page.next_seq) == ([1, 2, 3], True, 3)
    page = workspace.sessions.transcript(session, limit=3, since=3)
    assert (seqs(page), page.has_more, page.next_seq) == ([4, 5, 6], True, 6)
    page = workspace.sessions.transcript(session, limit=3, since=6)
    assert (seqs(page), page.has_more, page.next_seq) == ([7], False, None)
    page = workspace.sessions.transcript(session, limit=3, since=7)
    assert (seqs(page), page.has_more, page.next_seq) == ([], False, None)


def test_ya_4_a_page_that_is_just_full_says_that_there_is_no_more(
    workspace: Workspace, session: str
) -> None:
    say(workspace, session, 3)
    page = workspace.sessions.transcript(session, limit=3)
    assert (len(page.entries), page.has_more, page.next_seq) == (3, False, None)


def test_ya_4_fifty_are_given_if_nobody_says_how_many(workspace: Workspace, session: str) -> None:
    say(workspace, session, 51)
    page = workspace.sessions.transcript(session)
    assert (seqs(page), page.has_more, page.next_seq) == (list(range(1, 51)), True, 50)
    page = workspace.sessions.recent(session)
    assert (seqs(page), page.has_more, page.next_seq) == (list(range(2, 52)), True, 2)


def test_ya_4_types_and_compaction_are_filtered_before_the_page_is_cut(
    workspace: Workspace, session: str
) -> None:
    for _ in range(4):
        say(workspace, session, 1)
        say(workspace, session, 3, "tool_result")
    page = workspace.sessions.transcript(session, types=["user_input"], limit=2)
    assert (seqs(page), page.next_seq) == ([1, 5], 5)
    page = workspace.sessions.transcript(session, types=["user_input"], since=5, limit=2)
    assert (seqs(page), page.has_more) == ([9, 13], False)
    workspace.sessions.mark_compacted(session, 10)
    assert seqs(workspace.sessions.transcript(session, limit=4)) == [10, 11, 12, 13]
    assert seqs(workspace.sessions.transcript(session, limit=4, include_compacted=True)) == [
        1,
        2,
        3,
        4,
    ]
    assert seqs(workspace.sessions.transcript(session, types=["user_input"])) == [13]


def test_ya_4_recent_ones_are_ascending_and_lead_back_to_the_beginning(
    workspace: Workspace, session: str
) -> None:
    say(workspace, session, 8)
    page = workspace.sessions.recent(session, limit=3)
    assert (seqs(page), page.has_more, page.next_seq) == ([6, 7, 8], True, 6)
    page = workspace.sessions.recent(session, limit=3, before=page.next_seq)
    assert (seqs(page), page.has_more, page.next_seq) == ([3, 4, 5], True, 3)
    page = workspace.sessions.recent(session, limit=3, before=page.next_seq)
    assert (seqs(page), page.has_more, page.next_seq) == ([1, 2], False, None)


def test_ya_4_counting_includes_what_is_compacted_unless_told(
    workspace: Workspace, session: str
) -> None:
    say(workspace, session, 5)
    workspace.sessions.mark_compacted(session, 4)
    assert workspace.sessions.count_entries(session) == 5
    assert workspace.sessions.count_entries(session, include_compacted=False) == 2


def test_ya_4_pages_stay_in_step_while_entries_are_added(
    workspace: Workspace, session: str
) -> None:
    say(workspace, session, 5)
    forward, since = [], 0
    for added in range(6):
        page = workspace.sessions.transcript(session, since=since, limit=2)
        forward += seqs(page)
        since = page.next_seq or forward[-1]
        say(workspace, session, added % 3)
    forward += seqs(workspace.sessions.transcript(session, since=since))
    assert forward == list(range(1, workspace.sessions.count_entries(session) + 1))


@pytest.mark.parametrize("limit", [0, -1])
def test_ya_4_a_page_of_nothing_is_refused(workspace: Workspace, session: str, limit: int) -> None:
    for page in (
        workspace.sessions.transcript,
        workspace.sessions.recent,
        workspace.sessions.conversation,
    ):
        with pytest.raises(mulligan.UsageError):
            page(session, limit=limit)
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.list(limit=limit)


def test_ya_4_any_cursor_is_answered(workspace: Workspace, session: str) -> None:
    say(workspace, session, 3)
    for far in (4, 2**31, 2**32 - 1, 2**32, 2**63, 2**80):
        assert workspace.sessions.transcript(session, since=far).entries == ()
        assert seqs(workspace.sessions.recent(session, before=far)) == [1, 2, 3]
        assert len(workspace.sessions.conversation(session, before=far)) == 3
        assert workspace.sessions.conversation(session, since=far) == []
        assert seqs(workspace.sessions.transcript(session, since=-far)) == [1, 2, 3]
        assert workspace.sessions.recent(session, before=-far).entries == ()


@pytest.mark.parametrize("limit", [2**31, 2**63 - 1, 2**63, 2**80])
def test_ya_4_a_page_too_large_for_anybody_is_refused(
    workspace: Workspace, session: str, limit: int
) -> None:
    for page in (
        workspace.sessions.transcript,
        workspace.sessions.recent,
        workspace.sessions.conversation,
    ):
        with pytest.raises(mulligan.UsageError):
            page(session, limit=limit)
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.list(limit=limit)
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.list(offset=2**70)


def test_ya_5_only_links_and_the_compaction_flag_of_an_entry_can_change(
    workspace: Workspace, session: str
) -> None:
    (made,) = workspace.sessions.append(
        session, NewEntry("user_input", "words", {"k": 1}, model="m")
    )
    taken = workspace.checkpoint()
    changes: dict[str, Any] = {"checkpoint": taken.id, "plan_item": "p", "is_compacted": True}
    for name, value in changes.items():
        assert workspace.sessions.link_entry(made.id, session, **{name: value})
    assert workspace.sessions.entry(made.id, session) == made._replace(**changes)
    for name in ("content", "type", "data", "created_at", "seq", "parent", "model", "nonsense"):
        with pytest.raises(mulligan.UsageError):
            workspace.sessions.link_entry(made.id, session, **{name: "other"})
    assert workspace.sessions.entry(made.id, session) == made._replace(**changes)


def test_ya_5_to_change_nothing_is_answered_with_no(workspace: Workspace, session: str) -> None:
    (made,) = say(workspace, session, 1)
    assert workspace.sessions.link_entry(made.id, session) is False


def test_ya_5_links_can_be_taken_away_again(workspace: Workspace, session: str) -> None:
    (made,) = say(workspace, session, 1)
    workspace.sessions.link_entry(
        made.id, session, checkpoint=workspace.checkpoint().id, plan_item="p"
    )
    workspace.sessions.link_entry(made.id, session, checkpoint=None, plan_item=None)
    assert workspace.sessions.entry(made.id, session) == made


def test_ya_5_a_link_to_what_is_not_there_is_refused(workspace: Workspace, session: str) -> None:
    (made,) = say(workspace, session, 1)
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.link_entry(made.id, session, checkpoint="nowhere")
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.link_entry("nobody", session, plan_item="p")
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.append(session, NewEntry("user_input", checkpoint="nowhere"))
    assert workspace.sessions.count_entries(session) == 1


def test_ya_5_marking_counts_only_what_was_not_marked_before(
    workspace: Workspace, session: str
) -> None:
    say(workspace, session, 6)
    assert workspace.sessions.mark_compacted(session, 4) == 3
    assert workspace.sessions.mark_compacted(session, 4) == 0
    assert workspace.sessions.mark_compacted(session, 6) == 2
    assert workspace.sessions.mark_compacted(session, 1) == 0
    assert workspace.sessions.mark_compacted(session, 10**12) == 1
    assert workspace.sessions.mark_compacted(session, -1) == 0


def test_ya_5_marking_leaves_other_sessions_alone(workspace: Workspace) -> None:
    one, other = (workspace.sessions.create().id for _ in range(2))
    for session in (one, other):
        say(workspace, session, 3)
    workspace.sessions.mark_compacted(one, 10**12)
    assert workspace.sessions.count_entries(other, include_compacted=False) == 3


def test_ya_5_what_is_compacted_is_hidden_searchable_and_restorable(
    project: Path, workspace: Workspace, session: str
) -> None:
    write(project, {"a": "1"})
    workspace.sessions.begin_turn(session, "Sharpen the pencils")
    write(project, {"a": "2"})
    step = workspace.sessions.end_turn(session)
    workspace.sessions.begin_turn(session, "And now the pens")
    write(project, {"a": "3"})
    workspace.sessions.end_turn(session)
    hidden, marker = workspace.sessions.compact(session, summary="They were sharpened")
    assert hidden == 4 and marker.data == {"compactedCount": 4, "summary": "They were sharpened"}
    assert workspace.sessions.transcript(session).entries == (marker,)
    assert [hit.seq for hit in search(workspace.project, "pencil", session=session).hits] == [1]
    assert step.entry is not None
    workspace.sessions.goto(step.entry, session=session)
    assert (project / "a").read_text() == "2"


def test_ya_6_search_stems_ranks_and_marks_in_a_session_and_in_all(workspace: Workspace) -> None:
    one, other = (workspace.sessions.create().id for _ in range(2))
    workspace.sessions.append(one, NewEntry("assistant_output", "The tests are running now"))
    workspace.sessions.append(
        other, NewEntry("user_input", "Run it"), NewEntry("user_input", "Walk")
    )
    assert [hit.session for hit in search(workspace.project, "run", session=one).hits] == [one]
    assert {hit.session for hit in search(workspace.project, "run").hits} == {one, other}
    (hit,) = search(workspace.project, "run", session=one).hits
    assert "<mark>running</mark>" in hit.snippet


def test_ya_6_the_index_follows_what_is_added_changed_and_deleted(workspace: Workspace) -> None:
    session = workspace.sessions.create().id
    workspace.sessions.append(session, tool_call("sh", "running", call="c1"))
    assert search(workspace.project, "walrus").hits == ()
    workspace.sessions.end_call(session, "c1", output="a walrus")
    assert len(search(workspace.project, "walrus").hits) == 1
    workspace.sessions.delete(session)
    assert search(workspace.project, "walrus").hits == ()


def test_ya_7_entries_of_a_checkpoint_of_a_plan_item_and_edits_come_by_seq(
    workspace: Workspace, session: str
) -> None:
    taken = workspace.checkpoint().id
    workspace.sessions.append(
        session,
        NewEntry("user_input", plan_item="p"),
        NewEntry("file_edit", data={"path": "a", "operation": "create"}, checkpoint=taken),
        NewEntry("assistant_output", plan_item="p", checkpoint=taken),
        NewEntry("file_edit", data={"path": "a", "operation": "delete"}),
    )
    workspace.sessions.mark_compacted(session, 3)
    assert [entry.seq for entry in workspace.sessions.linked_entries(checkpoint=taken)] == [2, 3]
    assert [entry.seq for entry in workspace.sessions.linked_entries(plan_item="p")] == [1, 3]
    assert workspace.sessions.linked_entries(plan_item="q") == []
    assert seqs(workspace.sessions.file_edits(session)) == [2, 4]


def test_ya_8_forgetting_a_checkpoint_takes_the_link_and_leaves_the_entry(
    project: Path, workspace: Workspace, session: str
) -> None:
    taken = workspace.checkpoint().id
    (made,) = workspace.sessions.append(session, NewEntry("user_input", "words", checkpoint=taken))
    for number in range(3):
        write(project, {"a": str(number)})
        workspace.checkpoint()
    assert taken in workspace.maintenance.forget(keep_last=1).forgotten
    assert workspace.sessions.entry(made.id, session) == made._replace(checkpoint=None)


def test_ya_13_legacy_folders_are_taken_in_with_ids_and_their_problems_named(
    tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    at = "2026-01-02T10:00:00.000Z"
    folder = tmp_path / ".yaai/sessions/s1"
    info = f'{{"id": "s1", "projectPath": "{project}", "status": "stopped", "createdAt": "{at}"}}'
    entry = '{{"id": "{}", "sessionId": "s1", "type": "{}", "content": "{}", "timestamp": "{}"}}\n'
    write(folder, {
        "session.json": info,
        "transcript.jsonl": entry.format("a", "user_input", "Hello", at) + "\n{broken\n"
        + entry.format("b", "assistant_output", "Hi", at),
    })  # fmt: skip
    done = import_logs(str(mulligan_home), "yaai", user_home=str(tmp_path), environment={})
    assert (done.sessions, done.entries, len(done.problems)) == (1, 2, 1)
    assert done.problems[0].line == 3
    with mulligan.open(project) as workspace:
        found = workspace.sessions.transcript("s1").entries
        assert [(entry.id, entry.seq, entry.content) for entry in found] == [
            ("a", 1, "Hello"),
            ("b", 2, "Hi"),
        ]
        assert workspace.sessions.get("s1").created_at == at


def test_ya_13_a_folder_that_is_not_there_gives_zeros(tmp_path: Path, mulligan_home: Path) -> None:
    done = import_logs(str(mulligan_home), "yaai", user_home=str(tmp_path), environment={})
    assert (done.logs, done.sessions, done.entries, done.problems) == (0, 0, 0, ())


def test_ya_15_what_is_not_there_and_what_is_broken_have_codes_of_their_own(
    project: Path, mulligan_home: Path
) -> None:
    with mulligan.open(project) as workspace:
        for ask in (
            workspace.sessions.get,
            workspace.sessions.transcript,
            workspace.sessions.branches,
        ):
            with pytest.raises(mulligan.NotFound) as raised:
                ask("nobody")
            assert raised.value.code == "not_found"
    (journal,) = mulligan_home.glob("projects/*/journal.sqlite")
    journal.write_bytes(b"not a database at all, " * 100)
    with pytest.raises(mulligan.Corrupt) as damaged:
        mulligan.open(project)
    assert damaged.value.code == "corrupt"
    assert journal.read_bytes() == b"not a database at all, " * 100


def test_ya_16_every_tool_call_is_an_event_of_tool_time_and_success(
    workspace: Workspace, session: str
) -> None:
    workspace.sessions.append(
        session,
        tool_call("read", "success", duration=10),
        tool_call("read", "error", duration=30),
        tool_call("sh", "success"),
        tool_call("sh", "pending", call="c"),
        NewEntry("tool_result", "no event"),
    )
    found = stats(workspace.project)
    told = {row.key: (row.calls, row.success, row.failure, row.unknown) for row in found.rows}
    assert told == {("read",): (2, 1, 1, 0), ("sh",): (2, 1, 0, 1)}
    read = next(row for row in found.rows if row.key == ("read",))
    assert (read.success_rate, read.average_ms) == (0.5, 20)
    assert {call.error_type for call in calls(workspace.project).calls} == {None, "tool_error"}
    workspace.sessions.end_call(session, "c", status="error", duration=5)
    assert stats(workspace.project).total.failure == 2


def test_ya_17_many_entries_are_appended_in_one_transaction(
    workspace: Workspace, session: str
) -> None:
    many = [NewEntry("user_input", str(number)) for number in range(500)]
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.append(session, *many, NewEntry("thought"))
    assert workspace.sessions.count_entries(session) == 0
    say(workspace, session, 500)
    assert workspace.sessions.count_entries(session) == 500


def test_ya_17_the_journal_is_write_ahead_and_keeps_its_references(workspace: Workspace) -> None:
    assert workspace.project.journal.row("PRAGMA journal_mode") == ("wal",)
    assert workspace.project.journal.row("PRAGMA foreign_keys") == (1,)


def test_ya_17_times_are_utc_with_milliseconds(workspace: Workspace, session: str) -> None:
    (made,) = workspace.sessions.append(
        session, NewEntry("user_input", created_at="2026-03-01T12:00:00.123456+02:00")
    )
    assert made.created_at == "2026-03-01T10:00:00.123Z"
    assert nanoseconds(made.created_at) % 1_000_000 == 0
