"""Sessions at their edges: many writers, long ones, odd names, and the shape of the tree."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan import Workspace
from mulligan.core.entries import NewEntry
from mulligan.journal import events
from mulligan.workspace.results.sessions import Branch, Entry

WRITERS = 8
EACH = 40
WRITING = """
    import sys, mulligan
    from mulligan.core.entries import NewEntry
    root, session, who, count = sys.argv[1:]
    with mulligan.open(root) as workspace:
        for number in range(int(count)):
            words = [f"{who} {number} {part}" for part in range(1 + number % 3)]
            new = [NewEntry("user_input", each) for each in words]
            made = workspace.sessions.append(session, *new)
            # What is answered is what was appended, whoever else appends at the same time.
            assert [entry.content for entry in made] == words
            assert [entry.seq - made[0].seq for entry in made] == list(range(len(new)))
"""
READING = """
    import sys, mulligan
    root, session, total = sys.argv[1:]
    with mulligan.open(root) as workspace:
        forward, since, rounds = [], 0, 0
        while len(forward) < int(total):
            page = workspace.sessions.transcript(session, since=since, limit=7)
            forward += [entry.seq for entry in page.entries]
            since = forward[-1] if forward else 0
            assert page.has_more == (page.next_seq is not None)
            assert forward == list(range(1, len(forward) + 1))
            if page.entries:
                back = workspace.sessions.recent(session, before=since + 1, limit=5)
                assert [e.seq for e in back.entries] == forward[-len(back.entries):]
                way = workspace.sessions.conversation(session, limit=6, newest=True)
                assert all(a.id == b.parent for a, b in zip(way, way[1:]))
"""


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    with mulligan.open(project) as opened:
        yield opened
        assert opened.maintenance.verify().problems == ()
        assert opened.project.journal.rows("PRAGMA foreign_key_check") == []


@pytest.fixture
def session(workspace: Workspace) -> str:
    return workspace.sessions.create(agent="test", checkpoint=False).id


def start(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    script = textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)])


def everything(workspace: Workspace, session: str) -> tuple[Entry, ...]:
    return workspace.sessions.transcript(session, limit=100_000, include_compacted=True).entries


def test_eight_processes_append_to_one_session_and_two_read_along(
    workspace: Workspace, session: str
) -> None:
    total = WRITERS * sum(1 + number % 3 for number in range(EACH))
    running = [start(WRITING, workspace.root, session, who, EACH) for who in range(WRITERS)]
    running += [start(READING, workspace.root, session, total) for _ in range(2)]
    assert [process.wait(240) for process in running] == [0] * len(running)
    found = everything(workspace, session)
    assert [entry.seq for entry in found] == list(range(1, total + 1))
    assert all(one.created_at < other.created_at for one, other in pairwise(found))
    assert all(one.id == other.parent for one, other in pairwise(found))
    for who in range(WRITERS):
        mine = [entry.content for entry in found if entry.content.startswith(f"{who} ")]
        assert mine == [
            f"{who} {number} {part}" for number in range(EACH) for part in range(1 + number % 3)
        ]
    assert workspace.sessions.get(session).leaf == found[-1].id
    assert len(workspace.sessions.branches(session)) == 1


def test_threads_that_share_a_workspace_append_without_holes(
    workspace: Workspace, session: str
) -> None:
    problems: list[BaseException] = []

    def write(who: int) -> None:
        try:
            for number in range(25):
                workspace.sessions.append(session, NewEntry("user_input", f"{who} {number}"))
                workspace.sessions.recent(session, limit=3)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert problems == []
    assert [entry.seq for entry in everything(workspace, session)] == list(range(1, 101))


def test_a_session_that_is_deleted_under_a_writer_is_not_found(project: Path) -> None:
    with mulligan.open(project) as one, mulligan.open(project) as other:
        session = one.sessions.create(checkpoint=False).id
        other.sessions.delete(session)
        for verb in (
            lambda: one.sessions.append(session, NewEntry("user_input")),
            lambda: one.sessions.begin_turn(session, "message"),
            lambda: one.sessions.change(session, title="x"),
            lambda: one.sessions.compact(session),
            lambda: one.sessions.fork(session),
        ):
            with pytest.raises(mulligan.NotFound):
                verb()


def test_a_session_deleted_between_the_question_and_the_answer_is_not_found(
    workspace: Workspace, session: str
) -> None:
    """The deletion falls between resolving the name and the transaction."""
    taken = threading.Event()
    answers: list[Any] = []

    def append() -> None:
        taken.set()
        try:
            answers.append(workspace.sessions.append(session, NewEntry("user_input")))
        except BaseException as problem:
            answers.append(problem)

    writer = threading.Thread(target=append)
    with mulligan.open(workspace.root) as other, other.project.journal.writing() as db:
        writer.start()
        taken.wait(30)
        writer.join(0.5)
        db.execute("DELETE FROM sessions WHERE id = ?", (session,))
    writer.join(60)
    assert [type(answer) for answer in answers] == [mulligan.NotFound]


@pytest.mark.parametrize("count", [1200])
def test_a_path_through_very_many_branches_is_read_and_forked(
    workspace: Workspace, session: str, count: int
) -> None:
    new = [NewEntry("user_input", id="0")]
    for number in range(1, count):
        new.append(NewEntry("assistant_output", "left", parent=str(number - 1)))
        new.append(NewEntry("assistant_output", id=str(number), parent=str(number - 1)))
    workspace.sessions.append(session, *new)
    way = [str(number) for number in range(count)]
    assert [entry.id for entry in workspace.sessions.conversation(session)] == way
    forked = workspace.sessions.fork(session)
    assert [entry.id for entry in workspace.sessions.conversation(forked.id)] == way
    assert len(workspace.sessions.branches(forked.id)) == 1


def shape(branches: list[Branch]) -> list[tuple[str, str, str | None, int, bool]]:
    return [(b.first.id, b.last.id, b.parent_entry, b.entries, b.active) for b in branches]


def test_branches_are_the_unforked_stretches_of_the_tree(
    workspace: Workspace, session: str
) -> None:
    def say(id: str, parent: str | None, *, off_path: bool = False) -> NewEntry:
        return NewEntry("user_input", id=id, parent=parent, off_path=off_path)

    workspace.sessions.append(session, say("a", None), say("b", "a"), say("c", "b"))
    assert shape(workspace.sessions.branches(session)) == [("a", "c", None, 3, True)]
    workspace.sessions.append(session, say("x", "b"), say("y", "x"), say("z", "c"))
    workspace.sessions.append(
        session, say("s1", "z", off_path=True), say("s2", "s1", off_path=True)
    )
    workspace.sessions.append(session, say("d", "z"), say("r", None))
    assert shape(workspace.sessions.branches(session)) == [
        ("a", "d", None, 5, False),
        ("x", "y", "b", 2, False),
        ("s1", "s2", "z", 2, False),
        ("r", "r", None, 1, True),
    ]
    assert [entry.id for entry in workspace.sessions.conversation(session, leaf="y")] == [*"abxy"]
    assert [entry.id for entry in workspace.sessions.conversation(session, leaf="s2")] == [
        *("a", "b", "c", "z", "s1", "s2"),
    ]


def test_an_entry_aside_does_not_move_the_leaf(workspace: Workspace, session: str) -> None:
    (main,) = workspace.sessions.append(session, NewEntry("user_input"))
    (aside,) = workspace.sessions.append(session, NewEntry("assistant_output", off_path=True))
    assert aside.parent == main.id and workspace.sessions.get(session).leaf == main.id
    (then,) = workspace.sessions.append(session, NewEntry("assistant_output"))
    assert then.parent == main.id and then.branch == main.branch


def test_a_parent_of_another_session_is_not_found(workspace: Workspace, session: str) -> None:
    workspace.sessions.append(session, NewEntry("user_input", id="mine"))
    other = workspace.sessions.create(checkpoint=False).id
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.append(other, NewEntry("user_input", parent="mine"))
    assert workspace.sessions.count_entries(other) == 0


@pytest.mark.parametrize(
    "problem",
    [
        {"id": "there"},
        {"created_at": "yesterday"},
        {"checkpoint": "nowhere"},
        {"data": {"number": float("nan")}},
        {"data": {"thing": object()}},
        {"content": "x" * ((64 << 20) + 1)},
    ],
    ids=lambda each: next(iter(each)),
)
def test_an_entry_that_cannot_be_kept_is_refused_and_so_are_those_with_it(
    workspace: Workspace, session: str, problem: dict[str, Any]
) -> None:
    workspace.sessions.append(session, NewEntry("user_input", id="there"))
    before = workspace.sessions.get(session)
    with pytest.raises(mulligan.MulliganError) as raised:
        workspace.sessions.append(
            session, NewEntry("user_input"), NewEntry("user_input", **problem)
        )
    assert raised.value.code in ("usage", "not_found")
    assert (
        workspace.sessions.count_entries(session) == 1 and workspace.sessions.get(session) == before
    )


@pytest.mark.parametrize(
    "words",
    ["", "\0", "a\0b", "\ud800", "x\udcff", "😀", "a" * 1_000_000, "\x1b[31m", "' OR 1=1"],
    ids=["none", "nul", "nul inside", "half", "byte", "emoji", "long", "colour", "quote"],
)
def test_any_words_are_kept(workspace: Workspace, session: str, words: str) -> None:
    data = {"words": words, words: [words]}
    (made,) = workspace.sessions.append(
        session, NewEntry("tool_call", words, data, id=words or None)
    )
    kept = words.encode("utf-8", "replace").decode()
    assert made.content == kept
    assert workspace.sessions.change(session, title=words, memory=words).memory is not None
    workspace.sessions.begin_turn(session, words)
    workspace.sessions.end_turn(session)
    assert len("".join(workspace.sessions.export(session, "jsonl")).splitlines()) == 3
    again = workspace.sessions.label(made.id, words, session)
    assert again.label == (kept or None)


@pytest.mark.parametrize("name", ["", "@", "@0", "@99999999999", "@x", "#1", "\udcff", "%", "\0"])
def test_a_name_that_names_nothing_is_not_found(workspace: Workspace, name: str) -> None:
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.get(name)
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.entry(name)


def test_a_prefix_that_fits_several_is_ambiguous_and_the_whole_id_is_not(
    workspace: Workspace,
) -> None:
    for id in ("abc", "abcd", "abce"):
        workspace.sessions.create(id=id, checkpoint=False)
    assert workspace.sessions.get("abc").id == "abc"
    with pytest.raises(mulligan.Ambiguous):
        workspace.sessions.get("ab")
    workspace.sessions.append(
        "abc", *(NewEntry("user_input", id=id) for id in ("xyz", "xy", "xyw"))
    )
    assert workspace.sessions.entry("xy", "abc").id == "xy"
    with pytest.raises(mulligan.Ambiguous):
        workspace.sessions.entry("x", "abc")
    with pytest.raises(mulligan.UsageError):
        workspace.sessions.create(id="abc")


def test_an_id_wins_over_a_label_and_a_label_over_a_prefix(
    workspace: Workspace, session: str
) -> None:
    workspace.sessions.append(
        session, *(NewEntry("user_input", id=id) for id in ("one", "two", "three"))
    )
    workspace.sessions.label("two", "one", session)
    assert workspace.sessions.entry("one", session).id == "one"
    workspace.sessions.label("two", "th", session)
    assert workspace.sessions.entry("th", session).id == "two"
    # A label belongs to one entry: set again, it moves.
    workspace.sessions.label("one", "th", session)
    assert workspace.sessions.entry("th", session).id == "one"
    assert workspace.sessions.entry("two", session).label is None


def test_entries_shared_by_a_fork_need_the_session_to_be_named(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    workspace.sessions.append(session, NewEntry("user_input", id="shared"))
    forked = workspace.sessions.fork(session).id
    with pytest.raises(mulligan.Ambiguous):
        workspace.sessions.entry("shared")
    assert workspace.sessions.entry("shared", forked).session == forked


def test_a_fork_of_a_message_stands_before_it(project: Path, workspace: Workspace) -> None:
    session = workspace.sessions.create(title="Original").id
    one = workspace.sessions.begin_turn(session, "one").entry
    workspace.sessions.end_turn(session)
    two = workspace.sessions.begin_turn(session, "two").entry
    workspace.sessions.end_turn(session)
    forked = workspace.sessions.fork(session, two)
    assert [entry.id for entry in workspace.sessions.conversation(forked.id)] == [one]
    assert (forked.title, forked.leaf) == ("Original", one)
    assert workspace.sessions.fork(session, one, title="Anew").leaf is None
    assert workspace.sessions.get("@").title == "Anew"


def test_a_call_that_runs_while_a_session_is_forked_is_no_running_call_of_the_fork(
    workspace: Workspace,
) -> None:
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "one")
    running = {"name": "sh", "status": "running", "call": "c1"}
    workspace.sessions.append(session, NewEntry("tool_call", data=running))
    forked = workspace.sessions.fork(session).id
    (copy,) = workspace.sessions.conversation(forked, types=["tool_call"])
    assert (copy.data or {})["status"] == "error"
    assert workspace.sessions.end_call(session, "c1", output="done")
    (copy,) = workspace.sessions.conversation(forked, types=["tool_call"])
    assert (copy.data or {})["status"] == "error"


def test_unfinished_calls_are_errors_when_the_turn_ends(workspace: Workspace, session: str) -> None:
    workspace.sessions.begin_turn(session, "one")
    states = ("pending", "running", "success", "error")
    calls = workspace.sessions.append(
        session, *(NewEntry("tool_call", data={"name": "x", "status": each}) for each in states)
    )
    workspace.sessions.end_turn(session)
    found = [(workspace.sessions.entry(call.id, session).data or {})["status"] for call in calls]
    assert found == ["error", "error", "success", "error"]


def test_a_turn_without_an_end_is_ended_by_the_next_and_says_so(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "one")
    (project / "a").write_text("written in the first")
    workspace.sessions.begin_turn(session, "two")
    types = [(entry.type, entry.data) for entry in everything(workspace, session)]
    assert [type for type, _data in types] == ["user_input", "step_snapshot", "user_input"]
    data = types[1][1] or {}
    assert data["interrupted"] is True and data["turnIndex"] == 0
    assert data["diff"]["added"] == ["a"]


def test_everything_that_happens_to_sessions_is_numbered_for_followers(
    workspace: Workspace,
) -> None:
    start = events.last(workspace.project.journal)
    session = workspace.sessions.create(checkpoint=False).id
    (made,) = workspace.sessions.append(session, NewEntry("user_input"))
    workspace.sessions.link_entry(made.id, session, plan_item="p")
    workspace.sessions.change(session, title="x")
    workspace.sessions.compact(session)
    workspace.sessions.delete(session)
    found = events.after(workspace.project.journal, start)
    numbers = [event.number for event in found]
    assert numbers == sorted(set(numbers)) and numbers[0] > start
    kinds = [event.kind for event in found if event.kind != "operation"]
    assert kinds[0] == "session" and kinds[-1] == "session_deleted"
    assert {"entry", "entry_changed", "session_changed"} <= set(kinds)
    assert events.after(workspace.project.journal, numbers[-1]) == []


def test_a_deleted_session_s_number_is_not_given_to_another(workspace: Workspace) -> None:
    session = workspace.sessions.create(checkpoint=False).id
    workspace.sessions.append(session, NewEntry("user_input"))
    workspace.sessions.delete(session)
    workspace.sessions.create(checkpoint=False)
    assert workspace.project.journal.row("SELECT min(number) FROM sessions")[0] == 2


def test_deleting_sessions_frees_what_only_they_held(
    project: Path, workspace: Workspace, mulligan_home: Path
) -> None:
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "one")
    (project / "large").write_bytes(bytes(range(256)) * 4)
    workspace.sessions.end_turn(session)
    workspace.sessions.begin_turn(session, "two")
    (project / "large").unlink()
    workspace.sessions.end_turn(session)
    # Undo needs the last operation's checkpoints, so another operation must be the last.
    other = workspace.sessions.create().id
    workspace.sessions.begin_turn(other, "another")
    (project / "small").write_text("1")
    workspace.sessions.end_turn(other)
    workspace.checkpoint()
    assert workspace.maintenance.gc().removed == 0
    workspace.sessions.delete(session)
    assert workspace.maintenance.gc().removed > 0
    kinds = {row.kind for row in workspace.log()}
    assert "manual" in kinds


def test_undo_after_its_session_was_deleted_still_brings_the_files_back(
    project: Path, workspace: Workspace
) -> None:
    (project / "a").write_text("before")
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "one")
    (project / "a").write_text("after")
    workspace.sessions.end_turn(session)
    workspace.sessions.delete(session)
    assert workspace.undo().restored == ("a",)
    assert (project / "a").read_text() == "before"


def test_a_long_session_pages_by_ranges_not_by_counting(workspace: Workspace, session: str) -> None:
    """No page reads more rows than it returns: checked by query plans."""
    workspace.sessions.append(session, *(NewEntry("user_input") for _ in range(10)))
    asked: list[str] = []
    # The statements that really run, from SQLite's trace.
    connection = workspace.project.journal._db
    connection.trace_v2(1, lambda event: asked.append(event["sql"]))
    try:
        workspace.sessions.transcript(session, since=5, limit=3)
        workspace.sessions.recent(session, before=8, limit=3)
        workspace.sessions.conversation(session, since=5, limit=3)
    finally:
        connection.trace_v2(0, None)
    selects = [sql for sql in asked if sql.lstrip().startswith("SELECT") and "entries e" in sql]
    assert len(selects) >= 3
    for sql in selects:
        count = sql.count("?")
        plan = workspace.project.journal.rows(f"EXPLAIN QUERY PLAN {sql}", *[1] * count)
        told = " ".join(row[3] for row in plan)
        assert "SCAN e" not in told and "TEMP B-TREE" not in told, (sql, told)
