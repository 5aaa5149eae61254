"""Hash a stream in a worker thread while the caller splits it into chunks."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from queue import Queue
from threading import Thread

QUEUED_PIECES = 8


class HashingReader:
    """Passes reads through; after `close`, `digest` is the SHA-256 of all bytes read."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._hash = sha256()
        self._pieces: Queue[bytes] = Queue(QUEUED_PIECES)
        self.digest = b""
        # A daemon: an interrupt before `close` must not keep the process from exiting.
        self._thread: Thread | None = Thread(target=self._work, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # The system has no thread left: `read` hashes each piece itself.
            self._thread = None

    def close(self) -> None:
        """Wait for the worker and set `digest`."""
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

    def _work(self) -> None:
        while piece := self._pieces.get():
            self._hash.update(piece)
