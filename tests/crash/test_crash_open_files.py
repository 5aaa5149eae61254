"""Killed while it changes files of which a program has one open for writing."""

from __future__ import annotations

import situations
from harness import Scene


def test_a_file_that_was_left_alone_is_not_replaced_by_recovery(scene: Scene) -> None:
    """Though the program has closed it by then: the user was not asked again."""
    promise, verb = situations.whole_restore(scene)
    name = b"changed.txt"
    left = promise.new | {name: promise.old[name]}
    outcomes = []
    scene.reset()
    with (scene.project / "changed.txt").open("a"):
        effects = scene.run(verb).effects
    for number in range(1, len(effects) + 1, 5):
        scene.reset()
        with (scene.project / "changed.txt").open("a"):
            assert scene.run(verb, kill_at=number).killed
        with scene.open() as workspace:
            found = scene.state()
            assert found in (promise.old, left), f"killed before effect {number}"
            assert workspace.maintenance.verify().clean
        outcomes.append("left" if found == left else "old")
    assert set(outcomes) == {"old", "left"}
