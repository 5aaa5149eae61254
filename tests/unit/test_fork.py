"""Forked children: what they inherit, and that they end with their block."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mulligan.worktree.scan import fork
from mulligan.worktree.scan.fork import can_fork, child, has_ended

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no child elsewhere")


def is_gone(pid: int) -> bool:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def test_a_child_works_while_the_block_runs_and_is_gone_when_it_ends() -> None:
    end, own = os.pipe()

    def work() -> None:
        os.write(own, b"hello")
        time.sleep(60)

    with child(work, {own}) as pid:
        assert pid is not None
        assert os.read(end, 5) == b"hello"
    assert is_gone(pid)
    os.close(own)
    assert os.read(end, 1) == b""
    os.close(end)


def test_a_child_is_gone_when_the_block_is_left_by_an_exception() -> None:
    with pytest.raises(KeyboardInterrupt), child(lambda: time.sleep(60), ()) as pid:
        raise KeyboardInterrupt
    assert pid is not None
    assert is_gone(pid)


def test_no_process_is_killed_for_a_child_that_was_reaped_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed: list[int] = []
    monkeypatch.setattr(fork.os, "kill", lambda pid, _signal: killed.append(pid))
    with child(lambda: None, ()) as pid:
        assert pid is not None
        os.waitpid(pid, 0)
    assert killed == []


def test_an_error_in_a_child_ends_the_child_and_not_the_parent(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def work() -> None:
        raise RuntimeError("not to be seen")

    with child(work, ()) as pid:
        assert pid is not None
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert capfd.readouterr() == ("", "")


def test_a_child_runs_no_handler_of_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    end, own = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    old = signal.signal(signal.SIGUSR1, lambda *_: os.write(own, b"handled") and None)
    try:
        with child(lambda: time.sleep(60), {own}) as pid:
            assert pid is not None
            os.kill(pid, signal.SIGUSR1)
            time.sleep(0.1)
        os.write(own, b"end")
        assert os.read(end, 100) == b"end"
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    finally:
        signal.signal(signal.SIGUSR1, old)
        os.close(end)
        os.close(own)


def test_a_child_does_not_hold_the_locks_of_the_parent(tmp_path: Path) -> None:
    held = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    end, own = os.pipe()

    def work() -> None:
        os.write(own, b"ready")
        time.sleep(60)

    with child(work, {own}):
        assert os.read(end, 5) == b"ready"
        os.close(held)
        again = os.open(tmp_path / "lock", os.O_RDWR)
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(again)
    os.close(end)
    os.close(own)


def test_without_a_fork_there_is_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room() -> int:
        raise BlockingIOError(11, "no more processes")

    monkeypatch.setattr(fork.os, "fork", no_room)
    with child(lambda: None, ()) as pid:
        assert pid is None


def test_a_process_with_other_threads_or_one_processor_does_not_fork() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert not can_fork()
    finally:
        stop.set()
        thread.join()
    code = """
import os, threading
from mulligan.worktree.scan.fork import can_fork
alone = can_fork()
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
together = can_fork()
stop.set()
thread.join()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(alone, together, can_fork())
"""
    printed = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert printed == [str(len(os.sched_getaffinity(0)) > 1), "False", "False"]


@pytest.mark.parametrize(("spare", "enough"), [(-1, False), (0, True), (1000, True), (None, True)])
def test_a_process_with_few_descriptors_does_not_fork(
    monkeypatch: pytest.MonkeyPatch, spare: int | None, enough: bool
) -> None:
    listed = os.listdir
    alone = {"/proc/self/task": ["1"]}
    limit = resource.RLIM_INFINITY
    if spare is not None:
        limit = len(listed("/proc/self/fd")) + fork.SPARE_DESCRIPTORS + spare
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(os, "listdir", lambda path: alone.get(path) or listed(path))
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (limit, resource.RLIM_INFINITY))
    assert can_fork() is enough


def test_an_interrupt_at_the_end_leaves_no_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wait = os.waitpid
    interrupts = iter([KeyboardInterrupt, KeyboardInterrupt])

    def interrupted(pid: int, how: int) -> tuple[int, int]:
        for each in interrupts:
            raise each
        return wait(pid, how)

    def ended_by_an_interrupt() -> int:
        with child(lambda: time.sleep(60), ()) as pid:
            assert pid is not None
            assert not has_ended(pid)
            begun.append(pid)
            monkeypatch.setattr(os, "waitpid", interrupted)
        return pid

    begun: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        ended_by_an_interrupt()
    monkeypatch.undo()
    assert is_gone(begun[0])
    assert has_ended(begun[0])
