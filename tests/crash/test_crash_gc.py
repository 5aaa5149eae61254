"""Killed while it frees or mends: nothing that is needed goes, and the next one finishes."""

from __future__ import annotations

import os

import situations
from harness import Promise, Scene


def test_a_kill_in_gc_loses_nothing_that_is_needed(scene: Scene) -> None:
    promise, verb = situations.collection(scene)
    whole = scene.run(verb)
    assert whole.answers[-1][1].removed > 0 and "unlink" in whole.effects
    smallest = _stored(scene)
    for number in scene.kills(verb):
        note = f"killed before effect {number}"
        promise.check(note=note)
        with scene.open() as workspace:
            workspace.maintenance.gc()
            assert workspace.maintenance.verify().problems == (), note
            promise.assert_readable(workspace, note)
            assert workspace.maintenance.gc().removed == 0, note
        assert _stored(scene) <= smallest + 100, f"{note}: the next gc frees the rest"
        if number % 5 == 1:
            promise.check_that_work_goes_on(note)


def test_a_kill_in_gc_then_a_checkpoint_then_a_kill_in_gc_again(scene: Scene) -> None:
    promise, verb = situations.collection(scene)
    scene.reset()
    count = len(scene.run(verb).effects)
    for number in range(1, count + 1, 4):
        scene.reset()
        assert scene.run(verb, kill_at=number).killed
        scene.run(("checkpoint", {"message": "between"}))
        again = scene.run(verb, kill_at=1 + number * 2 % count)
        note = f"killed before effect {number}, and again (or not: {again.killed})"
        promise.check(note=note)


def test_a_kill_in_verify_repair_is_mended_by_the_next(scene: Scene) -> None:
    promise, _verb = situations.next_checkpoint(scene)
    damaged = _damage(scene, promise)
    scene.keep("damaged")
    for number in scene.kills(("maintenance.verify", {"repair": True}), start="damaged"):
        note = f"killed before effect {number}"
        with scene.open() as workspace:
            assert scene.state() == promise.old, note
            workspace.maintenance.verify(repair=True)
            # What was damaged is still on the disk: the next checkpoint has it to give.
            workspace.checkpoint("mended")
            assert workspace.maintenance.verify().problems == (), f"{note}: {damaged}"
            promise.assert_readable(workspace, note)


def _damage(scene: Scene, promise: Promise) -> bytes:
    """Flips a byte in the stored bytes of a file that lies unchanged in the project."""
    with scene.open() as workspace:
        path = b"changed.txt"
        id = next(e.id for e in workspace.entries("@") if e.path == os.fsdecode(path))
        record = workspace.project.store.locate(bytes.fromhex(id))
        (pack,) = scene.home.rglob(f"{record.pack:08x}.pack")
    with open(pack, "r+b") as file:
        file.seek(record.offset + record.stored // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x55]))
    with scene.open() as workspace:
        assert not workspace.maintenance.verify().clean
    return path


def _stored(scene: Scene) -> int:
    return sum(each.stat().st_size for each in scene.home.rglob("*.pack"))
