"""Projects in the states that a crash test starts from.

Each function lays out files, takes checkpoints as a user would, and keeps the scene; it gives the
promise that a crash must not break, and the verb that is going to be interrupted.
"""

from __future__ import annotations

from random import Random
from typing import Any

from harness import Promise, Scene, State, contents, lay

Verb = tuple[str, dict[str, Any]]
CHUNKED = Random(7).randbytes(1_100_000)
ONE: dict[str, Any] = {
    ".gitignore": b"*.secret\n",
    "api.secret": (b"guarded, not part of the tree\n", 0o600),
    "keep.txt": b"the same all along\n",
    "changed.txt": b"first version\n" * 40,
    "user.txt": b"as the checkpoint has it\n",
    "script.sh": (b"#!/bin/sh\n", 0o755),
    "gone/inner/deep.txt": b"to be brought back\n",
    "link": "keep.txt",
    "file-or-folder": b"a file at first\n",
    "folder-or-file/one.txt": b"one\n",
    "folder-or-file/two.txt": b"two\n",
    "link-or-file": "changed.txt",
    "empty": 0o755,
    "private": 0o700,
    "private/diary.txt": (b"dear diary\n", 0o600),
    "name\nwith a newline": b"one\n",
}
TWO: dict[str, Any] = {
    "changed.txt": b"second version\n" * 30,
    "script.sh": (b"#!/bin/sh\n", 0o644),
    "gone": None,
    "link": "script.sh",
    "file-or-folder": None,
    "file-or-folder/now/a-folder.txt": b"in a folder\n",
    "folder-or-file": b"a file now\n",
    "link-or-file": b"a file now\n",
    "empty": None,
    "private": 0o755,
    "new/nested/file.txt": b"new in the second\n",
    "name\nwith a newline": b"two\n",
}
LARGE_ONE: dict[str, Any] = {"keep.txt": b"kept\n", "a.txt": b"one\n", "large.bin": CHUNKED}
LARGE_TWO: dict[str, Any] = {
    "a.txt": b"two\n",
    "large.bin": CHUNKED[:600_000] + b"edited in the middle" + CHUNKED[600_000:],
}
DIRTY: dict[str, Any] = {
    "user.txt": b"words that are in no checkpoint\n",
    "notes/draft.txt": b"not in a checkpoint either\n",
    "api.secret": None,
}


def first_checkpoint(scene: Scene) -> tuple[Promise, Verb]:
    lay(scene.project, ONE)
    scene.keep()
    return Promise(scene, scene.state(), scene.state()), ("checkpoint", {"message": "first"})


def next_checkpoint(scene: Scene) -> tuple[Promise, Verb]:
    checkpoints = _two_checkpoints(scene)
    scene.keep()
    promise = Promise(scene, scene.state(), scene.state(), checkpoints)
    return promise, ("checkpoint", {"message": "third"})


def whole_restore(scene: Scene) -> tuple[Promise, Verb]:
    checkpoints = _two_checkpoints(scene)
    return _about_to(scene, checkpoints, ("restore", {"checkpoint": next(iter(checkpoints))}))


def restore_with_a_large_file(scene: Scene) -> tuple[Promise, Verb]:
    checkpoints = _two_checkpoints(scene, LARGE_ONE, LARGE_TWO)
    return _about_to(scene, checkpoints, ("restore", {"checkpoint": next(iter(checkpoints))}))


def partial_restore(scene: Scene) -> tuple[Promise, Verb]:
    checkpoints = _two_checkpoints(scene)
    paths = ["changed.txt", "gone", "file-or-folder", "folder-or-file", "api.secret", "notes"]
    verb = ("restore", {"checkpoint": next(iter(checkpoints)), "paths": paths})
    return _about_to(scene, checkpoints, verb)


def careful_restore(scene: Scene) -> tuple[Promise, Verb]:
    checkpoints = _a_few_changes(scene)
    verb = ("restore", {"checkpoint": next(iter(checkpoints)), "keep_dirty": True})
    return _about_to(scene, checkpoints, verb)


def modes_only(scene: Scene) -> tuple[Promise, Verb]:
    """Nothing but modes differs, so that no content tells how far a restore has come."""
    files = {"keep.txt": b"x\n", "a.sh": (b"a\n", 0o755), "b.sh": (b"b\n", 0o755), "d": 0o700}
    lay(scene.project, files)
    with scene.open() as workspace:
        one = workspace.checkpoint("closed").id
        checkpoints = {one: contents(workspace, one)}
    lay(scene.project, {"a.sh": (b"a\n", 0o644), "b.sh": (b"b\n", 0o600), "d": 0o755})
    return _about_to(scene, checkpoints, ("restore", {"checkpoint": one}))


def small_restore(scene: Scene) -> tuple[Promise, Verb]:
    """For tests that crash more than once."""
    checkpoints = _a_few_changes(scene)
    return _about_to(scene, checkpoints, ("restore", {"checkpoint": next(iter(checkpoints))}))


def restore_of_many_files(scene: Scene) -> tuple[Promise, Verb]:
    """So many that several threads write them."""
    names = [f"d{number % 7}/f{number}" for number in range(120)]
    lay(scene.project, {"keep.txt": b"x\n"} | {name: name.encode() * 50 for name in names[:90]})
    with scene.open() as workspace:
        one = workspace.checkpoint("many").id
        checkpoints = {one: contents(workspace, one)}
    gone: dict[str, None] = dict.fromkeys(names[60:90])
    changed = {name: (name.encode() * 40, 0o755) for name in names[:60] + names[90:]}
    lay(scene.project, changed | gone)
    return _about_to(scene, checkpoints, ("restore", {"checkpoint": one}))


def undo(scene: Scene) -> tuple[Promise, Verb]:
    checkpoints = _two_checkpoints(scene)
    with scene.open() as workspace:
        workspace.restore(next(iter(checkpoints)))
    lay(scene.project, {"user.txt": b"written after the restore\n"})
    return _about_to(scene, checkpoints, ("undo", {}))


def redo(scene: Scene) -> tuple[Promise, Verb]:
    checkpoints = _a_few_changes(scene)
    with scene.open() as workspace:
        workspace.restore(next(iter(checkpoints)))
        workspace.undo()
    return _about_to(scene, checkpoints, ("redo", {}))


def collection(scene: Scene) -> tuple[Promise, Verb]:
    """Two checkpoints of three are forgotten; what only they had lies beside what is needed."""
    scene.settings = {"pack_limit": 40_000, "buffer": 10_000}
    checkpoints: dict[str, State] = {}
    chance = Random(3)
    for number in range(3):
        lay(
            scene.project,
            {
                "keep.txt": b"the same all along\n",
                f"only-{number}.bin": chance.randbytes(9_000),
                "changed.bin": chance.randbytes(20_000) if number != 1 else None,
                "text.txt": b"line %d\n" % number * 400,
            }
            | ({f"only-{number - 1}.bin": None} if number else {}),
        )
        run = scene.run(("checkpoint", {"message": str(number)}))
        id = run.answers[-1][1].id
        with scene.open() as workspace:
            checkpoints[id] = contents(workspace, id)
    with scene.open() as workspace:
        dropped = workspace.maintenance.forget(keep_last=1).forgotten
    scene.keep()
    left = {id: state for id, state in checkpoints.items() if id not in dropped}
    assert len(left) == 1
    return Promise(scene, scene.state(), scene.state(), left), ("maintenance.gc", {})


def _two_checkpoints(
    scene: Scene, one: dict[str, Any] = ONE, two: dict[str, Any] = TWO
) -> dict[str, State]:
    checkpoints = {}
    with scene.open() as workspace:
        for files in (one, two):
            lay(scene.project, files)
            here = workspace.checkpoint("a state").id
            checkpoints[here] = contents(workspace, here)
            assert checkpoints[here] == scene.state()
    lay(scene.project, DIRTY)
    return checkpoints


def _a_few_changes(scene: Scene) -> dict[str, State]:
    """One change of each sort since a checkpoint."""
    before: dict[str, Any] = {
        "keep.txt": b"kept\n", "changed.txt": b"first\n", "was/here.txt": b"here\n",
        "turns": b"a file\n", "script.sh": (b"s\n", 0o755),
    }  # fmt: skip
    after: dict[str, Any] = {
        "changed.txt": b"second, by the user\n", "was": None, "turns": None,
        "turns/into.txt": b"a folder\n", "script.sh": (b"s\n", 0o644), "more.txt": b"more\n",
    }  # fmt: skip
    lay(scene.project, before)
    with scene.open() as workspace:
        here = workspace.checkpoint("one").id
        checkpoints = {here: contents(workspace, here)}
    lay(scene.project, after)
    return checkpoints


def _about_to(scene: Scene, checkpoints: dict[str, State], verb: Verb) -> tuple[Promise, Verb]:
    """Finds out what the verb makes of the project when nothing goes wrong."""
    old = scene.state()
    scene.keep()
    run = scene.run(verb)
    assert not run.killed
    assert run.answers[-1][1].operation is not None
    new = scene.state()
    assert new != old
    return Promise(scene, old, new, checkpoints), verb
