"""The promises of YAAI about restore points: here they are checkpoints."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import time
from pathlib import Path

import pytest
from acts import fingerprint, picture, store_size, write

import mulligan
from mulligan import Workspace
from mulligan.core.times import nanoseconds


def strike_out(home: Path, content: bytes) -> None:
    """Takes an object away, as a damaged disk would."""
    (index,) = home.glob("projects/*/objects/index.sqlite")
    with sqlite3.connect(index) as db:
        gone = db.execute("DELETE FROM objects WHERE id = ?", (hashlib.sha256(content).digest(),))
        assert gone.rowcount == 1


def test_ya_8_a_checkpoint_has_a_description_a_time_and_totals(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "12345", "d/b": "123"})
    before = time.time_ns()
    taken = workspace.checkpoint("before the refactoring: ünïcode, 'quotes' and\na second line")
    assert taken.message == "before the refactoring: ünïcode, 'quotes' and\na second line"
    assert (taken.files, taken.bytes) == (2, 8)
    assert before - 10**6 <= nanoseconds(taken.created_at) <= time.time_ns() + 10**6
    assert workspace.find(taken.id).message == taken.message


def test_ya_8_checkpoints_are_listed_newest_first_in_strictly_rising_time(
    project: Path, workspace: Workspace
) -> None:
    taken = [workspace.checkpoint(str(number)).id for number in range(8)]
    log = workspace.log()
    assert [each.id for each in log] == taken[::-1]
    times = [each.created_at for each in log]
    assert times == sorted(set(times), reverse=True)
    assert [each.id for each in workspace.log(3)] == taken[:-4:-1]


def test_ya_8_a_checkpoint_is_given_with_its_files(project: Path, workspace: Workspace) -> None:
    write(project, {"run.sh": "#!", "d/b": "123"})
    (project / "run.sh").chmod(0o755)
    (project / "d/b").chmod(0o644)
    (project / "link").symlink_to("d/b")
    taken = workspace.checkpoint()
    found = {each.path: (each.kind, each.mode, each.size) for each in workspace.entries(taken.id)}
    mode = f"{stat.S_IMODE((project / 'd').stat().st_mode):04o}"
    assert found == {
        "d": ("directory", mode, 3),
        "d/b": ("file", "0644", 3),
        "link": ("link", "0000", 3),
        "run.sh": ("file", "0755", 2),
    }
    assert len(workspace.entries(taken.id)) == len(found)


def test_ya_8_checkpoints_older_than_a_time_can_be_forgotten(
    project: Path, mulligan_home: Path
) -> None:
    with mulligan.open(project) as workspace:
        ids = []
        for number in range(4):
            write(project, {"f": str(number)})
            ids.append(workspace.checkpoint().id)
    (journal,) = mulligan_home.glob("projects/*/journal.sqlite")
    with sqlite3.connect(journal) as db:
        for number, id in enumerate(ids[:2]):
            moment = f"2001-01-0{number + 1}T00:00:00.000Z"
            db.execute("UPDATE checkpoints SET created_at = ? WHERE id = ?", (moment, id))
    with mulligan.open(project) as workspace:
        planned = workspace.maintenance.forget(older_than=86400, dry_run=True)
        assert set(planned.forgotten) == set(ids[:2]) and len(workspace.log()) == 4
        done = workspace.maintenance.forget(older_than=86400)
        assert set(done.forgotten) == set(ids[:2]) and done.kept == 2
        assert [each.id for each in workspace.log()] == ids[:1:-1]
        assert workspace.maintenance.forget(older_than=86400).forgotten == ()
        with pytest.raises(mulligan.NotFound):
            workspace.find(ids[0])
        assert workspace.read(ids[2], "f") == b"2"
        assert workspace.maintenance.verify().clean


def test_ya_8_the_latest_checkpoint_and_what_undo_needs_are_never_forgotten(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"f": "1"})
    first = workspace.checkpoint()
    write(project, {"f": "2"})
    workspace.checkpoint()
    workspace.restore(first.id)
    workspace.maintenance.forget(older_than=0)
    workspace.maintenance.gc()
    assert len(workspace.log()) >= 1
    workspace.undo()
    assert (project / "f").read_text() == "2"
    workspace.maintenance.forget(older_than=0)
    workspace.maintenance.gc()
    workspace.redo()
    assert (project / "f").read_text() == "1"


def test_ya_9_an_object_is_written_once_and_never_changed(
    project: Path, workspace: Workspace, mulligan_home: Path
) -> None:
    content = os.urandom(50_000)
    write(project, {"a": content})
    workspace.checkpoint()
    (pack,) = mulligan_home.glob("projects/*/objects/*.pack")
    first = pack.read_bytes()
    write(project, {"b": content, "c": "new"})
    workspace.checkpoint()
    second = pack.read_bytes()
    assert second.startswith(first)
    assert second.count(content) == 1


def test_ya_10_dry_run_writes_nothing(project: Path, workspace: Workspace) -> None:
    write(project, {"a": "1"})
    taken = workspace.checkpoint()
    write(project, {"a": "2", "b": "2"})
    before = fingerprint(project)
    plan = workspace.restore(taken.id, preview=True)
    assert plan.restored == ("a",) and plan.deleted == ("b",)
    assert fingerprint(project) == before


def test_ya_10_files_filter_restores_those_and_no_others(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1", "b": "1"})
    taken = workspace.checkpoint()
    write(project, {"a": "2", "b": "2"})
    assert workspace.restore(taken.id, ["b"]).restored == ("b",)
    assert ((project / "a").read_text(), (project / "b").read_text()) == ("2", "1")


def test_ya_10_a_file_whose_object_is_missing_is_skipped_and_left_as_it_is(
    project: Path, mulligan_home: Path
) -> None:
    with mulligan.open(project) as workspace:
        write(project, {"a": "first a", "b": "first b"})
        taken = workspace.checkpoint()
        write(project, {"a": "second a", "b": "second b"})
        workspace.checkpoint()
    strike_out(mulligan_home, b"first a")
    with mulligan.open(project) as workspace:
        done = workspace.restore(taken.id)
        assert done.restored == ("b",)
        assert [skip.path for skip in done.skipped] == ["a"]
        assert (project / "a").read_text() == "second a"
        assert (project / "b").read_text() == "first b"
        assert not any(name.startswith(".mulligan") for name in os.listdir(project))


def test_ya_10_an_unknown_checkpoint_is_not_found_and_nothing_changes(
    project: Path, workspace: Workspace
) -> None:
    write(project, {"a": "1"})
    workspace.checkpoint()
    before = fingerprint(project)
    for name in ("zzzzzzzz", "", "@5", "@x", "%", "_", "a" * 64):
        with pytest.raises(mulligan.NotFound):
            workspace.restore(name)
    assert fingerprint(project) == before


def test_ya_10_restore_creates_folders_and_applies_modes(
    project: Path, workspace: Workspace
) -> None:
    modes = {"deep/er/run.sh": 0o755, "secret": 0o600, "read-only": 0o444, "plain": 0o644}
    write(project, dict.fromkeys(modes, "content"))
    for name, mode in modes.items():
        (project / name).chmod(mode)
    (project / "deep/er").chmod(0o750)
    taken = workspace.checkpoint()
    before = picture(project)
    for name in modes:
        (project / name).unlink()
    (project / "deep/er").rmdir()
    (project / "deep").rmdir()
    workspace.restore(taken.id)
    assert picture(project) == before


def test_ya_10_a_mode_alone_is_restored(project: Path, workspace: Workspace) -> None:
    write(project, {"run.sh": "#!", "d/x": "1"})
    (project / "run.sh").chmod(0o755)
    (project / "d").chmod(0o700)
    taken = workspace.checkpoint()
    before = picture(project)
    (project / "run.sh").chmod(0o600)
    (project / "d").chmod(0o755)
    assert {each.path for each in workspace.status().changed_files} == {"run.sh"}
    workspace.restore(taken.id)
    assert picture(project) == before


def test_ya_11_a_file_of_a_checkpoint_is_given_as_its_exact_bytes_or_not_found(
    project: Path, workspace: Workspace
) -> None:
    content = bytes(range(256)) * 20
    write(project, {"d/bin": content, "empty": ""})
    taken = workspace.checkpoint()
    write(project, {"d/bin": "changed"})
    assert workspace.read(taken.id, "d/bin") == content
    assert workspace.read(taken.id, "empty") == b""
    for path in ("nope", "d", "d/bin/deeper", "."):
        with pytest.raises(mulligan.NotFound):
            workspace.read(taken.id, path)
    for path in ("../outside", ""):
        with pytest.raises(mulligan.UsageError):
            workspace.read(taken.id, path)


def test_ya_12_gc_says_what_it_removed_and_how_much_it_freed(
    project: Path, workspace: Workspace, mulligan_home: Path
) -> None:
    for _ in range(5):
        write(project, {"f": os.urandom(40_000), "stays": "s" * 1000})
        workspace.checkpoint()
    last = picture(project)
    workspace.maintenance.forget(keep_last=1)
    planned = workspace.maintenance.gc(dry_run=True)
    before = store_size(mulligan_home)
    done = workspace.maintenance.gc()
    after = store_size(mulligan_home)
    assert done.removed == planned.removed > 0
    assert done.freed_bytes == before - after
    assert 150_000 < done.freed_bytes < before
    assert workspace.maintenance.gc().removed == 0
    write(project, {"f": "lost"})
    workspace.restore("@")
    assert picture(project) == last
