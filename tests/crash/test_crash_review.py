"""Killed while it decides about an agent's work: all as it was, or all as it was to be.

Besides files, operations and checkpoints, as with every other verb, what is judged here is where
the sessions stand: baseline and pending hunks must be the disk, whichever side of the crash the
project is found on, and what is pending must be what it was before or what it was to be.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import harness
import pytest
from harness import EVERY, Child, Promise, Scene, State, lay

from mulligan import Workspace
from mulligan.workspace.results.sessions import Edit

Verb = tuple[str, dict[str, Any]]
Pending = dict[str, list[tuple[str, str, str, bool]]]

FILES: dict[str, Any] = {
    ".gitignore": b"*.secret\n",
    "api.secret": (b"guarded\n", 0o600),
    "keep.txt": b"the same all along\n",
    "a.txt": b"".join(b"line %d\n" % number for number in range(12)),
    "gone/deep.txt": b"to be deleted\n",
    "script.sh": (b"#!/bin/sh\n", 0o755),
    "both.txt": b"".join(b"both %d\n" % number for number in range(12)),
}
ONE, TWO = "session-one", "session-two"


class Stand(NamedTuple):
    """Where the sessions stand, in words that stay the same after a restart."""

    pending: Pending
    rounds: dict[str, list[tuple[str, str]]]
    turns: dict[str, list[str]]


def stand(workspace: Workspace) -> Stand:
    found: Pending = {}
    for hunk in workspace.review.pending().hunks:
        row = (hunk.path, "".join(hunk.old_lines), "".join(hunk.new_lines), hunk.mixed)
        found.setdefault(hunk.session, []).append(row)
    names = sorted(session.id for session in workspace.sessions.list().sessions)
    return Stand(
        found,
        {
            name: [(each.name, each.status) for each in workspace.review.rounds(name)]
            for name in names
        },
        {name: [each.status for each in workspace.review.turn_statuses(name)] for name in names},
    )


def replaced(scene: Scene, name: str, old: bytes, new: bytes) -> None:
    path = scene.project / name
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


def two_sessions_and_a_user(scene: Scene) -> None:
    """Pending work of two agents, with what the user has typed beside and within it."""
    lay(scene.project, FILES)
    with scene.open() as workspace:
        for name in (ONE, TWO):
            workspace.sessions.create(id=name, process=0)
        workspace.sessions.begin_turn(ONE, "the first")
        replaced(scene, "a.txt", b"line 2\n", b"one\n")
        replaced(scene, "a.txt", b"line 8\n", b"")
        replaced(scene, "both.txt", b"both 1\n", b"both 1\nof one\n")
        lay(scene.project, {"gone": None, "new/made.txt": b"made\nby one\n", "script.sh": None})
        lay(scene.project, {"script.sh": (b"#!/bin/sh\n", 0o644)})
        workspace.sessions.end_turn(ONE)
        workspace.sessions.begin_turn(TWO, "the second")
        replaced(scene, "both.txt", b"both 9\n", b"of two\n")
        lay(scene.project, {"two.txt": b"of two\n"})
        workspace.sessions.end_turn(TWO)
    replaced(scene, "a.txt", b"line 5\n", b"line 5\ntyped by the user\n")
    replaced(scene, "new/made.txt", b"by one\n", b"by one\ntyped within\n")
    lay(scene.project, {"notes.txt": b"the user's alone\n"})


def approving(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    return "review.approve", {"session": ONE, "message": "well done"}


def resetting(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    return "review.reset", {"session": ONE}


def resetting_by_force(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    return "review.reset", {"session": ONE, "force": True}


def keeping_a_file(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    return "review.keep", {"paths": ["a.txt", "gone"]}


def keeping_all(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    return "review.keep", {"everything": True}


def discarding_a_file(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    return "review.discard", {"paths": ["both.txt", "gone"], "session": ONE}


def discarding_a_session(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    return "review.discard", {"session": ONE}


def discarding_a_turn(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    return "review.discard", {"session": TWO, "turn": 0}


def beginning_a_turn(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    return "sessions.begin_turn", {"session": ONE, "message": "go on"}


def ending_a_turn(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    with scene.open() as workspace:
        workspace.sessions.begin_turn(TWO, "go on")
    replaced(scene, "a.txt", b"line 11\n", b"line 11\nmore of two\n")
    lay(scene.project, {"two.txt": None, "three/four.txt": b"five\n"})
    return "sessions.end_turn", {"session": TWO}


def going_back(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    with scene.open() as workspace:
        turn = workspace.sessions.begin_turn(ONE, "go on")
        replaced(scene, "a.txt", b"line 0\n", b"zero\n")
        workspace.sessions.end_turn(ONE)
    return "sessions.goto", {"entry": turn.entry}


def undoing_a_keep(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    with scene.open() as workspace:
        workspace.review.keep(everything=True)
    replaced(scene, "keep.txt", b"the same", b"not the same")
    return "undo", {}


def undoing_a_discard(scene: Scene) -> Verb:
    two_sessions_and_a_user(scene)
    with scene.open() as workspace:
        workspace.review.discard(session=TWO)
    replaced(scene, "keep.txt", b"the same", b"not the same")
    return "undo", {}


SITUATIONS = [
    approving,
    resetting,
    resetting_by_force,
    keeping_a_file,
    keeping_all,
    discarding_a_file,
    discarding_a_session,
    discarding_a_turn,
    beginning_a_turn,
    ending_a_turn,
    going_back,
    undoing_a_keep,
    undoing_a_discard,
]


class Decision:
    """A verb about to be interrupted, and what it must leave on either side of a crash."""

    def __init__(self, scene: Scene, verb: Verb) -> None:
        self.scene = scene
        self.verb = verb
        self.old = scene.state()
        scene.keep()
        with scene.open() as workspace:
            self.old_stand = stand(workspace)
            checkpoints = {row.id: _files(workspace, row.id) for row in workspace.log()}
        scene.reset()
        assert not scene.run(verb).killed
        self.new = scene.state()
        with scene.open() as workspace:
            self.new_stand = stand(workspace)
        self.promise = Promise(scene, self.old, self.new)
        self.checkpoints = checkpoints

    def check(self, note: str, *, again: bool = True) -> str:
        """Whether it was made; `again`: if it was not, it is made now, and must succeed."""
        scene = self.scene
        self.promise.check(note=note)
        with scene.open() as workspace:
            found, held = stand(workspace), scene.state()
            assert (held, found) in ((self.old, self.old_stand), (self.new, self.new_stand)), note
            assert_baseline_and_hunks_are_the_disk(workspace, note)
            for id, files in self.checkpoints.items():
                assert _files(workspace, id) == files, f"{note}: checkpoint {id}"
            outcome = "new" if (held, found) == (self.new, self.new_stand) else "old"
            if again and (outcome == "old" or self.old_stand == self.new_stand):
                attrgetter(self.verb[0])(workspace)(**self.verb[1])
                assert scene.state() == self.new, f"{note}: done again"
                assert stand(workspace) == self.new_stand, f"{note}: done again"
                assert workspace.maintenance.verify().problems == ()
        return outcome


def assert_baseline_and_hunks_are_the_disk(workspace: Workspace, note: str) -> None:
    """Everything undone by force is the baseline, and taking that back is the disk again."""
    for session in (ONE, TWO):
        for file in workspace.review.pending(session=session).files:
            path = file.path.rstrip("/")
            status = next(
                each
                for each in workspace.review.round_status(session).changed_files
                if each.path == path
            )
            if status.status != "modified" or status.base_content is None:
                continue
            lines = status.base_content.splitlines(keepends=True)
            for hunk in reversed([each for each in file.hunks if each.kind == "lines"]):
                start, end = hunk.old_start - 1, hunk.old_start - 1 + len(hunk.old_lines)
                assert tuple(lines[start:end]) == hunk.old_lines, note
                lines[start:end] = hunk.new_lines
            with open(f"{workspace.root}/{path}", encoding="utf-8") as disk:
                assert "".join(lines) == disk.read(), note


def _files(workspace: Workspace, checkpoint: str) -> State:
    return {
        entry.path.encode(): (entry.kind, int(entry.mode, 8), entry.id.encode())
        for entry in workspace.entries(checkpoint)
    }


@pytest.mark.parametrize("prepare", SITUATIONS, ids=lambda each: each.__name__)
def test_a_kill_leaves_a_decision_wholly_made_or_not_at_all(
    scene: Scene, prepare: Callable[[Scene], Verb]
) -> None:
    decision = Decision(scene, prepare(scene))
    outcomes = [
        decision.check(
            f"{prepare.__name__}, killed before effect {number}", again=EVERY or number % 4 == 0
        )
        for number in scene.kills(decision.verb)
    ]
    assert outcomes[-1] == "new"
    if (decision.old, decision.old_stand) != (decision.new, decision.new_stand):
        assert outcomes[0] == "old"
        assert outcomes == sorted(outcomes, reverse=True), "once it is made it stays made"


@pytest.mark.parametrize(
    "prepare",
    [approving, resetting, keeping_all, discarding_a_session, going_back],
    ids=lambda each: each.__name__,
)
def test_after_a_kill_the_decision_can_be_taken_back(
    scene: Scene, prepare: Callable[[Scene], Verb]
) -> None:
    decision = Decision(scene, prepare(scene))
    for number in scene.kills(decision.verb):
        note = f"{prepare.__name__}, killed before effect {number}"
        if (EVERY or number % 3 == 0) and decision.check(note, again=False) == "new":
            with scene.open() as workspace:
                while stand(workspace) != decision.old_stand:
                    workspace.undo()
                assert scene.state() == decision.old, note
                assert workspace.maintenance.verify().problems == (), note


def test_words_typed_between_the_kill_and_the_recovery_are_the_users(scene: Scene) -> None:
    verb = resetting(scene)
    decision = Decision(scene, verb)
    for number in scene.kills(verb):
        if not EVERY and number % 3:
            continue
        note = f"killed before effect {number}"
        words = f"typed after crash {number}\n".encode()
        path = scene.project / "a.txt"
        before = path.read_bytes()
        path.write_bytes(before + words)
        with scene.open() as workspace:
            assert path.read_bytes().endswith(words), note
            hunks = [hunk for hunk in workspace.review.pending().hunks if hunk.path == "a.txt"]
            for hunk in hunks:
                assert hunk.mixed or words.decode() not in hunk.new_lines, note
            workspace.review.discard(everything=True)
            assert words in path.read_bytes(), note
            assert b"typed by the user\n" in path.read_bytes(), note
            assert workspace.maintenance.verify().problems == (), note
            # What they typed over themselves before anything was stored is not ours to keep.
            theirs = {at: what for at, what in decision.old.items() if at != b"a.txt"}
            decision.promise.assert_reachable(workspace, theirs, note)


# The process that gets killed, for whom an edit arrives as JSON, as between two calls of a hook.
HANDED_OVER = """
import sys
sys.path.insert(0, {folder!r})
import child
between = child.stand_between()
from mulligan.workspace.results.sessions import Edit
from mulligan.workspace.session_commands import SessionCommands
abort = SessionCommands.abort_edit
SessionCommands.abort_edit = lambda self, edit: abort(self, Edit.from_json(edit))
child.serve()
"""


@pytest.fixture
def handed_over(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    script = tmp_path / "child_with_edits.py"
    script.write_text(HANDED_OVER.format(folder=str(harness.CHILD.parent)))
    monkeypatch.setattr(harness, "CHILD", script)
    server = Child()
    (scene.base / "handed-over").mkdir()
    yield Scene(scene.base / "handed-over", server)
    server.close()


def test_a_kill_during_an_abort_leaves_the_edit_or_what_was_before(handed_over: Scene) -> None:
    scene = handed_over
    lay(scene.project, FILES)
    with scene.open() as workspace:
        workspace.sessions.create(id=ONE, process=0)
        workspace.sessions.begin_turn(ONE, "go")
        old = scene.state()
        edit = workspace.sessions.start_edit(
            ONE, ["a.txt", "gone/deep.txt", "script.sh", "made.txt"]
        )
    lay(scene.project, {"a.txt": b"changed\n", "gone": None, "made.txt": b"made\n"})
    lay(scene.project, {"script.sh": None})
    lay(scene.project, {"script.sh": (b"changed\n", 0o600)})
    edited = scene.state()
    scene.keep()
    verb = ("sessions.abort_edit", {"edit": json.loads(json.dumps(edit.as_json()))})
    for number in scene.kills(verb):
        note = f"killed before effect {number}"
        with scene.open() as workspace:
            assert scene.state() in (edited, old), note
            workspace.sessions.abort_edit(Edit.from_json(verb[1]["edit"]))
            assert scene.state() == old, note
            assert workspace.review.pending().files == (), note
            assert workspace.maintenance.verify().problems == (), note
