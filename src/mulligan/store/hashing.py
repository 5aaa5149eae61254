"""The identity of a large content, worked out by a thread of its own while others cut it up."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from queue import Queue
from threading import Thread
from typing import NamedTuple

AHEAD = 8


class Part(NamedTuple):
    """A part of the content, and its identity as soon as that is known: then it is in the list."""

    content: bytes
    found: list[bytes]


class Hashing:
    """Something to read from; `digest` is the SHA-256 of all that was read, once it is closed."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._hash = sha256()
        self._pieces: Queue[bytes | Part] = Queue(AHEAD)
        self.digest = b""
        # An interrupt may come before it is told the end: it must not keep the process from its.
        self._thread: Thread | None = Thread(target=self._work, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # No thread is to be had: then each piece is hashed where it is read.
            self._thread = None

    def close(self) -> None:
        """Returns when all is known."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._pieces.put(b"")
            thread.join()
        self.digest = self._hash.digest()

    def read(self, size: int) -> bytes:
        piece = self._read(size)
        if self._thread is None:
            self._hash.update(piece)
        elif piece:
            self._pieces.put(piece)
        return piece

    def part(self, content: bytes) -> Part:
        """Has the identity of a part worked out by the thread, behind what was read before."""
        part = Part(content, [])
        if self._thread is None:
            part.found.append(sha256(content).digest())
        else:
            self._pieces.put(part)
        return part

    def _work(self) -> None:
        while piece := self._pieces.get():
            if isinstance(piece, Part):
                piece.found.append(sha256(piece.content).digest())
            else:
                self._hash.update(piece)
