"""The terminal as the review needs it: a screen of its own, keys one by one, and left as found.

Signals only wake whoever waits for keys; what to do about them is decided there. Whatever ends the
review, an exception and SIGTERM included, the terminal is first given back as it was.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[2J"
LEAVE = "\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
"""The other screen, no cursor, no wrapping: a line whose width a terminal sees otherwise than we
do cannot push the lines below it down. What is pasted comes marked as such."""

PASTE, PASTE_END = b"\x1b[200~", b"\x1b[201~"
PASTED = "pasted:"
"""How a key begins that is no key, but a text from the clipboard."""

ESCAPE_SECONDS = 0.05
STOPPING = (signal.SIGTERM, signal.SIGHUP)
KEYS = {
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left",
    b"\x1bOA": "up", b"\x1bOB": "down", b"\x1bOC": "right", b"\x1bOD": "left",
    b"\x1b[5~": "page up", b"\x1b[6~": "page down", b"\x1b[Z": "shift tab",
    b"\x1b[H": "home", b"\x1b[F": "end", b"\x1b[1~": "home", b"\x1b[4~": "end",
    b"\r": "enter", b"\n": "enter", b"\t": "tab", b"\x7f": "backspace", b"\x08": "backspace",
    b"\x1b": "escape", b"\x03": "interrupt", b"\x1a": "suspend", b"\x0c": "redraw",
}  # fmt: skip
SEQUENCE = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b[^\[O\x1b]|\x1b", re.DOTALL)


class Terminal:
    """Use it as a context manager, in the main thread: it needs signals."""

    def __init__(self) -> None:
        self.stopped: int | None = None
        self._in = sys.stdin.fileno()
        self._out = sys.stdout.fileno()
        self._encoding = sys.stdout.encoding or "utf-8"
        self._rows: list[str] = []
        self._drawn_at = self.size
        self._left = b""
        self._pasting = False
        self._attributes: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self._wake = (-1, -1)

    def __enter__(self) -> Terminal:
        self._attributes = termios.tcgetattr(self._in)
        self._wake = os.pipe()
        for end in self._wake:
            os.set_blocking(end, False)
        for number in (*STOPPING, signal.SIGWINCH):
            self._handlers[number] = signal.signal(number, self._signalled)
        self._enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for end in self._wake:
            os.close(end)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            columns, rows = os.get_terminal_size(self._out)
        except OSError:
            columns, rows = 0, 0
        return (columns, rows) if columns and rows else (80, 24)

    def draw(self, rows: list[str]) -> None:
        """Shows these rows; only those that differ from what is there are written."""
        if self._drawn_at != self.size:
            # Terminals do as they like with what was there before they changed their size.
            self._drawn_at = self.size
            self.forget()
        changes = [
            f"\x1b[{number};1H\x1b[2K{row}"
            for number, row in enumerate(rows, 1)
            if number > len(self._rows) or self._rows[number - 1] != row
        ]
        self._rows = list(rows)
        self._write("".join(changes))

    def forget(self) -> None:
        """Somebody else may have written on the screen: the next `draw` draws everything."""
        self._rows = []
        self._write("\x1b[2J")

    def keys(self, timeout: float) -> list[str]:
        """The keys pressed so far, after waiting for some; none when time or life is up."""
        ready = self._wait(timeout)
        if self._wake[0] in ready:
            self._forget_wakes()
        if self._in not in ready:
            return []
        try:
            data = os.read(self._in, 4096)
        except OSError:
            data = b""
        if not data:
            # The terminal is gone.
            self.stopped = self.stopped or signal.SIGHUP
            return []
        data = self._left + data
        while _is_unfinished(data) and self._in in self._wait(ESCAPE_SECONDS):
            more = os.read(self._in, 4096)
            if not more:
                break
            data += more
        return self._parsed(data)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """The terminal is somebody else's for a while, such as an editor's."""
        self._leave()
        # Ctrl-C is meant for them, and comes to us as well.
        interrupting = signal.signal(signal.SIGINT, lambda number, frame: None)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, interrupting)
            self._enter()

    def _enter(self) -> None:
        tty.setraw(self._in, termios.TCSADRAIN)
        self._rows = []
        self._write(ENTER)

    def _leave(self) -> None:
        self._write(LEAVE)
        try:
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._attributes)
        except (OSError, termios.error):
            # There is no terminal any more that could be given back.
            return

    def _wait(self, timeout: float) -> list[int]:
        return select.select([self._in, self._wake[0]], [], [], timeout)[0]

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if number in STOPPING:
            self.stopped = number
        try:
            os.write(self._wake[1], b"!")
        except BlockingIOError:
            return

    def _forget_wakes(self) -> None:
        try:
            while os.read(self._wake[0], 512):
                pass
        except BlockingIOError:
            return

    def _parsed(self, data: bytes) -> list[str]:
        found = []
        self._left = b""
        position = 0
        while position < len(data):
            if data[position] == 0x1B:
                sequence = SEQUENCE.match(data, position)
                assert sequence is not None
                found.append("" if self._pasting else KEYS.get(sequence.group(), ""))
                if sequence.group() in (PASTE, PASTE_END):
                    self._pasting = sequence.group() == PASTE
                position = sequence.end()
                continue
            length = _length(data[position])
            if position + length > len(data):
                # The rest of the character is still to come.
                self._left = data[position:]
                break
            key = data[position : position + length]
            position += length
            character = key.decode("utf-8", "ignore")
            found.append(PASTED + character if self._pasting else KEYS.get(key) or character)
        return [key for key in found if key]

    def _write(self, text: str) -> None:
        data = text.encode(self._encoding, "replace")
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except OSError:
            self.stopped = self.stopped or signal.SIGHUP


def _is_unfinished(data: bytes) -> bool:
    """Whether what was read ends within the sequence of a key."""
    return re.search(rb"\x1b(\[[0-?]*[ -/]*|O)?\Z", data) is not None


def _length(first: int) -> int:
    """How many bytes a character has that begins so."""
    if first >= 0xF0:
        return 4
    if first >= 0xE0:
        return 3
    return 2 if first >= 0xC0 else 1
