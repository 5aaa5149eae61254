"""Several processes and a busy user on one project at once: nothing is lost, order is kept.

Processes are real, and so are their deaths. No test looks at a clock: each goes on until what it
waits for has happened.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan.core import tree
from mulligan.errors import Busy
from mulligan.workspace.trust import accept, rule_files
from mulligan.worktree.restore import apply as applying
from mulligan.worktree.restore import staging_recovery


class Children:
    """Python processes, none of which outlives the test."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[str]] = []

    def start(self, script: str, *given: object) -> subprocess.Popen[str]:
        code = "import os, sys, mulligan\n" + textwrap.dedent(script)
        child = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(child)
        return child

    def start_together(
        self, count: int, script: str, *given: object
    ) -> list[subprocess.Popen[str]]:
        """Each waits, with everything imported, until all are there."""
        ready = 'print("ready", flush=True); sys.stdin.readline()\n'
        imports = "import mulligan.workspace.workspace\n"
        code = imports + ready + textwrap.dedent(script)
        children = [self.start(code, *given, number) for number in range(count)]
        for child in children:
            assert said(child) == "ready", child.communicate()[1]
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        return children

    def end(self) -> None:
        for child in self.running:
            if child.poll() is None:
                child.kill()
            child.communicate()


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children()
    yield made
    made.end()


def said(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def finished(*running: subprocess.Popen[str]) -> list[str]:
    """Return their output; each must exit with 0."""
    outputs = []
    for child in running:
        out, problems = child.communicate()
        assert child.returncode == 0, problems
        outputs.append(out.strip())
    return outputs


def assert_in_order(project: Path) -> None:
    """Run `verify`, and check that operations have no gap and times are in order."""
    with mulligan.open(project) as workspace:
        assert workspace.maintenance.verify().problems == ()
        times = [each.created_at for each in workspace.log()]
        assert times == sorted(set(times), reverse=True)
        numbers = [each.number for each in workspace.operations()]
        assert numbers == list(range(len(numbers), 0, -1))
        assert {each.state for each in workspace.operations()} <= {"applied", "abandoned"}


def kept_contents(project: Path, name: str) -> set[bytes]:
    """Every content that a file has in some checkpoint, or on the disk."""
    found = set()
    with mulligan.open(project) as workspace:
        for checkpoint in workspace.log():
            entry = tree.find(bytes.fromhex(checkpoint.tree), name.encode(), workspace.project.load)
            if entry is not None:
                found.add(workspace.project.store.get(entry.id))
    if (project / name).exists():
        found.add((project / name).read_bytes())
    return found


def test_eight_processes_take_checkpoints_at_once_of_a_new_project(
    project: Path, children: Children
) -> None:
    (project / "f").write_text("one")
    running = children.start_together(
        8,
        """
        for round in range(3):
            with mulligan.open(sys.argv[1]) as workspace:
                with open(f"{sys.argv[1]}/f{sys.argv[2]}", "w") as file:
                    file.write(f"{sys.argv[2]} in round {round}")
                print(workspace.checkpoint(f"{sys.argv[2]}-{round}").id)
        """,
        project,
    )
    ids = " ".join(finished(*running)).split()
    assert len(set(ids)) == 24
    with mulligan.open(project) as workspace:
        assert {each.id for each in workspace.log()} == set(ids)
        assert len(workspace.operations()) == 24
        by_message = {each.message: each.id for each in workspace.log()}
        for number in range(8):
            for round in range(3):
                found = workspace.read(by_message[f"{number}-{round}"], f"f{number}")
                assert found == f"{number} in round {round}".encode()
    assert_in_order(project)


WRITER = """
    import time
    print("ready", flush=True)
    number = 0
    stop = sys.argv[1] + "/stop"
    while not os.path.exists(stop):
        number += 1
        for name in ("in-place", "renamed", "appended"):
            path = f"{sys.argv[1]}/{name}"
            if name == "renamed":
                with open(path + ".new", "w") as file:
                    file.write(f"{number}")
                os.rename(path + ".new", path)
            else:
                with open(path, "w" if name == "in-place" else "a") as file:
                    file.write(f"{number}" if name == "in-place" else f"{number}\\n")
        time.sleep(0.001)
    print(number, flush=True)
"""


def test_a_writer_that_never_rests_loses_nothing_to_checkpoints(
    project: Path, children: Children
) -> None:
    writer = children.start(WRITER, project)
    assert said(writer) == "ready"
    with mulligan.open(project) as workspace:
        for _ in range(25):
            workspace.checkpoint()
    (project / "stop").touch()
    [last] = finished(writer)
    assert (project / "in-place").read_text() == last
    assert (project / "renamed").read_text() == last
    assert (project / "appended").read_text().split() == [
        str(number) for number in range(1, int(last) + 1)
    ]
    assert_in_order(project)
    with mulligan.open(project) as workspace:
        appended = [workspace.read(each.id, "appended").split() for each in workspace.log()[:-1]]
        for lines in appended:
            assert lines == [b"%d" % number for number in range(1, len(lines) + 1)]


SAVER = """
    print("ready", flush=True)
    rounds = 0
    while not os.path.exists(sys.argv[1] + "/stop"):
        rounds += 1
        for number in range(20):
            path = f"{sys.argv[1]}/f{number}"
            with open(f"{sys.argv[1]}/.editor", "w") as file:
                # All of one length: only their bytes tell two saves apart.
                file.write(f"save {rounds:09} of {number}")
            os.rename(f"{sys.argv[1]}/.editor", path)
        with open(sys.argv[2], "w") as file:
            file.write("." * rounds)
    print(rounds, flush=True)
"""


class Saver:
    """A process that saves `f0` to `f19` round after round, with different contents each time."""

    def __init__(self, children: Children, project: Path, counter: Path) -> None:
        self.project, self.counter = project, counter
        counter.touch()
        self.child = children.start(SAVER, project, counter)
        assert said(self.child) == "ready"

    def wait_for_a_round(self) -> None:
        """Return when every file was saved once more since this was called."""
        # The first of the two may have been under way already.
        end = self.counter.stat().st_size + 2
        while self.counter.stat().st_size < end:
            assert self.child.poll() is None, self.child.communicate()[1]
            time.sleep(0.001)

    def stop(self) -> int:
        (self.project / "stop").touch()
        [rounds] = finished(self.child)
        return int(rounds)


def test_what_a_user_saves_during_restores_is_on_disk_or_in_a_checkpoint(
    project: Path, children: Children, user: User, tmp_path: Path
) -> None:
    names = {f"f{number}" for number in range(20)}
    for name in names:
        (project / name).write_text(f"start of {name[1:]}")
    (project / ".mulliganignore").write_text(".editor\nstop\n")
    met = []
    rescued: set[str] = set()
    with mulligan.open(project) as workspace:
        accept(workspace.project, rule_files(workspace.project))
        first = workspace.checkpoint()
        saver = Saver(children, project, tmp_path / "rounds")
        for number in range(12):
            # After a round every file differs from the checkpoint, so a restore wants them all.
            saver.wait_for_a_round()
            if number % 2:
                # Nothing is replaced before every file was saved again.
                user.at("exchange", 1, saver.wait_for_a_round)
            result = workspace.restore(first.id)
            skipped = {each.path for each in result.skipped}
            assert not skipped & set(result.restored)
            # Two saves in a row may both meet an exchange: then one of them is a rescued file.
            assert (skipped | set(result.restored)) - rescued == names
            rescued |= set(result.rescued)
            if number % 2:
                met.append(skipped - rescued)
    last = saver.stop()
    assert met == [names] * 6
    for name in names:
        assert f"save {last:09} of {name[1:]}".encode() in kept_contents(project, name)
    assert not list(project.glob(".mulligan-tmp-*"))
    assert_in_order(project)


class User:
    """Acts at an exact moment of a restore: before or after the n-th call of one of its steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.acted = False

    def at(self, name: str, call: int, action: Callable[[], Any], *, after: bool = False) -> None:
        real = getattr(applying, name)
        calls = 0

        def step(*given: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == call and not after:
                self._act(action)
            result = real(*given)
            if calls == call and after:
                self._act(action)
            return result

        for module in (applying, staging_recovery):
            self.monkeypatch.setattr(module, name, step)

    def _act(self, action: Callable[[], Any]) -> None:
        self.acted = True
        action()


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> User:
    return User(monkeypatch)


MOMENTS = [
    ("exchange", 1, False),
    ("exchange", 1, True),
    ("exchange", 2, True),
    ("content_matches", 3, True),
    ("content_matches", 5, False),
    ("move_if_free", 1, False),
    ("move_if_free", 1, True),
]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("how", ["in place", "by rename"])
def test_a_file_saved_during_a_restore_is_left_alone_and_listed(
    project: Path, user: User, moment: tuple[str, int, bool], how: str
) -> None:
    for name in ("a", "b", "c"):
        (project / name).write_text(f"first {name}")
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()
        for name in ("a", "b"):
            (project / name).write_text(f"second {name}")
        (project / "c").unlink()
        (project / "d").write_text("second d")

        def save() -> None:
            for name in ("a", "b", "c", "d"):
                path = project / name
                if how == "by rename":
                    (project / "editor").write_text(f"saved {name}")
                    (project / "editor").rename(path)
                else:
                    path.write_text(f"saved {name}")

        name, call, after = moment
        user.at(name, call, save, after=after)
        result = workspace.restore(first.id)
        assert user.acted
        skipped = {each.path for each in result.skipped}
        for name in ("a", "b", "c", "d"):
            assert (project / name).read_text() == f"saved {name}"
            assert name in skipped, result
            assert name not in (*result.restored, *result.deleted)
        assert b"second a" in kept_contents(project, "a")
        assert not list(project.glob(".mulligan-tmp-*"))
        workspace.undo() if result.operation and workspace.operations(1)[0].changed else None
        for name in ("a", "b", "c", "d"):
            assert f"saved {name}".encode() in kept_contents(project, name)
        assert workspace.maintenance.verify().clean


def test_two_restores_at_once_leave_one_of_the_two_states(
    project: Path, children: Children
) -> None:
    ids = []
    with mulligan.open(project) as workspace:
        for version in range(2):
            for number in range(30):
                (project / f"f{number}").write_text(f"{version}")
            ids.append(workspace.checkpoint().id)
    running = children.start_together(
        4,
        """
        target = sys.argv[2:4][int(sys.argv[4]) % 2]
        for _ in range(3):
            with mulligan.open(sys.argv[1]) as workspace:
                result = workspace.restore(target)
                assert not result.skipped, result.skipped
                assert result.verified
        """,
        project,
        *ids,
    )
    finished(*running)
    contents = {(project / f"f{number}").read_text() for number in range(30)}
    assert len(contents) == 1
    assert len(list(project.iterdir())) == 30
    assert_in_order(project)


def test_checkpoints_beside_restores_never_see_a_project_half_restored(
    project: Path, children: Children
) -> None:
    ids = []
    with mulligan.open(project) as workspace:
        for version in range(2):
            for number in range(40):
                (project / f"f{number}").write_text(f"version {version}")
            ids.append(workspace.checkpoint().id)
    running = children.start_together(
        3,
        """
        with mulligan.open(sys.argv[1]) as workspace:
            for round in range(6):
                if sys.argv[4] == "0":
                    workspace.restore(sys.argv[2 + round % 2])
                elif sys.argv[4] == "1":
                    workspace.checkpoint()
                else:
                    workspace.status()
        """,
        project,
        *ids,
    )
    finished(*running)
    with mulligan.open(project) as workspace:
        trees = {workspace.find(id).tree for id in ids}
        assert {each.tree for each in workspace.log()} == trees
    assert_in_order(project)


def test_gc_beside_writers_and_readers(project: Path, children: Children) -> None:
    (project / "kept").write_bytes(os.urandom(40_000))
    (project / "large").write_bytes(os.urandom(1_500_000))
    expected = {name: (project / name).read_bytes() for name in ("kept", "large")}
    with mulligan.open(project) as workspace:
        workspace.checkpoint("kept")
    running = children.start_together(
        4,
        """
        work = sys.argv[2]
        for round in range(8):
            with mulligan.open(sys.argv[1]) as workspace:
                for turn in range(3):
                    if work == "0":
                        workspace.maintenance.forget(keep_last=2)
                        workspace.maintenance.gc()
                    elif work == "1":
                        with open(sys.argv[1] + "/noise", "wb") as file:
                            file.write(os.urandom(30_000))
                        workspace.checkpoint()
                    else:
                        latest = workspace.find("@").id
                        kept = open(sys.argv[1] + "/kept", "rb").read()
                        large = open(sys.argv[1] + "/large", "rb").read()
                        try:
                            assert workspace.read(latest, "kept") == kept
                            assert workspace.read(latest, "large") == large
                            workspace.entries(latest)
                        except mulligan.NotFound:
                            pass  # forgotten since
                        except mulligan.MissingObject:
                            # Of a checkpoint that was forgotten while it was read.
                            assert latest not in [each.id for each in workspace.log()]
        """,
        project,
    )
    finished(*running)
    with mulligan.open(project) as workspace:
        workspace.maintenance.gc()
        for name, content in expected.items():
            assert workspace.read("@", name) == content
        assert workspace.maintenance.verify().clean


def test_a_workspace_that_stays_open_goes_on_after_another_process_collected(
    project: Path, children: Children
) -> None:
    """Its caches name objects and packs that were deleted meanwhile."""
    (project / "f").write_bytes(b"first " * 1000)
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        for round in range(4):
            (project / "f").write_bytes(b"later %d " % round * 1000)
            workspace.status()
            child = children.start(
                """
                with mulligan.open(sys.argv[1]) as workspace:
                    workspace.maintenance.forget(keep_last=1)
                    workspace.maintenance.gc()
                """,
                project,
            )
            finished(child)
            taken = workspace.checkpoint()
            assert workspace.read(taken.id, "f") == b"later %d " % round * 1000
            assert workspace.maintenance.verify().problems == ()


HOLDER = """
    with mulligan.open(sys.argv[1]) as workspace, workspace.project.locked():
        print("held", flush=True)
        sys.stdin.readline()
"""


def test_a_project_that_is_held_is_busy_and_free_when_the_holder_is_killed(
    project: Path, children: Children
) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        taken = workspace.checkpoint()
    holder = children.start(HOLDER, project)
    assert said(holder) == "held"
    (project / "f").write_text("two")
    shown: list[str] = []
    with mulligan.open(
        project, wait=0.05, progress=lambda stage, done, total: shown.append(stage)
    ) as workspace:
        for verb in (
            workspace.checkpoint,
            workspace.undo,
            workspace.redo,
            workspace.maintenance.gc,
            workspace.maintenance.verify,
            lambda: workspace.maintenance.forget(keep_last=1),
            lambda: workspace.restore(taken.id),
        ):
            with pytest.raises(Busy, match=str(holder.pid)):
                verb()
        assert f"waiting for process {holder.pid}" in shown
        assert [each.path for each in workspace.status().changed_files] == ["f"]
        assert workspace.read("@", "f") == b"one"
        assert (project / "f").read_text() == "two"
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert workspace.restore(taken.id).restored == ("f",)
    assert_in_order(project)


def test_who_waits_goes_on_when_the_holder_is_done(project: Path, children: Children) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
    holder = children.start(HOLDER, project)
    assert said(holder) == "held"
    waiting = children.start(
        """
        with mulligan.open(sys.argv[1]) as workspace:
            print("waiting", flush=True)
            print(workspace.checkpoint("waited").message)
        """,
        project,
    )
    assert said(waiting) == "waiting"
    time.sleep(0.1)
    assert waiting.poll() is None
    holder.kill()
    assert finished(waiting) == ["waited"]


def test_the_command_line_says_busy_with_exit_code_5(project: Path, children: Children) -> None:
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
    holder = children.start(HOLDER, project)
    assert said(holder) == "held"
    # The command as it is, but for a shorter wait.
    impatient = children.start(
        """
        from mulligan.cli.main import main
        from mulligan.workspace import workspace
        workspace.open_workspace.__kwdefaults__["wait"] = 0.05
        sys.argv = ["mulligan", "-C", sys.argv[1], "--json", "checkpoint"]
        main()
        """,
        project,
    )
    out, problems = impatient.communicate()
    assert impatient.returncode == 5, problems
    assert '"code": "busy"' in out
    assert str(holder.pid) in problems
    assert "Traceback" not in problems


def test_threads_share_one_workspace(project: Path) -> None:
    for number in range(10):
        (project / f"f{number}").write_text("start")
    problems: list[BaseException] = []
    with mulligan.open(project) as workspace:
        first = workspace.checkpoint()

        def work(number: int) -> None:
            try:
                for round in range(4):
                    (project / f"f{number}").write_text(f"{number} in round {round}")
                    taken = workspace.checkpoint(f"{number}-{round}")
                    assert workspace.read(taken.id, f"f{number}")
                    workspace.status()
                    workspace.diff(first.id)
                    workspace.log()
                    workspace.restore(first.id, [f"f{number}"])
                    assert (project / f"f{number}").read_text() == "start"
            except BaseException as problem:
                problems.append(problem)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        for number in range(6):
            kept = kept_contents(project, f"f{number}")
            assert {f"{number} in round {round}".encode() for round in range(4)} <= kept
    assert_in_order(project)


def test_a_watching_workspace_and_other_processes_agree(project: Path, children: Children) -> None:
    (project / "f").write_text("one")
    with mulligan.open(project, watch=True) as workspace:
        workspace.checkpoint()
        running = children.start_together(
            2,
            """
            for round in range(4):
                with mulligan.open(sys.argv[1]) as workspace:
                    with open(f"{sys.argv[1]}/g{sys.argv[2]}", "w") as file:
                        file.write(f"{round}")
                    workspace.checkpoint(f"{sys.argv[2]}-{round}")
            """,
            project,
        )
        for round in range(8):
            (project / "f").write_text(f"{round}")
            taken = workspace.checkpoint()
            assert workspace.read(taken.id, "f") == f"{round}".encode()
        finished(*running)
        last = workspace.checkpoint()
        for number in range(2):
            assert workspace.read(last.id, f"g{number}") == b"3"
    assert_in_order(project)
