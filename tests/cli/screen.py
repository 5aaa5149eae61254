"""A program on a pseudo-terminal, seen as its user sees it: a screen, read by an emulator."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyte

PATIENCE = 30.0


class Screen:
    """What stands on the terminal; `press` types, `until` waits for something to be seen."""

    def __init__(self, master: int, pid: int, columns: int, rows: int) -> None:
        self.pid = pid
        self.written = b""
        self.exit: int | None = None
        self._master = master
        self._cells = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._cells)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._cells.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def style(self, row: int, column: int) -> Any:
        """The cell there, with its colours."""
        return self._cells.buffer[row][column]

    def attributes(self) -> list[Any]:
        """How the terminal treats keys and output."""
        return termios.tcgetattr(self._master)

    def press(self, keys: str) -> None:
        data = keys.encode()
        while data:
            data = data[os.write(self._master, data) :]

    def resize(self, columns: int, rows: int) -> None:
        self._cells.resize(rows, columns)
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def until(self, is_so: str | Callable[[], bool]) -> str:
        """Waits until a text is on the screen, or something else is so; gives the screen."""
        deadline = time.monotonic() + PATIENCE
        while not (is_so in self.text if isinstance(is_so, str) else is_so()):
            assert time.monotonic() < deadline, f"never seen: {is_so}\n{self.text}"
            assert self._read(0.2) or self.exit is None, f"ended without {is_so}\n{self.text}"
        return self.text

    def wait(self) -> int:
        """The exit code, once the program has ended."""
        deadline = time.monotonic() + PATIENCE
        while self.exit is None:
            assert time.monotonic() < deadline, f"did not end\n{self.text}"
            self._read(0.2)
        while self._read(0.1):
            pass
        return self.exit

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], timeout)
        if ready:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                data = b""
            if data:
                self.written += data
                self._stream.feed(data)
                return True
        if self.exit is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.exit = os.waitstatus_to_exitcode(status)
        return False


@contextmanager
def running(
    *arguments: str,
    cwd: Path,
    columns: int = 80,
    rows: int = 24,
    env: Mapping[str, str] | None = None,
) -> Iterator[Screen]:
    """`mulligan` with these arguments on a terminal of this size; killed if it is still there."""
    # The size must be there before the program is, so the two are made apart.
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    pid = os.fork()
    if not pid:
        try:
            os.close(master)
            os.login_tty(slave)
            os.chdir(cwd)
            environment = {**os.environ, "TERM": "xterm-256color", **(env or {})}
            command = [sys.executable, "-m", "mulligan", *arguments]
            os.execvpe(command[0], command, environment)
        finally:
            os._exit(127)
    screen = Screen(master, pid, columns, rows)
    try:
        yield screen
    finally:
        if screen.exit is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(slave)
        os.close(master)
