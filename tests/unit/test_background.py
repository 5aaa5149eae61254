"""Background tasks run once, are waited for, and never outlive their caller."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from mulligan.worktree.fs import background
from mulligan.worktree.fs.background import BackgroundTask


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
    assert work.is_done
    assert len(by) == 1
    assert by != [threading.get_ident()]


def test_wait_returns_after_the_work() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), []

    def slow() -> None:
        begun.set()
        may_end.wait()
        done.append(True)

    work = BackgroundTask(slow)
    work.start()
    begun.wait()
    assert not work.is_done
    threading.Timer(0.05, may_end.set).start()
    work.wait()
    assert done == [True]


def refuse(*_: object) -> int:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("start", [refuse, lambda *_: 0], ids=["no thread", "a late one"])
def test_work_that_no_thread_has_begun_is_done_by_wait(
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


def test_a_late_thread_does_not_repeat_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
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
    lock = work._done_lock

    class Interrupted:
        def acquire(self) -> bool:
            for interrupt in interrupts:
                raise interrupt
            end.set()
            return lock.acquire()

        def release(self) -> None:
            lock.release()

    monkeypatch.setattr(work, "_done_lock", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        work.wait()
    assert work.is_done


def test_an_interrupt_of_the_work_is_raised_and_the_task_is_done() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    work = BackgroundTask(interrupted)
    with pytest.raises(KeyboardInterrupt):
        work.wait()
    assert work.is_done
    work.wait()


def test_work_that_fails_in_its_thread_is_done_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
