"""Run any program as a turn, with checkpoints while it works.

The program has the terminal and the signals to itself. Checkpoints are taken before it starts,
whenever the files fall quiet after changes, and when it has ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

from mulligan.errors import MulliganError
from mulligan.workspace.attribution import turns
from mulligan.workspace.attribution.checkpoint import take
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.turns import Step
from mulligan.workspace.sessions import sessions
from mulligan.workspace.watch_server import Watching

QUIET_SECONDS = 2.0
NOT_FOUND, NOT_EXECUTABLE = 127, 126
FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
KEYBOARD_SIGNALS = (signal.SIGINT, signal.SIGQUIT)


class Ran(NamedTuple):
    """How a program ended, and what it changed; `problem` says why that is unknown."""

    code: int
    session: str | None
    step: Step | None
    problem: str | None = None


def run(
    project: OpenProject,
    command: Sequence[str],
    *,
    directory: str,
    quiet: float = QUIET_SECONDS,
    starting: Callable[[], None] = lambda: None,
) -> Ran:
    """Run a program; return its exit code, or 128 plus the signal that killed it.

    `starting` is called before the program gets the terminal; nothing is printed after that. Errors
    of recording do not affect the program.
    """
    session = sessions.create(
        project,
        id=None,
        process=os.getpid(),
        values={"agent": os.path.basename(command[0]), "directory": directory},
        checkpoint=False,
    ).id
    turns.begin(project, session, " ".join(command))
    starting()
    shown, project.progress = project.progress, lambda stage, done, total: None
    code = NOT_FOUND
    try:
        code = _run(project, command, directory, quiet)
    finally:
        project.progress = shown
        problem, step = None, None
        try:
            step = turns.end(project, session, status="stopped", interrupted=code > 128)
        except (MulliganError, OSError) as failure:
            problem = str(failure)
    return Ran(code, session, step, problem)


def _run(project: OpenProject, command: Sequence[str], directory: str, quiet: float) -> int:
    # Watch before the start, so that no change is missed.
    watching = _open_watcher(project)
    over = threading.Event()
    work = threading.Thread(
        target=_take_checkpoints,
        args=(project, watching, over, quiet),
        name="watching",
        daemon=True,
    )
    try:
        with _forwarding_signals() as passing:
            try:
                child = subprocess.Popen(command, cwd=directory)
            except (FileNotFoundError, NotADirectoryError):
                return NOT_FOUND
            except OSError:
                return NOT_EXECUTABLE
            passing.to(child)
            work.start()
            code = child.wait()
        over.set()
        work.join()
    finally:
        if watching is not None:
            watching.close()
    return code if code >= 0 else 128 - code


def _open_watcher(project: OpenProject) -> Watching | None:
    """Return a watcher; without one, the end of the turn still sees all changes."""
    try:
        return Watching(project)
    except (MulliganError, OSError):
        return None


def _take_checkpoints(
    project: OpenProject, watching: Watching | None, over: threading.Event, quiet: float
) -> None:
    """Take a checkpoint whenever the files fall quiet after changes."""
    changed_at: float | None = None
    try:
        while watching is not None and not over.is_set():
            if watching.changes(min(0.2, quiet)):
                changed_at = time.monotonic()
            elif changed_at is not None and time.monotonic() - changed_at >= quiet:
                changed_at = None
                take(project, "All quiet after changes", kind="watch")
    except (MulliganError, OSError):
        # The end of the turn records what is missed here.
        return


class _SignalForwarder:
    """Passes signals on to the program, and keeps those that arrive before its start."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._waiting: list[int] = []

    def to(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        for number in self._waiting:
            child.send_signal(number)

    def forward(self, number: int, frame: FrameType | None) -> None:
        if self._child is None:
            self._waiting.append(number)
        elif self._child.poll() is None:
            self._child.send_signal(number)

    def from_the_keyboard(self, number: int, frame: FrameType | None) -> None:
        """Ignore signals of the keyboard: the terminal sends them to the program itself."""
        if self._child is None or not _is_foreground():
            self.forward(number, frame)


@contextmanager
def _forwarding_signals() -> Iterator[_SignalForwarder]:
    """Pass signals on to the program while it runs.

    Uses handlers, because the program would inherit ignored signals.
    """
    passing = _SignalForwarder()
    if threading.current_thread() is not threading.main_thread():
        yield passing
        return
    handlers = dict.fromkeys(FORWARDED_SIGNALS, passing.forward)
    handlers |= dict.fromkeys(KEYBOARD_SIGNALS, passing.from_the_keyboard)
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        # The program inherits ignored signals (nohup), so they are ignored here too.
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield passing
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_foreground() -> bool:
    """True if our process group is the terminal's foreground group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
