"""Imported logs are foreign words: what they claim of folders, ids and times is not believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan.core.entries import NewEntry
from mulligan.errors import Ambiguous, NotFound, RefusedRoot, WouldLoseWork
from mulligan.workspace.opening import open_location
from mulligan.workspace.project.location import find_project, is_imported, known_projects
from mulligan.workspace.transfer.import_logs import ImportResult, import_logs
from mulligan.workspace.workspace import Workspace

OURS = "ssh-ed25519 ours\n"
THEIRS = b"ssh-ed25519 theirs\n"
HEAD = {"type": "session", "format": "mulligan", "version": 1}


@pytest.fixture
def user() -> Path:
    return Path(os.environ["HOME"])


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "mulligan", *arguments]
    return subprocess.run(
        program, cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def claude_log(user: Path, id: str, cwd: str, at: str = "2026-03-01T10:00:00.000Z") -> Path:
    """A log where Claude Code keeps its own."""
    place = user / ".claude/projects/-shop" / f"{id}.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(_claude_line(id, cwd, at))
    return place


def _claude_line(id: str, cwd: str, at: str) -> str:
    line = {
        "type": "user", "uuid": f"u-{id}", "sessionId": id, "cwd": cwd, "parentUuid": None,
        "timestamp": at, "message": {"role": "user", "content": f"said in {id}"},
    }  # fmt: skip
    return json.dumps(line) + "\n"


def yaai_folder(clone: Path, claimed: str, files: dict[str, bytes]) -> None:
    """A `.yaai` in a repository: a session with a restore point, about another folder."""
    place = clone / ".yaai"
    listed = []
    for path, content in files.items():
        hash = sha256(content).hexdigest()
        _put(place / "snapshots/objects" / hash[:2] / hash, content)
        listed.append({"path": path, "hash": hash, "mode": 0o644, "size": len(content)})
    about = {"id": "evil", "projectPath": claimed}
    _put(place / "sessions/evil/session.json", json.dumps(about).encode())
    line = {"sessionId": "evil", "timestamp": "2026-01-02T10:00:00.000Z"}
    lines = [
        line | {"id": "hello", "type": "user_input", "content": "hello"},
        line | {"id": "again", "type": "user_input", "content": "x", "restorePointId": "rp"},
        line | {"id": "bye", "type": "assistant_output", "content": "y"},
    ]
    text = "".join(json.dumps(each) + "\n" for each in lines)
    _put(place / "sessions/evil/transcript.jsonl", text.encode())
    point = line | {"id": "rp", "description": "d", "files": listed, "transcriptEntryId": "again"}
    _put(place / "snapshots/manifests/rp.json", json.dumps(point).encode())


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def take(home: Path, agent: str = "claude-code", **more: Any) -> ImportResult:
    return import_logs(str(home), agent, **more)


def roots(home: Path, *, imported: bool) -> list[str]:
    projects = known_projects(str(home))
    return [os.fsdecode(each.root) for each in projects if is_imported(each) == imported]


def test_reading_does_not_make_a_project_of_the_home_that_a_log_names(
    user: Path, mulligan_home: Path
) -> None:
    (user / "secret.txt").write_text("mine")
    claude_log(user, "at-home", str(user))
    take(mulligan_home)
    repository = user / "new"
    (repository / ".git").mkdir(parents=True)
    (repository / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (repository / "a.txt").write_text("a")
    # `stats` is about one project, and there is none yet.
    for reading, status in (("sessions --all", 0), ("search said --all", 0), ("stats", 3)):
        assert command(*reading.split(), cwd=repository).returncode == status
        assert roots(mulligan_home, imported=False) == []
    assert "said in at-home" in command("sessions", "--all", cwd=repository).stdout
    assert command("checkpoint", cwd=repository).returncode == 0
    assert roots(mulligan_home, imported=False) == [str(repository)]
    with mulligan.open(repository) as workspace:
        assert [each.path for each in workspace.entries("@")] == ["a.txt"]


@pytest.mark.parametrize("place", ["", ".ssh", "/", "/etc", "/usr/lib"])
def test_an_imported_log_does_not_open_the_files_of_a_refused_folder(
    user: Path, mulligan_home: Path, place: str
) -> None:
    directory = os.path.join(user, place).rstrip("/") or "/"
    os.makedirs(directory, exist_ok=True)
    claude_log(user, "wide", directory)
    assert take(mulligan_home).sessions == 1
    (project,) = known_projects(str(mulligan_home))
    assert is_imported(project) and os.fsdecode(project.root) == os.path.realpath(directory)
    with Workspace(open_location(project, str(mulligan_home))) as workspace:
        assert workspace.sessions.get("wide").title
        for verb in (
            workspace.checkpoint,
            lambda: workspace.read_disk("secret.txt"),
            lambda: workspace.sessions.begin_turn("wide", "hello"),
        ):
            with pytest.raises(RefusedRoot):
                verb()
    assert is_imported(project)


def test_a_clone_s_log_claims_no_other_folder(user: Path, mulligan_home: Path) -> None:
    _put(user / ".ssh/authorized_keys", OURS.encode())
    clone = user / "clone"
    _put(clone / ".git/HEAD", b"ref: refs/heads/main\n")
    yaai_folder(clone, str(user / ".ssh"), {"authorized_keys": THEIRS})
    done = command("import", "yaai", "--json", cwd=clone)
    (imported,) = json.loads(done.stdout)["imported"]
    assert imported["projects"] == [str(clone)]
    assert any(".ssh" in each["reason"] for each in imported["problems"])
    for where in (clone, user / ".ssh"):
        for verb in (("goto", "again"), ("restore", "rp"), ("restore", "rp", "--force")):
            assert command(*verb, cwd=where).returncode in (2, 3, 4)
    assert (user / ".ssh/authorized_keys").read_text() == OURS
    assert not (clone / "authorized_keys").exists()


@pytest.mark.parametrize("force", [False, True])
def test_files_of_an_imported_checkpoint_are_written_only_after_a_preview(
    project: Path, mulligan_home: Path, force: bool
) -> None:
    (project / "authorized_keys").write_text(OURS)
    yaai_folder(project, str(project), {"authorized_keys": THEIRS})
    take(mulligan_home, "yaai", paths=(str(project),))
    forced = ("--force",) if force else ()
    with mulligan.open(project) as workspace:
        fork = workspace.sessions.fork("evil").id
        for verb in (
            lambda: workspace.sessions.goto("again", session="evil", force=force),
            lambda: workspace.sessions.goto("again", session=fork, force=force),
            lambda: workspace.restore("rp", force=force),
            lambda: workspace.restore("rp", ["authorized_keys"], force=force),
        ):
            with pytest.raises(WouldLoseWork, match=str(project)):
                verb()
        # A preview of another request does not count, nor does one of some of the files.
        workspace.restore("rp", force=not force, preview=True)
        workspace.restore("rp", ["authorized_keys"], force=force, preview=True)
        with pytest.raises(WouldLoseWork):
            workspace.restore("rp", force=force)
    assert (project / "authorized_keys").read_text() == OURS
    refused = command("restore", "rp", *forced, cwd=project)
    assert refused.returncode == 4 and str(project) in refused.stderr
    preview = command("restore", "rp", "--preview", *forced, cwd=project)
    assert preview.returncode == 0 and f" in {project}: " in preview.stderr
    assert (project / "authorized_keys").read_text() == OURS
    assert command("restore", "rp", *forced, cwd=project).returncode == 0
    assert (project / "authorized_keys").read_bytes() == THEIRS


def test_an_imported_entry_s_tree_may_be_any_text(project: Path, mulligan_home: Path) -> None:
    log = project / "log.jsonl"
    head = HEAD | {"session": "odd", "agent": "x", "directory": str(project)}
    lines = [
        head,
        {"type": "user_input", "entry": "u1", "content": "one"},
        {
            "type": "step_snapshot",
            "entry": "s1",
            "parent": "u1",
            "data": {"snapshotTreeHash": "zz"},
        },
        {"type": "step_snapshot", "entry": "s2", "parent": "s1", "data": {"tree": ["x"]}},
        {"type": "user_input", "entry": "u2", "content": "two", "parent": "s2"},
    ]
    log.write_text("".join(json.dumps(each) + "\n" for each in lines))
    take(mulligan_home, "mulligan", paths=(str(log),))
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        (session,) = workspace.sessions.list().sessions
        ids = [entry.id for entry in workspace.sessions.transcript(session.id).entries]
        assert ids == ["u1", "s1", "s2", "u2"]
        for id in ids:
            with pytest.raises(NotFound, match="No checkpoint holds the files"):
                workspace.sessions.goto(id, session=session.id, force=True)


@pytest.mark.parametrize("cwd", ["/a\0b", "/a\ud800b", "", "relative", "/" + "x" * 5000])
def test_a_log_with_an_invalid_folder_does_not_stop_the_others(
    user: Path, project: Path, mulligan_home: Path, cwd: str
) -> None:
    for id, directory in (("a-good", str(project)), ("b-bad", cwd), ("c-good", str(project))):
        claude_log(user, id, directory)
    done = command("import", "all", "--json", cwd=project)
    assert "Traceback" not in done.stderr
    problems = json.loads(done.stdout)["imported"][0]["problems"]
    assert bool(problems) == (cwd in ("/a\0b", "relative"))
    with mulligan.open(project) as workspace:
        assert {each.id for each in workspace.sessions.list().sessions} == {"a-good", "c-good"}


def test_a_log_with_the_id_of_a_live_session_becomes_another_session(
    user: Path, project: Path, tmp_path: Path, mulligan_home: Path
) -> None:
    with mulligan.open(project) as workspace:
        live = workspace.sessions.create(agent="claude-code").id
        workspace.sessions.append(live, NewEntry("user_input", "mine"))
        log = tmp_path / f"{live}.jsonl"
        log.write_text(_claude_line(live, str(project), "2026-03-01T10:00:00.000Z"))
        for _twice in range(2):
            done = take(mulligan_home, paths=(str(log),), again=True)
            assert any(live in each.reason for each in done.problems)
        other = tmp_path / "x.jsonl"
        head = HEAD | {"session": live, "agent": "claude-code"}
        said = {"type": "user_input", "entry": "evil", "content": "theirs"}
        other.write_text(json.dumps(head | {"directory": str(project)}) + "\n" + json.dumps(said))
        take(mulligan_home, "mulligan", paths=(str(other),))
        assert [each.content for each in workspace.sessions.transcript(live).entries] == ["mine"]
        assert len(workspace.sessions.list().sessions) == 3


def test_imported_ids_do_not_make_prefixes_of_own_ids_ambiguous(
    user: Path, project: Path, mulligan_home: Path
) -> None:
    with mulligan.open(project) as workspace:
        live = workspace.sessions.create(agent="x").id
        entry = workspace.sessions.append(live, NewEntry("user_input", "mine"))[0].id
        taken = workspace.checkpoint("mine").id
        for length in (4, 8):
            claude_log(user, live[:length], str(project))
        log = claude_log(user, "another", str(project))
        log.write_text(log.read_text().replace("u-another", entry[:8]))
        yaai_folder(project, str(project), {"f": b"x"})
        manifest = project / ".yaai/snapshots/manifests/rp.json"
        manifest.write_text(manifest.read_text().replace('"rp"', json.dumps(taken[:8])))
        take(mulligan_home)
        take(mulligan_home, "yaai", paths=(str(project),))
        for length in (4, 8):
            assert workspace.sessions.get(live[:length]).id == live
        with pytest.raises(Ambiguous):
            workspace.sessions.entry(entry[:8])
        assert workspace.find(taken[:8]).id == taken


def test_a_log_from_the_future_is_not_the_latest_session(
    user: Path, project: Path, mulligan_home: Path
) -> None:
    claude_log(user, "future", str(project), "9999-01-01T00:00:00.000Z")
    take(mulligan_home)
    with mulligan.open(project) as workspace:
        assert workspace.sessions.get("future").updated_at < "99"
        live = workspace.sessions.create(agent="x").id
        workspace.sessions.append(live, NewEntry("user_input", "mine"))
        assert workspace.sessions.get("@").id == live
        take(mulligan_home, again=True)
        assert workspace.sessions.get("@").id == live


def test_a_log_imported_with_the_wrong_agent_can_be_imported_again(
    user: Path, project: Path, mulligan_home: Path
) -> None:
    log = claude_log(user, "mine", str(project))
    assert take(mulligan_home, "pi", paths=(str(log),)).entries == 0
    assert take(mulligan_home, paths=(str(log),)).entries == 1
    assert take(mulligan_home, paths=(str(log),)).unchanged == 1


def test_a_folder_of_logs_becomes_a_project_when_its_user_works_there(
    user: Path, project: Path, mulligan_home: Path
) -> None:
    claude_log(user, "mine", str(project))
    take(mulligan_home)
    found = find_project(str(project), str(mulligan_home))
    assert is_imported(found)
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
    assert not is_imported(found)
