"""Power is lost while a session is written: the journal opens, and what was answered for is there.

Each transaction of the journal is synced before its verb answers, so a loss takes away at most
the verb that was under way, and that as a whole.
"""

from __future__ import annotations

from typing import Any

import pytest
import talks
from harness import EVERY, LOSSES, Scene, lay, losses
from talks import Told, look, told

Verb = tuple[str, dict[str, Any]]
losing = pytest.mark.parametrize("loss", LOSSES, ids=" names, ".join)


@pytest.fixture
def steps(scene: Scene) -> list[str]:
    return talks.two_turns(scene)


def without_names(found: Told) -> tuple[list[Any], Any]:
    """What was told without the ids of sessions, for a fork has another one each time."""
    # A file of nothing but zeros is what was being written, or somebody's: it is set aside.
    files = {
        path: what
        for path, what in found.files.items()
        if b".rescued-" not in path or what[2].strip(b"\0")
    }
    return sorted(found.talks.values()), files


def states_after(scene: Scene, verbs: list[Verb]) -> list[Told]:
    """How it is at the start, and after each of the verbs, if nothing goes wrong."""
    states = []
    for count in range(len(verbs) + 1):
        scene.reset()
        scene.run(*verbs[:count])
        with scene.open() as workspace:
            states.append(told(scene, workspace))
    return states


def check(scene: Scene, verbs: list[Verb], loss: tuple[str, str]) -> None:
    """After each loss all that was answered for is there, and of the next verb all or nothing."""
    states = states_after(scene, verbs)
    checked = 0
    for _run, at, answered in losses(scene, verbs, loss):
        note = f"power lost at record {at}, {answered} verbs answered"
        found = without_names(look(scene, note))
        assert found in [without_names(each) for each in states[answered : answered + 2]], note
        checked += 1
    assert checked > 5


@losing
def test_power_lost_while_entries_are_appended_and_compacted(
    scene: Scene, steps: list[str], loss: tuple[str, str]
) -> None:
    verbs: list[Verb] = [
        ("say", {"session": "talk", "words": ["three", talks.LONG]}),
        ("sessions.compact", {"session": "talk", "before": steps[0], "summary": "so far"}),
        ("sessions.label", {"entry": steps[1], "label": "here", "session": "talk"}),
        ("say", {"session": "talk", "words": ["four"]}),
    ]
    check(scene, verbs, loss)


@losing
def test_power_lost_while_a_turn_ends_and_another_begins(
    scene: Scene, steps: list[str], loss: tuple[str, str]
) -> None:
    with scene.open() as workspace:
        workspace.sessions.begin_turn("talk", "three")
        lay(scene.project, {"a.txt": b"three\n", "three.txt": b"3\n" * 500})
    scene.keep()
    verbs: list[Verb] = [
        ("sessions.end_turn", {"session": "talk"}),
        ("sessions.begin_turn", {"session": "talk", "message": "four", "id": "four"}),
        ("sessions.end_turn", {"session": "talk"}),
    ]
    check(scene, verbs, loss)


@losing
def test_power_lost_while_sessions_are_made_forked_and_deleted(
    scene: Scene, steps: list[str], loss: tuple[str, str]
) -> None:
    verbs: list[Verb] = [
        ("sessions.create", {"id": "another", "title": "new", "process": 0}),
        ("sessions.fork", {"name": "talk", "entry": steps[1]}),
        ("sessions.delete", {"name": "talk"}),
    ]
    check(scene, verbs, loss)


@pytest.mark.parametrize("skip_files", [False, True], ids=["with files", "without files"])
@losing
def test_power_lost_while_going_elsewhere_moves_conversation_and_files_together(
    scene: Scene, steps: list[str], loss: tuple[str, str], skip_files: bool
) -> None:
    away = {"entry": steps[0], "session": "talk", "skip_files": skip_files, "summary": "Left."}
    verbs: list[Verb] = [("sessions.goto", away), ("undo", {})]
    states = states_after(scene, verbs)
    stands = [(state.talks["talk"][0], without_names(state)[1]) for state in states]
    assert stands[0] != stands[1] and stands[0] == stands[2]
    said = states[0].talks["talk"][1]
    for _run, at, answered in losses(scene, verbs, loss):
        note = f"power lost at record {at}, {answered} verbs answered"
        found = look(scene, note)
        conversation, entries = found.talks["talk"]
        here = (conversation, without_names(found)[1])
        assert here in stands[answered : answered + 2], note
        # What was said stays said; a move that came to nothing may leave its notes at the end.
        assert entries[: len(said)] == said, note
        assert {each.split()[0] for each in entries[len(said) :]} <= {
            *("unrevert_point", "branch_summary"),
        }, note


@losing
def test_power_lost_while_logs_are_imported_and_a_second_import_completes_it(
    scene: Scene, steps: list[str], loss: tuple[str, str]
) -> None:
    taking = talks.importing(scene)
    for _run, at, answered in losses(scene, [taking.verb], loss):
        note = f"power lost at record {at}, {answered} verbs answered"
        is_whole = taking.check(scene, look(scene, note), note)
        assert is_whole or not answered, note
        if at % 4 == 0 or EVERY:
            taking.check_again(scene, note)
