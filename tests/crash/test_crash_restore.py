"""Killed while it changes the user's files: all as it was, or all as it was to be."""

from __future__ import annotations

import pytest
import situations
from harness import EVERY, Scene, lay

RESTORES = [
    situations.whole_restore,
    situations.restore_with_a_large_file,
    situations.partial_restore,
    situations.careful_restore,
    situations.undo,
    situations.redo,
]


def test_a_whole_restore_arrives_exactly_at_the_checkpoint(scene: Scene) -> None:
    promise, _verb = situations.whole_restore(scene)
    assert promise.new == next(iter(promise.checkpoints.values()))


@pytest.mark.parametrize("prepare", RESTORES, ids=lambda each: each.__name__)
def test_a_kill_leaves_all_old_or_all_new(scene: Scene, prepare) -> None:
    promise, verb = prepare(scene)
    outcomes = []
    for number in scene.kills(verb):
        # To keep dirty files means those in no checkpoint: after a crash, the safety one has them.
        again = None if prepare is situations.careful_restore else verb
        outcomes.append(promise.check(verb=again, note=f"killed before effect {number}"))
        if number % 8 == 1:
            promise.check_that_work_goes_on(f"killed before effect {number}")
    assert "old" in outcomes and outcomes[-1] == "new"
    assert outcomes == sorted(outcomes, reverse=True), "once it has begun it is finished"


def test_a_kill_while_several_threads_write_leaves_all_old_or_all_new(scene: Scene) -> None:
    promise, verb = situations.restore_of_many_files(scene)
    scene.reset()
    effects = scene.run(verb).effects
    assert effects.count("create nameless") >= 90
    outcomes = set()
    # In no order that could be told again, so that each number is another moment each time.
    for number in range(1, len(effects), 1 if EVERY else len(effects) // 30):
        scene.reset()
        assert scene.run(verb, kill_at=number).killed
        outcomes.add(promise.check(verb=verb, note=f"killed before effect {number}"))
    assert outcomes == {"old", "new"}


def test_a_kill_between_two_modes_leaves_all_old_or_all_new(scene: Scene) -> None:
    promise, verb = situations.modes_only(scene)
    for number in scene.kills(verb):
        promise.check(verb=verb, note=f"killed before effect {number}")


def test_undo_after_a_crash_goes_back_to_what_was_before_the_restore(scene: Scene) -> None:
    promise, verb = situations.whole_restore(scene)
    for number in scene.kills(verb):
        if number % 5:
            continue
        note = f"killed before effect {number}"
        promise.check(verb=verb, note=note)
        with scene.open() as workspace:
            workspace.undo()
            undone = scene.state()
            # A guarded file that came back is not taken away again.
            undone.pop(b"api.secret")
            assert undone == promise.old, note
            workspace.redo()
            assert scene.state() == promise.new, note
            assert workspace.maintenance.verify().clean


def test_a_kill_during_recovery_is_recovered_from(scene: Scene) -> None:
    promise, verb = situations.small_restore(scene)
    scene.reset()
    effects = scene.run(verb).effects
    first = effects.index("mkdir")
    last = len(effects) - effects[::-1].index("rmdir")
    seen = 0
    for number in range(first + 1, last + 3, 1 if EVERY else 5):
        scene.reset()
        assert scene.run(verb, kill_at=number).killed
        scene.keep(f"killed at {number}")
        for again in scene.kills(start=f"killed at {number}"):
            promise.check(note=f"killed before effect {number}, and again before {again}")
            seen += 1
    assert seen > 100


def test_words_written_between_the_crash_and_the_recovery_stay(scene: Scene) -> None:
    promise, verb = situations.whole_restore(scene)
    changed = sorted(
        path
        for path in promise.old.keys() | promise.new.keys()
        if promise.old.get(path) != promise.new.get(path)
        and "folder" not in (promise.old.get(path, "?")[0], promise.new.get(path, "?")[0])
    )
    for number in scene.kills(verb):
        if not EVERY and number % 2:
            continue
        path = changed[number % len(changed)]
        note = f"killed before effect {number}, then {path!r} edited"
        target = scene.project / path.decode()
        if not target.parent.is_dir():
            continue
        # What they type over themselves before anything was stored is not ours to keep.
        overwritten = scene.state().get(path) == promise.old.get(path)
        theirs = {at: what for at, what in promise.old.items() if at != path or not overwritten}
        words = f"typed after crash {number}\n".encode()
        lay(scene.project, {path.decode(): words})
        with scene.open() as workspace:
            assert target.read_bytes() == words, note
            assert not list(scene.project.rglob(".mulligan-tmp-*")), note
            found = scene.state()
            for other in changed:
                if other != path:
                    assert found.get(other) in (promise.old.get(other), promise.new.get(other))
            assert [each for each in workspace.operations() if each.state == "planned"] == []
            assert workspace.maintenance.verify().clean, note
            promise.assert_readable(workspace, note)
            promise.assert_reachable(workspace, theirs, note)
            workspace.restore(next(iter(promise.checkpoints)))
            promise.assert_reachable(workspace, found, note)
