"""Power is lost: what was not synced may be gone, torn or there; what was answered for stays."""

from __future__ import annotations

import pytest
import situations
from harness import (
    EVERY,
    LOSSES,
    SYNCS,
    Promise,
    Run,
    Scene,
    State,
    assert_one_of,
    contents,
    disk_of,
    losses,
)

Step = tuple[str, dict]


@pytest.mark.parametrize("few", [1, 8], ids=["synced at once", "synced one by one"])
@pytest.mark.parametrize("loss", LOSSES, ids=" names, ".join)
def test_power_lost_during_restore_and_undo_leaves_all_old_or_all_new(
    scene: Scene, loss: tuple[str, str], few: int
) -> None:
    promise, verb = situations.small_restore(scene)
    scene.settings = {"few": few}
    steps = [("checkpoint", {"message": "before"}), verb, ("undo", {}), ("redo", {})]
    states = _states_after(scene, steps)
    assert states == [promise.old, promise.old, promise.new, promise.old, promise.new]
    checked = 0
    for run, at, acknowledged in losses(scene, steps, loss):
        note = f"power lost at record {at}, {acknowledged} verbs answered"
        promise.checkpoints |= _taken(run, at, states)
        _check(promise, states[acknowledged : acknowledged + 2], note, deep=at % 10 == 0)
        checked += 1
    assert checked > 10


@pytest.mark.parametrize("loss", LOSSES, ids=" names, ".join)
def test_power_lost_during_the_first_checkpoint(scene: Scene, loss: tuple[str, str]) -> None:
    """Nothing of the project is touched, and once it was answered for, the checkpoint is there."""
    promise, verb = situations.first_checkpoint(scene)
    for run, at, _acknowledged in losses(scene, [verb], loss):
        promise.checkpoints = _taken(run, at, [promise.old] * 2)
        _check(promise, [promise.old], f"power lost at record {at}", deep=at % 10 == 0)


@pytest.mark.parametrize("loss", LOSSES, ids=" names, ".join)
def test_power_lost_during_a_checkpoint_across_packs(scene: Scene, loss: tuple[str, str]) -> None:
    promise, _gc = situations.collection(scene)
    situations.lay(scene.project, {"more.bin": situations.CHUNKED[:70_000], "b.txt": b"b\n" * 90})
    scene.keep()
    promise.old = scene.state()
    for run, at, _acknowledged in losses(scene, [("checkpoint", {})], loss):
        promise.checkpoints |= _taken(run, at, [promise.old] * 2)
        _check(promise, [promise.old], f"power lost at record {at}", deep=at % 10 == 0)


@pytest.mark.parametrize("loss", LOSSES, ids=" names, ".join)
def test_power_lost_during_gc_loses_nothing_that_is_needed(
    scene: Scene, loss: tuple[str, str]
) -> None:
    promise, verb = situations.collection(scene)
    for _run, at, _acknowledged in losses(scene, [verb], loss):
        note = f"power lost at record {at}"
        _check(promise, [promise.old], note)
        with scene.open() as workspace:
            workspace.maintenance.gc()
            assert workspace.maintenance.verify().problems == (), note
            promise.assert_readable(workspace, note)


def test_modes_that_were_answered_for_are_durable(scene: Scene) -> None:
    promise, verb = situations.modes_only(scene)
    scene.reset()
    disk = disk_of(scene)
    for record in scene.run(verb).log:
        disk.replay(record)
    disk.lose_power("none", "none")
    _check(promise, [promise.new], "power lost after the answer")


def test_a_checkpoint_of_what_a_killed_process_had_written_survives_a_loss_of_power(
    scene: Scene,
) -> None:
    """Bytes that the next process finds in a pack, and does not write again, may not be synced."""
    promise, _gc = situations.collection(scene)
    verb = ("checkpoint", {"message": "once more"})
    situations.lay(scene.project, {"more.bin": situations.CHUNKED[:70_000], "b.txt": b"b\n" * 90})
    scene.keep()
    promise.old = scene.state()
    effects = scene.run(verb).effects
    for number in range(1, len(effects) + 1):
        if number > 1 and effects[number - 2] in SYNCS:
            continue
        scene.reset()
        disk = disk_of(scene)
        for run in (scene.run(verb, kill_at=number), done := scene.run(verb)):
            for record in run.log:
                disk.replay(record)
        disk.lose_power("none", "none")
        note = f"killed before effect {number}, then a checkpoint, then power lost"
        here = done.answers[-1][1].id
        _check(promise, [promise.old], note)
        with scene.open() as workspace:
            held = contents(workspace, here)
            assert {path: held.get(path) for path in promise.old} == promise.old, note


def test_power_lost_during_recovery(scene: Scene) -> None:
    promise, verb = situations.small_restore(scene)
    scene.reset()
    effects = scene.run(verb).effects
    first = effects.index("exchange (renameat2)") + 1
    for number in range(first, len(effects) - effects[::-1].index("rmdir") + 2, 1 if EVERY else 4):
        scene.reset()
        assert scene.run(verb, kill_at=number).killed
        scene.keep("killed")
        for loss in LOSSES[0], LOSSES[3]:
            for _run, at, _acknowledged in losses(scene, [], loss, start="killed"):
                note = f"killed before effect {number}, power lost at {at} of the recovery, {loss}"
                _check(promise, [promise.old, promise.new], note)


def _check(promise: Promise, allowed: list[State], note: str, *, deep: bool = False) -> None:
    with promise.scene.open() as workspace:
        # A file of nothing but zeros is what was being written, or somebody's: it is set aside.
        found = {
            path: what
            for path, what in promise.scene.state().items()
            if b".rescued-" not in path or what[2].strip(b"\0")
        }
        assert_one_of(found, allowed[0], allowed[-1], note)
        assert [each for each in workspace.operations() if each.state == "planned"] == [], note
        assert workspace.maintenance.verify().problems == (), note
        promise.assert_readable(workspace, note)
        promise.assert_reachable(workspace, promise.old, note)
    if deep:
        promise.check_that_work_goes_on(note)


def _taken(run: Run, at: int, states: list[State]) -> dict[str, State]:
    """The checkpoints that were answered for up to a record, and what they must hold."""
    answers = [record for record in run.log[: at + 1] if record[0] == "ack" and record[1] != "open"]
    return {
        value.id: states[number]
        for number, (_kind, verb, value) in enumerate(answers)
        if verb == "checkpoint"
    }


def _states_after(scene: Scene, steps: list[Step]) -> list[State]:
    """The project at the start, and after each of the steps."""
    states = []
    for count in range(len(steps) + 1):
        scene.reset()
        scene.run(*steps[:count])
        states.append(scene.state())
    return states
