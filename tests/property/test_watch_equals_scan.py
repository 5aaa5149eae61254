"""A look that follows a watcher finds what a look at everything finds.

One project and two histories of it: one is asked with a watcher, the other, with a home of its
own, looks at every file each time. Trees and coverage must be the same after every change.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mulligan
from mulligan.core.coverage import Coverage
from mulligan.workspace.results.files import Checkpoint
from mulligan.worktree.scan import scanner
from mulligan.worktree.watch.remote import RemoteWatcher, connect

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the watcher needs inotify")

NAMES = (
    "a", "b", "d", "e", "new\nline", "with space", "\udcff", "x.tmp", "y.log", "node_modules",
    "ign", ".env", "logs",
)  # fmt: skip
RULES = ("", "*.tmp\n", "ign/\n*.tmp\n", "ign\n", "d/\n", "e\n", "*\n!*/\n!a\n", "/b\n")


class Pair:
    """The two histories."""

    def __init__(self, project: Path, homes: Path) -> None:
        self.project = project
        self.homes = homes
        self.watching = mulligan.open(project, home=str(homes / "watching"), watch=True)
        self.followed = 0

    def check(self, include: tuple[str, ...] = ()) -> Checkpoint:
        """Both must see the same."""
        with _counting(self):
            watched = self.watching.checkpoint(include=include)
        with mulligan.open(self.project, home=str(self.homes / "scanning")) as scanning:
            scanned = scanning.checkpoint(include=include)
            same(self.watching, watched, scanning, scanned)
        # And without anything remembered.
        index = next((self.homes / "scanning" / "projects").iterdir()) / "index"
        index.unlink()
        with mulligan.open(self.project, home=str(self.homes / "scanning")) as scanning:
            same(self.watching, watched, scanning, scanning.checkpoint())
        return watched

    def reopen(self) -> None:
        self.watching.close()
        self.watching = mulligan.open(self.project, home=str(self.homes / "watching"), watch=True)


def same(
    one: mulligan.Workspace, left: Checkpoint, other: mulligan.Workspace, right: Checkpoint
) -> None:
    assert set(one.entries(left.id)) == set(other.entries(right.id))
    assert left.tree == right.tree
    assert (left.files, left.bytes) == (right.files, right.bytes)
    assert shape(left.coverage) == shape(right.coverage)


def shape(coverage: Coverage) -> tuple[object, ...]:
    """All that coverage says; of folders that are left out not how many files they hold.

    Nobody watches those, and their files are counted again only when the folder itself changes.
    """
    excluded = {
        (path, None if path.endswith(b"/") else files, reason)
        for path, files, reason in coverage.excluded
    }
    return coverage.skipped, excluded, coverage.guarded


class _counting:  # noqa: N801
    """Counts the looks that followed the watcher, so that a test cannot pass without any."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    def __enter__(self) -> None:
        self.real = real = scanner.Scanner.scan_paths
        pair = self.pair

        def at(self: scanner.Scanner, paths: object) -> bool:
            enough = real(self, paths)  # type: ignore[arg-type]
            pair.followed += enough
            return enough

        scanner.Scanner.scan_paths = at  # type: ignore[method-assign,assignment]

    def __exit__(self, *problem: object) -> None:
        scanner.Scanner.scan_paths = self.real  # type: ignore[method-assign]


@pytest.fixture
def pair(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(project, tmp_path_factory.mktemp("homes"))
    yield pair
    pair.watching.close()


@pytest.mark.parametrize("seed", range(8))
def test_after_any_changes_both_see_the_same(pair: Pair, seed: int) -> None:
    chance = random.Random(seed)
    (pair.project / ".gitignore").write_text("*.tmp\nign/\n")
    pair.check()
    for round in range(10):
        for _ in range(chance.choice((1, 1, 2, 5))):
            change(pair.project, chance)
        if round == 6:
            pair.reopen()
        include = somewhere(chance)
        wanted = chance.random() < 0.2 and os.path.lexists(pair.project / include)
        pair.check((include,) if wanted else ())
    assert pair.followed > 2


def change(project: Path, chance: random.Random) -> None:
    """Something that somebody may do, at a place that is often taken already."""
    path, other = (project / somewhere(chance) for _ in range(2))
    kind = chance.choice(
        ("write", "write", "write", "delete", "folder", "link", "move", "move", "chmod", "rules",
         "pipe", "append")
    )  # fmt: skip
    if kind == "rules":
        path = chance.choice((project, project / "d")) / ".gitignore"
        if chance.random() < 0.3:
            remove(path)
        else:
            make_room(path)
            path.write_text(chance.choice(RULES))
    elif kind == "write":
        make_room(path)
        path.write_bytes(chance.randbytes(chance.choice((0, 3, 200))))
    elif kind == "append":
        if path.is_file() and not path.is_symlink():
            with path.open("ab") as file:
                file.write(b"more")
    elif kind == "delete":
        remove(path)
    elif kind == "folder":
        make_room(path)
        path.mkdir()
        if chance.random() < 0.5:
            (path / "inner" / "deep").mkdir(parents=True)
            (path / "inner" / "deep" / "file").write_bytes(chance.randbytes(5))
    elif kind == "link":
        make_room(path)
        path.symlink_to(chance.choice(("a", "d", "/nowhere", "..")))
    elif kind == "pipe":
        make_room(path)
        os.mkfifo(path)
    elif kind == "move":
        if os.path.lexists(path) and path not in other.parents and other not in path.parents:
            make_room(other)
            if os.path.lexists(path) and path != other:
                path.rename(other)
    elif os.path.lexists(path) and not path.is_symlink():
        path.chmod(chance.choice((0o700, 0o755)))


def somewhere(chance: random.Random) -> str:
    return "/".join(chance.choice(NAMES) for _ in range(chance.choice((1, 2, 2, 3))))


def make_room(path: Path) -> None:
    for above in reversed(path.parents):
        if os.path.lexists(above) and (above.is_symlink() or not above.is_dir()):
            above.unlink()
        above.mkdir(exist_ok=True)
    remove(path)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path) and not any(above.is_symlink() for above in path.parents):
        path.unlink()


# One change each, that a watcher could miss


def folder(path: Path, *names: str) -> None:
    path.mkdir(parents=True, exist_ok=True)
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(name)


ONE_CHANGE: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "a folder becomes a file": (
        lambda root: folder(root / "d", "x/y"),
        lambda root: (shutil.rmtree(root / "d"), (root / "d").write_text("file")),
    ),
    "a file becomes a folder": (
        lambda root: (root / "d").write_text("file"),
        lambda root: ((root / "d").unlink(), folder(root / "d", "x/y")),
    ),
    "a folder becomes a link": (
        lambda root: folder(root / "d", "x"),
        lambda root: ((root / "d").rename(root / "e"), (root / "d").symlink_to("e")),
    ),
    "a folder that is left out becomes a file": (
        lambda root: folder(root / "build", "x"),
        lambda root: (shutil.rmtree(root / "build"), (root / "build").write_text("file")),
    ),
    "a folder with a pipe in it becomes a file": (
        lambda root: (folder(root / "d", "x"), os.mkfifo(root / "d" / "pipe")),
        lambda root: (shutil.rmtree(root / "d"), (root / "d").write_text("file")),
    ),
    "a pipe becomes a file": (
        lambda root: os.mkfifo(root / "p"),
        lambda root: ((root / "p").unlink(), (root / "p").write_text("file")),
    ),
    "a pipe is ignored from now on": (
        lambda root: os.mkfifo(root / "p.tmp"),
        lambda root: (root / ".gitignore").write_text("*.tmp\n"),
    ),
    "a pipe goes where the defaults leave names out": (
        lambda root: os.mkfifo(root / "p"),
        lambda root: (root / "p").rename(root / "p.log"),
    ),
    "a guarded file appears": (
        lambda root: (root / ".gitignore").write_text("*.env\n"),
        lambda root: (root / "a.env").write_text("key"),
    ),
    "a guarded file vanishes": (
        lambda root: ((root / ".gitignore").write_text("*.env\n"), folder(root, "a.env", "b.env")),
        lambda root: (root / "a.env").unlink(),
    ),
    "a guarded file becomes a folder": (
        lambda root: ((root / ".gitignore").write_text("g\n!g/\n"), folder(root, "g")),
        lambda root: ((root / "g").unlink(), folder(root / "g", "x")),
    ),
    "a folder comes out of one that is left out": (
        lambda root: folder(root / "node_modules" / "d", "x/y"),
        lambda root: (root / "node_modules" / "d").rename(root / "d"),
    ),
    "a folder goes into one that is left out": (
        lambda root: (folder(root / "node_modules", "z"), folder(root / "d", "x/y")),
        lambda root: (root / "d").rename(root / "node_modules" / "d"),
    ),
    "a folder moves and a file in it changes": (
        lambda root: folder(root / "d", "x/y", "z"),
        lambda root: ((root / "d").rename(root / "e"), (root / "e" / "x" / "y").write_text("new")),
    ),
    "two folders trade places": (
        lambda root: (folder(root / "d", "one"), folder(root / "e", "two/three")),
        lambda root: (
            (root / "d").rename(root / "t"),
            (root / "e").rename(root / "d"),
            (root / "t").rename(root / "e"),
        ),
    ),
    "a file moves over another": (
        lambda root: folder(root, "a", "b"),
        lambda root: (root / "a").rename(root / "b"),
    ),
    "rules appear deep down": (
        lambda root: folder(root / "d", "x/a.tmp", "x/y/b.tmp"),
        lambda root: (root / "d" / "x" / ".gitignore").write_text("*.tmp\n"),
    ),
    "rules vanish with their folder": (
        lambda root: (folder(root / "d", "a.tmp"), (root / "d" / ".gitignore").write_text("*.tmp")),
        lambda root: (shutil.rmtree(root / "d"), folder(root / "d", "a.tmp")),
    ),
    "rules move with their folder": (
        lambda root: (folder(root / "d", "a.tmp"), (root / "d" / ".gitignore").write_text("*.tmp")),
        lambda root: (root / "d").rename(root / "e"),
    ),
    "our own rules switch a default back on": (
        lambda root: folder(root / "build", "x"),
        lambda root: (root / ".mulliganignore").write_text("!build/\n"),
    ),
    "a folder's mode changes": (
        lambda root: folder(root / "d", "x"),
        lambda root: (root / "d").chmod(0o700),
    ),
    "a nested repository appears with rules of its own": (
        lambda root: folder(root / "n", "a.x", "b"),
        lambda root: (repository(root / "n"), exclude(root / "n", "*.x\n")),
    ),
    "a nested repository's rules change": (
        lambda root: (folder(root / "n", "a.x", "b"), repository(root / "n")),
        lambda root: (exclude(root / "n", "*.x\n"), (root / "n" / "c").write_text("new")),
    ),
    "the repository's own rules change": (
        lambda root: (folder(root, "a.x", "b"), repository(root)),
        lambda root: exclude(root, "*.x\n"),
    ),
}  # fmt: skip


def repository(path: Path) -> None:
    for name in ("objects", "refs", "info"):
        (path / ".git" / name).mkdir(parents=True, exist_ok=True)
    (path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def exclude(path: Path, rules: str) -> None:
    (path / ".git" / "info" / "exclude").write_text(rules)


@pytest.mark.parametrize("name", ONE_CHANGE)
def test_one_change_is_seen_alike(pair: Pair, name: str) -> None:
    before, action = ONE_CHANGE[name]
    before(pair.project)
    pair.check()
    action(pair.project)
    pair.check()


@pytest.mark.parametrize("included", ["logs", "logs/a.log", "build/deep/kept.o", "build"])
def test_what_was_asked_for_by_name_is_followed_where_rules_leave_it_out(
    pair: Pair, included: str
) -> None:
    folder(pair.project, "logs/a.log", "logs/sub/b.log", "build/deep/kept.o", "build/other.o")
    pair.check()
    pair.check((included,))
    for path in ("logs/a.log", "logs/c.log", "logs/sub/d.log", "build/deep/kept.o", "build/x/y"):
        folder(pair.project, path)
        (pair.project / path).write_text("changed")
        pair.check()
    shutil.rmtree(pair.project / "logs")
    pair.check()
    folder(pair.project, "logs/a.log", "logs/new.log")
    (pair.project / "build").rename(pair.project / "away")
    pair.check()
    (pair.project / "away").rename(pair.project / "build")
    taken = pair.check()
    paths = {each.path for each in pair.watching.entries(taken.id)}
    assert included in paths


def test_more_events_than_the_kernel_keeps_are_a_loss_and_nothing_is_missed(pair: Pair) -> None:
    folder(pair.project / "d", "x")
    pair.check()
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    one, two = pair.project / "d" / "one", pair.project / "d" / "two"
    one.touch()
    with pair.watching.project.locked():  # nobody reads them ahead
        for _ in range(queue // 2 + 1000):
            # Two events that differ from the ones before, so that the kernel cannot merge them.
            os.rename(one, two)
            one, two = two, one
    folder(pair.project / "e", "after/the/flood")
    (pair.project / "d" / "x").write_text("changed")
    before = pair.followed
    pair.check()
    assert pair.followed == before
    (pair.project / "d" / "x").write_text("changed again")
    pair.check()
    assert pair.followed == before + 1


def test_a_restore_is_followed_like_any_change(pair: Pair) -> None:
    folder(pair.project / "d", "x", "y/z")
    first = pair.check()
    shutil.rmtree(pair.project / "d")
    folder(pair.project, "d", "new/file")
    pair.check()
    pair.watching.restore(first.id)
    assert pair.check().tree == first.tree
    pair.watching.undo()
    pair.check()
    pair.watching.redo()
    assert pair.check().tree == first.tree


def test_garbage_collected_beside_a_watcher_leaves_it_right(pair: Pair) -> None:
    folder(pair.project / "d", "x", "y/z")
    pair.check()
    (pair.project / "d" / "x").write_text("seen and never kept")
    pair.watching.status()
    pair.watching.maintenance.gc()
    with mulligan.open(pair.project, home=str(pair.homes / "watching")) as other:
        other.maintenance.gc()
    pair.check()
    assert pair.watching.maintenance.verify().clean


# Through the socket: one process watches, others take checkpoints


@pytest.fixture
def watch_process(
    project: Path, mulligan_home: Path
) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "mulligan", "--json", "watch"],
            cwd=project, stdout=subprocess.PIPE,
        )  # fmt: skip
        running.append(process)
        assert process.stdout is not None
        assert b"watching" in process.stdout.readline()
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def one_shot(project: Path, home: Path, *, expect_watcher: bool = True) -> Checkpoint:
    """A checkpoint as a process of its own takes it: everything is read from the disk."""
    with mulligan.open(project, home=str(home)) as workspace:
        remote = connect(workspace.project.location.path("watch.sock"))
        assert (remote is not None) == expect_watcher
        if remote is not None:
            remote.close()
        taken = workspace.checkpoint()
        scanning_home = home.parent / "scanning"
        with mulligan.open(project, home=str(scanning_home)) as scanning:
            same(workspace, taken, scanning, scanning.checkpoint())
    return taken


@pytest.mark.parametrize("seed", range(2))
def test_through_the_socket_both_see_the_same(
    project: Path,
    mulligan_home: Path,
    watch_process: Callable[[], subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    answers = []
    real = RemoteWatcher.since
    monkeypatch.setattr(
        RemoteWatcher, "since", lambda self, token: answers.append(real(self, token)) or answers[-1]
    )
    folder(project / "d", "x", "y/z")
    (project / ".gitignore").write_text("*.tmp\nign/\n")
    process = watch_process()
    chance = random.Random(100 + seed)
    for round in range(9):
        for _ in range(chance.choice((1, 2, 4))):
            change(project, chance)
        if round == 4:
            # Killed: its socket is left behind, and what it knew is lost.
            process.send_signal(signal.SIGKILL)
            process.wait()
            one_shot(project, mulligan_home, expect_watcher=False)
            change(project, chance)
            process = watch_process()
        one_shot(project, mulligan_home)
    assert any(not answer.lost for answer in answers)


def test_a_checkpoint_by_a_command_beside_a_running_watch_is_right(
    project: Path, mulligan_home: Path, watch_process: Callable[[], subprocess.Popen[bytes]]
) -> None:
    folder(project / "d", "x", "y/z")
    watch_process()
    for number in range(3):
        (project / "d" / "y" / f"new {number}").write_text(str(number))
        (project / "d" / "x").write_text(str(number))
        done = subprocess.run(
            [sys.executable, "-m", "mulligan", "checkpoint"],
            cwd=project,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        with mulligan.open(project) as workspace:
            assert workspace.read("@", "d/x") == str(number).encode()
            assert workspace.read("@", f"d/y/new {number}") == str(number).encode()
            assert not workspace.status().changed_files


def test_a_full_look_is_due_now_and_then_whoever_made_the_last_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment of the last full look is saved, so that it counts for other processes too."""
    from mulligan.worktree.scan import stat_cache
    from mulligan.worktree.scan.scanner import Scanner

    looks: list[str] = []
    full = Scanner.scan_all
    monkeypatch.setattr(Scanner, "scan_all", lambda scan: (looks.append("full"), full(scan))[1])
    (project / "f").write_text("x")
    with mulligan.open(project, watch=True) as workspace:
        workspace.checkpoint()
        workspace.checkpoint()
        assert looks == ["full"]
        saved = stat_cache.load(
            workspace.project.location.path("index"), workspace.project.location.root
        )
        assert saved.full_at == workspace.project.cache().full_at > 0
        workspace.project.cache().full_at -= 3600
        workspace.checkpoint()
        assert looks == ["full", "full"]
