"""The promises of pi's rollback that the engine keeps: plans, dirty files, the object store."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path

import pytest
from acts import fingerprint, picture, run, store_size, write

import mulligan
from mulligan import Workspace


def objects(home: Path) -> set[bytes]:
    (index,) = home.glob("projects/*/objects/index.sqlite")
    with sqlite3.connect(index) as db:
        return {row[0] for row in db.execute("SELECT id FROM objects")}


def test_pi_9_preview_returns_the_plan_and_writes_nothing(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1", "b": "1", "gone": "1"})
    target = workspace.checkpoint()
    write(project, {"a": "2", "new": "2"})
    (project / "gone").unlink()
    before, log = fingerprint(project), workspace.log()
    plan = workspace.restore(target.id, preview=True)
    assert fingerprint(project) == before
    assert workspace.log() == log and len(workspace.operations()) == 1
    done = workspace.restore(target.id)
    assert (plan.restored, plan.deleted, plan.skipped, plan.dirty) == (
        done.restored,
        done.deleted,
        done.skipped,
        done.dirty,
    )
    assert set(done.restored) == {"a", "gone"} and set(done.deleted) == {"new"}


def test_pi_9_a_filter_restores_only_the_named_files_and_folders(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1", "b": "1", "d/c": "1", "d/e": "1", "dd": "1"})
    target = workspace.checkpoint()
    write(project, {"a": "2", "b": "2", "d/c": "2", "d/new": "2", "dd": "2", "new": "2"})
    (project / "d/e").unlink()
    done = workspace.restore(target.id, ["a", "d"])
    assert set(done.restored) == {"a", "d/c", "d/e"} and set(done.deleted) == {"d/new"}
    assert {name: (project / name).read_text() for name in ("a", "b", "d/c", "dd", "new")} == {
        "a": "1",
        "b": "2",
        "d/c": "1",
        "dd": "2",
        "new": "2",
    }


def test_pi_9_a_filter_that_fits_nothing_is_an_error_and_changes_nothing(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1"})
    target = workspace.checkpoint()
    write(project, {"a": "2"})
    with pytest.raises(mulligan.NotFound):
        workspace.restore(target.id, ["a", "no-such-file"])
    assert (project / "a").read_text() == "2"


def test_pi_9_identical_trees_are_a_no_op(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "1"})
    target = workspace.checkpoint()
    before, log = fingerprint(project), workspace.log()
    done = workspace.restore(target.id)
    assert (done.restored, done.deleted, done.skipped, done.dirty) == ((), (), (), ())
    assert done.operation is None and done.verified
    assert fingerprint(project) == before and workspace.log() == log


def test_pi_10_dirty_files_are_listed_restored_and_one_undo_away(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"known": "1", "edited": "1"})
    first = workspace.checkpoint()
    write(project, {"known": "2"})
    workspace.checkpoint()
    write(project, {"edited": "in no checkpoint", "new": "neither"})
    before = picture(project)
    done = workspace.restore(first.id)
    assert set(done.dirty) == {"edited", "new"}
    assert picture(project).keys() == {b"known", b"edited"}
    assert done.safety_checkpoint is not None
    assert workspace.read(done.safety_checkpoint, "edited") == b"in no checkpoint"
    workspace.undo()
    assert picture(project) == before


def test_pi_10_dirty_files_can_be_left_alone(project: Path, workspace: Workspace) -> None:
    write(project, {"known": "1", "edited": "1"})
    first = workspace.checkpoint()
    write(project, {"known": "2"})
    workspace.checkpoint()
    write(project, {"edited": "in no checkpoint", "new": "neither"})
    done = workspace.restore(first.id, keep_dirty=True)
    assert done.restored == ("known",) and done.deleted == ()
    assert {skip.path for skip in done.skipped} == {"edited", "new"}
    assert (project / "edited").read_text() == "in no checkpoint"
    assert (project / "new").read_text() == "neither"


def test_pi_12_content_is_stored_once_however_often_it_occurs(
    project: Path, workspace: Workspace, mulligan_home: Path
) -> None:
    content = os.urandom(100_000)
    write(project, {"a": content})
    workspace.checkpoint()
    size = store_size(mulligan_home)
    write(project, {f"copies/{number}": content for number in range(20)})
    workspace.checkpoint()
    assert store_size(mulligan_home) - size < len(content) / 10
    run(project, "rm a; mkdir elsewhere; mv copies elsewhere/")
    workspace.checkpoint()
    assert store_size(mulligan_home) - size < len(content) / 5


def test_pi_12_objects_are_named_by_sha_256(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "content", "d/b": b"\0\xff"})
    (project / "link").symlink_to("a")
    taken = workspace.checkpoint()
    ids = {each.path: each.id for each in workspace.entries(taken.id) if each.kind != "directory"}
    assert ids == {
        "a": hashlib.sha256(b"content").hexdigest(),
        "d/b": hashlib.sha256(b"\0\xff").hexdigest(),
        "link": hashlib.sha256(b"a").hexdigest(),
    }


def test_pi_12_a_tree_is_written_canonically(project: Path, workspace: Workspace) -> None:
    write(project, {"b": "2", "a": "1", "a.c": "3"})
    (project / "a").chmod(0o755)
    for name in ("b", "a.c"):
        (project / name).chmod(0o644)
    lines = b"".join(
        b"f %o 1 1 %b %b\0" % (mode, hashlib.sha256(content).hexdigest().encode(), name)
        for mode, content, name in (
            (0o755, b"1", b"a"),
            (0o644, b"3", b"a.c"),
            (0o644, b"2", b"b"),
        )
    )
    assert workspace.checkpoint().tree == hashlib.sha256(lines).hexdigest()


def test_pi_12_the_same_files_have_the_same_identity_in_any_project_and_home(
    tmp_path: Path,
) -> None:
    files: dict[str, str | bytes] = {"a": "1", "d/e/f": "2", "d/g": b"\0", "ü": "3"}
    trees = set()
    for number, names in enumerate((list(files), sorted(files, reverse=True))):
        project = tmp_path / f"project{number}"
        write(project, {name: files[name] for name in names})
        with mulligan.open(project, home=str(tmp_path / f"home{number}")) as workspace:
            trees.add(workspace.checkpoint(f"number {number}").tree)
    assert len(trees) == 1


def test_pi_12_an_unchanged_project_adds_no_object(
    project: Path, workspace: Workspace, mulligan_home: Path
) -> None:
    write(project, {"a": "1", "d/b": "2"})
    first = workspace.checkpoint()
    known = objects(mulligan_home)
    second = workspace.checkpoint()
    assert first.tree == second.tree and first.id != second.id
    assert objects(mulligan_home) == known


def test_pi_13_files_above_the_limit_are_named_not_kept_and_never_touched(
    project: Path, mulligan_home: Path
) -> None:
    write(mulligan_home, {"config.toml": '[checkpoints]\nmax_file_size = "1 MB"\n'})
    write(project, {"small": "1", "exact": b"e" * (1 << 20), "large": b"l" * ((1 << 20) + 1)})
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
        assert {each.path for each in workspace.entries(taken.id)} == {"small", "exact"}
        (skipped,) = taken.coverage.skipped
        assert skipped.path == b"large" and "limit" in skipped.reason
        assert not taken.coverage.complete
        write(project, {"small": "2", "large": b"L" * ((1 << 20) + 2)})
        workspace.restore(taken.id)
        assert (project / "small").read_text() == "1"
        assert (project / "large").read_bytes() == b"L" * ((1 << 20) + 2)
        # Shrunk below the limit, it is in checkpoints from now on.
        write(project, {"large": "small now"})
        assert workspace.read(workspace.checkpoint().id, "large") == b"small now"


AGENTS_DATA = (".pi/agent/s.jsonl", ".agentsmithy/d", ".yaai/sessions/s", "chroma_db/index")


def test_pi_13_data_of_agents_is_left_out_by_default_and_never_touched(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1", "dist/x": "1", "node_modules/x": "1"})
    write(project, dict.fromkeys(AGENTS_DATA, "then"))
    taken = workspace.checkpoint()
    assert {each.path for each in workspace.entries(taken.id) if each.kind == "file"} == {"a"}
    write(project, {"a": "2"} | dict.fromkeys(AGENTS_DATA, "now"))
    workspace.restore(taken.id)
    assert (project / "a").read_text() == "1"
    assert {(project / path).read_text() for path in AGENTS_DATA} == {"now"}


def test_pi_13_what_git_tracks_of_it_is_in(project: Path, workspace: Workspace) -> None:
    write(project, dict.fromkeys(AGENTS_DATA, "tracked") | {".pi/agent/other": "untracked"})
    run(project, f"git init -q; git add -f {' '.join(AGENTS_DATA)}")
    taken = workspace.checkpoint()
    found = {each.path for each in workspace.entries(taken.id) if each.kind == "file"}
    assert found == set(AGENTS_DATA)
    write(project, dict.fromkeys(AGENTS_DATA, "changed"))
    workspace.restore(taken.id)
    assert {(project / path).read_text() for path in AGENTS_DATA} == {"tracked"}


def test_pi_13_files_over_1_mb_are_kept(project: Path, workspace: Workspace) -> None:
    content = os.urandom(3 << 20)
    write(project, {"large": content})
    taken = workspace.checkpoint()
    (project / "large").unlink()
    workspace.restore(taken.id)
    assert (project / "large").read_bytes() == content and taken.coverage.complete


def test_pi_13_a_file_that_grew_above_the_limit_is_not_shown_as_deleted(project: Path) -> None:
    write(project, {"f": "1"})
    with mulligan.open(project) as workspace:
        workspace.change_settings({"checkpoints": {"max_file_size": 1000}})
        first = workspace.checkpoint()
        write(project, {"f": "x" * 2000})
        assert workspace.status().changed_files == ()
        assert not workspace.status().coverage.complete
        done = workspace.restore(first.id)
        assert {skip.path for skip in done.skipped} == {"f"}
        assert (project / "f").read_text() == "x" * 2000


@pytest.mark.parametrize(
    ("command", "added", "modified", "deleted"),
    [
        ("echo new > new", 1, 0, 0),
        ("echo more >> a", 0, 1, 0),
        ("sed -i s/one/1/ a", 0, 1, 0),
        ("mv a moved", 1, 0, 1),
        ("cp -r d e", 2, 0, 0),
        ("rm -r d", 0, 0, 2),
        ("chmod +x a", 0, 1, 0),
        ("ln -s a link; ln a hard", 2, 0, 0),
        ("mkdir -p x/y/z; touch x/y/z/f", 1, 0, 0),
        ("printf 'two\\n' > t; touch -r a t; mv t a", 0, 1, 0),
        ("mv d t; mkdir d; mv t/b d/b; rmdir t 2>/dev/null || rm -r t", 0, 0, 1),
        ("mkdir empty", 0, 0, 0),
    ],
)
def test_pi_14_changes_by_shell_commands_are_seen_and_undone(
    project: Path, workspace: Workspace, command: str, added: int, modified: int, deleted: int
) -> None:
    write(project, {"a": "one\n", "d/b": "b\n", "d/c": "c\n"})
    first = workspace.checkpoint()
    before = picture(project)
    run(project, command)
    after = picture(project)
    assert after != before
    second = workspace.checkpoint()
    assert second.changes == mulligan.Changes(added, modified, deleted)
    workspace.restore(first.id)
    assert picture(project) == before
    workspace.restore(second.id)
    assert picture(project) == after


def test_pi_15_an_empty_project_works_everywhere(project: Path, workspace: Workspace) -> None:
    assert workspace.log() == [] and workspace.operations() == []
    for nothing in (workspace.status, workspace.undo, workspace.redo, workspace.diff):
        with pytest.raises(mulligan.NotFound):
            nothing()
    taken = workspace.checkpoint()
    assert (taken.files, taken.bytes) == (0, 0) and taken.coverage.complete
    assert workspace.entries(taken.id) == []
    assert workspace.status().changed_files == () and workspace.diff() == []
    assert workspace.restore("@").operation is None
    assert workspace.maintenance.gc().removed == 0
    write(project, {"d/first": "1"})
    assert workspace.checkpoint().changes == mulligan.Changes(added=1)
    workspace.restore(taken.id)
    assert picture(project) == {}


def test_pi_16_damaged_content_is_never_handed_out(project: Path, mulligan_home: Path) -> None:
    write(project, {"a": os.urandom(5000), "b": "fine"})
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
    (pack,) = mulligan_home.glob("projects/*/objects/*.pack")
    content = bytearray(pack.read_bytes())
    content[content.index((project / "a").read_bytes()[:50])] ^= 1
    pack.write_bytes(content)
    with mulligan.open(project) as workspace:
        with pytest.raises(mulligan.Corrupt):
            workspace.read(taken.id, "a")
        assert workspace.read(taken.id, "b") == b"fine"
        assert not workspace.maintenance.verify().clean


def test_pi_16_a_file_written_while_a_restore_runs_keeps_what_was_written(
    project: Path,
) -> None:
    files = [f"f{number:02}" for number in range(12)]
    written: list[str] = []

    def meanwhile(stage: str, done: int, total: int | None) -> None:
        if stage == "restoring" and not written:
            late = [name for name in files if (project / name).read_text() == "new"]
            written.append(late[-1])
            (project / late[-1]).write_text("written by the user just now")

    with mulligan.open(project, progress=meanwhile) as workspace:
        write(project, dict.fromkeys(files, "old"))
        target = workspace.checkpoint()
        write(project, dict.fromkeys(files, "new"))
        done = workspace.restore(target.id)
        (name,) = written
        assert (project / name).read_text() == "written by the user just now"
        assert [skip.path for skip in done.skipped] == [name]
        assert set(done.restored) == set(files) - {name}
        assert {(project / each).read_text() for each in done.restored} == {"old"}
        assert workspace.maintenance.verify().clean
        # What the restore arrived at is what it says: only the user's write is new.
        assert [each.path for each in workspace.status().changed_files] == [name]


def test_pi_16_unreferenced_objects_are_collected(
    project: Path, workspace: Workspace, mulligan_home: Path
) -> None:
    write(project, {"large": os.urandom(300_000)})
    workspace.checkpoint()
    write(project, {"large": "small"})
    workspace.checkpoint()
    workspace.maintenance.forget(keep_last=1)
    found = workspace.maintenance.gc()
    assert found.removed >= 2 and found.freed_bytes > 290_000
    assert store_size(mulligan_home) < 10_000
