"""The promises of AgentSmithy about dialogs: here they are sessions, and its sessions rounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from acts import picture, write

import mulligan
from mulligan import Workspace
from mulligan.core.entries import NewEntry


def test_as_1_a_new_dialog_has_an_initial_checkpoint_and_its_first_round(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1"})
    session = workspace.sessions.create(title="Tidy up")
    (initial,) = workspace.log()
    assert (initial.kind, initial.files) == ("initial", 1)
    assert [each.name for each in workspace.review.rounds(session.id)] == ["session_1"]
    assert [each.status for each in workspace.review.rounds(session.id)] == ["active"]
    workspace.sessions.begin_turn(session.id, "Change it")
    write(project, {"a": "2"})
    workspace.sessions.end_turn(session.id)
    workspace.restore(initial.id)
    assert (project / "a").read_text() == "1"


def test_as_1_each_dialog_has_its_own(project: Path, workspace: Workspace) -> None:
    for number in range(3):
        write(project, {"a": str(number)})
        workspace.sessions.create()
    kinds = [(row.kind, workspace.read(row.id, "a")) for row in workspace.log()]
    assert kinds == [("initial", b"2"), ("initial", b"1"), ("initial", b"0")]


def test_as_4_messages_come_with_checkpoint_and_number_latest_page_first(
    project: Path, workspace: Workspace
) -> None:
    session = workspace.sessions.create().id
    turns = []
    for number in range(5):
        turns.append(workspace.sessions.begin_turn(session, f"message {number}"))
        write(project, {"a": str(number)})
        workspace.sessions.append(session, NewEntry("assistant_output", f"answer {number}"))
        workspace.sessions.end_turn(session)
    found = workspace.sessions.conversation(session, types=["user_input"])
    assert [entry.checkpoint for entry in found] == [turn.checkpoint for turn in turns]
    assert [turn.turn for turn in turns] == [0, 1, 2, 3, 4]
    last = workspace.sessions.conversation(session, limit=4, newest=True)
    assert [entry.seq for entry in last] == [12, 13, 14, 15]
    before = workspace.sessions.conversation(session, limit=4, newest=True, before=last[0].seq)
    assert [entry.seq for entry in before] == [8, 9, 10, 11]
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.conversation("unknown")


def test_as_4_a_message_leads_back_to_before_it(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "as it was"})
    session = workspace.sessions.create().id
    turn = workspace.sessions.begin_turn(session, "Change it")
    write(project, {"a": "changed"})
    workspace.sessions.end_turn(session)
    (entry,) = workspace.sessions.conversation(session, types=["user_input"])
    assert entry.checkpoint == turn.checkpoint
    before = picture(project)
    workspace.restore(entry.checkpoint or "")
    assert (project / "a").read_text() == "as it was"
    workspace.undo()
    assert picture(project) == before


def test_as_18_rounds_are_active_then_merged_or_abandoned(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "0"})
    session = workspace.sessions.create().id
    for number in (1, 2):
        workspace.sessions.begin_turn(session, f"round {number}")
        write(project, {"a": str(number)})
        workspace.sessions.end_turn(session)
        if number == 1:
            workspace.review.approve(session)
        else:
            workspace.review.reset(session)
    found = [(each.name, each.status) for each in workspace.review.rounds(session)]
    assert found == [
        ("session_1", "merged"),
        ("session_2", "abandoned"),
        ("session_3", "active"),
    ]
    assert (project / "a").read_text() == "1"


def test_as_18_dialogs_are_isolated(project: Path, workspace: Workspace) -> None:
    one, other = (workspace.sessions.create().id for _ in range(2))
    workspace.sessions.begin_turn(one, "for one")
    write(project, {"a": "1"})
    workspace.sessions.end_turn(one)
    workspace.review.approve(one)
    assert len(workspace.review.rounds(one)) == 2 and len(workspace.review.rounds(other)) == 1
    assert workspace.sessions.conversation(other) == []


def test_as_19_dialogs_are_listed_with_title_times_and_the_current_one(
    project: Path, workspace: Workspace
) -> None:
    first = workspace.sessions.create().id
    second = workspace.sessions.create(title="Given").id
    workspace.sessions.begin_turn(
        first, "A first message that is longer than fifty characters, by far"
    )
    listed = workspace.sessions.list().sessions
    assert [each.id for each in listed] == [first, second]
    assert [each.title for each in listed] == [
        "A first message that is longer than fifty characte...",
        "Given",
    ]
    assert all(each.created_at <= each.updated_at for each in listed)
    assert workspace.sessions.get("@").id == first and workspace.sessions.get("@1").id == second
    assert workspace.sessions.get(second[:8]).id == second
    with pytest.raises(mulligan.NotFound):
        workspace.sessions.get("@2")


def test_as_19_a_title_that_was_given_stays(workspace: Workspace) -> None:
    session = workspace.sessions.create(title="Given").id
    workspace.sessions.begin_turn(session, "A message")
    assert workspace.sessions.get(session).title == "Given"
    assert workspace.sessions.change(session, title="Changed").title == "Changed"


def test_as_19_a_title_is_one_line(workspace: Workspace) -> None:
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "\n  Tidy up the shop\n\nand then\nrest")
    assert workspace.sessions.get(session).title == "Tidy up the shop"
