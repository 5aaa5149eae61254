"""What the crash tests share: a scene to crash in, the process to kill, and what must hold after.

A scene is a project and a home that can be put back to how they were prepared. `Scene.run` lets
a process of its own carry out verbs there, and kills it before its n-th effect. `Promise` is what
was true before; `Promise.check` reopens the project as somebody else would and demands the same.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any

from disk import Disk

import mulligan
from mulligan import Workspace

CHILD = Path(__file__).with_name("child.py")
EVERY = os.environ.get("CRASH_TESTS") == "all"
SYNCS = ("sync", "sync all", "sqlite sync")
# What becomes of the names, and of the bytes, that were not synced.
LOSSES = [("none", "none"), ("all", "none"), ("none", "all"), ("some", "some")]
Found = tuple[str, int, bytes]
State = dict[bytes, Found]


@dataclass
class Run:
    """How a process ended: its status, its effects in order, the records, and what it answered."""

    status: int
    effects: list[str]
    log: list[tuple]

    @property
    def killed(self) -> bool:
        return self.status == -signal.SIGKILL

    @property
    def answers(self) -> list[tuple[str, Any]]:
        return [(verb, value) for kind, verb, value in _acks(self.log) if kind == "ack"]


class Child:
    """The server of `child.py`, which forks the processes that are killed."""

    def __init__(self) -> None:
        # Not the test's own coverage or plugins: a process like any that uses Mulligan.
        self._process = subprocess.Popen(
            [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        ready = self._ask(None)
        assert ready["ready"] == mulligan.__file__

    def run(self, request: dict[str, Any]) -> int:
        return int(self._ask(request)["status"])

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _ask(self, request: dict[str, Any] | None) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        if request is not None:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


class Scene:
    """A project and a home below `base`, which can be put back to how they were."""

    def __init__(self, base: Path, child: Child) -> None:
        self.base = base
        self.project = base / "project"
        self.home = base / "home"
        self.child = child
        self.settings: dict[str, Any] = {}
        self._kept = base / "kept"
        self.project.mkdir()

    def open(self) -> Workspace:
        return mulligan.open(self.project, home=str(self.home))

    def state(self) -> State:
        return capture(self.project)

    def keep(self, name: str = "start") -> None:
        """Remembers how things are."""
        shutil.rmtree(self._kept / name, ignore_errors=True)
        for each in (self.project, self.home):
            if each.exists():
                _copy(each, self._kept / name / each.name)

    def reset(self, name: str = "start") -> None:
        """Puts everything back to how it was when it was kept."""
        for each in (self.project, self.home):
            shutil.rmtree(each, ignore_errors=True)
            if (self._kept / name / each.name).exists():
                _copy(self._kept / name / each.name, each)

    def run(self, *steps: tuple[str, dict[str, Any]], kill_at: int = 0) -> Run:
        """One process: opens the project and does these steps, unless it is killed before."""
        report = self.base / "report"
        report.unlink(missing_ok=True)
        status = self.child.run(
            {
                "project": str(self.project),
                "home": str(self.home),
                "steps": steps,
                "kill_at": kill_at,
                "report": str(report),
            }
            | self.settings
        )
        assert status in (0, -signal.SIGKILL), "the process failed by itself; see its traceback"
        return Run(status, *pickle.loads(report.read_bytes()))

    def kills(self, *steps: tuple[str, dict[str, Any]], start: str = "start") -> Iterator[int]:
        """Kills the process before each of its effects, one after the other; the last one lives.

        Gives control after each kill that left something new on the disk: after a mere sync it is
        the same as before. Of many equal writes in a row only some are tried, unless CRASH_TESTS
        is `all`.
        """
        self.reset(start)
        effects = self.run(*steps).effects
        for number in range(1, len(effects) + 1):
            if number > 1 and effects[number - 2] in SYNCS:
                continue
            if not EVERY and number % 8 and _within_equal_writes(effects, number):
                continue
            self.reset(start)
            run = self.run(*steps, kill_at=number)
            assert run.killed
            assert run.effects == effects[: number - 1]
            yield number
        self.reset(start)
        assert not self.run(*steps, kill_at=len(effects) + 1).killed
        yield 0


@dataclass
class Promise:
    """What was there before the crash, and must be afterwards."""

    scene: Scene
    old: State
    new: State
    checkpoints: dict[str, State] = field(default_factory=dict)

    def check(self, *, verb: tuple[str, dict[str, Any]] | None = None, note: str = "") -> str:
        """Reopens the project and looks at everything; says whether it is `old` or `new`.

        `verb` is what was interrupted: if it left no trace it is done again, and must succeed.
        """
        scene = self.scene
        with scene.open() as workspace:
            found = scene.state()
            assert_one_of(found, self.old, self.new, note)
            outcome = "new" if found == self.new else "old"
            assert [each for each in workspace.operations() if each.state == "planned"] == [], note
            self.assert_readable(workspace, note)
            self.assert_reachable(workspace, self.old, note)
            assert workspace.maintenance.verify().problems == (), note
            if verb is not None and outcome == "old" and self.old != self.new:
                attrgetter(verb[0])(workspace)(**verb[1])
                assert_same(scene.state(), self.new, f"{note}: {verb[0]} done again")
        return outcome

    def check_that_work_goes_on(self, note: str = "") -> None:
        """A checkpoint, a change, a restore, an undo and a redo, with nothing in the way."""
        scene = self.scene
        with scene.open() as workspace:
            before = scene.state()
            here = workspace.checkpoint("life goes on")
            (scene.project / "later.txt").write_bytes(b"written later\n")
            (scene.project / "keep.txt").write_bytes(b"edited later\n")
            changed = scene.state()
            workspace.restore(here.id)
            assert_same(scene.state(), before, f"{note}: restored")
            workspace.undo()
            assert_same(scene.state(), changed, f"{note}: undone")
            workspace.redo()
            assert_same(scene.state(), before, f"{note}: redone")
            assert workspace.maintenance.verify().problems == (), note
            self.assert_readable(workspace, note)

    def assert_readable(self, workspace: Workspace, note: str) -> None:
        """Every checkpoint that was acknowledged is there, byte for byte."""
        for id, state in self.checkpoints.items():
            assert_same(contents(workspace, id), state, f"{note}: checkpoint {id}")

    def assert_reachable(self, workspace: Workspace, state: State, note: str) -> None:
        """All bytes of these files are where they were, or in a checkpoint at the same path."""
        now = self.scene.state()
        wanted = {
            (path, sha256(content).hexdigest())
            for path, (kind, _mode, content) in state.items()
            if kind != "folder" and now.get(path, ("", 0, b""))[2] != content
        }
        if wanted:
            for row in workspace.log():
                wanted -= {(os.fsencode(e.path), e.id) for e in workspace.entries(row.id)}
        assert wanted == set(), f"{note}: lost"


def losses(
    scene: Scene,
    steps: list[tuple[str, dict[str, Any]]],
    loss: tuple[str, str],
    start: str = "start",
) -> Iterator[tuple[Run, int, int]]:
    """Cuts the power after each effect of a process, and gives control with what is left on the
    disk: the run, how many of its records had happened, and how many steps were answered."""
    scene.reset(start)
    disk = disk_of(scene)
    run = scene.run(*steps)
    seen: set[tuple[int, bytes]] = set()
    acknowledged = 0
    for at, record in enumerate(run.log):
        disk.replay(record)
        acknowledged += record[0] == "ack" and record[1] != "open"
        following = run.log[at + 1 : at + 2] or [("effect", "the end")]
        if following[0][0] not in ("effect", "ack"):
            continue
        if not EVERY and at % 3 and following[0][1] == "sqlite write" and loss[1] != "none":
            continue
        outcome = (acknowledged, disk.lose_power(*loss, seed=at))
        if outcome not in seen:
            seen.add(outcome)
            yield run, at, acknowledged


def disk_of(scene: Scene) -> Disk:
    """What lies there now, taken as durable."""
    return Disk(scene.base, (scene.project.name, scene.home.name))


def capture(root: Path) -> State:
    """Everything below a directory: kind, mode, and bytes or target."""
    found: State = {}
    pending = [b""]
    top = os.fsencode(root)
    while pending:
        folder = pending.pop()
        for name in os.listdir(os.path.join(top, folder)):
            path = os.path.join(folder, name)
            status = os.lstat(os.path.join(top, path))
            mode = status.st_mode & 0o7777
            if stat.S_ISLNK(status.st_mode):
                found[path] = ("link", 0, os.readlink(os.path.join(top, path)))
            elif stat.S_ISDIR(status.st_mode):
                found[path] = ("folder", mode, b"")
                pending.append(path)
            else:
                with open(os.path.join(top, path), "rb") as file:
                    found[path] = ("file", mode, file.read())
    return found


def contents(workspace: Workspace, id: str) -> State:
    """Everything in a checkpoint, in the same words as `capture`."""
    kinds = {"file": "file", "link": "link", "directory": "folder"}
    found: State = {}
    for entry in workspace.entries(id):
        content = b"" if entry.kind == "directory" else workspace.read(id, entry.path)
        found[os.fsencode(entry.path)] = (kinds[entry.kind], int(entry.mode, 8), content)
    return found


def lay(root: Path, files: dict[str, Any]) -> None:
    """Makes files: bytes, (bytes, mode), a mode alone for a folder, a str for a link's target,
    None for nothing."""
    for name, what in files.items():
        path = root / os.fsdecode(os.fsencode(name))
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir() and not isinstance(what, int):
            shutil.rmtree(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, int):
            path.mkdir(exist_ok=True)
            path.chmod(what)
        elif isinstance(what, str):
            path.symlink_to(what)
        elif what is not None:
            content, mode = what if isinstance(what, tuple) else (what, 0o644)
            path.write_bytes(content)
            path.chmod(mode)


def assert_same(found: State, wanted: State, note: str) -> None:
    assert _differences(found, wanted) == {}, note


def assert_one_of(found: State, old: State, new: State, note: str) -> None:
    if found in (old, new):
        return
    raise AssertionError(
        f"{note}: neither old nor new.\n"
        f"  unlike old: {_differences(found, old)}\n  unlike new: {_differences(found, new)}"
    )


def _differences(found: State, wanted: State) -> dict[bytes, tuple[object, object]]:
    return {
        path: (_short(found.get(path)), _short(wanted.get(path)))
        for path in sorted(found.keys() | wanted.keys())
        if found.get(path) != wanted.get(path)
    }


def _short(found: Found | None) -> object:
    return None if found is None else (found[0], oct(found[1]), len(found[2]), found[2][:24])


def _within_equal_writes(effects: list[str], number: int) -> bool:
    around = set(effects[max(0, number - 3) : number])
    return len(around) == 1 and around <= {"write", "sqlite write"}


def _acks(log: list[tuple]) -> Iterator[tuple]:
    return (record for record in log if record[0] == "ack")


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)
