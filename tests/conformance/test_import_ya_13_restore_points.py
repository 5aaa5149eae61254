"""The restore points of YAAI's legacy folders become checkpoints, with all that can be done to one.

A restore point holds the files that a session had edited, and says nothing about all others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from acts import picture, write

import mulligan
from mulligan.server.websocket import actions
from mulligan.workspace.results.files import Changes
from mulligan.workspace.transfer.import_logs import ImportResult, import_logs

AT = "2026-01-02T10:00:0{}.000Z"
LARGE = bytes(range(256)) * 9_000


class Legacy:
    """A folder of YAAI's first version, and the import of it."""

    def __init__(self, user: Path, project: Path) -> None:
        self.place, self.project = user / ".yaai", project
        self.objects = self.place / "snapshots" / "objects"
        write(
            self.place / "sessions/s1",
            {
                "session.json": json.dumps({"id": "s1", "projectPath": str(project)}),
                "transcript.jsonl": "",
            },
        )

    def say(self, id: str, type: str = "user_input", content: str = "", **more: Any) -> None:
        line = {"id": id, "sessionId": "s1", "type": type, "content": content or id}
        with (self.place / "sessions/s1/transcript.jsonl").open("a") as file:
            file.write(json.dumps(line | {"timestamp": AT.format(0)} | more) + "\n")

    def keep(self, content: bytes) -> str:
        hash = sha256(content).hexdigest()
        write(self.objects, {f"{hash[:2]}/{hash}": content})
        return hash

    def point(self, id: str, files: dict[str, bytes], second: int = 1, **more: Any) -> Path:
        listed = [
            {"path": path, "hash": self.keep(content), "mode": 0o644, "size": len(content)}
            for path, content in files.items()
        ]
        return self.manifest(id, listed, timestamp=AT.format(second), **more)

    def manifest(self, id: str, files: Any, **more: Any) -> Path:
        about = {"id": id, "sessionId": "s1", "description": f"point {id}", "files": files}
        path = self.place / "snapshots/manifests" / f"{id}.json"
        write(path.parent, {path.name: json.dumps(about | more)})
        return path

    def take(self, home: Path, **more: Any) -> ImportResult:
        return import_logs(
            str(home), "yaai", user_home=str(self.place.parent), environment={}, **more
        )


@pytest.fixture
def legacy(tmp_path: Path, project: Path) -> Legacy:
    """Two messages with an edit in between, and a restore point before and after it."""
    found = Legacy(tmp_path, project)
    found.say("a", content="Make it two")
    found.say("b", "file_edit", fileEdit={"path": "src/app.py", "operation": "modify"})
    found.say("c", content="Make it three", restorePointId="r2")
    found.say("d", "assistant_output", "Done")
    found.point("r1", {"src/app.py": b"one\n", "data.bin": LARGE}, transcriptEntryId="b")
    found.point("r2", {"src/app.py": b"two\n"}, second=2)
    write(project, {"src/app.py": "three\n", "mine.txt": "never in a restore point\n"})
    (project / "empty").mkdir()
    return found


def test_ya_13_the_result_counts_sessions_entries_restore_points_and_errors(
    legacy: Legacy, mulligan_home: Path
) -> None:
    write(legacy.place / "snapshots/manifests", {"broken.json": '{"id": '})
    before = picture(legacy.project)
    done = legacy.take(mulligan_home)
    assert (done.sessions, done.entries, done.checkpoints, len(done.problems)) == (1, 4, 2, 1)
    assert done.problems[0].path.endswith("broken.json")
    assert picture(legacy.project) == before


def test_ya_13_a_restore_point_keeps_its_id_its_time_its_words_and_its_entry(
    legacy: Legacy, mulligan_home: Path
) -> None:
    legacy.take(mulligan_home)
    with mulligan.open(legacy.project) as workspace:
        first, second = workspace.find("r1"), workspace.find("r2")
        assert (first.message, first.kind, first.session) == ("point r1", "imported", "s1")
        assert (first.created_at, second.created_at) == (AT.format(1), AT.format(2))
        assert (first.entry, second.entry) == ("b", "c")
        assert [workspace.sessions.entry(id, "s1").checkpoint for id in "abc"] == [None, "r1", "r2"]
        assert (first.files, first.bytes) == (2, len(LARGE) + 4)
        assert workspace.maintenance.verify().problems == ()


def test_ya_13_its_contents_can_be_shown_and_compared(legacy: Legacy, mulligan_home: Path) -> None:
    legacy.take(mulligan_home)
    with mulligan.open(legacy.project) as workspace:
        assert workspace.read("r1", "data.bin") == LARGE
        assert workspace.read("r2", "src/app.py") == b"two\n"
        assert told(workspace, "r1", "r2") == {"src/app.py": "modified", "data.bin": "deleted"}
        # With the disk: what it did not hold has not come or gone since.
        assert told(workspace, "r2") == {"src/app.py": "modified"}
        here = workspace.checkpoint().id
        assert told(workspace, here, "r2") == {"src/app.py": "modified"}


def told(workspace: mulligan.Workspace, *names: str) -> dict[str, str]:
    return {each.path: each.status for each in workspace.diff(*names)}


def test_ya_13_restoring_it_brings_back_its_files_and_leaves_all_others(
    legacy: Legacy, mulligan_home: Path
) -> None:
    legacy.take(mulligan_home)
    (legacy.project / "src").chmod(0o700)
    before = picture(legacy.project)
    with mulligan.open(legacy.project) as workspace:
        assert workspace.restore("r1", preview=True).root == str(legacy.project)
        done = workspace.restore("r1")
        assert (set(done.restored), done.deleted) == ({"data.bin", "src/app.py"}, ())
        assert (done.skipped, done.dirty) == ((), ("src/app.py",))
        after = picture(legacy.project)
        assert after == before | {
            b"src/app.py": ("file", 0o644, b"one\n"),
            b"data.bin": ("file", 0o644, LARGE),
        }
        # A path that is asked for by name is answered for.
        workspace.restore("r1", ["mine.txt"], preview=True)
        (skip,) = workspace.restore("r1", ["mine.txt"]).skipped
        assert skip.path == "mine.txt" and "not kept by yaai" in skip.reason
        workspace.undo()
        assert picture(legacy.project) == before
        assert workspace.maintenance.verify().problems == ()


@pytest.mark.parametrize(("entry", "content"), [("b", b"one\n"), ("c", b"two\n")])
def test_ya_13_going_to_its_entry_brings_the_files_along(
    legacy: Legacy, mulligan_home: Path, entry: str, content: bytes
) -> None:
    legacy.take(mulligan_home)
    with mulligan.open(legacy.project) as workspace:
        workspace.sessions.goto(entry, session="s1", preview=True)
        workspace.sessions.goto(entry, session="s1")
        assert (legacy.project / "src/app.py").read_bytes() == content
        assert (legacy.project / "mine.txt").exists()
        assert workspace.sessions.get("s1").leaf == "b"
        workspace.undo()
        assert (legacy.project / "src/app.py").read_bytes() == b"three\n"


def test_ya_13_the_command_line_speaks_of_it_as_of_any_checkpoint(
    legacy: Legacy, mulligan_home: Path
) -> None:
    def mulligan_(*arguments: str) -> str:
        command = [sys.executable, "-m", "mulligan", *arguments]
        done = subprocess.run(
            command, cwd=legacy.project, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    shown = mulligan_("import", "yaai", str(legacy.place.parent))
    assert "4 new entries in 1 session" in shown and "2 checkpoints" in shown
    assert mulligan_("show", "r1:src/app.py") == "one\n"
    assert "everything else was not kept by yaai" in mulligan_("show", "r1")
    assert "point r2" in mulligan_("log")
    assert "-two" in mulligan_("diff", "r2")
    assert f"in {legacy.project}: " in mulligan_("restore", "r2", "--preview")
    mulligan_("restore", "r2")
    assert (legacy.project / "src/app.py").read_bytes() == b"two\n"


def test_ya_13_a_client_of_yaai_finds_its_restore_points_by_their_ids(
    legacy: Legacy, mulligan_home: Path
) -> None:
    legacy.take(mulligan_home)
    with mulligan.open(legacy.project) as workspace:
        newest, oldest = actions.points(workspace, "s1")
        assert (newest["id"], oldest["id"]) == ("r2", "r1")
        assert (oldest["transcriptEntryId"], oldest["timestamp"]) == ("b", AT.format(1))
        files = actions.point_with_files(workspace, "r2")["files"]
        hash = sha256(b"two\n").hexdigest()
        assert files == [{"path": "src/app.py", "objectHash": hash, "mode": 420, "size": 4}]


def test_ya_13_running_it_twice_adds_nothing_and_what_is_new_is_linked(
    legacy: Legacy, mulligan_home: Path
) -> None:
    assert legacy.take(mulligan_home).checkpoints == 2
    second = legacy.take(mulligan_home, again=True)
    assert (second.sessions, second.entries) == (1, 0)
    legacy.point("r3", {"src/app.py": b"three\n"}, second=3, transcriptEntryId="a")
    again = legacy.take(mulligan_home, again=True)
    assert (again.entries, again.checkpoints, again.problems) == (0, 1, ())
    with mulligan.open(legacy.project) as workspace:
        assert [each.id for each in workspace.log()] == ["r3", "r2", "r1"]
        assert workspace.sessions.entry("a", "s1").checkpoint == "r3"


def test_ya_13_what_could_not_be_taken_is_named_and_the_rest_is_there(
    legacy: Legacy, mulligan_home: Path
) -> None:
    kept = legacy.keep(b"good\n")
    damaged = legacy.keep(b"was good once\n")
    (legacy.objects / damaged[:2] / damaged).write_bytes(b"not any more\n")
    files = {
        "good.txt": kept,
        "missing.txt": "0" * 64,
        "damaged.txt": damaged,
        "strange.txt": "../../../etc/passwd",
        "../outside.txt": kept,
        "/etc/outside.txt": kept,
        ".git/hooks/pre-commit": kept,
        "good.txt/below": kept,
        "": kept,
        "x" * 300: kept,
    }
    path = legacy.manifest("r3", [{"path": path, "hash": hash} for path, hash in files.items()])
    other = legacy.manifest("r4", "none")
    legacy.manifest("r5", [], fileCount=3)
    done = legacy.take(mulligan_home)
    assert done.checkpoints == 4
    reasons = {each.reason.partition(":")[0] for each in done.problems if each.path == str(path)}
    assert reasons == (files.keys() - {"good.txt", ""}) | {
        "File 9 of the restore point has no path."
    }
    assert [each.reason for each in done.problems if each.path == str(other)] == [
        "The restore point does not list its files."
    ]
    assert "It lists 0 of the 3 files that it counts." in [each.reason for each in done.problems]
    with mulligan.open(legacy.project) as workspace:
        point = workspace.find("r3")
        assert [each.path for each in workspace.entries("r3")] == ["good.txt"]
        named = {os.fsdecode(each.path) for each in point.coverage.skipped}
        assert named == {"", "missing.txt", "damaged.txt", "strange.txt"}
        assert workspace.maintenance.verify().problems == ()
        workspace.restore("r3", preview=True)
        workspace.restore("r3")
    assert not (legacy.project.parent / "outside.txt").exists()


def test_ya_13_checkpoints_that_were_taken_here_keep_their_names_and_their_order(
    legacy: Legacy, project: Path, mulligan_home: Path
) -> None:
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint("first").id
        write(project, {"src/app.py": "four\n"})
        workspace.restore(first)
        stood = [each.id for each in workspace.log()]
    legacy.manifest("future", [], timestamp="2999-01-01T00:00:00.000Z")
    legacy.take(mulligan_home)
    with mulligan.open(project) as workspace:
        assert workspace.find("@").id == first
        assert workspace.status().changed_files == ()
        listed = [each.id for each in workspace.log()]
        assert [id for id in listed if id in stood] == stood
        assert listed[0] == "future" and listed[-2:] == ["r2", "r1"]
        write(project, {"src/app.py": "five\n"})
        made = workspace.checkpoint("second")
        assert made.changes == Changes(modified=1)
        assert workspace.find("@1").id == first
        assert workspace.maintenance.verify().problems == ()


def test_ya_13_deleting_the_session_frees_what_its_restore_points_held(
    legacy: Legacy, project: Path, mulligan_home: Path
) -> None:
    legacy.take(mulligan_home)
    with mulligan.open(project) as workspace:
        workspace.checkpoint("of the disk")
        assert workspace.maintenance.gc().removed == 0
        workspace.sessions.delete("s1")
        assert [each.message for each in workspace.log()] == ["of the disk"]
        assert workspace.maintenance.gc().removed > 0
        assert workspace.maintenance.verify().problems == ()


def test_ya_13_two_sessions_with_restore_points_of_one_name_keep_both(
    legacy: Legacy, tmp_path: Path, project: Path, mulligan_home: Path
) -> None:
    other = Legacy(tmp_path / "other", project)
    session = other.place / "sessions/s1/session.json"
    session.write_text(json.dumps({"id": "s2", "projectPath": str(project)}))
    other.point("r1", {"src/app.py": b"another\n"}, sessionId="s2")
    legacy.take(mulligan_home)
    other.take(mulligan_home)
    assert other.take(mulligan_home, again=True).checkpoints == 0
    with mulligan.open(project) as workspace:
        mine = [each for each in workspace.log() if each.session == "s2"]
        assert len(mine) == 1 and len(workspace.log()) == 3
        assert workspace.read(mine[0].id, "src/app.py") == b"another\n"
        assert workspace.read("r1", "src/app.py") == b"one\n"


def test_ya_13_the_command_looks_in_the_folder_that_it_is_told_to_work_in(
    project: Path, tmp_path: Path, mulligan_home: Path
) -> None:
    Legacy(project, project).say("a", content="Make it two")
    command = [sys.executable, "-m", "mulligan", "-C", str(project), "import", "yaai", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=True)
    (imported,) = json.loads(done.stdout)["imported"]
    assert (imported["sessions"], imported["entries"]) == (1, 1)
