"""The command as a process among others: starting, interrupting, watching, waiting, piping."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from screen import running

import mulligan
from run import COMMAND, mull, quick, write

PATIENCE = 60.0


def imported(*arguments: str, cwd: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def tops(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_told_without_importing_anything_heavy(project: Path, option: str) -> None:
    assert mull(option, cwd=project).stdout.decode() == f"mulligan {mulligan.__version__}\n"
    modules = imported("-m", "mulligan", option, cwd=project)
    assert "mulligan.cli.main" in modules
    assert not tops(modules) & {"click", "apsw", "backports", "pyfastcdc", "sqlite3", "asyncio"}


def test_importing_the_package_imports_no_dependency(project: Path) -> None:
    modules = imported("-c", "import mulligan", cwd=project)
    assert "mulligan" in modules
    assert not tops(modules) & {"click", "apsw", "backports", "pyfastcdc", "sqlite3"}


def test_the_library_works_without_the_command_line(project: Path) -> None:
    write(project, {"a": "1"})
    script = (
        "import mulligan\n"
        "with mulligan.open('.') as workspace:\n"
        "    workspace.checkpoint(); workspace.status(); workspace.log()\n"
    )
    modules = imported("-c", script, cwd=project)
    assert "apsw" in modules and "click" not in modules


def test_a_reader_that_has_seen_enough_is_no_error_worth_words(project: Path) -> None:
    write(project, {f"f{number}": "x" for number in range(1500)})
    write(project, {"large": "line\n" * 100_000})
    quick("checkpoint", project=project)
    write(project, {"large": "other\n" * 100_000})
    for command in ("show @", "--json show @", "show @:large", "diff"):
        piped = " ".join(COMMAND) + f" {command} | head -c 1"
        done = subprocess.run(["bash", "-c", piped], cwd=project, capture_output=True, check=False)
        assert len(done.stdout) == 1
        for word in (b"Traceback", b"Broken", b"Exception"):
            assert word not in done.stderr


def test_what_was_done_is_done_though_nobody_reads_of_it(project: Path) -> None:
    write(project, {f"f{number}": "one" for number in range(20)})
    quick("checkpoint", project=project)
    write(project, {f"f{number}": "two" for number in range(20)})
    for command in ("restore @", "undo", "redo --json", "checkpoint", "log", "status", "diff"):
        piped = f"{' '.join(COMMAND)} {command} | true; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", piped], cwd=project, capture_output=True, check=False)
        assert done.returncode == 0, command
        assert b"Traceback" not in done.stderr
    assert (project / "f7").read_text() == "one"


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_colours_are_left_out_where_the_user_wants_none(project: Path, env: dict[str, str]) -> None:
    write(project, {"f": "one"})
    quick("checkpoint", project=project)
    write(project, {"f": "two"})
    for command in (["status"], ["diff"], ["show", "@nope"]):
        with running(*command, cwd=project, env=env) as screen:
            screen.wait()
            assert (b"\x1b[" in screen.written) == (not env)


def test_a_full_standard_output_is_an_error_without_a_traceback(project: Path) -> None:
    quick("checkpoint", project=project)
    for command in (["show", "@"], ["--json", "log"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [*COMMAND, *command],
                cwd=project,
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
            )
        assert b"Traceback" not in done.stderr
        if "--json" in command:
            assert done.returncode != 0 and b"space" in done.stderr


def test_interrupting_a_checkpoint_leaves_a_clean_store(project: Path, mulligan_home: Path) -> None:
    for number in range(400):
        write(project, {f"d{number % 20}/f{number}": os.urandom(100_000)})
    process = subprocess.Popen(
        [*COMMAND, "checkpoint"], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    packs = "projects/*/objects/*.pack"
    until(lambda: sum(each.stat().st_size for each in mulligan_home.glob(packs)) > 1000)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and stdout == b""
    assert b"Traceback" not in stderr and b"Interrupted" in stderr
    assert quick("log", "--json", project=project).json == {"checkpoints": []}
    assert quick("verify", "--json", project=project).json["clean"] is True
    assert quick("checkpoint", "--json", project=project).json["files"] == 400
    write(project, {"d1/f1": "changed"})
    quick("restore", "@", project=project)
    assert quick("verify", "--json", project=project).json["clean"] is True


def test_a_busy_project_gives_exit_code_5_and_names_the_process(project: Path) -> None:
    write(project, {"a": "1"})
    mull("checkpoint", cwd=project)
    impatient = (
        "import functools\n"
        "from mulligan.workspace import workspace\n"
        "workspace.open_workspace = functools.partial(workspace.open_workspace, wait=0.2)\n"
        "from mulligan.cli.main import main\n"
        "main()\n"
    )
    with mulligan.open(project) as holder, holder.project.locked():
        done = subprocess.run(
            [sys.executable, "-c", impatient, "--json", "checkpoint"],
            cwd=project,
            capture_output=True,
            check=False,
        )
        reading = mull("log", cwd=project), mull("status", cwd=project)
    assert done.returncode == 5
    assert json.loads(done.stdout)["error"]["code"] == "busy"
    assert str(os.getpid()).encode() in done.stderr
    assert len(reading[0].lines) == 1 and reading[1].stdout == b""


@contextmanager
def watching(project: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], Callable]]:
    """A running `mulligan watch --json`, and a function that waits for a line like this."""
    process = subprocess.Popen(
        [*COMMAND, "watch", "--json", *options],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines: queue.Queue[str] = queue.Queue()

    def pump() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)

    thread = threading.Thread(target=pump, daemon=True)
    thread.start()

    def wait_for(fits: Callable[[dict[str, object]], bool]) -> dict[str, object]:
        while True:
            found = json.loads(lines.get(timeout=PATIENCE))
            if fits(found):
                return found

    try:
        yield process, wait_for
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=PATIENCE)
        thread.join(timeout=PATIENCE)


def test_watch_serves_other_processes_and_ends_in_order(project: Path, mulligan_home: Path) -> None:
    write(project, {"a": "1", "d/b": "1"})
    with watching(project) as (process, wait_for):
        assert wait_for(lambda line: "watching" in line)["watching"] == str(project)
        first = mull("log", "--json", cwd=project).json["checkpoints"]
        assert [each["kind"] for each in first] == ["initial"]
        write(project, {"d/b": "2", "d/new/deep": "2", os.fsdecode(b"odd\xff"): "2"})
        wait_for(lambda line: line.get("path") == "d/b")
        rows = mull("status", "--json", cwd=project).json["changed_files"]
        assert {each["path"] for each in rows} == {"d/b", "d/new/deep", os.fsdecode(b"odd\xff")}
        taken = mull("checkpoint", "--json", cwd=project).json
        assert taken["changes"] == {"added": 2, "modified": 1, "deleted": 0}
        mull("restore", "@1", cwd=project)
        assert (project / "d/b").read_text() == "1" and not (project / "d/new").exists()
        assert mull("status", "--json", cwd=project).json["changed_files"] == []
        write(project, {"a": "3"})
        rows = mull("status", "--json", cwd=project).json["changed_files"]
        assert [each["path"] for each in rows] == ["a"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr is not None and "Ended" in process.stderr.read()
    assert not list(mulligan_home.glob("projects/*/watch.sock"))
    write(project, {"a": "4", "later": "4"})
    rows = mull("status", "--json", cwd=project).json["changed_files"]
    assert {each["path"] for each in rows} == {"a", "later"}
    assert quick("verify", "--json", project=project).json["clean"] is True


def test_watch_takes_a_checkpoint_when_all_is_quiet(project: Path) -> None:
    write(project, {"a": "1"})
    with watching(project, "--checkpoint-after", "0.1") as (process, wait_for):
        wait_for(lambda line: "watching" in line)
        write(project, {"a": "2"})
        taken = wait_for(lambda line: "checkpoint" in line)
        assert taken["kind"] == "watch"
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 0
    assert quick("show", f"{taken['checkpoint']}:a", project=project).stdout == b"2"


def test_after_a_killed_watcher_everything_works_as_before(project: Path) -> None:
    write(project, {"a": "1"})
    with watching(project) as (process, wait_for):
        wait_for(lambda line: "watching" in line)
        process.kill()
        process.wait(timeout=PATIENCE)
    write(project, {"a": "2"})
    assert mull("checkpoint", "--json", cwd=project).json["changes"]["modified"] == 1
    with watching(project) as (process, wait_for):
        wait_for(lambda line: "watching" in line)
        write(project, {"a": "3"})
        wait_for(lambda line: line.get("path") == "a")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE) == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "<&- 2>&-"])
def test_closed_standard_streams_are_never_taken_for_files_of_the_store(
    project: Path, closed: str
) -> None:
    write(project, {"a.txt": "one\n"})
    taken = [*COMMAND, "checkpoint", "-m", "as it was"]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *taken],
        cwd=project,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0
    assert [each["message"] for each in mull("log", "--json", cwd=project).json["checkpoints"]] == [
        "as it was"
    ]
    assert mull("verify", "--json", cwd=project).json["problems"] == []
    script = (
        "import os, sys; from mulligan.cli import main; main._open_standard_descriptors(); "
        "fd = os.open('held', os.O_CREAT | os.O_WRONLY); print('words', file=sys.stderr); "
        "sys.exit(fd < 3)"
    )
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", script],
        cwd=project, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0
