"""Threads that work for somebody: quick turns, and none that is left behind."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mulligan.worktree.fs import background
from mulligan.worktree.fs.background import POLL_SECONDS, BackgroundTask, short_switch_interval


def test_turns_are_quick_for_a_while() -> None:
    interval = sys.getswitchinterval()
    with short_switch_interval():
        assert sys.getswitchinterval() == pytest.approx(POLL_SECONDS)
    assert sys.getswitchinterval() == interval


def test_work_is_done_by_another_thread_and_once() -> None:
    by: list[int] = []
    begun = threading.Event()

    def note() -> None:
        by.append(threading.get_ident())
        begun.set()

    work = BackgroundTask(note)
    work.start()
    begun.wait()
    work.wait()
    work.wait()
    assert work.is_over
    assert len(by) == 1
    assert by != [threading.get_ident()]


def test_whoever_waits_waits_for_the_end() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), []

    def slow() -> None:
        begun.set()
        may_end.wait()
        done.append(True)

    work = BackgroundTask(slow)
    work.start()
    begun.wait()
    assert not work.is_over
    threading.Timer(0.05, may_end.set).start()
    work.wait()
    assert done == [True]


def refuse(*_: object) -> int:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("start", [refuse, lambda *_: 0], ids=["no thread", "a late one"])
def test_what_no_thread_has_begun_is_done_by_whoever_waits(
    monkeypatch: pytest.MonkeyPatch, start: Callable[..., int]
) -> None:
    monkeypatch.setattr(background, "start_new_thread", start)
    monkeypatch.setattr(background, "_starting", set())
    by: list[int] = []
    work = BackgroundTask(lambda: by.append(threading.get_ident()))
    work.start()
    assert by == []
    work.wait()
    assert by == [threading.get_ident()]


def test_a_thread_that_comes_late_finds_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    late: list[Callable[[], Any]] = []
    monkeypatch.setattr(background, "start_new_thread", lambda work, _: late.append(work) or 0)
    done: list[bool] = []
    work = BackgroundTask(lambda: done.append(True))
    work.start()
    work.wait()
    thread = threading.Thread(target=late[0])
    thread.start()
    thread.join()
    assert done == [True]


def test_an_interrupt_does_not_leave_a_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, end = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        end.wait()

    work = BackgroundTask(slow)
    work.start()
    begun.wait()
    interrupts = iter([KeyboardInterrupt, KeyboardInterrupt])
    lock = work._going

    class Interrupted:
        def acquire(self) -> bool:
            for interrupt in interrupts:
                raise interrupt
            end.set()
            return lock.acquire()

        def release(self) -> None:
            lock.release()

    monkeypatch.setattr(work, "_going", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        work.wait()
    assert work.is_over


def test_an_interrupt_of_whoever_does_it_is_raised_and_it_is_over() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    work = BackgroundTask(interrupted)
    with pytest.raises(KeyboardInterrupt):
        work.wait()
    assert work.is_over
    work.wait()


def test_work_that_fails_is_over_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda each: said.append(each.exc_type))
    begun = threading.Event()

    def fail() -> None:
        begun.set()
        raise MemoryError

    work = BackgroundTask(fail)
    work.start()
    begun.wait()
    work.wait()
    while not said:
        threading.Event().wait(0.01)
    assert said == [MemoryError]


LATE = """
import os, time
from mulligan.worktree.fs import background

start = background.start_new_thread

def late(function, arguments):
    def run():
        time.sleep(0.2)
        os.write(1, b"begun")
        function(*arguments)
    return start(run, ())

background.start_new_thread = late
work = background.BackgroundTask(lambda: None)
work.start()
work.wait()
"""


def test_a_process_does_not_end_before_its_threads_have_begun() -> None:
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, check=True)
    assert done.stdout == b"begun"
