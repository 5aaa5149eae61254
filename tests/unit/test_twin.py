"""A look of which a child process does half: it finds what a look alone finds."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

import mulligan
from mulligan.files import contents, forking, scan, twin
from mulligan.files.index import Node
from mulligan.files.twin import Twin

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no child elsewhere")

FOLDERS = [f"d{number}/e{number % 3}" for number in range(12)]
NAMES = [f"{folder}/f{number}" for folder in FOLDERS for number in range(8)]


class Spy:
    """Counts what the child was asked, and what it knew."""

    def __init__(self) -> None:
        self.told = 0
        self.untold = 0
        self.children: list[int] = []


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    """Every look has a child, and the child is let come to the end before the look begins."""
    spy = Spy()
    ask, fork = Twin.unsure, forking._fork

    def unsure(self: Twin, path: bytes, node: Node) -> object:
        found = ask(self, path, node)
        if found is None:
            spy.untold += 1
        else:
            spy.told += 1
        return found

    def fork_and_wait(work: Callable[[], None], keep: Collection[int]) -> int | None:
        child = fork(work, keep)
        if child is not None:
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
            spy.children.append(child)
        return child

    monkeypatch.setattr(twin, "MANY", 0)
    monkeypatch.setattr(twin, "can_fork", lambda: True)
    monkeypatch.setattr(contents, "can_fork", lambda: False)
    monkeypatch.setattr(forking, "_fork", fork_and_wait)
    monkeypatch.setattr(Twin, "unsure", unsure)
    return spy


@pytest.fixture
def filled(project: Path) -> Path:
    for name in NAMES:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"content of {name}")
    (project / ".gitignore").write_text("*.env\n")
    (project / "d1" / "secret.env").write_text("secret")
    return project


@pytest.fixture
def workspace(filled: Path) -> Iterator[mulligan.Workspace]:
    with mulligan.open(filled) as workspace:
        workspace.checkpoint()
        time.sleep(0.05)
        workspace.checkpoint()
        yield workspace


def edit(project: Path) -> None:
    (project / NAMES[3]).write_text("edited")


def edit_of_the_same_size(project: Path) -> None:
    content = (project / NAMES[40]).read_text()
    (project / NAMES[40]).write_text(content.upper())


def add(project: Path) -> None:
    (project / "d5" / "new").write_text("new")


def delete(project: Path) -> None:
    (project / NAMES[9]).unlink()


def replace(project: Path) -> None:
    (project / "other").write_text("other")
    (project / "other").rename(project / NAMES[17])


def swap_two(project: Path) -> None:
    one, other = project / NAMES[20], project / NAMES[21]
    one.rename(project / "between")
    other.rename(one)
    (project / "between").rename(other)


def set_a_mode(project: Path) -> None:
    (project / NAMES[30]).chmod(0o755)


def turn_a_file_into_a_folder(project: Path) -> None:
    (project / NAMES[50]).unlink()
    (project / NAMES[50]).mkdir()
    (project / NAMES[50] / "inside").write_text("inside")


def turn_a_folder_into_a_file(project: Path) -> None:
    shutil.rmtree(project / "d7")
    (project / "d7").write_text("a file")


def turn_a_file_into_a_link(project: Path) -> None:
    (project / NAMES[60]).unlink()
    (project / NAMES[60]).symlink_to("elsewhere")


def swap_two_folders(project: Path) -> None:
    (project / "d2").rename(project / "between")
    (project / "d3").rename(project / "d2")
    (project / "between").rename(project / "d3")


def link_a_folder_to_another(project: Path) -> None:
    (project / "d4").rename(project / "moved")
    (project / "d4").symlink_to("moved")


def change_the_rules(project: Path) -> None:
    (project / ".gitignore").write_text("f1\n")


def change_what_is_guarded(project: Path) -> None:
    (project / "d1" / "secret.env").write_text("another")


CHANGES: list[Callable[[Path], None]] = [
    edit, edit_of_the_same_size, add, delete, replace, swap_two, set_a_mode,
    turn_a_file_into_a_folder, turn_a_folder_into_a_file, turn_a_file_into_a_link,
    swap_two_folders, link_a_folder_to_another, change_the_rules, change_what_is_guarded,
]  # fmt: skip


def alone(project: Path, home: Path) -> mulligan.Checkpoint:
    """What a look finds that remembers nothing."""
    with mulligan.open(project, home=str(home)) as workspace:
        return workspace.checkpoint()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_changed_is_found(
    filled: Path,
    workspace: mulligan.Workspace,
    spy: Spy,
    tmp_path: Path,
    change: Callable[[Path], None],
) -> None:
    change(filled)
    found = workspace.checkpoint()
    assert spy.told
    expected = alone(filled, tmp_path / "another")
    assert (found.tree, found.files, found.bytes) == (expected.tree, expected.files, expected.bytes)
    assert found.coverage == expected.coverage
    guarded = {each for each in workspace.entries(found.id) if each.guarded}
    with mulligan.open(filled, home=str(tmp_path / "another")) as other:
        assert guarded == {each for each in other.entries("@") if each.guarded}


def test_any_changes_in_a_row_are_found(
    filled: Path, workspace: mulligan.Workspace, spy: Spy, tmp_path: Path
) -> None:
    chance = random.Random(7)
    for number in range(15):
        for change in chance.sample(CHANGES, 3):
            try:
                change(filled)
            except OSError:
                continue  # An earlier change has taken its file.
        found = workspace.checkpoint()
        assert found.tree == alone(filled, tmp_path / str(number)).tree
    assert spy.told > spy.untold


def test_a_file_that_changes_behind_the_child_is_found_by_the_next_look(
    filled: Path, workspace: mulligan.Workspace, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = forking._fork

    def fork_and_change(work: Callable[[], None], keep: Collection[int]) -> int | None:
        child = fork(work, keep)
        turn_a_file_into_a_folder(filled)
        edit(filled)
        return child

    monkeypatch.setattr(forking, "_fork", fork_and_change)
    workspace.checkpoint()
    monkeypatch.setattr(forking, "_fork", fork)
    found = workspace.checkpoint()
    assert workspace.read(found.id, NAMES[3]) == b"edited"
    assert workspace.read(found.id, f"{NAMES[50]}/inside") == b"inside"


def test_nothing_is_said_of_a_folder_that_is_another(workspace: mulligan.Workspace) -> None:
    node = Node()
    here = os.open(".", os.O_RDONLY)
    try:
        status = os.fstat(here)
        node.signature = (0, 0, status.st_ino, status.st_dev)
        assert twin._marks(here, b"", node) == b""
        node.signature = (0, 0, status.st_ino + 1, status.st_dev)
        assert twin._marks(here, b"", node) is None
        node.signature = None
        assert twin._marks(here, b"", node) is None
        assert twin._marks(here, b"not there", node) is None
    finally:
        os.close(here)


def test_a_child_that_dies_at_once_changes_nothing(
    filled: Path,
    workspace: mulligan.Workspace,
    spy: Spy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(twin, "_look_backwards", lambda *_: os._exit(1))
    edit(filled)
    found = workspace.checkpoint()
    assert workspace.read(found.id, NAMES[3]) == b"edited"
    assert spy.told == 0
    assert spy.children


def test_without_room_for_a_child_the_look_is_made_alone(
    filled: Path, workspace: mulligan.Workspace, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room() -> int:
        raise BlockingIOError(11, "no more processes")

    monkeypatch.setattr(os, "fork", no_room)
    edit(filled)
    assert workspace.checkpoint().changes.modified == 1
    assert not spy.children


def test_the_child_is_gone_when_the_look_ends_however_it_ends(
    filled: Path, workspace: mulligan.Workspace, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    workspace.checkpoint()
    monkeypatch.setattr(scan.Scan, "_descend", interrupt)
    with pytest.raises(KeyboardInterrupt):
        workspace.checkpoint()
    assert len(spy.children) == 2
    for child in spy.children:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_large_project_is_looked_at_by_two(tmp_path: Path) -> None:
    """Nothing is replaced here: a process of its own, with as many files as it takes."""
    project = tmp_path / "project"
    for number in range(200):
        (project / f"d{number}").mkdir(parents=True)
        for name in range(twin.MANY // 200):
            (project / f"d{number}" / f"f{name}").touch()
    code = """
import sys, time, mulligan
from mulligan.files.twin import Twin
answers = []
ask = Twin.unsure
def unsure(self, path, node):
    answers.append(found := ask(self, path, node))
    return found
Twin.unsure = unsure
with mulligan.open(sys.argv[1]) as workspace:
    first = workspace.checkpoint()
    time.sleep(0.05)
    for _ in range(5):
        assert workspace.checkpoint().tree == first.tree
print(len(answers), sum(answer == () for answer in answers))
"""
    environment = os.environ | {"MULLIGAN_HOME": str(tmp_path / "home")}
    printed = subprocess.run(
        [sys.executable, "-c", code, str(project)],
        check=True, capture_output=True, text=True, env=environment,
    ).stdout.split()  # fmt: skip
    asked, same = map(int, printed)
    if len(os.sched_getaffinity(0)) > 1:
        assert asked > 200
        assert same > 0
