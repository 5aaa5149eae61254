"""YAAI's restore points over a real WebSocket: named files, given contents, other directories."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faces import Socket, socket_to
from serving import Server

import mulligan
from mulligan.core.entries import NewEntry
from mulligan.workspace.workspace import Workspace


@pytest.fixture
def workspace(server: Server, project: Path) -> Iterator[Workspace]:
    (project / "a.txt").write_text("first\n")
    (project / "b.txt").write_text("other\n")
    with mulligan.open(project, home=str(server.home)) as workspace:
        workspace.checkpoint("first")
        yield workspace
        assert workspace.maintenance.verify().clean


@pytest.fixture
def ws(server: Server) -> Iterator[Socket]:
    with socket_to(server.port, server.token) as found:
        yield found


@pytest.fixture
def session(ws: Socket, workspace: Workspace) -> str:
    return str(ws.ask("code:create-session", projectPath=workspace.root)["id"])


def made(ws: Socket, session: str, *files: Any, **more: Any) -> dict[str, Any]:
    asked = {"sessionId": session, "description": "Manual checkpoint", "files": files} | more
    found: dict[str, Any] = ws.ask("code:create-restore-point", **asked)
    return found


def test_ya_8_a_point_holds_the_named_files_with_the_given_contents(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    raw = bytes(range(256))
    point = made(
        ws, session,
        {"path": "a.txt", "content": "as given\n"},
        {"path": "new/run.sh", "content": "echo\n", "mode": 0o755},
        {"path": "raw.bin", "content": base64.b64encode(raw).decode(), "encoding": "base64"},
        {"path": "buffer", "content": {"type": "Buffer", "data": [1, 2, 255]}},
    )  # fmt: skip
    assert (point["fileCount"], point["totalSize"]) == (4, 9 + 5 + 256 + 3)
    assert point["description"] == "Manual checkpoint" and point["sessionId"] == session
    whole = ws.ask("code:get-restore-point", id=point["id"])
    files = {file["path"]: file for file in whole["files"]}
    assert set(files) == {"a.txt", "new/run.sh", "raw.bin", "buffer"}
    assert files["a.txt"] == {
        "path": "a.txt", "mode": 420, "size": 9,
        "objectHash": hashlib.sha256(b"as given\n").hexdigest(),
    }  # fmt: skip
    assert files["new/run.sh"]["mode"] == 0o755
    content = ws.ask("code:get-file-at-restore-point", restorePointId=point["id"],
                     filePath="raw.bin")  # fmt: skip
    assert base64.b64decode(content) == raw
    listed = ws.ask("code:list-restore-points", sessionId=session)
    assert listed[0] == point
    # The disk is not what such a point speaks of.
    assert (project / "a.txt").read_text() == "first\n" and not workspace.status().changed_files
    assert ws.ask("code:delete-restore-point", id=point["id"]) is True


def test_ya_17_a_manual_checkpoint_is_of_the_edited_files_that_still_exist(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    for path in ("a.txt", "gone.txt", "a.txt"):
        data = {"path": path, "operation": "modify"}
        workspace.sessions.append(session, NewEntry("file_edit", "", data))
    edits = ws.ask("code:get-file-edits", sessionId=session)
    point = made(ws, session, *(each["fileEditData"]["path"] for each in edits))
    assert point["missingFiles"] == ["gone.txt"] and point["fileCount"] == 1
    (file,) = ws.ask("code:get-restore-point", id=point["id"])["files"]
    assert file["path"] == "a.txt" and file["size"] == 6
    assert made(ws, session)["fileCount"] == 0


def test_ya_10_restoring_named_files_writes_those_and_deletes_nothing(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    point = made(ws, session, {"path": "a.txt", "content": "as given\n"}, "b.txt",
                 {"path": "new/deep", "content": "x"})  # fmt: skip
    (project / "since").write_text("came later\n")
    asked = {"restorePointId": point["id"], "targetDir": str(project)}
    everything = ["a.txt", "b.txt", "new/deep"]
    plan = ws.ask("code:restore", **asked, dryRun=True)
    assert plan["restoredFiles"] == everything and plan["deletedFiles"] == []
    assert (project / "a.txt").read_text() == "first\n" and not (project / "new").exists()
    done = ws.ask("code:restore", **asked)
    assert done["restoredFiles"] == everything and done["skippedFiles"] == []
    assert (project / "a.txt").read_text() == "as given\n"
    assert (project / "new" / "deep").read_text() == "x"
    assert (project / "since").read_text() == "came later\n"
    # Where everything is as it should be, the answer is the same.
    again = ws.ask("code:restore", **asked)
    assert again == done | {"backupPointId": None}
    workspace.undo()
    assert (project / "a.txt").read_text() == "first\n" and not (project / "new").exists()


def test_ya_10_restored_files_names_every_file_of_a_whole_point_too(
    ws: Socket, session: str, workspace: Workspace, project: Path
) -> None:
    point = ws.ask("code:create-restore-point", sessionId=session, description="Whole")
    (project / "a.txt").write_text("second\n")
    done = ws.ask("code:restore", restorePointId=point["id"], targetDir=str(project))
    assert done["restoredFiles"] == ["a.txt", "b.txt"]
    some = ws.ask("code:restore", restorePointId=point["id"], files=["b.txt"])
    assert some["restoredFiles"] == ["b.txt"]


def test_ya_10_another_target_dir_is_written_to_and_what_it_held_is_kept(
    ws: Socket, session: str, workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    point = made(ws, session, {"path": "a.txt", "content": "as given\n", "mode": 0o755}, "b.txt",
                 {"path": "new/deep", "content": "x"})  # fmt: skip
    target = tmp_path / "not" / "there"
    asked = {"restorePointId": point["id"], "targetDir": str(target)}
    everything = ["a.txt", "b.txt", "new/deep"]
    assert ws.ask("code:restore", **asked, dryRun=True)["restoredFiles"] == everything
    assert not (tmp_path / "not").exists()
    done = ws.ask("code:restore", **asked)
    assert done["restoredFiles"] == everything and done["skippedFiles"] == []
    assert (target / "a.txt").read_text() == "as given\n"
    assert (target / "a.txt").stat().st_mode & 0o777 == 0o755
    assert (target / "new" / "deep").read_text() == "x"
    assert (project / "a.txt").read_text() == "first\n"
    assert sorted(os.listdir(target)) == ["a.txt", "b.txt", "new"]
    (target / "a.txt").write_text("somebody's\n")
    (target / "more").write_text("stays\n")
    some = ws.ask("code:restore", **asked, files=["a.txt", "elsewhere"])
    assert (some["restoredFiles"], some["skippedFiles"]) == (["a.txt"], ["elsewhere"])
    assert (target / "a.txt").read_text() == "as given\n"
    assert (target / "more").read_text() == "stays\n"
    back = ws.ask("code:restore", restorePointId=some["backupPointId"], targetDir=str(target))
    assert back["restoredFiles"] == ["a.txt"]
    assert (target / "a.txt").read_text() == "somebody's\n"
    # The session goes on: its project has not changed.
    assert ws.ask("code:get-session", id=session)["status"] == "starting"


def test_ya_10_never_into_the_home_through_a_link_or_into_a_git_directory(
    server: Server, ws: Socket, session: str, workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    point = made(ws, session, {"path": "a.txt", "content": "x"},
                 {"path": "folder/b", "content": "y"})  # fmt: skip
    secret = tmp_path / "secret"
    secret.mkdir()
    (tmp_path / "link").symlink_to(secret)
    (tmp_path / ".git").mkdir()
    refused = (
        tmp_path / "link", tmp_path / "link" / "below", tmp_path / ".git" / "hooks",
        server.home, server.home / "projects", project / "a.txt",
    )  # fmt: skip
    for target in (*refused, "relative", "/", "//"):
        asked = {"restorePointId": point["id"], "targetDir": str(target)}
        problem = ws.error("code:restore", asked)
        assert problem["details"]["code"] == "USAGE", (target, problem)
    # A link below the directory is not followed either: what it hides is left alone.
    target = tmp_path / "target"
    target.mkdir()
    (target / "folder").symlink_to(secret)
    done = ws.ask("code:restore", restorePointId=point["id"], targetDir=str(target))
    assert (done["restoredFiles"], done["skippedFiles"]) == (["a.txt"], ["folder/b"])
    assert os.listdir(secret) == [] and os.listdir(tmp_path / ".git") == []
    assert (target / "folder").is_symlink()
    # The home above which a directory lies is out of reach as well.
    inside = os.path.relpath(server.home, server.home.parent)
    deep = made(ws, session, {"path": f"{inside}/server.token", "content": "mine"})
    token = (server.home / "server.token").read_text()
    asked = {"restorePointId": deep["id"], "targetDir": str(server.home.parent)}
    assert ws.error("code:restore", asked)["details"]["code"] == "USAGE"
    assert (server.home / "server.token").read_text() == token


@pytest.mark.parametrize(
    "files",
    [
        "a.txt", [7], [{}], [{"path": "a", "content": 7}], [{"path": "a", "mode": "x"}],
        [{"path": "a", "content": "%%", "encoding": "base64"}], [{"path": ""}], [{"path": "."}],
        [{"path": "../out", "content": ""}], [{"path": ".git/config", "content": ""}],
        [{"path": "a/.git/config", "content": ""}], [{"path": "x" * 256, "content": ""}],
        [{"path": "a", "content": "1"}, {"path": "a", "content": "2"}],
        [{"path": "a", "content": "1"}, {"path": "a/b", "content": "2"}],
        [{"path": "a", "content": {"type": "Buffer", "data": [256]}}], [{"path": "a\0b"}],
    ],
)  # fmt: skip
def test_ya_8_files_that_make_no_sense_make_no_point(ws: Socket, session: str, files: Any) -> None:
    before = ws.ask("code:list-restore-points", sessionId=session)
    asked = {"sessionId": session, "description": "x", "files": files}
    problem = ws.error("code:create-restore-point", asked)
    assert problem["code"] == "INVALID_MESSAGE" or problem["details"]["code"] == "USAGE"
    assert ws.ask("code:list-restore-points", sessionId=session) == before


def test_ya_8_old_points_are_deleted_by_session(
    ws: Socket, session: str, workspace: Workspace
) -> None:
    point = made(ws, session, "a.txt")
    early = {"olderThan": "2001-01-01T00:00:00Z"}
    channel = "code:delete-old-restore-points"
    assert ws.ask(channel, **early, sessionId=session) == 0
    assert ws.ask(channel, olderThan="2100-01-01T00:00:00Z", sessionId=session) >= 1
    assert ws.ask("code:get-restore-point", id=point["id"]) is None
    assert ws.ask(channel, olderThan=0, projectPath=workspace.root) == 0
    assert ws.error(channel, early)["code"] == "INVALID_MESSAGE"
    assert ws.error(channel, {"olderThan": "x", "sessionId": session})["code"] == "INVALID_MESSAGE"


def test_f_ya_3_raw_queries_are_taken_as_they_are(
    ws: Socket, session: str, workspace: Workspace
) -> None:
    workspace.sessions.append(session, NewEntry("assistant_output", "alpha beta"))
    workspace.sessions.append(session, NewEntry("assistant_output", "alpha gamma"))
    asked = {"sessionId": session, "query": "alpha NOT beta"}
    (hit,) = ws.ask("code:search-transcript", **asked, raw=True)
    assert hit["entry"]["content"] == "alpha gamma"
    assert ws.ask("code:search-transcript", **asked) == []
    everywhere = ws.ask("code:search-all", query="alpha NOT beta", raw=True)
    assert [each["entry"]["content"] for each in everywhere] == ["alpha gamma"]
    wrong = ws.error("code:search-transcript", {"sessionId": session, "query": '"', "raw": True})
    assert wrong["details"]["code"] == "USAGE"


def test_restore_to_another_directory_on_the_command_line(
    server: Server, workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "c").write_text("c\n")
    first = workspace.checkpoint("with c").id
    (project / "a.txt").write_text("changed\n")
    target = tmp_path / "then"
    done = server.mull("restore", first, "--to", str(target), cwd=project)
    assert done["restored"] == ["a.txt", "b.txt", "sub/c"] and done["backup"] is None
    assert (target / "a.txt").read_text() == "first\n" and (target / "sub" / "c").exists()
    assert (project / "a.txt").read_text() == "changed\n"
    (target / "a.txt").write_text("mine\n")
    again = server.mull("restore", first, "--to", str(target), cwd=project)
    assert [each["path"] for each in again["skipped"]] == ["a.txt"]
    assert (target / "a.txt").read_text() == "mine\n"
    only = refused(server, "restore", first, "a.txt", "--to", str(target), cwd=project)
    assert only["error"]["code"] == "would_lose_work"
    forced = server.mull("restore", first, "--to", str(target), "--force", cwd=project)
    assert forced["written"] == ["a.txt"] and workspace.read(forced["backup"], "a.txt") == b"mine\n"


def refused(server: Server, *arguments: str, cwd: Path) -> Any:
    import subprocess

    from serving import COMMAND

    done = subprocess.run(
        [*COMMAND, *arguments, "--json"], cwd=cwd, env=server.env, capture_output=True, check=False
    )
    assert done.returncode == 4, done
    return json.loads(done.stdout)
