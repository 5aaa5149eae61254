"""Killed while it takes a checkpoint: the project is untouched, and the store is whole."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
import situations
from harness import Promise, Scene, contents, lay


def test_a_kill_in_the_first_checkpoint_leaves_a_store_that_works(scene: Scene) -> None:
    promise, verb = situations.first_checkpoint(scene)
    for number in scene.kills(verb):
        note = f"killed before effect {number}"
        promise.check(note=note)
        if number % 4 == 1:
            promise.check_that_work_goes_on(note)


def test_a_kill_in_a_checkpoint_leaves_it_whole_or_absent(scene: Scene) -> None:
    promise, verb = situations.next_checkpoint(scene)
    known = len(promise.checkpoints)
    counts = []
    for number in scene.kills(verb):
        note = f"killed before effect {number}"
        promise.check(note=note)
        with scene.open() as workspace:
            rows = workspace.log()
            counts.append(len(rows) - known)
            if counts[-1]:
                held = contents(workspace, rows[0].id)
                assert {path: held.get(path) for path in promise.old} == promise.old, note
        if number % 4 == 1:
            promise.check_that_work_goes_on(note)
    assert counts == sorted(counts) and set(counts) == {0, 1}


def test_a_kill_in_forget_drops_all_of_them_or_none(scene: Scene) -> None:
    promise, _verb = situations.next_checkpoint(scene)
    kept = dict(list(promise.checkpoints.items())[1:])
    for number in scene.kills(("maintenance.forget", {"keep_last": 1})):
        note = f"killed before effect {number}"
        with scene.open() as workspace:
            left = [row.id for row in workspace.log()]
        assert set(left) in (set(kept), set(promise.checkpoints)), note
        Promise(scene, promise.old, promise.new, kept).check(note=note)


@pytest.mark.parametrize("pack_limit", [20_000, 64 << 20])
def test_a_torn_tail_hurts_nobody(scene: Scene, pack_limit: int) -> None:
    """A writer dies in the middle of a pack; others go on, and are killed in turn."""
    chance = Random(11)
    scene.settings = {"pack_limit": pack_limit, "buffer": 3_000}
    lay(scene.project, {"keep.txt": b"kept\n", "a.bin": chance.randbytes(9_000)})
    promise = Promise(scene, {}, {})
    for turn in range(12):
        lay(scene.project, {f"new-{turn}.bin": chance.randbytes(7_000 + 900 * turn)})
        written = _pack_writes_of_a_checkpoint(scene)
        sizes = {pack: pack.stat().st_size for pack in _packs(scene)}
        number = written[turn % len(written)]
        assert scene.run(("checkpoint", {}), kill_at=number + 1).killed
        for pack in _packs(scene)[-1:]:
            # The kernel had only some of the last write; what was synced before is safe.
            cut = pack.stat().st_size - 700 * turn % 2_900
            os.truncate(pack, max(sizes.get(pack, 0), cut))
        promise.old = promise.new = scene.state()
        promise.check(note=f"turn {turn}")
        with scene.open() as workspace:
            here = workspace.checkpoint(f"turn {turn}").id
            promise.checkpoints[here] = scene.state()
            assert workspace.maintenance.verify().problems == ()
    assert len(_packs(scene)) > 1
    promise.check_that_work_goes_on()


def test_two_writers_one_after_the_other_share_no_torn_pack(scene: Scene) -> None:
    """What the dead writer had begun and the next one writes never mix in one pack."""
    promise, verb = situations.next_checkpoint(scene)
    lay(scene.project, {"noise.bin": Random(5).randbytes(50_000)})
    scene.keep()
    promise.old = promise.new = scene.state()
    effects = scene.run(verb).effects
    scene.reset()
    assert scene.run(verb, kill_at=effects.index("write", effects.index("write") + 1) + 2).killed
    torn = _packs(scene)[-1]
    os.truncate(torn, torn.stat().st_size - 1_000)
    size = torn.stat().st_size
    done = scene.run(verb)
    assert not done.killed
    assert torn.stat().st_size == size
    assert len(_packs(scene)) == 2
    promise.check()
    with scene.open() as workspace:
        held = contents(workspace, "@")
        assert {path: held.get(path) for path in promise.old} == promise.old


LOSSES = {
    "deleted": lambda index: index.unlink(),
    "empty": lambda index: index.write_bytes(b""),
    "garbage": lambda index: index.write_bytes(Random(1).randbytes(20_000)),
    "half": lambda index: os.truncate(index, index.stat().st_size // 2),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("then", ["checkpoint", "read", "restore", "verify"])
def test_a_lost_index_is_made_again_from_the_packs(scene: Scene, loss: str, then: str) -> None:
    promise, _verb = situations.whole_restore(scene)
    scene.reset()
    (index,) = scene.home.rglob("index.sqlite")
    LOSSES[loss](index)
    with scene.open() as workspace:
        if then == "checkpoint":
            workspace.checkpoint("after the loss")
        elif then == "restore":
            workspace.restore(next(iter(promise.checkpoints)))
            assert scene.state() == promise.new
        elif then == "verify":
            assert workspace.maintenance.verify(repair=True).objects > 0
        promise.assert_readable(workspace, then)
    promise.check(note=then)
    promise.check_that_work_goes_on(then)


def test_a_kill_while_the_index_is_made_again(scene: Scene) -> None:
    promise, _verb = situations.next_checkpoint(scene)
    for index in scene.home.rglob("index.sqlite*"):
        index.unlink()
    scene.keep("index lost")
    for number in scene.kills(start="index lost"):
        promise.check(note=f"killed before effect {number}")


def test_an_index_damaged_inside_is_mended(scene: Scene) -> None:
    promise, _verb = situations.whole_restore(scene)
    scene.reset()
    (index,) = scene.home.rglob("index.sqlite")
    index.write_bytes(index.read_bytes()[:4096].ljust(index.stat().st_size, b"\0"))
    promise.check()
    promise.check_that_work_goes_on()


def test_a_pack_with_a_damaged_beginning_is_never_deleted(scene: Scene) -> None:
    """One bad byte in front of sound records, and no index to say that they are there."""
    promise, _verb = situations.next_checkpoint(scene)
    (pack,) = _packs(scene)
    intact = pack.read_bytes()
    pack.write_bytes(b"?" + intact[1:])
    for index in scene.home.rglob("index.sqlite*"):
        index.unlink()
    with scene.open() as workspace:
        workspace.maintenance.verify()
    assert pack.read_bytes()[1:] == intact[1:]
    pack.write_bytes(intact)
    for index in scene.home.rglob("index.sqlite*"):
        index.unlink()
    promise.check()


@pytest.mark.parametrize("loss", ["deleted", "garbage"])
def test_a_lost_index_does_not_keep_a_half_done_restore_from_being_finished(
    scene: Scene, loss: str
) -> None:
    promise, verb = situations.whole_restore(scene)
    scene.reset()
    effects = scene.run(verb).effects
    scene.reset()
    assert scene.run(verb, kill_at=effects.index("exchange (renameat2)") + 2).killed
    (index,) = scene.home.rglob("index.sqlite")
    for each in scene.home.rglob("index.sqlite-*"):
        each.unlink()
    LOSSES[loss](index)
    assert promise.check() == "new"
    promise.check_that_work_goes_on()


@pytest.mark.parametrize("good", ["first", "last"])
def test_a_damaged_copy_does_not_hide_a_good_one(scene: Scene, good: str) -> None:
    """Two packs hold the same objects, one of them with damage, and the index is lost."""
    promise, _verb = situations.next_checkpoint(scene)
    (pack,) = _packs(scene)
    intact = pack.read_bytes()
    copies = [intact, _payloads_broken(intact)]
    if good == "last":
        copies.reverse()
    pack.write_bytes(copies[0])
    pack.with_name("00000002.pack").write_bytes(copies[1])
    for index in scene.home.rglob("index.sqlite*"):
        index.unlink()
    with scene.open() as workspace:
        workspace.checkpoint("after the loss")
        promise.assert_readable(workspace, good)
    promise.check(note=good)


def _payloads_broken(pack: bytes) -> bytes:
    """The same records with one byte of each payload changed."""
    from mulligan.store.packs import DELTA, MAGIC, RECORD

    broken = bytearray(pack)
    at = len(MAGIC)
    while at < len(pack):
        _magic, encoding, _size, stored, _id = RECORD.unpack_from(pack, at)
        at += RECORD.size + (32 if encoding == DELTA else 0) + stored
        if stored:
            broken[at - 1 - stored // 2] ^= 0x55
    return bytes(broken)


def _packs(scene: Scene) -> list[Path]:
    return sorted(scene.home.rglob("*.pack"))


def _pack_writes_of_a_checkpoint(scene: Scene) -> list[int]:
    """The numbers of the effects by which a checkpoint taken now would write to packs."""
    scene.keep("before this one")
    effects = scene.run(("checkpoint", {})).effects
    scene.reset("before this one")
    found = [number for number, kind in enumerate(effects, 1) if kind == "write"]
    # The first is that of the lock, the last that of the stat cache.
    return found[1:-1]
