"""Killed while it writes a session: all that was said before is there, and nothing by halves.

A session's conversation and the project's files are looked at together: after a move through the
session's tree they are both where they were, or both where they were to be.
"""

from __future__ import annotations

from typing import Any

import pytest
import talks
from harness import Scene, assert_same, lay
from talks import Told, look, told

from mulligan.errors import NotFound

Verb = tuple[str, dict[str, Any]]


@pytest.fixture
def steps(scene: Scene) -> list[str]:
    return talks.two_turns(scene)


def whole_run(scene: Scene, verb: Verb) -> tuple[Told, Told]:
    """How it is before the verb, and how after it if nothing goes wrong."""
    scene.reset()
    with scene.open() as workspace:
        old = told(scene, workspace)
    scene.keep()
    scene.reset()
    assert not scene.run(verb).killed
    with scene.open() as workspace:
        return old, told(scene, workspace)


def assert_goes_on(scene: Scene, note: str) -> None:
    """A turn in the session, a way back, an undo, with nothing in the way."""
    with scene.open() as workspace:
        session = workspace.sessions.list().sessions[0].id
        turn = workspace.sessions.begin_turn(session, "life goes on")
        before = scene.state()
        lay(scene.project, {"a.txt": b"written later\n", "later.txt": b"x\n"})
        step = workspace.sessions.end_turn(session)
        after = scene.state()
        assert step.entry is not None, note
        try:
            workspace.sessions.goto(turn.entry, session=session, skip_files=True)
        except NotFound:
            raise AssertionError(note) from None
        workspace.undo()
        workspace.restore(turn.checkpoint)
        assert_same(scene.state(), before, note)
        workspace.undo()
        assert_same(scene.state(), after, note)
        assert workspace.maintenance.verify().problems == (), note


VERBS: list[Verb] = [
    ("say", {"session": "talk", "words": ["three", "four", "five" * 20_000]}),
    ("sessions.create", {"id": "another", "title": "new", "process": 0}),
    ("sessions.delete", {"name": "talk"}),
    ("sessions.compact", {"session": "talk", "summary": "so far"}),
    ("sessions.change", {"name": "talk", "title": "other", "status": "paused"}),
    ("sessions.label", {"entry": "first", "label": "second", "session": "talk"}),
    ("sessions.begin_turn", {"session": "talk", "message": "three", "id": "three"}),
]


@pytest.mark.parametrize("verb", VERBS, ids=[name for name, _given in VERBS])
def test_a_kill_leaves_all_old_or_all_new(scene: Scene, steps: list[str], verb: Verb) -> None:
    old, new = whole_run(scene, verb)
    assert (old.talks != new.talks) == (verb[0] != "sessions.change")
    outcomes = []
    for number in scene.kills(verb):
        note = f"{verb[0]} killed before effect {number}"
        found = look(scene, note)
        assert found in (old, new), note
        outcomes.append(found == new)
        if number % 6 == 1 and found.talks:
            assert_goes_on(scene, note)
    assert outcomes[-1] and outcomes == sorted(outcomes), "once it is written it stays written"


def test_a_kill_while_a_turn_ends_leaves_it_open_or_ended(scene: Scene, steps: list[str]) -> None:
    with scene.open() as workspace:
        workspace.sessions.begin_turn("talk", "three")
        lay(scene.project, {"a.txt": b"three\n", "three.txt": b"3\n"})
    scene.keep()
    old, new = whole_run(scene, ("sessions.end_turn", {"session": "talk"}))
    for number in scene.kills(("sessions.end_turn", {"session": "talk"})):
        note = f"killed before effect {number}"
        found = look(scene, note)
        assert found in (old, new), note
        if found == old:
            with scene.open() as workspace:
                workspace.sessions.end_turn("talk")
                assert told(scene, workspace) == new, note


def test_a_kill_in_a_fork_leaves_no_half_of_one(scene: Scene, steps: list[str]) -> None:
    verb = ("sessions.fork", {"name": "talk", "entry": steps[0]})
    old, new = whole_run(scene, verb)
    (made,) = new.talks.keys() - old.talks.keys()
    assert [each.split()[0] for each in new.talks[made][0]] == [
        *("user_input", "assistant_output", "step_snapshot"),
    ]
    for number in scene.kills(verb):
        note = f"killed before effect {number}"
        found = look(scene, note)
        assert_same(found.files, old.files, note)
        # A fork has another id each time.
        more = [talk for id, talk in found.talks.items() if id not in old.talks]
        assert more in ([], [new.talks[made]]), note
        assert {id: found.talks.get(id) for id in old.talks} == old.talks, note
        if number % 6 == 1:
            assert_goes_on(scene, note)


GOING: dict[str, dict[str, Any]] = {
    "with files": {},
    "with files and a summary": {"summary": "It was left."},
    "without files": {"skip_files": True},
    "without files, with a summary": {"skip_files": True, "summary": "It was left."},
}


@pytest.mark.parametrize("how", GOING)
def test_a_kill_in_a_goto_moves_conversation_and_files_together(
    scene: Scene, steps: list[str], how: str
) -> None:
    verb = ("sessions.goto", {"entry": steps[0], "session": "talk"} | GOING[how])
    old, new = whole_run(scene, verb)
    assert (old.files == new.files) == ("without" in how)
    outcomes = []
    for number in scene.kills(verb):
        note = f"killed before effect {number}"
        found = look(scene, note)
        stands, entries = found.talks["talk"]
        outcome = (stands, found.files)
        assert outcome in (
            (old.talks["talk"][0], old.files),
            (new.talks["talk"][0], new.files),
        ), note
        outcomes.append(outcome == (new.talks["talk"][0], new.files))
        # Whatever was written on the way is at the end, and of the kinds that are on no path.
        count = len(old.talks["talk"][1])
        assert entries[:count] == old.talks["talk"][1], note
        assert {each.split()[0] for each in entries[count:]} <= {
            *("unrevert_point", "branch_summary"),
        }, note
        assert_back_and_forth(scene, verb, old, new, note)
        if number % 6 == 1:
            assert_goes_on(scene, note)
    assert outcomes[-1] and not outcomes[0]
    assert outcomes == sorted(outcomes), "once it has begun it is finished"


def assert_back_and_forth(scene: Scene, verb: Verb, old: Told, new: Told, note: str) -> None:
    """The move done again if it was not, and undone: both conversation and files return."""
    with scene.open() as workspace:
        if told(scene, workspace).talks["talk"][0] == old.talks["talk"][0]:
            workspace.sessions.goto(**verb[1])
        assert told(scene, workspace).talks["talk"][0] == new.talks["talk"][0], note
        assert_same(scene.state(), new.files, note)
        workspace.undo()
        assert told(scene, workspace).talks["talk"][0] == old.talks["talk"][0], note
        assert_same(scene.state(), old.files, note)
        workspace.redo()
        assert told(scene, workspace).talks["talk"][0] == new.talks["talk"][0], note


def test_a_kill_in_the_undo_of_a_goto_moves_both_together(scene: Scene, steps: list[str]) -> None:
    with scene.open() as workspace:
        before = told(scene, workspace)
        workspace.sessions.goto(steps[0], session="talk", summary="It was left.")
    scene.keep()
    old, new = whole_run(scene, ("undo", {}))
    assert (new.talks["talk"][0], new.files) == (before.talks["talk"][0], before.files)
    for number in scene.kills(("undo", {})):
        note = f"killed before effect {number}"
        found = look(scene, note)
        assert (found.talks["talk"][0], found.files) in (
            (old.talks["talk"][0], old.files),
            (new.talks["talk"][0], new.files),
        ), note


def test_a_kill_in_an_import_leaves_a_beginning_of_the_log_and_the_next_one_completes_it(
    scene: Scene, steps: list[str]
) -> None:
    taking = talks.importing(scene)
    outcomes = []
    for number in scene.kills(taking.verb):
        note = f"killed before effect {number}"
        outcomes.append(taking.check(scene, look(scene, note), note))
        if number % 6 == 1:
            taking.check_again(scene, note)
    assert outcomes[-1] and outcomes == sorted(outcomes), "once it is written it stays written"
