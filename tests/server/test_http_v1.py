"""Every request of /api/v1, over a real socket; each answer is checked against the document."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from serving import Api, Server

from mulligan.journal.db import Database
from mulligan.journal.migrations import JOURNAL
from mulligan.server.openapi import endpoints
from mulligan.workspace.project.location import project_of_log, register
from mulligan.workspace.workspace import open_workspace


def job(api: Api, id: str) -> Any:
    """A job when it has ended."""
    while True:
        found = api.get(f"/jobs/{id}")
        if found["state"] != "running":
            return found
        time.sleep(0.02)


def begun(api: Api) -> str:
    return str(api.post("/sessions", {"agent": "ada", "title": "Work"}, 201)["session"])


def worked(api: Api, project: Path) -> str:
    """A session with one turn, which changed a line and made a file."""
    session = begun(api)
    api.post(f"/sessions/{session}/turns", {"message": "Change it"}, 201)
    (project / "a.txt").write_text("one\nTWO\nthree\n")
    (project / "new.txt").write_text("new\n")
    api.post(f"/sessions/{session}/turns/end")
    return session


def test_the_server_says_that_it_is_there(api: Api, server: Server) -> None:
    found = api.get("/health")
    assert found["ok"]
    assert found["pid"] == server.process.pid
    assert found["home"] == str(server.home)


def test_projects_are_opened_and_listed(api: Api, opened: Api, project: Path) -> None:
    found = api.get("/projects")["projects"]
    mine = next(each for each in found if each["root"] == str(project))
    assert mine["name"] == project.name
    assert mine["exists"] and not mine["imported"] and mine["problem"] is None
    one = opened.get()
    assert one["project"] == mine["project"]
    assert one["checkpoints"] >= 1
    again = api.post("/projects", {"path": str(project / "sub")})
    assert again["project"] == mine["project"]


def test_home_and_missing_folders_are_refused(api: Api, project: Path) -> None:
    assert api.post("/projects", {"path": "/"}, 400) == "refused_root"
    assert api.post("/projects", {"path": str(project / "nothing")}, 404) == "not_found"
    assert api.get("/projects/0123456789abcdef", 404) == "not_found"


def test_a_project_that_only_logs_tell_of_stays_so_until_it_is_opened(
    api: Api, server: Server, tmp_path: Path
) -> None:
    known = project_of_log(str(tmp_path), str(server.home))
    register(known, imported=True)
    Database(known.path("journal.sqlite"), JOURNAL).close()
    below = api.at(f"/projects/{known.id}")
    assert below.get("/sessions")["sessions"] == []
    assert below.get()["imported"] is True
    assert below.get()["checkpoints"] == 0
    assert api.post("/projects", {"path": str(tmp_path)})["imported"] is False
    assert below.post("/checkpoints", {}, 201)["files"] == 0


def test_status_and_diff_show_what_changed(opened: Api, project: Path) -> None:
    (project / "a.txt").write_text("one\n2\nthree\n")
    assert [each["path"] for each in opened.get("/status")["changed_files"]] == ["a.txt"]
    (only,) = opened.get("/diff")["files"]
    assert "-two\n+2\n" in only["patch"]
    assert only["patch"].startswith("diff --git")
    (short,) = opened.get("/diff", stat="true", path=["a.txt"])["files"]
    assert (short["additions"], short["deletions"], short["patch"]) == (1, 1, "")
    assert opened.get("/diff", path=["sub"])["files"] == []
    first = opened.get("/checkpoints")["checkpoints"][0]["checkpoint"]
    second = opened.post("/checkpoints", {}, 201)["checkpoint"]
    (between,) = opened.get("/diff", **{"from": first, "to": second})["files"]
    assert between["path"] == "a.txt"


def test_sessions_come_in_pages_by_cursor_and_by_offset(opened: Api) -> None:
    made = [begun(opened) for _ in range(5)]
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = opened.get("/sessions", **query)
        seen += [each["session"] for each in page["sessions"]]
        if not page["has_more"]:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == made[::-1]
    second = opened.get("/sessions", limit=2, offset=2)
    assert [each["session"] for each in second["sessions"]] == seen[2:4]
    assert opened.get("/sessions", agent="nobody")["sessions"] == []
    assert opened.get("/sessions", 400, cursor="rubbish") == "usage"
    assert opened.get("/sessions", 400, limit=0) == "usage"


def test_a_session_is_changed_and_dropped(opened: Api) -> None:
    session = begun(opened)
    found = opened.patch(f"/sessions/{session}", {"title": "Other", "status": "running"})
    assert (found["title"], found["status"]) == ("Other", "running")
    assert opened.get(f"/sessions/{session}")["title"] == "Other"
    assert opened.patch(f"/sessions/{session}", {"status": "odd"}, 400) == "usage"
    assert opened.patch(f"/sessions/{session}", {"color": "red"}, 400) == "usage"
    assert opened.delete(f"/sessions/{session}")["session"] == session
    assert opened.get(f"/sessions/{session}", 404) == "not_found"


def test_a_session_keeps_the_id_that_its_agent_gave_it(opened: Api) -> None:
    made = opened.post("/sessions", {"id": "agent-7", "agent": "bob"}, 201)
    assert made["session"] == "agent-7"
    assert opened.post("/sessions", {"id": "agent-7"}, 400) == "usage"


def test_entries_are_appended_and_read_in_pages(opened: Api) -> None:
    session = begun(opened)
    new = [{"type": "user_input", "content": f"word {n}"} for n in range(7)]
    made = opened.post(f"/sessions/{session}/entries", {"entries": new}, 201)["entries"]
    assert [each["content"] for each in made] == [each["content"] for each in new]
    seen: list[str] = []
    since = 0
    while True:
        page = opened.get(f"/sessions/{session}/entries", since=since, limit=3)
        seen += [each["entry"] for each in page["entries"]]
        if not page["has_more"]:
            break
        since = page["next_seq"]
    assert seen == [each["entry"] for each in made]
    assert opened.get(f"/sessions/{session}/entries", type="tool_call")["entries"] == []
    assert opened.get(f"/sessions/{session}/entries", 400, type="odd") == "usage"


def test_the_conversation_is_read_from_both_ends(opened: Api) -> None:
    session = begun(opened)
    new = [{"type": "user_input", "content": str(n)} for n in range(7)]
    opened.post(f"/sessions/{session}/entries", {"entries": new}, 201)
    backwards: list[str] = []
    query: dict[str, Any] = {"limit": 3}
    while True:
        page = opened.get(f"/sessions/{session}/conversation", **query)
        backwards = [each["content"] for each in page["entries"]] + backwards
        if not page["has_more"]:
            break
        query["before"] = page["next_before"]
    assert backwards == [str(n) for n in range(7)]
    first = opened.get(f"/sessions/{session}/conversation", limit=2, newest="false")
    assert [each["content"] for each in first["entries"]] == ["0", "1"]
    assert first["has_more"] and first["next_before"] is None
    last = first["entries"][-1]["seq"]
    rest = opened.get(f"/sessions/{session}/conversation", since=last, newest="false")
    assert [each["content"] for each in rest["entries"]] == ["2", "3", "4", "5", "6"]


def test_a_call_is_ended_once(opened: Api) -> None:
    session = begun(opened)
    data = {"name": "shell", "input": {}, "status": "running", "call": "c1"}
    entry = {"type": "tool_call", "data": data}
    opened.post(f"/sessions/{session}/entries", {"entries": [entry]}, 201)
    ended = {"status": "success", "output": "done", "duration": 12.5}
    assert opened.post(f"/sessions/{session}/calls/c1", ended) == {"changed": True}
    assert opened.post(f"/sessions/{session}/calls/c1", ended) == {"changed": False}


def test_an_entry_with_an_id_that_is_there_is_refused(opened: Api) -> None:
    session = begun(opened)
    entry = {"type": "user_input", "id": "mine"}
    opened.post(f"/sessions/{session}/entries", {"entries": [entry]}, 201)
    assert opened.post(f"/sessions/{session}/entries", {"entries": [entry]}, 400) == "usage"
    elsewhere = entry | {"id": "other", "parent": "nowhere"}
    assert opened.post(f"/sessions/{session}/entries", {"entries": [elsewhere]}, 404) == "not_found"
    undated = entry | {"id": "third", "created_at": "yesterday"}
    assert opened.post(f"/sessions/{session}/entries", {"entries": [undated]}, 400) == "usage"


def test_branches_labels_forks_and_going_back(opened: Api, project: Path) -> None:
    session = worked(opened, project)
    at = f"/sessions/{session}"
    opened.post(f"{at}/turns", {"message": "Change it again"}, 201)
    (project / "newer.txt").write_text("newer\n")
    opened.post(f"{at}/turns/end")
    said = [e for e in opened.get(f"{at}/conversation")["entries"] if e["type"] == "user_input"]
    first = said[1]["entry"]
    assert opened.put(f"{at}/entries/{first}/label", {"label": "start"})["label"] == "start"
    plan = opened.post(f"{at}/goto", {"entry": "start", "preview": True})
    assert plan["preview"]
    assert (project / "newer.txt").exists()
    went = opened.post(f"{at}/goto", {"entry": "start"})
    assert went["text"] == "Change it again"
    assert (project / "new.txt").exists() and not (project / "newer.txt").exists()
    assert opened.put(f"{at}/entries/{first}/label", {"label": None})["label"] is None
    only = said[0]["entry"]
    went = opened.post(f"{at}/goto", {"entry": only})
    assert went["new_leaf"] is None and went["text"] == said[0]["content"]
    assert opened.get(at)["leaf"] is None and not (project / "new.txt").exists()
    assert opened.post("/undo", {"expect": went["operation"]})["undoes"] == went["operation"]
    assert (project / "new.txt").exists()
    forked = opened.post(f"{at}/fork", {"title": "Another way"}, 201)
    assert forked["forked_from"] is not None
    opened.post(
        f"{at}/entries",
        {"entries": [{"type": "user_input", "content": "again", "parent": None}]},
        201,
    )
    tree = opened.get(f"{at}/tree")
    (active,) = [each for each in tree["branches"] if each["active"]]
    assert len(tree["branches"]) > 1
    assert tree["leaf"] == active["last"]["entry"]
    assert active["first"]["content"] == "again"


def test_one_project_says_what_waits_though_nobody_has_opened_it(
    api: Api, server: Server, project: Path, tmp_path: Path
) -> None:
    with open_workspace(project, home=str(server.home)) as workspace:
        session = workspace.sessions.create(agent="robot").id
        workspace.sessions.begin_turn(session, "go")
        (project / "new.txt").write_text("new\n")
        workspace.sessions.end_turn(session)
    with open_workspace(tmp_path, home=str(server.home)) as workspace:
        workspace.checkpoint()
    rows = {each["root"]: each for each in api.get("/projects")["projects"]}
    assert "pending" not in rows[str(project)]
    assert rows[str(tmp_path)]["pending"] == {}
    one = api.get(f"/projects/{rows[str(project)]['project']}")
    assert one["pending"][session]["files"] == 1


def test_f_pi_2_the_tree_tells_that_files_were_skipped(opened: Api, project: Path) -> None:
    at = f"/sessions/{worked(opened, project)}"
    first = opened.get(f"{at}/entries", type="step_snapshot")["entries"][0]["entry"]
    assert opened.get(f"{at}/tree")["files_skipped"] is False
    opened.post(f"{at}/entries", {"entries": [{"type": "assistant_output", "content": "x"}]}, 201)
    opened.post(f"{at}/goto", {"entry": first, "skip_files": True})
    assert opened.get(f"{at}/tree")["files_skipped"] is True


def test_f_ya_1_all_sessions_are_cleared_over_http_when_asked_twice(opened: Api) -> None:
    for _ in range(2):
        opened.post("/sessions", {}, 201)
    told = opened.post("/sessions/clear")
    assert (told["cleared"], told["sessions"]) == (False, 2)
    assert opened.post("/sessions/clear", {"confirm": "no"}, 409) == "would_lose_work"
    done = opened.post("/sessions/clear", {"confirm": told["confirm"]})
    assert done == {"cleared": True, "sessions": 2, "entries": 0, "confirm": None}
    assert opened.get("/sessions")["sessions"] == []


def test_what_a_turn_modified_and_one_file_of_it(opened: Api, project: Path) -> None:
    session = worked(opened, project)
    found = opened.get(f"/sessions/{session}/modified")["files"]
    assert {each["path"]: each["status"] for each in found} == {
        "a.txt": "modified", "new.txt": "added",
    }  # fmt: skip
    one = opened.get(f"/sessions/{session}/file-diff", path="a.txt")
    assert (one["old_content"], one["new_content"]) == ("one\ntwo\nthree\n", "one\nTWO\nthree\n")
    assert opened.get(f"/sessions/{session}/file-diff", path="nowhere.txt") is None


def test_compacting_hides_what_came_before(opened: Api) -> None:
    session = begun(opened)
    new = [{"type": "user_input", "content": str(n)} for n in range(4)]
    opened.post(f"/sessions/{session}/entries", {"entries": new}, 201)
    done = opened.post(f"/sessions/{session}/compact", {"summary": "Four things"})
    assert done["compacted"] == 4
    left = opened.get(f"/sessions/{session}/entries")["entries"]
    assert [each["type"] for each in left] == ["compact_marker"]
    everything = opened.get(f"/sessions/{session}/entries", include_compacted="true")["entries"]
    assert len(everything) == 5


def test_hunks_are_kept_and_discarded_one_by_one(opened: Api, project: Path) -> None:
    session = worked(opened, project)
    found = opened.get("/pending")
    assert found["total"] == 2
    assert found["position"]["current"] == 1
    assert [each["path"] for each in found["files"]] == ["a.txt", "new.txt"]
    listed = opened.get("/sessions")["sessions"]
    assert {each["session"]: each["pending"] for each in listed}[session] == {
        "additions": 2, "deletions": 1, "files": 2,
    }  # fmt: skip
    first, second = (each["hunks"][0]["hunk"] for each in found["files"])
    stepped = opened.get("/position", current=first, step=1)
    assert (stepped["current"], stepped["hunk"]) == (2, second)
    plan = opened.post("/discard", {"hunks": [second], "preview": True})
    assert plan["hunks"] == [second]
    assert (project / "new.txt").exists()
    assert opened.post("/keep", {"hunks": [first]})["hunks"] == [first]
    assert opened.post("/discard", {"paths": ["new.txt"]})["hunks"] == [second]
    assert not (project / "new.txt").exists()
    assert opened.get("/pending")["total"] == 0
    (turn,) = opened.get(f"/sessions/{session}/turns")["turns"]
    assert {each["path"]: each["status"] for each in turn["files"]} == {
        "a.txt": "kept", "new.txt": "undone",
    }  # fmt: skip


def test_text_that_is_not_utf_8_is_given_with_marks(opened: Api, project: Path) -> None:
    (project / "latin").write_bytes(b"caf\xe9\n")
    session = begun(opened)
    opened.post(f"/sessions/{session}/turns", {"message": "do it"}, 201)
    (project / "latin").write_bytes(b"caf\xe8\n")
    opened.post(f"/sessions/{session}/turns/end", {})
    (file,) = opened.get("/pending")["files"]
    (hunk,) = file["hunks"]
    assert (file["is_binary"], hunk["new_lines"]) == (False, ["caf\ufffd\n"])
    one = opened.get(f"/sessions/{session}/file-diff", path="latin")
    assert (one["old_content"], one["unified"].count("\ufffd")) == ("caf\ufffd\n", 2)
    (change,) = opened.get("/diff", **{"from": "@"})["files"]
    assert "\n-caf\ufffd\n+caf\ufffd\n" in change["patch"]
    opened.post("/discard", {"hunks": [hunk["hunk"]]})
    assert (project / "latin").read_bytes() == b"caf\xe9\n"


@pytest.mark.parametrize("verb", ["keep", "discard"])
def test_everything_must_be_said_and_is_not_meant_by_leaving_out(
    opened: Api, project: Path, verb: str
) -> None:
    worked(opened, project)
    assert opened.post(f"/{verb}", {}, 400) == "usage"
    assert opened.post(f"/{verb}", {"all": True, "paths": ["a.txt"]}, 400) == "usage"
    assert opened.get("/pending")["total"] == 2
    assert len(opened.post(f"/{verb}", {"all": True})["hunks"]) == 2
    assert opened.get("/pending")["total"] == 0


def test_a_round_is_approved_or_reset(opened: Api, project: Path) -> None:
    session = worked(opened, project)
    at = f"/sessions/{session}"
    assert opened.get(f"{at}/round")["has_unapproved"]
    plan = opened.post(f"{at}/reset", {"preview": True})
    assert plan["files"]["preview"]
    assert opened.post(f"{at}/approve", {"message": "fine"})["new_round"] == "session_2"
    opened.post(f"{at}/turns", {"message": "more"}, 201)
    (project / "a.txt").write_text("spoiled\n")
    opened.post(f"{at}/turns/end")
    done = opened.post(f"{at}/reset")
    assert done["new_round"] == "session_3"
    assert (project / "a.txt").read_text() == "one\nTWO\nthree\n"
    rounds = opened.get(f"{at}/rounds")["rounds"]
    assert [each["status"] for each in rounds] == ["merged", "abandoned", "active"]


def test_undo_and_redo_and_the_log_of_operations(opened: Api, project: Path) -> None:
    before = opened.get("/checkpoints")["checkpoints"][0]["checkpoint"]
    (project / "a.txt").write_text("changed\n")
    opened.post("/checkpoints", {"message": "second"}, 201)
    opened.post(f"/checkpoints/{before}/restore")
    assert (project / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert opened.post("/undo", {"preview": True})["preview"]
    assert opened.post("/undo")["kind"] == "undo"
    assert (project / "a.txt").read_text() == "changed\n"
    assert opened.post("/redo")["kind"] == "redo"
    assert (project / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert opened.post("/redo", status=404) == "nothing_to_undo"
    redone, undone, restored = (
        each["operation"] for each in opened.get("/operations")["operations"][:3]
    )
    assert opened.post("/undo", {"expect": restored}, status=409) == "would_lose_work"
    assert opened.post("/redo", {"expect": undone}, status=404) == "nothing_to_undo"
    assert opened.post("/undo", {"expect": redone, "preview": True})["undoes"] == redone
    seen: list[int] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = opened.get("/operations", **query)
        seen += [each["operation"] for each in page["operations"]]
        if not page["has_more"]:
            break
        query["before"] = page["next_before"]
    assert seen == sorted(seen, reverse=True)
    assert len(seen) >= 5


def test_checkpoints_are_listed_in_pages_and_dropped(opened: Api) -> None:
    for n in range(4):
        opened.post("/checkpoints", {"message": str(n)}, 201)
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = opened.get("/checkpoints", **query)
        seen += [each["checkpoint"] for each in page["checkpoints"]]
        if not page["has_more"]:
            break
        query["before"] = page["next_before"]
    assert len(seen) == len(set(seen)) >= 5
    assert opened.get(f"/checkpoints/{seen[0][:8]}")["message"] == "3"
    assert opened.get("/checkpoints/@")["checkpoint"] == seen[0]
    assert opened.delete(f"/checkpoints/{seen[2]}")["forgotten"] == [seen[2]]
    assert opened.get(f"/checkpoints/{seen[2]}", 404) == "not_found"
    assert opened.delete(f"/checkpoints/{seen[0]}")["forgotten"] == [seen[0]]
    assert opened.get(f"/checkpoints/{seen[0]}", 404) == "not_found"


def test_a_restore_of_some_paths_is_planned_and_done(opened: Api, project: Path) -> None:
    (project / "a.txt").write_text("x\n")
    (project / "sub" / "b.bin").unlink()
    opened.post("/checkpoints", {}, 201)
    body: dict[str, Any] = {"paths": ["sub"]}
    plan = opened.post("/checkpoints/@1/restore", body | {"preview": True})
    assert plan["preview"] and plan["restored"] == ["sub/b.bin"]
    opened.post("/checkpoints/@1/restore", body)
    assert (project / "sub" / "b.bin").exists()
    assert (project / "a.txt").read_text() == "x\n"
    both = {"keep_dirty": True, "force": True}
    assert opened.post("/checkpoints/@1/restore", both, 400) == "usage"


def test_the_bytes_of_files_come_exactly_and_in_parts(opened: Api, project: Path) -> None:
    every = bytes(range(256))
    at = f"{opened.base}/checkpoints/@/file"
    whole = opened.client.get(at, params={"path": "sub/b.bin"})
    assert whole.content == every
    assert whole.headers["content-type"] == "application/octet-stream"
    for wanted, part in {
        "bytes=10-19": every[10:20], "bytes=250-": every[250:], "bytes=-6": every[-6:],
        "bytes=0-0": every[:1], "bytes=200-9999": every[200:],
    }.items():  # fmt: skip
        found = opened.client.get(at, params={"path": "sub/b.bin"}, headers={"range": wanted})
        assert (found.status_code, found.content) == (206, part), wanted
        start = every.index(part)
        assert found.headers["content-range"] == f"bytes {start}-{start + len(part) - 1}/256"
    for odd in ("bytes=5-2", "bytes=1-2,4-5", "lines=1-2", "bytes=-"):
        found = opened.client.get(at, params={"path": "sub/b.bin"}, headers={"range": odd})
        assert (found.status_code, found.content) == (200, every), odd
    for beyond in ("bytes=256-", "bytes=999-1000", "bytes=-0"):
        found = opened.client.get(at, params={"path": "sub/b.bin"}, headers={"range": beyond})
        assert found.status_code == 416, beyond
    tag = whole.headers["etag"]
    files = {each["path"]: each for each in opened.get("/checkpoints/@/files")["files"]}
    assert tag == f'"{files["sub/b.bin"]["id"]}"'
    known = opened.client.get(
        at, params={"path": "sub/b.bin"}, headers={"if-none-match": f'"x", {tag}'}
    )
    assert (known.status_code, known.content) == (304, b"")
    stale = {"range": "bytes=0-3", "if-range": '"other"'}
    assert opened.client.get(at, params={"path": "sub/b.bin"}, headers=stale).content == every
    text = opened.client.get(at, params={"path": "a.txt"})
    assert text.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_page_in_a_project_is_never_served_as_a_page(opened: Api, project: Path) -> None:
    (project / "evil.html").write_text("<script>alert(1)</script>")
    found = opened.client.get(f"{opened.base}/file", params={"path": "evil.html"})
    assert found.content == b"<script>alert(1)</script>"
    assert found.headers["content-type"] == "text/plain; charset=utf-8"
    assert found.headers["x-content-type-options"] == "nosniff"


def test_names_that_are_not_text_go_both_ways(opened: Api, project: Path) -> None:
    name = b"caf\xe9 + 100%.txt"
    Path(os.fsdecode(os.fsencode(project) + b"/" + name)).write_bytes(b"odd")
    opened.post("/checkpoints", {}, 201)
    listed = [each["path"] for each in opened.get("/checkpoints/@/files")["files"]]
    assert os.fsdecode(name) in listed
    quoted = "".join(f"%{byte:02x}" for byte in name)
    found = opened.client.get(f"{opened.base}/checkpoints/@/file?path={quoted}")
    assert found.content == b"odd"
    sent = json.dumps({"paths": [os.fsdecode(name)]})
    done = opened.ask("POST", "/checkpoints/@/restore", content=sent)
    assert done.status == 200
    halves = opened.ask("POST", "/checkpoints", content='{"include": ["\\ud800"]}')
    assert halves.error == "usage"


def test_upkeep_is_done_in_the_background(api: Api, opened: Api) -> None:
    for n in range(3):
        opened.post("/checkpoints", {"message": str(n)}, 201)
    done = job(api, opened.post("/verify", {}, 202)["job"])
    assert done["state"] == "done" and done["result"]["clean"], done
    done = job(api, opened.post("/forget", {"keep_last": 1}, 202)["job"])
    assert len(done["result"]["forgotten"]) >= 3
    done = job(api, opened.post("/gc", {"dry_run": True}, 202)["job"])
    assert done["result"]["dry_run"] is True
    failed = job(api, opened.post("/forget", {}, 202)["job"])
    assert failed["state"] == "failed" and failed["error"]["code"] == "usage"
    assert [each for each in api.get("/jobs")["jobs"] if each["job"] == failed["job"]]
    assert api.get("/jobs/nothing", 404) == "not_found"
    assert api.delete("/jobs/nothing", 404) == "not_found"
    assert opened.get("/doctor")["findings"]


def test_a_job_is_ended_when_asked(api: Api, opened: Api, project: Path) -> None:
    for n in range(3000):
        (project / f"{n}.txt").write_text(f"{n}\n" * 20)
    opened.post("/checkpoints", {}, 201)
    jobs = [opened.post("/verify", {}, 202)["job"] for _ in range(3)]
    for id in jobs:
        api.delete(f"/jobs/{id}")
    assert {job(api, id)["state"] for id in jobs} <= {"cancelled", "done"}
    assert job(api, jobs[-1])["state"] == "cancelled"
    assert job(api, opened.post("/verify", {}, 202)["job"])["result"]["clean"]


def test_logs_of_agents_are_taken_in(api: Api, opened: Api) -> None:
    done = job(api, api.post("/import", {"agent": "claude-code"}, 202)["job"])
    assert done["state"] == "done"
    assert done["result"]["agent"] == "claude-code"
    assert api.post("/import", {"agent": "nobody"}, 404) == "not_found"


def test_settings_are_read_and_set_outside_of_the_project(opened: Api, project: Path) -> None:
    found = opened.get("/settings")
    assert found["guard"] is True and found["max_file_size"] > 0
    assert opened.patch("/settings", {"guard": 1}, 400) == "usage"
    assert opened.patch("/settings", {"guard": False, "strict": True})["guard"] is False
    set_here = {"guard": "set", "strict": "set"}
    now = opened.get("/settings")
    assert now == found | {"guard": False, "strict": True, "origins": set_here}
    (project / ".mulligan.toml").write_text("[checkpoints]\nguard = true\n")
    assert opened.patch("/settings", {"strict": False})["guard"] is True
    assert sorted(each.name for each in project.iterdir()) == [".mulligan.toml", "a.txt", "sub"]


def test_search_finds_in_one_project_and_in_all(api: Api, opened: Api, project: Path) -> None:
    session = begun(opened)
    word = f"quux{project.name.replace('-', '')}"
    new = [{"type": "user_input", "content": f"the {word} of it"}]
    opened.post(f"/sessions/{session}/entries", {"entries": new}, 201)
    id = opened.base.rpartition("/")[2]
    for query in ({}, {"project": id}, {"project": id, "session": session}):
        (hit,) = api.get("/search", q=word, **query)["hits"]
        assert hit["session"] == session
        assert f"<mark>{word}</mark>" in hit["snippet"]
    assert api.get("/search", q=word[:6], as_you_type="true", project=id)["hits"]
    assert api.get("/search", q=word, type="tool_call")["hits"] == []
    assert api.get("/search", q=word, before="2020-01-01T00:00:00Z")["hits"] == []
    assert api.get("/search", q=word, agent="ada")["hits"]
    assert api.get("/search", 400, q='"', raw="true") == "usage"
    assert api.get("/search", 400, q="x", session=session) == "usage"
    assert api.get("/search", 404, q="x", project="0123456789abcdef") == "not_found"


def test_calls_are_counted(api: Api, opened: Api) -> None:
    session = begun(opened)
    data = {"name": "shell", "input": {}, "status": "success", "duration": 5, "call": "1"}
    new = [{"type": "tool_call", "data": data}]
    opened.post(f"/sessions/{session}/entries", {"entries": new}, 201)
    id = opened.base.rpartition("/")[2]
    (row,) = api.get("/stats", project=id)["rows"]
    assert (row["tool"], row["calls"], row["success"]) == ("shell", 1, 1)
    both = api.get("/stats", by=["tool", "agent"])
    assert both["by"] == ["tool", "agent"]
    assert api.get("/stats", 400, by="weather") == "usage"


def test_what_a_hook_tells_is_recorded(api: Api, opened: Api, project: Path) -> None:
    told = {"agent": "claude-code", "session": "c0ffee", "directory": str(project)}
    assert api.post("/happened", told | {"kind": "prompt", "text": "Do it"}) == {
        "to_agent": None, "to_user": None,
    }  # fmt: skip
    (project / "a.txt").write_text("done\n")
    api.post("/happened", told | {"kind": "turn_ends"})
    (session,) = opened.get("/sessions")["sessions"]
    assert (session["agent"], session["pending"]["files"]) == ("claude-code", 1)
    assert opened.get(f"/sessions/{session['session']}/conversation")["entries"][0]["content"] == (
        "Do it"
    )
    assert api.post("/happened", told | {"kind": "weather"}, 400) == "usage"
    nowhere = told | {"kind": "prompt", "directory": str(project / "none")}
    assert api.post("/happened", nowhere, 404) == "not_found"
    assert api.post("/happened", nowhere | {"directory": "/etc"}, 400) == "refused_root"
    assert api.post("/happened", nowhere | {"directory": "/a\0b"}, 400) == "usage"


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        ("POST", "/sessions", b"{", "not JSON"),
        ("POST", "/sessions", b"[]", "must be an object"),
        ("POST", "/sessions", b'{"title": 5}', "title must be text"),
        ("POST", "/sessions", b'{"titel": ""}', "no field 'titel'"),
        ("POST", "/sessions", b'{"title": NaN}', "not JSON"),
        ("POST", "/sessions", b"[" * 5000, "nested too deeply"),
        ("POST", "/sessions", b'{"a":' * 500 + b"1" + b"}" * 500, "nested too deeply"),
        ("POST", "/undo", b'{"force": "yes"}', "true or false"),
        ("POST", "/keep", b'{"hunks": "all"}', "must be a list"),
        ("POST", "/keep", b'{"turn": 1e400}', "whole number"),
        ("POST", "/keep", b'{"turn": 99999999999999999999}', "between"),
        ("POST", "/sessions/@/turns", b"{}", "message is missing"),
        ("GET", "/sessions?limit=many", None, "whole number"),
        ("GET", "/sessions?limit=5&limit=6", None, "more than once"),
        ("GET", "/sessions?colour=red", None, "no parameter 'colour'"),
        ("GET", "/diff?stat=perhaps", None, "true or false"),
        ("GET", "/file", None, "path is missing"),
        ("POST", "/sessions", b'{"title": "\\u0000"}', "NUL"),
    ],
)
def test_a_request_that_makes_no_sense_is_told_why(
    opened: Api, method: str, path: str, body: bytes | None, says: str
) -> None:
    answer = opened.ask(method, path, content=body)
    assert (answer.status, answer.error) == (400, "usage")
    assert says in answer.json["error"]["message"]


def test_other_addresses_and_methods_are_told_in_the_same_shape(api: Api) -> None:
    assert api.ask("GET", "/nothing").error == "not_found"
    assert api.ask("DELETE", "/health").error == "method_not_allowed"
    assert api.ask("GET", "/projects/x/nothing/at/all").error == "not_found"


def test_two_projects_are_served_beside_each_other(api: Api, opened: Api, tmp_path: Path) -> None:
    (tmp_path / "z.txt").write_text("z")
    other = api.at(f"/projects/{api.post('/projects', {'path': str(tmp_path)})['project']}")
    session = begun(other)
    assert opened.get(f"/sessions/{session}", 404) == "not_found"
    assert other.get(f"/sessions/{session}")["project"] == str(tmp_path)


def test_every_endpoint_is_asked_for_in_these_tests() -> None:
    """So that none is added without a test: its last word is in these files."""
    here = Path(__file__).parent
    text = "".join(path.read_text() for path in here.glob("test_*.py"))
    ours = [endpoint.path for endpoint in endpoints() if endpoint.path.startswith("/api/v1/")]
    ends = {path.rpartition("/")[2] for path in ours}
    missing = {end for end in ends if not end.startswith("{") and f"/{end}" not in text}
    assert not missing
