"""The promises of AgentSmithy that the engine keeps: checkpoints, scope, restore."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from acts import fingerprint, picture, run, unprivileged, write

import mulligan
from mulligan import Workspace


def changed(workspace: Workspace) -> dict[str, str]:
    return {each.path: each.status for each in workspace.status().changed_files}


def paths_in(workspace: Workspace, checkpoint: str) -> set[str]:
    found = workspace.entries(checkpoint)
    return {each.path for each in found if each.kind != "directory" and not each.guarded}


def test_as_12_restore_deletes_what_is_newer_writes_the_target_and_removes_emptied_folders(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"kept": "1", "changed": "old", "gone": "g", "folder/inner/gone": "g"})
    target = workspace.checkpoint()
    before = picture(project)
    run(project, "rm -r gone folder; echo new > changed; mkdir -p a/b; echo x > a/b/c; echo y > d")
    workspace.checkpoint(include=["a/b/c"])
    done = workspace.restore(target.id)
    assert picture(project) == before
    assert set(done.restored) == {"changed", "gone", "folder/inner/gone"}
    assert set(done.deleted) == {"a/b/c", "d"}
    assert done.verified and done.skipped == ()
    assert workspace.status().changed_files == ()


def test_as_12_folders_that_a_restore_empties_below_default_excludes_are_removed(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"main.py": "1"})
    target = workspace.checkpoint()
    session = workspace.sessions.create(agent="a").id
    workspace.sessions.begin_turn(session, "write a report")
    paths = ["dist/report/deep/out.html", "build/theirs/by-tool"]
    edit = workspace.sessions.start_edit(session, paths)
    write(project, dict.fromkeys(paths, "made") | {"build/theirs/by-command": "ignored"})
    workspace.sessions.finalize_edit(edit)
    workspace.sessions.end_turn(session)
    full = picture(project)
    done = workspace.restore(target.id)
    assert set(done.deleted) == set(paths) and done.skipped == ()
    assert not (project / "dist").exists()
    assert os.listdir(project / "build/theirs") == ["by-command"]
    assert workspace.status().changed_files == ()
    workspace.undo()
    assert picture(project) == full
    workspace.redo()
    assert not (project / "dist").exists()
    assert (project / "build/theirs/by-command").read_text() == "ignored"
    assert workspace.maintenance.verify().clean


def test_as_12_what_cannot_be_written_is_skipped_with_a_reason_and_the_rest_is_restored(
    project: Path,
) -> None:
    write(project, {"locked/file": "old", "free": "old"})
    with mulligan.open(project) as workspace:
        target = workspace.checkpoint()
    write(project, {"locked/file": "new", "free": "new"})
    (project / "locked").chmod(0o555)
    done = unprivileged("-m", "mulligan", "-C", str(project), "--json", "restore", target.id)
    (project / "locked").chmod(0o755)
    if done.returncode == 99:
        pytest.skip("privileges cannot be dropped here")
    answer = json.loads(done.stdout)
    assert (project / "free").read_text() == "old"
    assert (project / "locked/file").read_text() == "new"
    assert "free" in answer["restored"] and "locked/file" not in answer["restored"]
    assert "locked/file" in {each["path"] for each in answer["skipped"]}
    assert all(each["reason"] for each in answer["skipped"])
    with mulligan.open(project) as workspace:
        assert workspace.maintenance.verify().clean


def test_as_13_files_that_were_never_in_a_checkpoint_scope_are_not_deleted(
    project: Path, workspace: Workspace
) -> None:
    write(project, {".gitignore": "*.secret\nlocal/\n", "main.py": "1"})
    target = workspace.checkpoint()
    write(project, {"a.secret": "mine", "local/notes": "mine", "node_modules/x.js": "theirs"})
    write(project, {"main.py": "2"})
    done = workspace.restore(target.id)
    assert (project / "main.py").read_text() == "1"
    assert (project / "a.secret").read_text() == "mine"
    assert (project / "local/notes").read_text() == "mine"
    assert (project / "node_modules/x.js").read_text() == "theirs"
    assert done.deleted == ()


def test_as_13_a_file_that_was_ignored_at_the_checkpoint_and_is_not_any_more_stays(
    project: Path, workspace: Workspace
) -> None:
    write(project, {".gitignore": "*.data\n", "kept.data": "precious"})
    target = workspace.checkpoint()
    (project / ".gitignore").unlink()
    workspace.checkpoint()
    done = workspace.restore(target.id)
    assert (project / "kept.data").read_text() == "precious"
    assert {skip.path for skip in done.skipped} == {"kept.data"}


@pytest.mark.parametrize("absolute", [False, True])
def test_as_14_a_forced_path_is_kept_although_it_is_ignored(
    project: Path, workspace: Workspace, absolute: bool
) -> None:
    write(project, {".gitignore": "build/\n*.log\n", "build/out.js": "1", "run.log": "l"})
    name = str(project / "build/out.js") if absolute else "build/out.js"
    taken = workspace.checkpoint(include=[name])
    assert paths_in(workspace, taken.id) == {".gitignore", "build/out.js"}
    assert workspace.read(taken.id, "build/out.js") == b"1"


def test_as_14_a_forced_path_that_is_deleted_is_deleted_in_the_next_checkpoint(
    project: Path, workspace: Workspace
) -> None:
    write(project, {".gitignore": "build/\n", "build/out.js": "1"})
    first = workspace.checkpoint(include=["build/out.js"])
    (project / "build/out.js").unlink()
    assert changed(workspace) == {"build/out.js": "deleted"}
    second = workspace.checkpoint()
    assert paths_in(workspace, second.id) == {".gitignore"}
    workspace.restore(first.id)
    assert (project / "build/out.js").read_text() == "1"


def test_as_14_a_forced_path_outside_of_the_project_is_refused(
    project: Path, workspace: Workspace
) -> None:
    with pytest.raises(mulligan.UsageError):
        workspace.checkpoint(include=["../elsewhere"])
    assert workspace.log() == []


def test_as_15_a_checkpoint_is_the_working_directory_minus_ignored_plus_forced(
    project: Path, workspace: Workspace
) -> None:
    write(
        project,
        {
            ".gitignore": "*.tmp\n",
            "a": "1",
            "deep/er/b": "2",
            "c.tmp": "3",
            "kept.tmp": "4",
            "__pycache__/m.pyc": "5",
        },
    )
    taken = workspace.checkpoint("all", include=["kept.tmp"])
    assert paths_in(workspace, taken.id) == {".gitignore", "a", "deep/er/b", "kept.tmp"}
    assert taken.files == 4
    assert taken.bytes == len("*.tmp\n") + 3


@pytest.mark.parametrize(
    ("rules", "path", "kept"),
    [
        ("*.log\n", "a.log", False),
        ("*.txt\n!keep.txt\n", "keep.txt", True),
        ("*.txt\n!keep.txt\n", "deep/keep.txt", True),
        ("/only-top\n", "only-top", False),
        ("/only-top\n", "deep/only-top", True),
        ("data/\n", "data/x", False),
        ("data/\n", "deep/data/x", False),
        ("data/\n", "deep/data", True),
        ("**/gen/*.c\n", "a/b/gen/x.c", False),
        ("**/gen/*.c\n", "a/b/gen/x.h", True),
        ("a/**/z\n", "a/b/c/z", False),
        ("a/**/z\n", "a/z", False),
        ("file[0-9]\n", "file7", False),
        ("file[0-9]\n", "filex", True),
        ("\\#literal\n", "#literal", False),
        ("# comment\n", "# comment", True),
    ],
)
def test_as_16_gitignore_is_honoured(
    project: Path, workspace: Workspace, rules: str, path: str, kept: bool
) -> None:
    write(project, {".gitignore": rules, path: "content"})
    assert (path in paths_in(workspace, workspace.checkpoint().id)) is kept


# What AgentSmithy leaves out by itself: directories, then files.
MADE = (
    *(".agentsmithy/x", "chroma_db/x", ".venv/x", "venv/x", "__pycache__/x", ".pytest_cache/x"),
    *(".mypy_cache/x", ".ruff_cache/x", ".tox/x", "htmlcov/x", "x.egg-info/y", "dist/x", "build/x"),
    *("node_modules/x", ".next/x", ".nuxt/x", ".cache/x", "target/x", "vendor/x", ".gradle/x"),
    *(".idea/x", ".vscode/x", "logs/x", "deep/node_modules/x"),
    *("a.pyc", ".coverage", "x.o", "x.so", "x.class", "a.swp", "a.log", ".DS_Store", "Thumbs.db"),
)


def test_as_16_what_can_be_made_again_is_left_out_by_default_and_never_touched(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"main": "1"} | dict.fromkeys(MADE, "made"))
    taken = workspace.checkpoint()
    assert paths_in(workspace, taken.id) == {"main"}
    write(project, {"main": "2"} | dict.fromkeys(MADE, "made again"))
    workspace.restore(taken.id)
    assert (project / "main").read_text() == "1"
    assert {(project / path).read_text() for path in MADE} == {"made again"}


def test_as_16_coverage_names_what_was_left_out_and_why(
    project: Path, workspace: Workspace
) -> None:
    write(project, {".gitignore": "local/\n", "local/a": "", "local/b": "", "build/c": ""})
    covered = workspace.checkpoint().coverage
    assert covered.complete
    excluded = {each.path: (each.files, each.reason) for each in covered.excluded}
    assert excluded == {
        b"local/": (2, "ignored by git's rules"),
        b"build/": (1, "excluded by default"),
    }


def test_as_17_create_by_tool_is_added_even_if_ignored(project: Path, workspace: Workspace) -> None:
    write(project, {".gitignore": "dist/\n"})
    workspace.checkpoint()
    write(project, {"dist/page.html": "<p>\n"})
    taken = workspace.checkpoint(include=["dist/page.html"])
    assert taken.changes == mulligan.Changes(added=1)


def test_as_17_create_by_command_is_added_and_ignored_files_are_not(
    project: Path, workspace: Workspace
) -> None:
    write(project, {".gitignore": "ignored*\n"})
    workspace.checkpoint()
    run(project, "echo a > new; echo b > ignored.txt; mkdir ignored-dir; echo c > ignored-dir/c")
    assert changed(workspace) == {"new": "added"}


def test_as_17_modify_is_shown_with_its_difference(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "1\n2\n"})
    workspace.checkpoint()
    run(project, "sed -i s/2/two/ a")
    (found,) = workspace.status().changed_files
    assert (found.path, found.status, found.additions, found.deletions) == ("a", "modified", 1, 1)
    assert found.diff == "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n"
    assert found.base_content == "1\n2\n"
    assert workspace.checkpoint().changes == mulligan.Changes(modified=1)


@pytest.mark.parametrize(
    "command", ["rm a d/b d/c", "rm -rf a d", "find . -type f -name '[abc]' -delete"]
)
def test_as_17_delete_by_command_is_shown_with_what_was_there(
    project: Path, workspace: Workspace, command: str
) -> None:
    write(project, {"a": "1\n2\n", "d/b": "b\n", "d/c": "c\n", "stays": ""})
    before = workspace.checkpoint()
    run(project, command)
    found = {each.path: each for each in workspace.status().changed_files}
    assert {path: each.status for path, each in found.items()} == dict.fromkeys(
        ("a", "d/b", "d/c"), "deleted"
    )
    assert found["a"].base_content == "1\n2\n" and found["a"].deletions == 2
    assert found["a"].diff is None
    assert workspace.checkpoint().changes == mulligan.Changes(deleted=3)
    workspace.restore(before.id)
    assert (project / "d/c").read_text() == "c\n"


def test_as_17_rm_of_everything_keeps_the_history(project: Path, workspace: Workspace) -> None:
    write(project, {".gitignore": "", "a": "1", "d/b": "2"})
    before = workspace.checkpoint()
    seen = picture(project)
    run(project, "find . -mindepth 1 -delete")
    workspace.restore(before.id)
    assert picture(project) == seen


def test_as_17_written_and_deleted_between_checkpoints_is_not_shown(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1"})
    workspace.checkpoint()
    run(project, "echo x > passing; rm passing; mkdir -p gone; echo y > gone/y; rm -r gone")
    assert changed(workspace) == {}
    assert workspace.checkpoint().changes == mulligan.Changes()


def test_as_17_a_folder_replaced_by_a_file_or_link_is_in_the_next_checkpoint(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"file/x": "1", "link/y": "2", "z": "3"})
    first = workspace.checkpoint()
    before = picture(project)
    run(project, "rm -r file link; echo now > file; ln -s z link")
    after = picture(project)
    second = workspace.checkpoint()
    assert paths_in(workspace, second.id) == {"file", "link", "z"}
    workspace.restore(first.id)
    assert picture(project) == before
    workspace.restore(second.id)
    assert picture(project) == after


def test_as_17_a_file_replaced_by_a_folder_is_in_the_next_checkpoint(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"x": "1", "y": "2"})
    first = workspace.checkpoint()
    before = picture(project)
    run(project, "rm x y; mkdir x; echo in > x/in; mkdir y")
    after = picture(project)
    second = workspace.checkpoint()
    workspace.restore(first.id)
    assert picture(project) == before
    workspace.restore(second.id)
    assert picture(project) == after


@pytest.mark.parametrize("start", ["", "1", "1234567"])
def test_as_17_a_file_that_grows_from_almost_nothing_is_kept(
    project: Path, workspace: Workspace, start: str
) -> None:
    write(project, {"f": start})
    workspace.checkpoint()
    write(project, {"f": "line\n" * 1000})
    assert workspace.read(workspace.checkpoint().id, "f") == b"line\n" * 1000


def test_as_20_projects_are_isolated_and_nothing_is_written_into_them(
    tmp_path: Path, mulligan_home: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write(one, {"a": "1", "sub/b": "2"})
    write(two, {"a": "other"})
    before = fingerprint(one), fingerprint(two)
    with mulligan.open(one) as first, mulligan.open(two) as second:
        taken = first.checkpoint("in one")
        assert second.log() == []
        other = second.checkpoint("in two")
        with pytest.raises(mulligan.NotFound):
            second.find(taken.id)
        with pytest.raises(mulligan.NotFound):
            first.restore(other.id)
        first.status()
        second.maintenance.verify()
        second.maintenance.gc()
        assert first.read(taken.id, "a") == b"1"
    assert (fingerprint(one), fingerprint(two)) == before
    assert len(list(mulligan_home.glob("projects/*/journal.sqlite"))) == 2


def test_as_20_old_checkpoints_stay_after_restores(project: Path, workspace: Workspace) -> None:
    ids = []
    for number in range(6):
        write(project, {"f": f"{number}\n" * 40})
        ids.append(workspace.checkpoint(str(number)).id)
    workspace.restore(ids[2])
    workspace.undo()
    workspace.restore(ids[0])
    assert set(ids) <= {each.id for each in workspace.log()}
    for number, id in enumerate(ids):
        assert workspace.read(id, "f") == f"{number}\n".encode() * 40


def test_as_23_checkpoint_and_restore_cost_no_more_than_a_few_copies_of_the_tree(
    project: Path, workspace: Workspace, tmp_path: Path
) -> None:
    for number in range(480):
        write(project, {f"d{number % 24}/f{number}": os.urandom(64).hex() * 40})
    copies = []
    for attempt in range(3):
        started = time.perf_counter()
        shutil.copytree(project, tmp_path / f"copy{attempt}")
        copies.append(time.perf_counter() - started)
    copy = min(copies)
    first = timed(workspace.checkpoint)
    again = min(timed(workspace.checkpoint) for _ in range(3))
    target = workspace.log(1)[0].id
    for number in range(20):
        write(project, {f"d{number}/f{number}": "changed"})
    restored = timed(lambda: workspace.restore(target))
    ratios = {"first": first / copy, "again": again / copy, "restore": restored / copy}
    assert ratios["first"] < 30 and ratios["again"] < 10 and ratios["restore"] < 60, ratios


def timed(action: object) -> float:
    started = time.perf_counter()
    action()  # type: ignore[operator]
    return time.perf_counter() - started
