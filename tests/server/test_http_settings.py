"""Settings, excludes and sizes over HTTP; each answer is checked against the document."""

from __future__ import annotations

from pathlib import Path

from serving import Api


def test_rules_by_which_to_forget_are_kept_and_forget_nothing(opened: Api, project: Path) -> None:
    assert opened.get("/settings")["keep_last"] == 0
    found = opened.patch("/settings", {"keep_last": 1, "keep_days": 30, "keep_size": 1 << 30})
    assert (found["keep_last"], found["keep_days"], found["keep_size"]) == (1, 30, 1 << 30)
    assert found["origins"] == dict.fromkeys(("keep_last", "keep_days", "keep_size"), "set")
    taken = set()
    for number in range(3):
        (project / "a.txt").write_text(f"{number}\n")
        taken.add(opened.post("/checkpoints", {}, 201)["checkpoint"])
    assert taken <= {each["checkpoint"] for each in opened.get("/checkpoints")["checkpoints"]}


def test_what_was_set_here_is_taken_back_by_its_name(opened: Api) -> None:
    opened.patch("/settings", {"guard": False, "keep_last": 7})
    found = opened.patch("/settings", {"take_back": ["guard"]})
    assert found["guard"] is True
    assert found["keep_last"] == 7
    assert found["origins"] == {"keep_last": "set"}
    assert opened.patch("/settings", {"take_back": ["nothing"]}, 400) == "usage"
    assert opened.patch("/settings", {"keep_last": -1}, 400) == "usage"


def test_the_excludes_are_read_written_and_undone(opened: Api, project: Path) -> None:
    found = opened.get("/excludes")
    assert found["text"] == ""
    assert found["version"] is None
    assert all(each["left_out"] for each in found["defaults"])
    done = opened.put("/excludes", {"text": "!dist/\n", "version": None})
    assert done["operation"] is not None
    assert (project / ".mulliganignore").read_text() == "!dist/\n"
    now = opened.get("/excludes")
    assert not next(each for each in now["defaults"] if each["pattern"] == "dist/")["left_out"]
    refused = opened.put("/excludes", {"text": "other/\n", "version": None}, 409)
    assert refused == "would_lose_work"
    assert opened.post("/undo")["undoes"] == done["operation"]
    assert not (project / ".mulliganignore").exists()


def test_sizes_are_told_of_one_project_and_of_all(api: Api, opened: Api) -> None:
    one = opened.get("/sizes")
    assert one["objects"] > 0
    assert one["sizes"]["total"] >= one["sizes"]["contents"] >= one["stored"] > 0
    all_of_them = api.get("/sizes")
    assert one["sizes"]["project"] in [each["project"] for each in all_of_them["projects"]]
    assert all_of_them["free"] > 0


def test_the_projects_own_rules_are_listed_accepted_as_read_and_revoked(
    opened: Api, project: Path
) -> None:
    assert opened.get("/trust") == {"files": []}
    (project / ".mulligan.toml").write_text("[checkpoints]\nguard = false\n")
    (project / ".mulliganignore").write_text("data\n")
    settings, ignore = opened.get("/trust")["files"]
    assert (settings["path"], settings["weakens"]) == (".mulligan.toml", ["guard"])
    assert (ignore["weakens"], ignore["accepted"]) == (["data"], False)
    assert opened.get("/settings")["guard"] is True
    read = {each: settings[each] for each in ("path", "sha256")}
    assert opened.post("/trust", read)["files"][0]["accepted"] is True
    assert opened.post("/trust", read)["files"][0]["accepted"] is True
    assert opened.get("/settings")["guard"] is False
    (project / ".mulliganignore").write_text("*\n")
    read = {each: ignore[each] for each in ("path", "sha256")}
    assert opened.post("/trust", read, 409) == "would_lose_work"
    assert opened.post("/trust", read | {"path": "../x"}, 404) == "not_found"
    assert opened.post("/trust", read | {"path": "a.txt"}, 404) == "not_found"
    assert not any(each["accepted"] for each in opened.delete("/trust")["files"])
    assert opened.get("/settings")["guard"] is True
