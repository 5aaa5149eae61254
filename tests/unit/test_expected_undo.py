"""Undo and redo with `expect`: exactly that operation is taken back, or nothing is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import mulligan
from mulligan import Workspace


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    with mulligan.open(project) as opened:
        yield opened
        assert opened.maintenance.verify().problems == ()


def restored(project: Path, workspace: Workspace, name: str) -> int:
    """Write a file, take a checkpoint, lose the file, restore it; gives the restore's number."""
    (project / name).write_text(f"{name}\n")
    checkpoint = workspace.checkpoint(name).id
    (project / name).unlink()
    number = workspace.restore(checkpoint, [name]).operation
    assert number is not None
    return number


def state(project: Path, workspace: Workspace) -> tuple[list[str], int]:
    return sorted(each.name for each in project.iterdir()), len(workspace.operations())


def test_the_expected_operation_is_taken_back_and_done_again(
    project: Path, workspace: Workspace
) -> None:
    number = restored(project, workspace, "a")
    assert workspace.undo(expect=number, preview=True).undoes == number
    undone = workspace.undo(expect=number)
    assert undone.undoes == number and not (project / "a").exists()
    redone = workspace.redo(expect=undone.operation)
    assert redone.undoes == undone.operation and (project / "a").exists()
    assert workspace.undo(expect=redone.operation).undoes == redone.operation


@pytest.mark.parametrize("preview", [False, True])
def test_nothing_is_taken_back_if_another_operation_was_done_since(
    project: Path, workspace: Workspace, preview: bool
) -> None:
    first, second = restored(project, workspace, "a"), restored(project, workspace, "b")
    before = state(project, workspace)
    with pytest.raises(mulligan.WouldLoseWork, match=rf"operation {second} \(restore\)"):
        workspace.undo(expect=first, preview=preview)
    assert state(project, workspace) == before
    workspace.undo(expect=second)
    workspace.undo(expect=first)
    assert state(project, workspace)[0] == []


def test_what_is_taken_back_already_is_not_taken_back_twice(
    project: Path, workspace: Workspace
) -> None:
    first, second = restored(project, workspace, "a"), restored(project, workspace, "b")
    undone = workspace.undo(expect=second).operation
    before = state(project, workspace)
    with pytest.raises(mulligan.NothingToUndo, match="taken back already"):
        workspace.undo(expect=second)
    assert state(project, workspace) == before
    workspace.undo(expect=first)
    with pytest.raises(mulligan.NothingToUndo, match="taken back already"):
        workspace.undo(expect=first)
    with pytest.raises(mulligan.WouldLoseWork, match="was done since"):
        workspace.redo(expect=undone)
    assert (project / "a").exists() is (project / "b").exists() is False


def test_a_redo_is_refused_once_something_else_was_done(
    project: Path, workspace: Workspace
) -> None:
    undone = workspace.undo(expect=restored(project, workspace, "a")).operation
    later = restored(project, workspace, "b")
    with pytest.raises(mulligan.WouldLoseWork, match=rf"operation {later} \(restore\)"):
        workspace.redo(expect=undone)
    assert not (project / "a").exists()


def test_operations_that_are_not_there_or_changed_nothing_are_named(
    project: Path, workspace: Workspace
) -> None:
    restored(project, workspace, "a")
    with pytest.raises(mulligan.NotFound, match="no operation 999"):
        workspace.undo(expect=999)
    idle = next(each.number for each in workspace.operations() if not each.changed)
    with pytest.raises(mulligan.NothingToUndo, match="changed nothing"):
        workspace.undo(expect=idle)
    assert (project / "a").exists()


@pytest.mark.parametrize("preview", [False, True])
def test_the_work_of_an_open_turn_counts_as_done_since(
    project: Path, workspace: Workspace, preview: bool
) -> None:
    number = restored(project, workspace, "a")
    session = workspace.sessions.create(agent="robot").id
    workspace.sessions.begin_turn(session, "go on")
    assert workspace.undo(expect=number, preview=True).undoes == number
    (project / "work").write_text("the agent's\n")
    before = state(project, workspace)
    with pytest.raises(mulligan.WouldLoseWork, match=f"robot has changed files since .* {number}"):
        workspace.undo(expect=number, preview=preview)
    assert state(project, workspace) == before


@pytest.mark.parametrize("skip_files", [False, True])
def test_goto_names_the_operation_that_takes_it_back(
    project: Path, workspace: Workspace, skip_files: bool
) -> None:
    session = workspace.sessions.create(agent="robot").id
    workspace.sessions.begin_turn(session, "one")
    (project / "a").write_text("1\n")
    workspace.sessions.end_turn(session)
    workspace.sessions.begin_turn(session, "two")
    (project / "a").write_text("2\n")
    leaf = workspace.sessions.end_turn(session).entry
    message = next(
        each for each in workspace.sessions.conversation(session) if each.content == "two"
    )
    assert workspace.sessions.goto(message.id, session=session, preview=True).operation is None
    done = workspace.sessions.goto(message.id, session=session, skip_files=skip_files)
    assert done.operation is not None
    workspace.undo(expect=done.operation)
    assert workspace.sessions.get(session).leaf == leaf and (project / "a").read_text() == "2\n"
    assert workspace.sessions.goto(leaf or "", session=session).operation is None
