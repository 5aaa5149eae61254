"""The stat cache: with it, without it or with garbage in its place, a scan gives the same tree."""

from __future__ import annotations

import os
import random
import time
from hashlib import sha256
from pathlib import Path

import pytest

import mulligan
from mulligan.worktree.scan import stat_cache

SETTLED = 0.06  # seconds after which the cache trusts what it saw


class Project:
    """A project whose checkpoints are compared with those of a scan without a cache."""

    def __init__(self, root: Path, homes: Path) -> None:
        self.root = root
        self.homes = homes
        self.fresh = 0

    def open(self) -> mulligan.Workspace:
        return mulligan.open(self.root, home=str(self.homes / "kept"))

    def check(self) -> str:
        """Return the tree, which must be the same with and without the cache."""
        with self.open() as workspace:
            return self.check_in(workspace)

    def check_in(self, workspace: mulligan.Workspace) -> str:
        taken = workspace.checkpoint()
        self.fresh += 1
        with mulligan.open(self.root, home=str(self.homes / f"fresh-{self.fresh}")) as other:
            anew = other.checkpoint()
            assert set(workspace.entries(taken.id)) == set(other.entries(anew.id))
        assert taken.tree == anew.tree
        assert taken.coverage == anew.coverage
        return taken.tree

    @property
    def index(self) -> Path:
        return next((self.homes / "kept" / "projects").iterdir()) / "index"


@pytest.fixture
def kept(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    for name in ("a", "b", "d/x", "d/y", "d/e/deep", "node_modules/m", "g.tmp"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"content of {name}")
    (project / ".gitignore").write_text("*.tmp\n")
    (project / "link").symlink_to("a")
    (project / "empty").mkdir()
    return Project(project, tmp_path_factory.mktemp("homes"))


# What changed is seen, whatever its times say


@pytest.mark.parametrize("reopen", [False, True])
def test_an_edit_of_the_same_size_right_after_a_checkpoint_is_seen(
    kept: Project, reopen: bool
) -> None:
    file = kept.root / "a"
    file.write_text("content 000")
    workspace = kept.open()
    for number in range(40):
        content = f"content {number:03}"
        with file.open("r+") as open_file:
            open_file.write(content)
        taken = workspace.checkpoint()
        assert workspace.read(taken.id, "a") == content.encode()
        if reopen:
            workspace.close()
            workspace = kept.open()
    workspace.close()


@pytest.mark.parametrize("settled", [False, True])
def test_an_edit_whose_time_is_set_back_is_seen(kept: Project, settled: bool) -> None:
    file = kept.root / "d" / "x"
    before = file.stat()
    if settled:
        time.sleep(SETTLED)
    first = kept.check()
    file.write_text(file.read_text().upper())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert kept.check() != first


def test_a_file_put_in_the_place_of_one_with_the_same_size_and_time_is_seen(kept: Project) -> None:
    one, two = kept.root / "d" / "x", kept.root / "d" / "y"
    for file in (one, two):
        os.utime(file, ns=(10**18, 10**18))
    time.sleep(SETTLED)
    first = kept.check()
    one.rename(kept.root / "t")
    two.rename(one)
    (kept.root / "t").rename(two)
    assert kept.check() != first


def test_a_new_name_in_a_folder_whose_time_is_set_back_is_seen(kept: Project) -> None:
    folder = kept.root / "d" / "e"
    time.sleep(SETTLED)
    before = folder.stat()
    first = kept.check()
    (folder / "new").write_text("new")
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert kept.check() != first


@pytest.mark.parametrize("mode", [0o600, 0o755])
def test_a_mode_is_seen(kept: Project, mode: int) -> None:
    time.sleep(SETTLED)
    first = kept.check()
    (kept.root / "d" / "x").chmod(mode)
    assert kept.check() != first


def test_a_folder_whose_mode_goes_forth_and_back_between_processes_is_seen(kept: Project) -> None:
    for number in range(5):
        folder = kept.root / f"new folder {number}"
        with kept.open() as workspace:
            folder.mkdir(mode=0o755)
            workspace.checkpoint()
            folder.chmod(0o700)
            workspace.checkpoint()
        folder.chmod(0o755)
        with kept.open() as workspace:
            taken = workspace.checkpoint()
            modes = {each.path: each.mode for each in workspace.entries(taken.id)}
            assert modes[folder.name] == "0755"


def test_a_link_to_elsewhere_is_seen(kept: Project) -> None:
    time.sleep(SETTLED)
    first = kept.check()
    (kept.root / "link").unlink()
    (kept.root / "link").symlink_to("b")
    assert kept.check() != first


@pytest.mark.parametrize("turn", ["file", "link", "folder"])
@pytest.mark.parametrize("name", ["a", "link", "empty", "d", "g.tmp", "node_modules"])
def test_a_name_that_becomes_something_else_is_seen(kept: Project, name: str, turn: str) -> None:
    time.sleep(SETTLED)
    kept.check()
    path = kept.root / name
    path.rename(kept.root / "moved away")
    if turn == "file":
        path.write_text("a file now")
    elif turn == "link":
        path.symlink_to("b")
    else:
        path.mkdir()
        (path / "inside").write_text("a folder now")
    kept.check()


# The cache is derived: whatever becomes of it


def grow(kept: Project) -> None:
    """A cache with several records in its log."""
    for number in range(4):
        time.sleep(SETTLED)
        kept.check()
        (kept.root / "d" / f"new {number}").write_text("new")
        (kept.root / "a").write_text(f"a {number}")
        (kept.root / "d" / "e").chmod(0o700 + number)
    kept.check()


def test_a_cache_cut_at_any_length_finds_the_same(
    kept: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    grow(kept)
    data = kept.index.read_bytes()
    (kept.root / "d" / "x").write_text("changed")
    (kept.root / "d" / "new 1").unlink()
    (kept.root / "empty").rmdir()
    should = kept.check()
    chance = random.Random(1)
    lengths = {0, 1, len(data) - 1, *(chance.randrange(len(data)) for _ in range(25))}
    for length in sorted(lengths):
        kept.index.write_bytes(data[:length])
        with kept.open() as workspace:
            assert workspace.checkpoint().tree == should, length
    with kept.open() as workspace:
        assert workspace.maintenance.verify().clean


def test_every_cut_of_the_log_loads_as_one_of_its_beginnings(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    small = Project(project, tmp_path_factory.mktemp("homes"))
    (project / "d").mkdir()
    with small.open() as workspace:
        for number in range(4):
            (project / "d" / "file").write_text(f"number {number}")
            workspace.checkpoint()
            workspace.project.save_cache(now=True)
    data = small.index.read_bytes()
    root = os.fsencode(project)
    path = small.homes / "cut"
    seen = []
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        found = remembered(stat_cache.load(str(path), root))
        if not seen or seen[-1] != found:
            seen.append(found)
    assert len(seen) == 5
    assert len(set(seen)) == 5
    assert seen[-1] == remembered(stat_cache.load(str(small.index), root))


def test_a_save_writes_the_files_that_changed_not_their_folders(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    large = Project(project, tmp_path_factory.mktemp("homes"))
    for number in range(300):
        (project / f"file {number}").write_text(f"number {number}")
    time.sleep(SETTLED)
    with large.open() as workspace:
        workspace.checkpoint()
        before = large.index.stat().st_size
        (project / "file 7").write_text("changed")
        (project / "file 8").unlink()
        workspace.checkpoint()
        workspace.project.save_cache(now=True)
        assert 0 < large.index.stat().st_size - before < 2000
        there = remembered(workspace.project.cache())
    assert remembered(stat_cache.load(str(large.index), os.fsencode(project))) == there


def test_what_was_seen_is_saved_when_the_workspace_is_closed(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    small = Project(project, tmp_path_factory.mktemp("homes"))
    with small.open() as workspace:
        for number in range(3):
            (project / "file").write_text(f"number {number}")
            workspace.checkpoint()
        there = remembered(workspace.project.cache())
        assert remembered(stat_cache.load(str(small.index), os.fsencode(project))) != there
    assert remembered(stat_cache.load(str(small.index), os.fsencode(project))) == there


def test_who_closes_leaves_alone_what_another_has_saved_since(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    small = Project(project, tmp_path_factory.mktemp("homes"))
    with small.open() as workspace:
        workspace.checkpoint()
        (project / "file").write_text("seen by the first")
        workspace.checkpoint()
        (project / "file").write_text("seen by the second, later")
        with small.open() as other:
            other.checkpoint()
        saved = small.index.read_bytes()
    assert small.index.read_bytes() == saved
    small.check()


def test_who_closes_while_another_is_at_work_saves_nothing(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    small = Project(project, tmp_path_factory.mktemp("homes"))
    with small.open() as other, small.open() as workspace:
        workspace.checkpoint()
        (project / "file").write_text("seen by the first")
        workspace.checkpoint()
        saved = small.index.read_bytes()
        with other.project.locked():
            workspace.close()
            assert small.index.read_bytes() == saved
    small.check()


def remembered(cache: stat_cache.StatCache) -> bytes:
    """Return all file states of a cache as one value."""
    if cache.root is None:
        return b""
    picture = sorted(
        (path, sorted(node.files.items()), sorted(node.dirs), node.mode, node.built)
        for path, node in cache.root.walk()
    )
    return sha256(repr(picture).encode()).digest()


def test_a_cache_with_any_byte_changed_finds_the_same(kept: Project) -> None:
    grow(kept)
    data = kept.index.read_bytes()
    should = kept.check()
    chance = random.Random(2)
    for _ in range(20):
        place = chance.randrange(len(data))
        damaged = bytearray(data)
        damaged[place] ^= 1 << chance.randrange(8)
        kept.index.write_bytes(damaged)
        with kept.open() as workspace:
            assert workspace.checkpoint().tree == should, place


@pytest.mark.parametrize(
    "garbage",
    [
        b"", b"\0" * 100, b"MULLIGAN INDEX 9\n", random.Random(3).randbytes(5000),
        stat_cache.HEADER,
        stat_cache.HEADER + b"\0" * 64, stat_cache.HEADER + b"\xff" * 64,
    ],
    ids=["empty", "zeros", "other version", "random", "header", "header+zeros", "header+ones"],
)  # fmt: skip
def test_garbage_in_the_place_of_the_cache_finds_the_same(kept: Project, garbage: bytes) -> None:
    should = kept.check()
    kept.index.write_bytes(garbage)
    assert kept.check() == should
    assert kept.check() == should


def test_zeros_behind_the_last_record_find_the_same(kept: Project) -> None:
    grow(kept)
    should = kept.check()
    with kept.index.open("ab") as file:
        file.write(b"\0" * 4096)
    assert kept.check() == should
    (kept.root / "a").write_text("after the zeros")
    assert kept.check() != should


def test_a_lost_cache_finds_the_same_in_a_workspace_that_stays_open(kept: Project) -> None:
    with kept.open() as workspace:
        should = kept.check_in(workspace)
        kept.index.unlink()
        assert kept.check_in(workspace) == should
        kept.index.write_bytes(os.urandom(100))
        assert kept.check_in(workspace) == should


def test_the_cache_of_another_project_is_not_believed(
    kept: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    time.sleep(SETTLED)
    kept.check()
    other = Project(tmp_path_factory.mktemp("other"), tmp_path_factory.mktemp("other homes"))
    (other.root / "a").write_text("another")
    should = other.check()
    other.index.write_bytes(kept.index.read_bytes())
    assert other.check() == should


def test_the_cache_of_an_earlier_day_put_back_finds_what_is_there_now(kept: Project) -> None:
    time.sleep(SETTLED)
    first = kept.check()
    data = kept.index.read_bytes()
    (kept.root / "a").write_text("one")
    kept.check()
    (kept.root / "a").write_text("two")
    time.sleep(SETTLED)
    should = kept.check()
    kept.index.write_bytes(data)
    assert kept.check() == should != first
    with kept.open() as workspace:
        assert workspace.read("@", "a") == b"two"


def test_a_cache_that_names_what_was_collected_is_mended(kept: Project) -> None:
    time.sleep(SETTLED)
    with kept.open() as workspace:
        workspace.checkpoint()
        (kept.root / "a").write_text("seen, not kept")
        time.sleep(SETTLED)
        workspace.status()
        saved = kept.index.read_bytes()
        assert workspace.maintenance.gc().removed
    kept.index.write_bytes(saved)
    with kept.open() as workspace:
        taken = workspace.checkpoint()
        assert workspace.read(taken.id, "a") == b"seen, not kept"
        assert workspace.maintenance.verify().clean


def test_two_processes_that_save_in_turn_both_stay_right(kept: Project) -> None:
    with kept.open() as one, kept.open() as two:
        for number in range(6):
            workspace = (one, two)[number % 2]
            (kept.root / "d" / "x").write_text(f"number {number}")
            (kept.root / "d" / "e").chmod(0o700 + number)
            if number % 3 == 0:
                time.sleep(SETTLED)
            kept.check_in(workspace)
            assert not (two, one)[number % 2].status().changed_files


# Settings and wishes that change what is kept


def test_other_limits_count_at_once(kept: Project) -> None:
    (kept.root / "d" / "large").write_text("x" * 500)
    (kept.root / "d" / "g.tmp").write_text("guarded")
    for content in (
        "", "max_file_size = 100", "max_file_size = 1000", "guard = false", "guard = true",
        "guard_file_size = 3", "guard_total_size = 8", "guard_total_size = 0", "",
    ):  # fmt: skip
        for name in ("kept", f"fresh-{kept.fresh + 1}"):
            (kept.homes / name).mkdir(exist_ok=True)
            (kept.homes / name / "config.toml").write_text(f"[checkpoints]\n{content}\n")
        time.sleep(SETTLED)
        kept.check()


def test_a_path_asked_for_by_name_is_found_although_nothing_changed(kept: Project) -> None:
    time.sleep(SETTLED)
    with kept.open() as workspace:
        workspace.checkpoint()
        time.sleep(SETTLED)
        workspace.checkpoint()
        taken = workspace.checkpoint(include=["node_modules/m"])
        assert workspace.read(taken.id, "node_modules/m") == b"content of node_modules/m"


def test_rules_that_change_count_for_folders_that_did_not(kept: Project) -> None:
    time.sleep(SETTLED)
    kept.check()
    for rules in ("x\n", "d/\n", "d/e/\n", "*\n", "", "*.tmp\n"):
        (kept.root / ".gitignore").write_text(rules)
        kept.check()
    (kept.root / "d" / ".gitignore").write_text("deep\n")
    kept.check()
    (kept.root / "d" / ".gitignore").unlink()
    kept.check()
    (kept.root / ".mulliganignore").write_text("!node_modules/\n")
    kept.check()
