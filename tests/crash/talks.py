"""Sessions to crash in, and what one sees of them."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from harness import Scene, State, assert_same, contents, lay

from mulligan import Workspace
from mulligan.core.entries import NewEntry

ONE: dict[str, Any] = {
    "a.txt": b"one\n",
    "keep.txt": b"the same all along\n",
    "gone/deep.txt": b"to be brought back\n",
    "script.sh": (b"#!/bin/sh\n", 0o755),
}
TWO: dict[str, Any] = {
    "a.txt": b"two\n",
    "gone": None,
    "new/file.txt": b"new in the second\n",
    "script.sh": (b"#!/bin/sh\n", 0o644),
}
LONG = "a long answer, which takes some pages of the journal; " * 100


class Told(NamedTuple):
    """What one sees of sessions: each with its conversation, all its entries, and the files."""

    talks: dict[str, tuple[list[str], list[str]]]
    files: State


def two_turns(scene: Scene) -> list[str]:
    """A session of two turns, kept; gives the entries that the turns ended with."""
    found = []
    lay(scene.project, ONE)
    with scene.open() as workspace:
        session = workspace.sessions.create(id="talk", agent="test", process=0).id
        for number, files in enumerate(({"a.txt": b"one and a half\n"}, TWO)):
            workspace.sessions.begin_turn(session, f"message {number}")
            lay(scene.project, files)
            workspace.sessions.append(session, NewEntry("assistant_output", f"answer {number}"))
            found.append(workspace.sessions.end_turn(session).entry or "")
        workspace.sessions.label(found[0], "first", session)
    scene.keep()
    return found


def told(scene: Scene, workspace: Workspace) -> Told:
    talks = {}
    for session in workspace.sessions.list(limit=100).sessions:
        whole = workspace.sessions.transcript(
            session.id, limit=1000, include_compacted=True
        ).entries
        talks[session.id] = (
            [f"{e.type} {e.content}" for e in workspace.sessions.conversation(session.id)],
            [f"{e.type} {e.content} {e.is_compacted} {e.label}" for e in whole],
        )
    return Told(talks, scene.state())


def look(scene: Scene, note: str) -> Told:
    """Reopens the project as somebody else would; whatever is there must be whole."""
    with scene.open() as workspace:
        assert [each for each in workspace.operations() if each.state == "planned"] == [], note
        assert workspace.maintenance.verify().problems == (), note
        assert workspace.project.journal.rows("PRAGMA foreign_key_check") == [], note
        for session in workspace.sessions.list(limit=100).sessions:
            found = workspace.sessions.transcript(
                session.id, limit=1000, include_compacted=True
            ).entries
            assert [entry.seq for entry in found] == list(range(1, len(found) + 1)), note
            times = [entry.created_at for entry in found]
            assert times == sorted(set(times)), note
        return told(scene, workspace)


class Importing(NamedTuple):
    """An import that will be cut short: how it was before, how it is after, the checkpoints."""

    verb: tuple[str, dict[str, Any]]
    old: Told
    new: Told
    points: dict[str, State]

    def check(self, scene: Scene, found: Told, note: str) -> bool:
        """Nothing but a beginning of the log was taken in, in its order; says whether all was."""
        assert_same(found.files, self.old.files, note)
        assert found.talks["talk"] == self.old.talks["talk"], note
        whole = self.new.talks["old"][1]
        entries = found.talks.get("old", ([], []))[1]
        assert entries == whole[: len(entries)], note
        with scene.open() as workspace:
            there = [each.id for each in workspace.log() if each.kind == "imported"]
            assert there in ([], ["r1"], ["r2", "r1"]), note
            assert not there or entries == whole, note
            for id in there:
                assert_same(contents(workspace, id), self.points[id], note)
        return len(there) == 2

    def check_again(self, scene: Scene, note: str) -> None:
        """The same import once more brings what is missing, and nothing twice."""
        assert not scene.run(self.verb).killed
        assert told_there(scene).talks == self.new.talks, note
        assert self.check(scene, look(scene, note), note), note


def importing(scene: Scene) -> Importing:
    """Beside the session there is, the import of one with two restore points."""
    verb = ("take_in", {"agent": "yaai", "path": str(_legacy(scene))})
    old = told_there(scene)
    scene.keep()
    scene.run(verb)
    with scene.open() as workspace:
        points = {id: contents(workspace, id) for id in ("r1", "r2")}
    found = Importing(verb, old, told_there(scene), points)
    assert len(found.new.talks["old"][1]) == 3 and len(points["r1"]) == 2
    return found


def told_there(scene: Scene) -> Told:
    with scene.open() as workspace:
        return told(scene, workspace)


def _legacy(scene: Scene) -> Path:
    """A folder of YAAI beside the project: a session of three entries and two restore points."""
    place = scene.base / "legacy"
    lines = [
        {"id": str(number), "sessionId": "old", "type": "user_input", "content": f"{number} {LONG}"}
        for number in range(3)
    ]
    info = {"id": "old", "projectPath": str(scene.project), "createdAt": "2026-01-02T10:00:00Z"}
    files: dict[str, Any] = {
        "sessions/old/session.json": json.dumps(info).encode(),
        "sessions/old/transcript.jsonl": "".join(
            json.dumps(each) + "\n" for each in lines
        ).encode(),
    }
    for number, held in enumerate(
        ({"a.txt": b"one\n", "b.txt": b"b\n" * 900}, {"a.txt": b"2\n"}), 1
    ):
        listed = []
        for path, content in held.items():
            hash = sha256(content).hexdigest()
            files[f"snapshots/objects/{hash[:2]}/{hash}"] = content
            listed.append({"path": path, "hash": hash})
        point = {"id": f"r{number}", "sessionId": "old", "transcriptEntryId": "0", "files": listed}
        point["timestamp"] = f"2026-01-02T10:00:0{number}Z"
        files[f"snapshots/manifests/{number}.json"] = json.dumps(point).encode()
    lay(place, files)
    return place
