"""Threads that work for somebody: quick turns, and none that is left behind."""

from __future__ import annotations

import sys
import threading

import pytest

from mulligan.files.threads import SOON, quick_turns, wait_for


def test_turns_are_quick_for_a_while() -> None:
    interval = sys.getswitchinterval()
    with quick_turns():
        assert sys.getswitchinterval() == pytest.approx(SOON)
    assert sys.getswitchinterval() == interval


def test_an_interrupt_does_not_leave_a_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()
    join = threading.Thread.join
    interrupts = iter([KeyboardInterrupt])

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        for interrupt in interrupts:
            end.set()
            raise interrupt
        join(thread, timeout)

    thread = threading.Thread(target=end.wait)
    thread.start()
    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wait_for(thread)
    assert not thread.is_alive()
