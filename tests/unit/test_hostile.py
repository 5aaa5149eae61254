"""Damaged stores, full disks, read-only directories, special files, links that lead outside.

In each case nothing outside of the project changes, no bytes are lost, and the failure is reported.
"""

from __future__ import annotations

import os
import random
import socket
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import mulligan
from mulligan import Workspace
from mulligan.core import tree
from mulligan.core.entries import NewEntry
from mulligan.errors import (
    Corrupt,
    MulliganError,
    NewerFormat,
    NotFound,
    NothingToUndo,
    OutOfSpace,
    UsageError,
)
from mulligan.store.writer import Writer
from mulligan.workspace.trust import accept, rule_files
from mulligan.worktree.restore import apply as applying
from mulligan.worktree.restore import staging_recovery

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this")


def picture(folder: Path) -> dict[str, object]:
    """Everything below a folder, exactly."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            found[name] = ("link", os.readlink(path))
        elif stat.S_ISDIR(status.st_mode):
            found[name] = ("folder", mode)
        elif stat.S_ISREG(status.st_mode):
            found[name] = (path.read_bytes(), mode)
        else:
            found[name] = "special"
    return found


def objects_of(workspace: Workspace) -> Path:
    return Path(workspace.project.location.directory) / "objects"


def damage(workspace: Workspace, content: bytes) -> None:
    """Flip a bit of a content that is stored uncompressed."""
    for pack in objects_of(workspace).glob("*.pack"):
        data = pack.read_bytes()
        at = data.find(content[100:200])
        if at >= 0:
            with pack.open("r+b") as file:
                file.seek(at + 7)
                file.write(bytes([data[at + 7] ^ 1]))
            return
    raise AssertionError("the content is not in a pack as it is")


@pytest.fixture
def noise() -> random.Random:
    return random.Random(11)


def command(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    run = subprocess.run(
        [sys.executable, "-m", "mulligan", *words],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in run.stderr, run.stderr
    return run


# Links and folders that lead out of the project.


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory outside the project that must not change, laid out like the project's `d`."""
    folder = tmp_path / "outside"
    (folder / "sub").mkdir(parents=True)
    for name in ("a", "b", "sub/c"):
        (folder / name).write_text("precious")
    return folder


def make_folder(project: Path) -> None:
    (project / "d/sub").mkdir(parents=True)
    for name in ("d/a", "d/b", "d/sub/c"):
        (project / name).write_text("precious")


@pytest.mark.parametrize("paths", [(), ("d",), ("d/a",), ("d/sub",), ("d/sub/c",)])
def test_a_folder_swapped_for_a_link_before_a_restore_leads_nowhere(
    project: Path, outside: Path, paths: tuple[str, ...]
) -> None:
    make_folder(project)
    with mulligan.open(project) as workspace:
        for name in ("d/a", "d/b", "d/sub/c"):
            (project / name).write_text("in the checkpoint")
        first = workspace.checkpoint()
        expected = picture(outside)
        (project / "d").rename(project / "moved")
        (project / "d").symlink_to(outside)
        workspace.restore(first.id, paths)
        assert picture(outside) == expected
        assert not (project / "d").is_symlink()
        workspace.undo()
        assert picture(outside) == expected
        assert os.readlink(project / "d") == str(outside)
        assert workspace.maintenance.verify().clean


@pytest.mark.parametrize("name", ["content_matches", "exchange", "move_if_free"])
@pytest.mark.parametrize("call", [1, 2, 4, 7])
def test_a_folder_swapped_for_a_link_in_the_middle_of_a_restore_leads_nowhere(
    project: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int
) -> None:
    make_folder(project)
    (project / "d/gone").write_text("brought back")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        for each in ("d/a", "d/b", "d/sub/c", "d/new"):
            (project / each).write_text("edited")
        (project / "d/gone").unlink()
        expected = picture(outside)
        real = getattr(applying, name)
        calls = 0

        def step(*given: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == call:
                (project / "d").rename(project / "moved")
                (project / "d").symlink_to(outside)
            return real(*given)

        for module in (applying, staging_recovery):
            monkeypatch.setattr(module, name, step)
        result = workspace.restore(first.id)
        assert picture(outside) == expected
        if calls >= call:
            assert os.readlink(project / "d") == str(outside)
            assert result.skipped
        monkeypatch.undo()
        assert result.safety_checkpoint is not None
        for each in ("d/a", "d/b", "d/sub/c", "d/new"):
            assert workspace.read(result.safety_checkpoint, each) == b"edited"
        workspace.checkpoint()
        try:
            workspace.undo()
        except NothingToUndo:
            assert not result.restored
        assert picture(outside) == expected
        assert workspace.maintenance.verify().clean


def test_links_named_like_files_are_replaced_not_followed(project: Path, outside: Path) -> None:
    (project / "f").write_text("a file")
    (project / "g").write_text("to be deleted")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        (project / "f").unlink()
        (project / "f").symlink_to(outside / "a")
        (project / "new").symlink_to(outside / "b")
        (project / "loop").symlink_to("loop")
        (project / "dangling").symlink_to(outside / "not there")
        expected = picture(outside)
        workspace.restore(first.id)
        assert picture(project) == {"f": (b"a file", 0o644), "g": (b"to be deleted", 0o644)}
        workspace.undo()
        assert os.readlink(project / "f") == str(outside / "a")
        assert os.readlink(project / "loop") == "loop"
        assert os.readlink(project / "dangling") == str(outside / "not there")
        assert picture(outside) == expected


def test_a_path_whose_parent_is_now_a_file_is_restored_and_the_file_kept(project: Path) -> None:
    (project / "d/e").mkdir(parents=True)
    (project / "d/e/f").write_text("deep")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        (project / "d/e/f").unlink()
        (project / "d/e").rmdir()
        (project / "d/e").write_text("a file now")
        result = workspace.restore(first.id, ["d/e/f"])
        assert (project / "d/e/f").read_text() == "deep"
        assert result.safety_checkpoint is not None
        assert workspace.read(result.safety_checkpoint, "d/e") == b"a file now"
        workspace.undo()
        assert (project / "d/e").read_text() == "a file now"


# Paths that make no sense.


@pytest.mark.parametrize(
    "path", ["..", "../x", "/", "/etc/passwd", "d/../..", "d/../../x", "", "a\0b", "../\0", "d/\0"]
)
def test_a_path_that_makes_no_sense_is_refused_in_words(project: Path, path: str) -> None:
    (project / "d").mkdir()
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        (project / "f").write_text("two")
        for verb in (
            lambda: workspace.restore(first.id, [path]),
            lambda: workspace.restore(first.id, [path], preview=True),
            lambda: workspace.read(first.id, path),
        ):
            with pytest.raises((UsageError, NotFound)):
                verb()
        assert (project / "f").read_text() == "two"


@pytest.mark.parametrize("half", ["\ud800", "a\ud83db", "../\udfff"])
def test_half_a_character_is_refused_in_words_or_replaced(
    project: Path, half: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some of the paths are relative: what is made of them must not lie where the tests run.
    monkeypatch.chdir(project)
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint().id
        session = workspace.sessions.create(process=0).id
        for verb in (
            lambda: workspace.restore(first, [half]),
            lambda: workspace.read(first, half),
            lambda: workspace.read_disk(half),
            lambda: workspace.diff(first, paths=[half]),
            lambda: workspace.checkpoint(include=[half]),
            lambda: workspace.sessions.start_edit(session, [half]),
            lambda: workspace.log(before=half),
            lambda: workspace.find(half),
            lambda: workspace.sessions.get(half),
            lambda: workspace.sessions.entry(half),
            lambda: workspace.sessions.list(cursor=half),
            lambda: workspace.sessions.export_git(session, half),
            lambda: workspace.sessions.append(session, NewEntry("user_input", "x", model=half)),
            lambda: workspace.sessions.append(session, NewEntry("user_input", "x", plan_item=half)),
            lambda: workspace.sessions.end_turn(session, status=half),
            lambda: mulligan.open(half),
            lambda: mulligan.open(project, home=half),
        ):
            with pytest.raises((UsageError, NotFound)):
                verb()
        assert workspace.checkpoint(half).message == half.replace(half.strip("abc./"), "?")
        workspace.sessions.append(session, NewEntry("user_input", half, {half: [half]}))
        workspace.search(half)
        assert workspace.maintenance.verify().problems == ()


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "node_modules/a\0b", "a\0b", ""])
def test_a_path_that_makes_no_sense_cannot_be_included_for_ever(project: Path, path: str) -> None:
    (project / "node_modules").mkdir()
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        with pytest.raises((UsageError, NotFound)):
            workspace.checkpoint(include=[path])
        assert workspace.checkpoint().files == 1


@pytest.mark.parametrize("path", ["..", "/etc/passwd", "", "../outside/a"])
def test_the_command_line_refuses_paths_that_make_no_sense(
    project: Path, outside: Path, path: str
) -> None:
    (project / "f").write_text("one")
    command(project, "checkpoint")
    (project / "f").write_text("two")
    run = command(project, "restore", "@", path)
    assert run.returncode in (2, 3)
    assert (project / "f").read_text() == "two"


# A store that was tampered with.


def planted(workspace: Workspace, entries: list[tuple[bytes, Any]]) -> bytes:
    """Store a tree with these names, valid or not; return its id."""
    with Writer(workspace.project.store) as writer:

        def plant(named: list[tuple[bytes, Any]]) -> bytes:
            lines = []
            for name, content in named:
                if isinstance(content, list):
                    id = plant(content)
                    lines.append(b"d 755 1 4 %b %b\0" % (id.hex().encode(), name))
                else:
                    id = writer.put(content)
                    lines.append(b"f 644 1 %d %b %b\0" % (len(content), id.hex().encode(), name))
            return writer.put(b"".join(lines))

        top = plant(entries)
        writer.commit()
    return top


HOSTILE: dict[str, list[tuple[bytes, Any]]] = {
    "slash": [(b"../evil", b"evil")],
    "absolute": [(b"/tmp/mulligan-evil", b"evil")],
    "dot dot": [(b"..", [(b"evil", b"evil")])],
    "dot": [(b".", [(b"evil", b"evil")])],
    "nothing": [(b"", b"evil")],
    "git file": [(b".git", b"evil")],
    "git hook": [(b".git", [(b"hooks", [(b"post-commit", b"evil")])])],
    "nested git": [(b"sub", [(b".git", [(b"config", b"evil")])])],
    "twice": [(b"f", b"one"), (b"f", [(b"evil", b"evil")])],
    "unsorted": [(b"g", b"evil"), (b"f", b"evil")],
}


@pytest.mark.parametrize("column", ["tree", "guarded"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_tree_is_never_written(project: Path, kind: str, column: str) -> None:
    root = project / "root"
    (root / ".git/hooks").mkdir(parents=True)
    (root / ".git/config").write_text("git's own")
    (root / "sub/.git").mkdir(parents=True)
    (root / "sub/.git/config").write_text("git's own")
    (root / "f").write_text("one")
    with mulligan.open(root) as workspace:
        first = workspace.checkpoint()
        top = planted(workspace, HOSTILE[kind])
        with workspace.project.journal.writing() as db:
            db.execute(f"UPDATE checkpoints SET {column} = ? WHERE id = ?", (top, first.id))
    expected = picture(project)
    for paths in ((), ("sub",), (".git",)):
        with mulligan.open(root) as workspace:
            try:
                workspace.restore(first.id, paths)
            except (Corrupt, NotFound, UsageError):
                pass
        now = picture(project)
        assert {name: now[name] for name in expected if "/.git" in name} == {
            name: expected[name] for name in expected if "/.git" in name
        }
        assert not [name for name in now if "/.git" in name and name not in expected]
        assert {name for name in now if not name.startswith("root")} == set()
    assert not os.path.lexists("/tmp/mulligan-evil")
    assert not os.path.lexists(project.parent / "evil")


@pytest.mark.parametrize(
    "line",
    [
        b"f -1 1 1 %b x\0",
        b"f 0o644 1 1 %b x\0",
        b"f 77777 1 1 %b x\0",
        b"f 644 +1 1 %b x\0",
        b"f 644 1 1 %b x",
        b"x 644 1 1 %b x\0",
        b"f 644 1 1 %b \0",
        b"f 644 1 %b x\0",
        b"f 644 1 1 %b w\0",
        b"f 644 1 1 %b x/y\0",
    ],
)
def test_a_tree_that_is_not_canonical_is_refused_whole(line: bytes) -> None:
    good = b"f 644 1 1 %b w\0" % (b"a" * 64)
    assert len(tree.decode(good)) == 1
    with pytest.raises(Corrupt):
        tree.decode(good + line % (b"a" * 64))


@pytest.mark.parametrize("name", [b"", b".", b"..", b".git", b"../x", b"/x"])
def test_a_tree_with_a_name_that_leads_elsewhere_is_refused_whole(name: bytes) -> None:
    with pytest.raises(Corrupt):
        tree.decode(b"d 755 1 1 %b %b\0" % (b"a" * 64, name))


def test_a_flipped_bit_is_found_named_and_mended_from_the_disk(
    project: Path, noise: random.Random
) -> None:
    (project / "sub").mkdir()
    bad, good = noise.randbytes(5000), noise.randbytes(5000)
    (project / "sub/bad").write_bytes(bad)
    (project / "good").write_bytes(good)
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        damage(workspace, bad)
    with mulligan.open(project) as workspace:
        found = workspace.maintenance.verify()
        assert not found.clean
        [entry] = [each for each in workspace.entries(first.id) if each.path == "sub/bad"]
        assert any(entry.id in problem for problem in found.problems)
        assert any(first.id in line and "sub/bad" in line for line in found.problems)
        with pytest.raises(Corrupt):
            workspace.read(first.id, "sub/bad")
        assert workspace.read(first.id, "good") == good
        assert workspace.maintenance.verify(repair=True).repaired
        workspace.checkpoint()
        assert workspace.read(first.id, "sub/bad") == bad
        assert workspace.maintenance.verify().problems == ()
    run = command(project, "verify")
    assert run.returncode == 0


def test_a_damaged_file_does_not_keep_the_others_from_being_restored(
    project: Path, noise: random.Random
) -> None:
    bad, good = noise.randbytes(5000), noise.randbytes(5000)
    (project / "bad").write_bytes(bad)
    (project / "good").write_bytes(good)
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        damage(workspace, bad)
        for name in ("bad", "good"):
            (project / name).write_text("edited")
        result = workspace.restore(first.id)
        assert [each.path for each in result.skipped] == ["bad"]
        assert result.restored == ("good",)
        assert not result.verified
        assert picture(project) == {"bad": (b"edited", 0o644), "good": (good, 0o644)}
    assert command(project, "verify").returncode == 1
    for words in (["bad"], ["--json", "bad"]):
        told = command(project, "restore", first.id, *words)
        assert told.returncode == 1
        assert "Not all of it could be done" in told.stdout + told.stderr
    assert (project / "bad").read_bytes() == b"edited"


@pytest.mark.parametrize("how", ["flipped", "cut", "missing"])
@pytest.mark.parametrize("after", ["edited", "deleted"])
def test_a_restore_does_not_overwrite_the_only_good_copy_of_a_file(
    project: Path, noise: random.Random, how: str, after: str
) -> None:
    """The stored content is damaged, so the file on the disk is the last copy."""
    first_content, precious = noise.randbytes(5000), noise.randbytes(5000)
    if after == "edited":
        (project / "f").write_bytes(first_content)
    (project / "other").write_bytes(b"other")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        (project / "f").write_bytes(precious)
        workspace.checkpoint()
        if how == "flipped":
            damage(workspace, precious)
        else:
            [pack] = objects_of(workspace).glob("*.pack")
            if how == "missing":
                pack.unlink()
            else:
                os.truncate(pack, pack.read_bytes().index(precious[:100]) + 50)
    with mulligan.open(project) as workspace:
        try:
            workspace.restore(first.id)
        except MulliganError:
            assert (project / "f").read_bytes() == precious
        else:
            if not (project / "f").exists() or (project / "f").read_bytes() != precious:
                workspace.undo()
        assert (project / "f").read_bytes() == precious
        assert not list(project.glob(".mulligan-tmp-*"))


@pytest.mark.parametrize("share", [0, 0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_pack_cut_short_is_found_and_mended_from_the_disk(
    project: Path, noise: random.Random, share: float
) -> None:
    contents = {f"f{number}": noise.randbytes(3000) for number in range(10)}
    for name, content in contents.items():
        (project / name).write_bytes(content)
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        [pack] = objects_of(workspace).glob("*.pack")
    os.truncate(pack, int(pack.stat().st_size * share))
    expected = picture(project)
    with mulligan.open(project) as workspace:
        assert not workspace.maintenance.verify().clean
        workspace.maintenance.verify(repair=True)
        workspace.checkpoint()
        for name, content in contents.items():
            assert workspace.read("@", name) == content
            assert workspace.read(first.id, name) == content
        workspace.maintenance.gc()
        assert workspace.maintenance.verify().problems == ()
    assert picture(project) == expected


def test_a_missing_pack_is_found_and_mended_from_the_disk(
    project: Path, noise: random.Random
) -> None:
    content = noise.randbytes(5000)
    (project / "f").write_bytes(content)
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        [pack] = objects_of(workspace).glob("*.pack")
    pack.unlink()
    with mulligan.open(project) as workspace:
        assert any(pack.name in problem for problem in workspace.maintenance.verify().problems)
        with pytest.raises(Corrupt):
            workspace.read(first.id, "f")
        workspace.maintenance.verify(repair=True)
        workspace.checkpoint()
        assert workspace.read(first.id, "f") == content
        assert workspace.maintenance.verify().problems == ()


@pytest.mark.parametrize("verb", ["checkpoint", "restore @", "status", "log", "gc", "verify"])
def test_commands_say_in_words_that_the_store_is_damaged(
    project: Path, noise: random.Random, verb: str
) -> None:
    (project / "f").write_bytes(noise.randbytes(5000))
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        [pack] = objects_of(workspace).glob("*.pack")
    pack.write_bytes(noise.randbytes(pack.stat().st_size))
    (project / "f").write_text("mine")
    command(project, *verb.split())
    assert (project / "f").read_text() == "mine"


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_an_index_of_the_store_with_garbage_inside_is_said_in_words_and_mended(
    project: Path, noise: random.Random, share: float
) -> None:
    contents = {f"f{number}": noise.randbytes(50) for number in range(300)}
    for name, content in contents.items():
        (project / name).write_bytes(content)
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        path = objects_of(workspace) / "index.sqlite"
    good = path.read_bytes()
    start = int(len(good) * share) // 4096 * 4096
    path.write_bytes(good[:start] + b"\xff" * (len(good) - start))
    (project / "f0").write_bytes(b"mine")
    for words in (("checkpoint",), ("restore", first.id), ("verify",)):
        command(project, *words)
    command(project, "verify", "--repair")
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        for name, content in contents.items():
            assert workspace.read(first.id, name) == content
        workspace.restore(first.id)
        assert {path.name: path.read_bytes() for path in project.iterdir()} == contents
        assert workspace.maintenance.verify().problems == ()
        mine = [
            workspace.read(each.id, "f0") == b"mine"
            for each in workspace.log()
            if each.id != first.id
        ]
        assert any(mine)


@pytest.mark.parametrize("kind", ["garbage", "cut", "garbage inside"])
def test_a_journal_that_is_no_database_is_refused_and_left_as_it_is(
    project: Path, kind: str
) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        for _ in range(3):
            workspace.checkpoint()
        path = Path(workspace.project.location.path("journal.sqlite"))
    good = path.read_bytes()
    content = {
        "garbage": b"no database" * 999,
        "cut": good[: len(good) // 2],
        "garbage inside": good[:4096] + b"\xff" * (len(good) - 4096),
    }[kind]
    path.write_bytes(content)
    for words in (("log",), ("checkpoint",), ("gc",)):
        run = command(project, *words)
        assert run.returncode == 1
        assert "journal.sqlite" in run.stderr
    assert path.read_bytes() == content
    path.write_bytes(good)
    with mulligan.open(project) as workspace:
        assert len(workspace.log()) == 3
        assert workspace.maintenance.verify().clean


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_journal_of_a_newer_format_is_refused_untouched(project: Path, mode: str) -> None:
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        path = Path(workspace.project.location.path("journal.sqlite"))
    db = apsw.Connection(str(path))
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    with pytest.raises(NewerFormat, match="99"):
        mulligan.open(project)
    assert path.read_bytes() == before
    assert command(project, "checkpoint").returncode == 1
    assert path.read_bytes() == before


# Disks that are full.


@pytest.fixture
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """Mount file systems of a given size, and unmount them."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path_factory.mktemp("disk")
        words = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
        try:
            run = subprocess.run(words, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no mount command")
        if run.returncode != 0:
            pytest.skip(f"cannot mount here: {run.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path, *, leaving: int = 0) -> Path:
    """Uses up the space of a disk but for so many bytes."""
    path = disk / "filling"
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
        file.truncate(max(0, file.tell() - leaving))
    return path


def test_a_store_without_space_changes_nothing_and_goes_on_later(
    project: Path, small_disk: Callable[[str], Path], noise: random.Random
) -> None:
    home = small_disk("size=3m")
    (project / "f").write_text("one")
    with mulligan.open(project, home=str(home)) as workspace:
        first = workspace.checkpoint()
        (project / "f").write_text("two")
        (project / "large").write_bytes(noise.randbytes(4_000_000))
        expected = picture(project)
        for verb in (workspace.checkpoint, lambda: workspace.restore(first.id)):
            with pytest.raises(OutOfSpace):
                verb()
            assert picture(project) == expected
        assert len(workspace.log()) == 1
        assert workspace.read(first.id, "f") == b"one"
        (project / "large").unlink()
        workspace.restore(first.id)
        assert (project / "f").read_text() == "one"
        assert workspace.maintenance.verify().clean


@pytest.mark.parametrize("leaving", [0, 4096, 40_000, 70_000, 110_000, 150_000])
def test_a_home_that_is_full_to_the_brim_is_said_in_words(
    project: Path, small_disk: Callable[[str], Path], noise: random.Random, leaving: int
) -> None:
    home = small_disk("size=2m")
    (project / "f").write_text("one")
    with mulligan.open(project, home=str(home)) as workspace:
        first = workspace.checkpoint()
    filling = fill(home, leaving=leaving)
    (project / "f").write_bytes(noise.randbytes(200_000))
    expected = picture(project)

    def attempt(verb: Callable[[Workspace], object]) -> None:
        try:
            with mulligan.open(project, home=str(home)) as workspace:
                verb(workspace)
        except MulliganError:
            pass

    attempt(lambda workspace: workspace.log())
    attempt(lambda workspace: workspace.status())
    for write in (
        lambda workspace: workspace.checkpoint(),
        lambda workspace: workspace.restore(first.id),
    ):
        with pytest.raises(OutOfSpace), mulligan.open(project, home=str(home)) as workspace:
            write(workspace)
        assert picture(project) == expected
    attempt(lambda workspace: workspace.maintenance.gc())
    filling.unlink()
    with mulligan.open(project, home=str(home)) as workspace:
        assert workspace.checkpoint().files == 1
        workspace.restore(first.id)
        assert (project / "f").read_text() == "one"
        assert workspace.maintenance.verify().problems == ()


def test_a_project_without_space_changes_nothing_and_goes_on_later(
    small_disk: Callable[[str], Path], noise: random.Random
) -> None:
    project = small_disk("size=4m")
    contents = {f"f{number}": noise.randbytes(200_000) for number in range(8)}
    for name, content in contents.items():
        (project / name).write_bytes(content)
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        for name in contents:
            (project / name).write_text("small now")
        (project / "new").write_text("to be deleted")
        (project / "f7").unlink()
        (project / ".mulliganignore").write_text("filling\n")
        accept(workspace.project, rule_files(workspace.project))
        workspace.checkpoint()
        filling = fill(project, leaving=900_000)
        expected = picture(project)
        with pytest.raises(OutOfSpace, match="nothing was changed"):
            workspace.restore(first.id)
        assert picture(project) == expected
        assert workspace.operations(1)[0].state == "abandoned"
        filling.unlink()
        assert workspace.restore(first.id).skipped == ()
        assert {path.name: path.read_bytes() for path in project.iterdir()} == contents
        workspace.undo()
        assert (project / "f0").read_text() == "small now"
        assert workspace.maintenance.verify().clean


def test_a_disk_without_inodes_changes_nothing(small_disk: Callable[[str], Path]) -> None:
    project = small_disk("size=4m,nr_inodes=40")
    for number in range(20):
        (project / f"f{number}").write_text("one")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        for number in range(20):
            (project / f"f{number}").write_text("two")
        workspace.checkpoint()
        (project / "filled").mkdir()
        (project / "filled/.gitignore").write_text("*\n")
        try:
            for number in range(100):
                (project / f"filled/{number}").touch()
        except OSError:
            pass
        for spare in (2, 5):
            for number in range(spare):
                (project / f"filled/{spare}{number}").unlink(missing_ok=True)
            try:
                result = workspace.restore(first.id, [f"f{number}" for number in range(20)])
            except OutOfSpace:
                assert {(project / f"f{number}").read_text() for number in range(20)} == {"two"}
            else:
                for number in range(20):
                    if (project / f"f{number}").read_text() != "one":
                        assert f"f{number}" in {each.path for each in result.skipped}
        assert not list(project.glob(".mulligan-tmp-*"))


def test_files_on_another_file_system_inside_the_project_are_restored(
    project: Path, small_disk: Callable[[str], Path]
) -> None:
    disk = small_disk("size=1m")
    (project / "mounted").mkdir()
    run = subprocess.run(["mount", "--bind", disk, project / "mounted"], check=False)
    if run.returncode != 0:
        pytest.skip("cannot bind here")
    try:
        (project / "mounted/sub").mkdir()
        (project / "mounted/sub/f").write_text("one")
        (project / "f").write_text("one")
        with mulligan.open(project) as workspace:
            first = workspace.checkpoint()
            (project / "mounted/sub/f").write_text("two")
            (project / "mounted/new").write_text("two")
            (project / "f").write_text("two")
            assert workspace.restore(first.id).skipped == ()
            assert (project / "mounted/sub/f").read_text() == "one"
            assert not (project / "mounted/new").exists()
            workspace.undo()
            assert (project / "mounted/new").read_text() == "two"
            assert not list(project.rglob(".mulligan-tmp-*"))
            assert workspace.maintenance.verify().clean
    finally:
        subprocess.run(["umount", "-l", project / "mounted"], check=True)


# An unprivileged user.


def as_nobody(tmp_path: Path, action: Callable[[Path], None]) -> None:
    """Runs in a child process that has given up root, in a folder of its own.

    Everything is imported before: the interpreter's own files may be closed to nobody.
    """
    import concurrent.futures.thread
    import tomllib

    import pyfastcdc

    import mulligan.workspace.workspace
    from mulligan.store import zstd

    assert all((concurrent.futures.thread, tomllib, pyfastcdc, mulligan.workspace, zstd))
    home = Path("/tmp") / f"mulligan-nobody-{os.getpid()}-{tmp_path.name}"
    home.mkdir(mode=0o700)
    os.chown(home, NOBODY, NOBODY)
    trial = home / "trial"
    try:
        # Whatever is imported late is imported now.
        trial.mkdir()
        (trial / "f").write_bytes(b"x" * (1 << 20) + b"y")
        with mulligan.open(trial, home=str(home / "warm")) as workspace:
            id = workspace.checkpoint().id
            for number in range(6):
                (trial / f"g{number}").write_text("x")
            (trial / "f").write_text("z")
            (
                workspace.status(),
                workspace.diff(id),
                workspace.restore(id),
                workspace.maintenance.verify(),
            )
            workspace.undo()
        for folder in (trial, home / "warm"):
            subprocess.run(["rm", "-rf", str(folder)], check=True)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(reading)
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                os.environ["MULLIGAN_HOME"] = str(home / "home")
                (home / "project").mkdir()
                action(home / "project")
                code = 0
            except BaseException:
                os.write(writing, traceback.format_exc().encode()[-4000:])
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            words = pipe.read()
        _pid, status = os.waitpid(child, 0)
        assert status == 0, words
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=True)


@needs_root
def test_unreadable_files_are_named_and_left_alone(tmp_path: Path) -> None:
    def action(project: Path) -> None:
        for name in ("open", "closed"):
            (project / name).write_text("one")
        (project / "folder").mkdir()
        (project / "folder/inside").write_text("one")
        with mulligan.open(project) as workspace:
            first = workspace.checkpoint()
            assert first.coverage.complete
            (project / "open").write_text("two")
            (project / "closed").write_text("two")
            (project / "closed").chmod(0)
            (project / "folder").chmod(0)
            second = workspace.checkpoint()
            assert {each.path for each in second.coverage.skipped} == {b"closed", b"folder"}
            result = workspace.restore(first.id)
            assert "open" in result.restored
            assert "closed" in {each.path for each in result.skipped}, result
            (project / "closed").chmod(0o600)
            (project / "folder").chmod(0o700)
            assert (project / "open").read_text() == "one"
            assert (project / "closed").read_text() == "two"
            assert (project / "folder/inside").read_text() == "one"
            assert workspace.maintenance.verify().clean

    as_nobody(tmp_path, action)


@needs_root
def test_what_lies_in_a_folder_that_is_closed_to_writing_is_skipped_with_its_reason(
    tmp_path: Path,
) -> None:
    def action(project: Path) -> None:
        (project / "closed").mkdir()
        (project / "closed/f").write_text("one")
        (project / "f").write_text("one")
        with mulligan.open(project) as workspace:
            first = workspace.checkpoint()
            (project / "closed/f").write_text("two")
            (project / "closed/new").write_text("two")
            (project / "f").write_text("two")
            (project / "closed").chmod(0o555)
            workspace.checkpoint()
            result = workspace.restore(first.id, ["closed/f", "closed/new", "f"])
            assert {each.path for each in result.skipped} == {"closed/f", "closed/new"}
            assert all("ermission" in each.reason for each in result.skipped)
            assert (project / "f").read_text() == "one"
            assert (project / "closed/f").read_text() == "two"
            assert (project / "closed/new").read_text() == "two"
            assert workspace.maintenance.verify().clean

    as_nobody(tmp_path, action)


@needs_root
def test_folders_that_are_closed_to_writing_come_back_with_what_is_in_them(tmp_path: Path) -> None:
    def action(project: Path) -> None:
        (project / "a/b").mkdir(parents=True)
        (project / "a/b/f").write_text("one")
        (project / "a/b/f").chmod(0o444)
        (project / "a/b").chmod(0o555)
        (project / "a").chmod(0o555)
        expected = picture(project)
        with mulligan.open(project) as workspace:
            first = workspace.checkpoint()
            for name in ("a", "a/b"):
                (project / name).chmod(0o755)
            subprocess.run(["/bin/rm", "-rf", str(project / "a")], check=True)
            assert workspace.restore(first.id).skipped == ()
            assert picture(project) == expected
            assert workspace.maintenance.verify().clean

    as_nobody(tmp_path, action)


@needs_root
def test_a_project_whose_top_is_closed_to_writing_is_restored_below(tmp_path: Path) -> None:
    def action(project: Path) -> None:
        (project / "d").mkdir()
        (project / "d/f").write_text("one")
        (project / "f").write_text("one")
        project.chmod(0o555)
        with mulligan.open(project) as workspace:
            first = workspace.checkpoint()
            (project / "d/f").write_text("two")
            (project / "d/new").write_text("two")
            (project / "f").write_text("two")
            result = workspace.restore(first.id)
            assert [each.path for each in result.skipped] == ["f"]
            assert (project / "d/f").read_text() == "one"
            assert not (project / "d/new").exists()
            assert (project / "f").read_text() == "two"
            assert not list(project.rglob(".mulligan-tmp-*"))
            assert workspace.maintenance.verify().clean
        project.chmod(0o755)

    as_nobody(tmp_path, action)


@needs_root
def test_a_home_that_is_closed_to_writing_is_said_in_words(tmp_path: Path) -> None:
    def action(project: Path) -> None:
        (project / "f").write_text("one")
        with mulligan.open(project) as workspace:
            workspace.checkpoint()
            directory = Path(workspace.project.location.directory)
        for path in (directory / "objects", directory):
            for each in path.iterdir():
                if each.is_file():
                    each.chmod(0o400)
            path.chmod(0o500)
        with (
            pytest.raises((MulliganError, PermissionError)),
            mulligan.open(project) as workspace,
        ):
            workspace.checkpoint()

    as_nobody(tmp_path, action)


# Odd files.


@needs_root
def test_immutable_files_are_skipped_and_the_rest_restored(project: Path) -> None:
    for name in ("fixed", "fixed too", "free"):
        (project / name).write_text("one")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        for name in ("fixed", "free", "new"):
            (project / name).write_text("two")
        fixed = [str(project / "fixed"), str(project / "new")]
        if subprocess.run(["chattr", "+i", *fixed], capture_output=True, check=False).returncode:
            pytest.skip("this file system knows no immutable files")
        try:
            result = workspace.restore(first.id)
        finally:
            subprocess.run(["chattr", "-i", *fixed], check=True)
        assert {each.path for each in result.skipped} == {"fixed", "new"}
        assert all(each.reason for each in result.skipped)
        assert (project / "free").read_text() == "one"
        assert (project / "fixed").read_text() == "two"
        assert (project / "new").read_text() == "two"
        assert not list(project.glob(".mulligan-tmp-*"))
        assert workspace.maintenance.verify().clean


def deep(project: Path, names: list[bytes], action: Callable[[int], None]) -> None:
    """Create nested directories one at a time: the whole path may be too long for a call."""
    fd = os.open(project, os.O_RDONLY | os.O_DIRECTORY)
    for name in names:
        try:
            os.mkdir(name, dir_fd=fd)
        except FileExistsError:
            pass
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = inner
    try:
        action(fd)
    finally:
        os.close(fd)


def put_at(name: bytes, content: bytes) -> Callable[[int], None]:
    def put(fd: int) -> None:
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=fd)
        os.write(file, content)
        os.close(file)

    return put


@pytest.mark.parametrize("repository", [False, True])
def test_a_path_longer_than_the_system_allows_is_kept_and_restored(
    project: Path, repository: bool
) -> None:
    names = [b"n" * 250 + b"%03d" % number for number in range(40)]
    longest = b"f" * 255
    deep(project, names, put_at(longest, b"one"))
    if repository:
        deep(project, [*names, b".git", b"info"], put_at(b"exclude", b"ignored\n"))
    path = os.fsdecode(b"/".join([*names, longest]))
    assert len(path) > 2 * 4096
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        assert first.coverage.skipped == ()
        assert workspace.read(first.id, path) == b"one"
        deep(project, names, put_at(longest, b"two"))
        deep(project, names, put_at(b"new", b"two"))
        assert len(workspace.status().changed_files) == 2
        assert workspace.restore(first.id).skipped == ()
        found: list[bytes] = []

        def read(fd: int) -> None:
            file = os.open(longest, os.O_RDONLY, dir_fd=fd)
            found.append(os.read(file, 100))
            os.close(file)
            assert sorted(os.listdir(fd)) == sorted(
                [os.fsdecode(longest), *([".git"] if repository else [])]
            )

        deep(project, names, read)
        assert found == [b"one"]
        assert workspace.maintenance.verify().clean


def test_what_lies_too_deep_is_named_and_never_touched(project: Path) -> None:
    names = [b"d"] * 300
    deep(project, names, put_at(b"f", b"one"))
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        assert not first.coverage.complete
        assert first.files == 1
        deep(project, names, put_at(b"f", b"two"))
        (project / "f").write_text("two")
        workspace.restore(first.id)
        assert (project / "f").read_text() == "one"
        assert project.joinpath(*["d"] * 300, "f").read_text() == "two"
        assert workspace.maintenance.verify().clean


def test_five_thousand_files_in_one_folder(project: Path) -> None:
    for number in range(5000):
        (project / f"f{number}").write_text(f"{number}")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        assert first.files == 5000
        for number in range(0, 5000, 100):
            (project / f"f{number}").write_text("edited")
        for number in range(1, 5000, 100):
            (project / f"f{number}").unlink()
        result = workspace.restore(first.id)
        assert (len(result.restored), result.skipped) == (100, ())
        for number in range(5000):
            assert (project / f"f{number}").read_text() == f"{number}"
        assert workspace.maintenance.verify().clean


@pytest.mark.parametrize(
    ("kind", "moment"),
    [
        ("fifo", "before the scan"),
        ("fifo", "after the scan"),
        ("socket", "before the scan"),
        ("socket", "after the scan"),
        ("folder", "after the scan"),
    ],
)
def test_a_file_replaced_by_something_special_is_left_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch, moment: str, kind: str
) -> None:
    (project / "x").write_text("one")
    (project / "y").write_text("one")
    held: list[socket.socket] = []

    def replace() -> None:
        (project / "x").unlink()
        if kind == "fifo":
            os.mkfifo(project / "x")
        elif kind == "folder":
            (project / "x").mkdir()
            (project / "x/inside").write_text("mine")
        else:
            made = socket.socket(socket.AF_UNIX)
            monkeypatch.chdir(project)
            made.bind("x")
            held.append(made)

    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        (project / "x").write_text("two")
        (project / "y").write_text("two")
        if moment == "before the scan":
            replace()
        else:
            real = applying.apply

            def hooked(*given: Any, **more: Any) -> Any:
                replace()
                return real(*given, **more)

            monkeypatch.setattr(applying, "apply", hooked)
        result = workspace.restore(first.id)
        assert [each.path for each in result.skipped] == ["x"]
        assert result.restored == ("y",)
        status = (project / "x").lstat()
        expected = {"fifo": stat.S_ISFIFO, "socket": stat.S_ISSOCK, "folder": stat.S_ISDIR}
        assert expected[kind](status.st_mode)
        assert workspace.maintenance.verify().clean
    for each in held:
        each.close()


def test_hard_links_keep_their_contents_and_outside_names(project: Path, tmp_path: Path) -> None:
    (project / "a").write_text("one")
    os.link(project / "a", project / "b")
    os.link(project / "a", tmp_path / "outside")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        (project / "a").write_text("two, through all three names")
        assert workspace.restore(first.id).skipped == ()
        assert (project / "a").read_text() == (project / "b").read_text() == "one"
        assert (tmp_path / "outside").read_text() == "two, through all three names"
        workspace.undo()
        assert (project / "b").read_text() == "two, through all three names"


def test_sparse_files_come_back_with_the_same_bytes(project: Path) -> None:
    path = project / "sparse"
    with path.open("wb") as file:
        file.seek(8 << 20)
        file.write(b"end")
    content = path.read_bytes()
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        path.write_text("small")
        workspace.restore(first.id)
        assert path.read_bytes() == content
        assert workspace.maintenance.verify().clean


def test_special_modes_come_back(project: Path) -> None:
    modes = {"setuid": 0o4755, "setgid": 0o2755, "sticky": 0o1644, "none": 0o400, "all": 0o777}
    for name, mode in modes.items():
        (project / name).write_text("one")
        (project / name).chmod(mode)
    (project / "shared").mkdir()
    (project / "shared").chmod(0o3777)
    (project / "shared/f").write_text("one")
    expected = picture(project)
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        for number, name in enumerate(modes):
            (project / name).chmod(0o600)
            if number % 2:
                (project / name).write_text("two")
        (project / "shared").chmod(0o700)
        assert workspace.restore(first.id).skipped == ()
        assert picture(project) == expected
        (project / "shared/f").unlink()
        (project / "shared").rmdir()
        for name in modes:
            (project / name).unlink()
        assert workspace.restore(first.id).skipped == ()
        assert picture(project) == expected
        assert workspace.maintenance.verify().clean


@needs_root
def test_the_owner_of_a_file_and_its_setuid_bit_stay(project: Path) -> None:
    path = project / "f"
    path.write_text("one")
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o4755)
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        path.write_text("two")
        path.chmod(0o4755)
        result = workspace.restore(first.id)
        assert (result.skipped, result.verified) == ((), True)
        status = path.stat()
        assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (NOBODY, 0o4755)


def test_files_that_are_out_of_scope_survive_every_restore(project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".git/HEAD").write_text("git's own")
    (project / ".gitignore").write_text("*.log\nbuild/\n")
    (project / "d").mkdir()
    (project / "d/f").write_text("one")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        (project / "new/build").mkdir(parents=True)
        (project / "new/f").write_text("covered")
        (project / "new/build/out").write_text("mine")
        (project / "d/x.log").write_text("mine")
        (project / "d/f").unlink()
        os.mkfifo(project / "new/pipe")
        (project / "new/.git").mkdir()
        (project / "new/.git/HEAD").write_text("git's own")
        workspace.restore(first.id)
        assert not (project / "new/f").exists()
        assert (project / "new/build/out").read_text() == "mine"
        assert (project / "d/x.log").read_text() == "mine"
        assert (project / "new/.git/HEAD").read_text() == "git's own"
        assert (project / ".git/HEAD").read_text() == "git's own"
        assert stat.S_ISFIFO((project / "new/pipe").stat().st_mode)
        assert workspace.maintenance.verify().clean
