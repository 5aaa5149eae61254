"""The identity of a large content, worked out by a thread of its own while others cut it up."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from queue import Queue
from threading import Thread

AHEAD = 8


class Hashing:
    """Something to read from; `digest` is the SHA-256 of all that was read, once it is closed."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._hash = sha256()
        self._pieces: Queue[bytes] = Queue(AHEAD)
        self.digest = b""
        # An interrupt may come before it is told the end: it must not keep the process from its.
        self._thread: Thread | None = Thread(target=self._work, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # No thread is to be had: then each piece is hashed where it is read.
            self._thread = None

    def close(self) -> None:
        if self._thread is not None:
            self._pieces.put(b"")
            self._thread.join()
        self.digest = self._hash.digest()

    def read(self, size: int) -> bytes:
        piece = self._read(size)
        if self._thread is None:
            self._hash.update(piece)
        elif piece:
            self._pieces.put(piece)
        return piece

    def _work(self) -> None:
        while piece := self._pieces.get():
            self._hash.update(piece)
