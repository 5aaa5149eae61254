"""`mulligan run`: any program under protection, and as if nobody stood behind it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mulligan
from run import COMMAND, mull, write

SCRIPT = "echo new > made; echo more >> kept; rm gone; mkdir d; echo x > d/x"


@pytest.fixture
def filled(project: Path) -> Path:
    write(project, {"kept": "kept\n", "gone": "gone\n"})
    return project


def test_what_a_program_did_is_told_and_can_be_taken_back(filled: Path) -> None:
    done = mull("run", "sh", "-c", SCRIPT, cwd=filled)

    assert done.stdout == b""
    assert "4 files changed" in done.stderr
    for line in ("A  d/x", "A  made", "M  kept", "D  gone"):
        assert line in done.stderr
    with mulligan.open(filled) as workspace:
        (session,) = workspace.sessions.list().sessions
        assert (session.agent, session.title) == ("sh", f"sh -c {SCRIPT}"[:50] + "...")
        assert session.status == "stopped"
        assert len(workspace.review.pending().hunks) == 4
    mull("undo", cwd=filled)
    assert files(filled) == {"kept": "kept\n", "gone": "gone\n"}


def test_a_program_that_changes_nothing(filled: Path) -> None:
    done = mull("run", "true", cwd=filled)
    assert "nothing was changed" in done.stderr


@pytest.mark.parametrize("code", [0, 1, 2, 42, 255])
def test_the_exit_code_is_passed_on(filled: Path, code: int) -> None:
    mull("run", "--", "sh", "-c", f"exit {code}", cwd=filled, code=code)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_death_by_a_signal_is_passed_on_as_shells_do(filled: Path, number: int) -> None:
    done = mull("run", "sh", "-c", f"echo x > made; kill -{number} $$", cwd=filled,
                code=128 + number)  # fmt: skip
    assert "A  made" in done.stderr


def test_a_program_that_is_not_there(filled: Path) -> None:
    for name in ("no-such-program", "./no-such-program"):
        told = f"there is no program {name}; the code is 127."
        assert told in mull("run", name, cwd=filled, code=127).stderr
    done = mull("run", "sh", "-c", "no-such-program", cwd=filled, code=127)
    assert "there is no program" not in done.stderr
    mull("run", "./kept", cwd=filled, code=126)


def test_options_after_the_program_are_the_programs(filled: Path) -> None:
    done = mull("run", "echo", "--json", "-C", "x", "--help", cwd=filled)
    assert done.stdout == b"--json -C x --help\n"


def test_input_and_output_are_the_programs_own(filled: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "run", "sh", "-c", "cat; echo err >&2; pwd"], cwd=filled, input=b"\0in\xff",
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == b"\0in\xff" + bytes(filled) + b"\n"
    assert done.stderr.startswith(b"err\n")


def test_the_summary_as_data_does_not_mix_with_what_the_program_says(filled: Path) -> None:
    script = "echo {}; printf 'no end of line' >&2; echo new > made; exit 7"
    done = mull("run", "--json", "sh", "-c", script, cwd=filled, code=7)

    assert done.stdout == b"{}\n"
    *theirs, summary = done.stderr.splitlines()
    assert theirs == ["no end of line"]
    told = json.loads(summary)
    assert (told["code"], told["problem"]) == (7, None)
    assert (told["step"]["added"], told["step"]["deleted"]) == (["made"], [])
    assert told["session"] == told["step"]["session"]


def test_a_checkpoint_is_taken_whenever_the_tree_falls_quiet(filled: Path, tmp_path: Path) -> None:
    # Each file comes in one step: no look can find half of one.
    for name in ("1", "2"):
        (tmp_path / name).write_text(f"{name}\n")
    script = f"mv '{tmp_path}/1' made; read line; mv '{tmp_path}/2' made"
    process = started("sh", "-c", script, project=filled, stdin=subprocess.PIPE)
    with mulligan.open(filled) as workspace:
        while not (between := [each for each in workspace.log() if each.kind == "watch"]):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
    process.communicate(b"go on\n", timeout=60)
    assert process.returncode == 0

    with mulligan.open(filled) as workspace:
        assert workspace.read(between[-1].id, "made") == b"1\n"
        # One operation all the same: the whole program is taken back at once.
        workspace.undo()
    assert files(filled) == {"kept": "kept\n", "gone": "gone\n"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT])
def test_signals_go_to_the_program_and_mulligan_finishes_in_order(
    filled: Path, number: int
) -> None:
    name = signal.Signals(number).name[3:]
    script = f"trap 'echo caught > made; exit 7' {name}; echo ready; while :; do sleep 0.1; done"
    process = started("sh", "-c", script, project=filled)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"

    process.send_signal(number)

    _output, errors = process.communicate(timeout=60)
    assert process.returncode == 7
    assert b"A  made" in errors


def test_a_program_that_dies_of_the_keyboard_leaves_mulligan_to_finish(filled: Path) -> None:
    """Ctrl-C on a terminal: the program gets it once, and the terminal is the program's own."""
    program = (
        "import os, signal, sys, time\n"
        "count = 0\n"
        "def caught(number, frame):\n"
        "    global count\n"
        "    count += 1\n"
        "signal.signal(signal.SIGINT, caught)\n"
        "assert sys.stdin.isatty() and os.tcgetpgrp(0) == os.getpgrp()\n"
        "print('ready', flush=True)\n"
        "while not count: time.sleep(0.01)\n"
        "time.sleep(0.5)\n"  # for one that comes twice
        "open('made', 'w').write(str(count))\n"
        "sys.exit(3)\n"
    )
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(filled)
        os.execv(sys.executable, [*COMMAND, "run", sys.executable, "-c", program])
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    _pid, status = waited(pid, terminal)

    assert os.waitstatus_to_exitcode(status) == 3
    assert (filled / "made").read_text() == "1"
    with mulligan.open(filled) as workspace:
        assert [hunk.path for hunk in workspace.review.pending().hunks] == ["made"]


def test_a_session_whose_mulligan_was_killed_is_closed_by_whoever_comes_next(
    filled: Path,
) -> None:
    process = started("sh", "-c", "echo 1 > made; echo ready; sleep 60", project=filled)
    assert process.stdout is not None
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()

    with mulligan.open(filled) as workspace:
        assert workspace.sessions.list().sessions[0].status == "stopped"
        assert [hunk.path for hunk in workspace.review.pending().hunks] == ["made"]
        workspace.undo()
    assert files(filled) == {"kept": "kept\n", "gone": "gone\n"}


def test_nothing_runs_where_there_is_no_project(filled: Path, tmp_path: Path) -> None:
    home = Path(os.environ["HOME"])
    done = mull("run", "touch", "made", cwd=home, code=2)
    assert "too wide for a project" in done.stderr
    assert not (home / "made").exists()


def started(
    *program: str, project: Path, stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "run", *program], cwd=project, stdin=stdin,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def waited(pid: int, terminal: int) -> tuple[int, int]:
    """Reads what a program on a terminal says until it has ended."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.read(terminal, 4096)
        except OSError:
            break
    return os.waitpid(pid, 0)


def files(project: Path) -> dict[str, str]:
    return {
        str(path.relative_to(project)): path.read_text()
        for path in project.rglob("*")
        if path.is_file()
    }
