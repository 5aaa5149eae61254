"""A look of which a child process does half: it finds what a look alone finds."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import mulligan
from mulligan.files import contents, forking, scan, twin
from mulligan.files.index import Node
from mulligan.files.prints import Taking
from mulligan.files.reach import opened
from mulligan.files.twin import Remembered, Said, Twin

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no child elsewhere")

FOLDERS = [f"d{number}/e{number % 3}" for number in range(12)]
NAMES = [f"{folder}/f{number}" for folder in FOLDERS for number in range(8)]


class Spy:
    """Counts what the child was asked, and what it knew."""

    def __init__(self) -> None:
        self.told = 0
        self.untold = 0
        self.unchanged = 0
        self.in_one_go = 0
        self.unsure = 0
        self.children: list[int] = []
        self.is_awaited = True


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    """Every look has a child, and the child is let come to the end before the look begins."""
    spy = Spy()
    ask, look, fork = Said.unsure, Twin.looking, forking._fork
    is_unchanged, compared = Said.is_unchanged, Said.compared

    def unsure(
        self: Said, path: bytes, node: Node, fd: int, status: os.stat_result
    ) -> Collection[bytes] | None:
        found = ask(self, path, node, fd, status)
        if found is None:
            spy.untold += 1
        else:
            spy.told += 1
            spy.unsure += len(found)
        return found

    def counted(self: Said, path: bytes, node: Node) -> bool:
        found = is_unchanged(self, path, node)
        spy.unchanged += found
        return found

    def noted(self: Said, place: int, fd: int, taking: Taking) -> bytes:
        spy.in_one_go += 1
        return compared(self, place, fd, taking)

    @contextmanager
    def looking(self: Twin, path: bytes, fd: int, root: Node) -> Iterator[Said | None]:
        if self._child is not None:
            _wait_until(lambda: self._child is None or self._child.said.has_prints)
        with look(self, path, fd, root) as said:
            if said is not None and self._child is not None and spy.is_awaited:
                select.select([self._child._answer], [], [], 10)
            yield said

    def fork_and_note(work: Callable[[], None], keep: Collection[int]) -> int | None:
        child = fork(work, keep)
        if child is not None:
            spy.children.append(child)
        return child

    monkeypatch.setattr(twin, "MANY", 0)
    monkeypatch.setattr(twin, "ENOUGH", 0)
    monkeypatch.setattr(twin, "can_fork", lambda: True)
    monkeypatch.setattr(contents, "can_fork", lambda: False)
    monkeypatch.setattr(forking, "_fork", fork_and_note)
    monkeypatch.setattr(Twin, "looking", looking)
    monkeypatch.setattr(Said, "unsure", unsure)
    monkeypatch.setattr(Said, "is_unchanged", counted)
    monkeypatch.setattr(Said, "compared", noted)
    return spy


def _wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 2
    while not happened() and time.monotonic() < end:
        time.sleep(0.001)


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


@pytest.mark.parametrize("is_known", [True, False], ids=["forked before", "forked after"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_changed_is_found(
    filled: Path,
    workspace: mulligan.Workspace,
    spy: Spy,
    tmp_path: Path,
    change: Callable[[Path], None],
    is_known: bool,
) -> None:
    if is_known:
        workspace.checkpoint()
    change(filled)
    found = workspace.checkpoint()
    assert spy.told
    assert len(spy.children) == 1
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
    assert spy.told + spy.unchanged > spy.untold


def test_what_both_find_in_one_go_is_what_is_there(
    filled: Path, workspace: mulligan.Workspace, spy: Spy, tmp_path: Path
) -> None:
    """Not let come to the end, the child leaves about half to the look itself."""
    chance = random.Random(8)
    spy.is_awaited = False
    for number in range(30):
        for name in chance.sample(NAMES, 5):
            path = filled / name
            what = chance.choice(["edit", "delete", "replace", "touch", "link"])
            if what == "delete" and path.exists():
                path.unlink()
            elif what == "replace" or not os.path.lexists(path):
                (filled / "other").write_text(str(number))
                (filled / "other").rename(path)
            elif what == "touch":
                os.utime(path, (1, 1), follow_symlinks=False)
            elif what == "link":
                path.unlink()
                path.symlink_to("elsewhere")
            elif not path.is_symlink():
                path.write_text(str(number))
        found = workspace.checkpoint()
        assert found.tree == alone(filled, tmp_path / str(number)).tree
    assert spy.in_one_go


def test_the_child_learns_of_files_that_changed(
    filled: Path, workspace: mulligan.Workspace, spy: Spy
) -> None:
    workspace.checkpoint()
    for name in NAMES[:4]:
        (filled / name).write_text("edited")
    assert workspace.checkpoint().changes.modified == 4
    time.sleep(0.1)
    # What was read so shortly after it was written is read once more, and then to be trusted.
    for _ in range(4):
        workspace.checkpoint()
    spy.unsure = 0
    workspace.checkpoint()
    assert spy.unsure == 0
    (filled / NAMES[1]).write_text("edited again")
    assert workspace.checkpoint().changes.modified == 1
    assert len(spy.children) == 1


def test_what_was_edited_and_deleted_is_known_by_the_next_look(
    filled: Path, workspace: mulligan.Workspace, spy: Spy
) -> None:
    time.sleep(0.1)
    for _ in range(3):
        workspace.checkpoint()
    for name in NAMES[:4]:
        (filled / name).write_text("edited")
    (filled / NAMES[-1]).unlink()
    # Not too shortly before it is read to be trusted.
    time.sleep(0.1)
    assert workspace.checkpoint().changes == mulligan.Changes(modified=4, deleted=1)
    before, spy.unchanged, spy.unsure = spy.told, 0, 0
    workspace.checkpoint()
    assert spy.unsure == 0
    assert spy.unchanged == len({*FOLDERS, *(folder.partition("/")[0] for folder in FOLDERS)})
    assert spy.told - before == 1, "the root alone"


def test_a_folder_in_which_nothing_happened_is_not_opened_again(
    filled: Path, workspace: mulligan.Workspace, spy: Spy
) -> None:
    time.sleep(0.1)
    for _ in range(3):
        workspace.checkpoint()
    before, spy.unchanged = spy.told, 0
    workspace.checkpoint()
    assert spy.unchanged == len({*FOLDERS, *(folder.partition("/")[0] for folder in FOLDERS)})
    assert spy.told - before == 1, "the root alone"


def test_a_file_that_changes_behind_the_child_is_found_by_the_next_look(
    filled: Path, workspace: mulligan.Workspace, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Twin.looking

    @contextmanager
    def look_and_change(self: Twin, path: bytes, fd: int, root: Node) -> Iterator[Said | None]:
        with look(self, path, fd, root) as said:
            turn_a_file_into_a_folder(filled)
            edit(filled)
            yield said

    monkeypatch.setattr(Twin, "looking", look_and_change)
    workspace.checkpoint()
    monkeypatch.setattr(Twin, "looking", look)
    found = workspace.checkpoint()
    assert workspace.read(found.id, NAMES[3]) == b"edited"
    assert workspace.read(found.id, f"{NAMES[50]}/inside") == b"inside"


def test_a_child_stays_for_the_next_look_and_goes_with_the_workspace(
    filled: Path, workspace: mulligan.Workspace, spy: Spy
) -> None:
    for number in range(4):
        (filled / NAMES[number]).write_text("edited")
        assert workspace.checkpoint().changes.modified == 1
    (child,) = spy.children
    assert spy.untold < 4 * len(FOLDERS)
    held = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
    assert not [each for each in held if each.startswith(str(filled))]
    workspace.twin.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)


def test_a_child_that_remembers_too_little_is_replaced(
    filled: Path, workspace: mulligan.Workspace, spy: Spy
) -> None:
    workspace.checkpoint()
    for name in NAMES[: len(NAMES) // 2]:
        (filled / name).write_text("edited")
    assert workspace.checkpoint().changes.modified == len(NAMES) // 2
    assert workspace.checkpoint().changes.modified == 0
    assert len(spy.children) == 2


def test_a_child_that_was_killed_is_missed_once(
    filled: Path, workspace: mulligan.Workspace, spy: Spy
) -> None:
    workspace.checkpoint()
    os.kill(spy.children[0], signal.SIGKILL)
    os.waitid(os.P_PID, spy.children[0], os.WEXITED | os.WNOWAIT)
    for number in range(3):
        (filled / NAMES[number]).write_text("edited")
        assert workspace.checkpoint().changes.modified == 1
    assert len(spy.children) == 2


def test_a_child_that_was_killed_takes_nobody_along(filled: Path, tmp_path: Path) -> None:
    code = """
import os, signal, sys, time, mulligan
from mulligan.files import twin
twin.MANY = twin.ENOUGH = 0
twin.can_fork = lambda: True
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
with mulligan.open(sys.argv[1]) as workspace:
    for _ in range(3):
        workspace.checkpoint()
        time.sleep(0.05)
    os.kill(workspace.twin._child.pid, signal.SIGKILL)
    time.sleep(0.2)
    print(workspace.checkpoint().files)
"""
    environment = os.environ | {"MULLIGAN_HOME": str(tmp_path / "home")}
    printed = subprocess.run(
        [sys.executable, "-c", code, str(filled)],
        check=True, capture_output=True, text=True, env=environment, timeout=60,
    ).stdout  # fmt: skip
    assert int(printed) == len(NAMES) + 1


def test_a_child_that_is_still_at_work_is_not_waited_for(
    filled: Path, workspace: mulligan.Workspace, spy: Spy
) -> None:
    workspace.checkpoint()
    os.kill(spy.children[0], signal.SIGSTOP)
    assert workspace.twin._child is not None
    # It has answered for the first look; of this one nothing will be heard.
    assert workspace.twin._child.look_again() is not None
    edit(filled)
    assert workspace.checkpoint().changes.modified == 1
    os.kill(spy.children[0], signal.SIGCONT)


def test_a_project_that_is_another_folder_now_has_another_child(
    filled: Path, workspace: mulligan.Workspace, spy: Spy
) -> None:
    before = workspace.checkpoint()
    shutil.copytree(filled, filled.with_name("copy"), symlinks=True)
    filled.rename(filled.with_name("moved"))
    filled.with_name("copy").rename(filled)
    edit(filled)
    assert workspace.checkpoint().tree != before.tree
    assert len(spy.children) == 2


def test_what_the_child_remembers_counts_only_if_it_is_what_is_known_here(
    filled: Path, workspace: mulligan.Workspace, spy: Spy
) -> None:
    before = workspace.checkpoint()
    root = workspace.cache().root
    assert root is not None
    folder, name = FOLDERS[2].encode(), b"f1"
    node = root.find(folder)
    assert node is not None
    seen = node.files[name]
    # As if it had been changed, and by some magic of the disk was as it had been once.
    node.files[name] = (*seen[:4], seen[4] + 1, seen[5], node.files[b"f2"][6])
    node.changed(name)
    assert workspace.checkpoint().tree == before.tree


def test_the_copy_of_a_process_leaves_the_child_to_its_parent(
    filled: Path, workspace: mulligan.Workspace, spy: Spy
) -> None:
    workspace.checkpoint()
    (child,) = spy.children
    with opened(os.fsencode(filled)) as fd:
        pid = os.fork()
        if pid == 0:
            kept = workspace.twin._child
            is_of = kept is not None and kept.is_of(fd)
            workspace.twin.close()
            os._exit(int(is_of))
        assert os.waitpid(pid, 0)[1] == 0
    os.kill(child, 0)
    told = spy.told
    workspace.checkpoint()
    assert spy.told > told
    assert spy.children == [child]


def test_the_child_goes_when_its_owner_is_killed(filled: Path, tmp_path: Path) -> None:
    code = """
import os, sys, time, mulligan
from mulligan.files import twin
twin.MANY = twin.ENOUGH = 0
twin.can_fork = lambda: True
with mulligan.open(sys.argv[1]) as workspace:
    for _ in range(3):
        workspace.checkpoint()
        time.sleep(0.05)
    print(workspace.twin._child.pid, flush=True)
    time.sleep(60)
"""
    environment = os.environ | {"MULLIGAN_HOME": str(tmp_path / "home")}
    with subprocess.Popen(
        [sys.executable, "-c", code, str(filled)], stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        os.kill(child, 0)
        process.kill()
        # The child holds nothing of what its owner was given: the end is told at once.
        assert process.stdout.read() == b""
    for _ in range(100):
        if not Path(f"/proc/{child}/fd").exists() or not os.listdir(f"/proc/{child}/fd"):
            return
        time.sleep(0.05)
    pytest.fail("it is still there")


def test_nothing_is_said_of_a_folder_that_is_another() -> None:
    here = os.open(".", os.O_RDONLY)
    try:
        status = os.fstat(here)
        same = Remembered(b"", (0, 0, status.st_ino, status.st_dev), {}, {})
        assert _said_of(here, same) == twin.DONE
        other = (0, 0, status.st_ino + 1, status.st_dev)
        assert _said_of(here, same._replace(signature=other)) == 0
        assert _said_of(here, same._replace(signature=None)) == 0
        assert _said_of(here, same._replace(path=b"not there")) == 0
    finally:
        os.close(here)


def _said_of(fd: int, known: Remembered) -> int:
    said = Said(Node())
    said.known = [known]
    twin._Backwards(said).look(fd)
    return said.told[0]


def test_a_child_that_dies_at_once_changes_nothing(
    filled: Path,
    workspace: mulligan.Workspace,
    spy: Spy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(twin._Backwards, "look", lambda *_: os._exit(1))
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


def test_a_look_that_is_interrupted_leaves_the_child_idle(
    filled: Path, workspace: mulligan.Workspace, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    workspace.checkpoint()
    with monkeypatch.context() as patch:
        patch.setattr(scan.Scan, "_descend", interrupt)
        with pytest.raises(KeyboardInterrupt):
            workspace.checkpoint()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    edit(filled)
    assert workspace.checkpoint().changes.modified == 1


def test_a_large_project_is_looked_at_by_two(tmp_path: Path) -> None:
    """Nothing is replaced here: a process of its own, with as many files as it takes."""
    project = tmp_path / "project"
    for number in range(200):
        (project / f"d{number}").mkdir(parents=True)
        for name in range(twin.ENOUGH // 200):
            (project / f"d{number}" / f"f{name}").touch()
    code = """
import sys, time, mulligan
from mulligan.files.twin import Said
answers = []
ask = Said.unsure
def unsure(self, *asked):
    answers.append(found := ask(self, *asked))
    return found
Said.unsure = unsure
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
