"""Many hands: processes that read, hash and compress files, for when there is much to read.

Python runs one thread at a time, and a first look at a large project would leave most of the
machine idle. Each of these processes is given names, and gives back what the cache keeps of each
file, and its content as a pack holds it. They write nothing and decide nothing: what one of them
cannot read, or leaves unread because it died or could not be started, is left to whoever asked.

Messages are framed by their length, and marshalled: both ends are the same interpreter.
"""

from __future__ import annotations

import marshal
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from threading import Lock, local
from typing import IO, TYPE_CHECKING, Any

from mulligan.files.contents import Contents, Job
from mulligan.files.index import Node, Seen
from mulligan.store.packing import Packer

if TYPE_CHECKING:
    from mulligan.store.writer import Writer

LENGTH = struct.Struct("<I")
BEGIN = "import sys; sys.path[:] = {path!r}; from mulligan.workspace.hands import lend; lend()"


class Hands:
    """The processes that work for one look; each thread that asks has one of its own."""

    def __init__(self, writer: Writer, root: bytes, *, limit: int) -> None:
        self._writer = writer
        self._task = (root, limit)
        self._own = local()
        self._lock = Lock()
        self._all: list[subprocess.Popen[bytes]] = []

    def read(self, batch: Sequence[Job]) -> list[Seen | None]:
        """What the files are now; `None` for each that is still to be read."""
        try:
            process = getattr(self._own, "process", None) or self._begin()
            _send(process.stdin, [(job.directory, job.name, job.size) for job in batch])
            seen, packed = _receive(process.stdout)
        except (OSError, EOFError, ValueError):
            return [None] * len(batch)
        for each in packed:
            self._writer.put_packed(*each)
        return list(seen)

    def close(self) -> None:
        """They end when there is nothing more to read."""
        for process in self._all:
            process.kill()
            # What was still to be said to one that had died is said to nobody.
            with suppress(BrokenPipeError), process:
                pass
        self._all.clear()

    def _begin(self) -> subprocess.Popen[bytes]:
        if not os.path.basename(sys.executable or "").startswith("python"):
            raise OSError("This program has Python inside of it, and cannot be started as Python.")
        process = subprocess.Popen(
            # Without a site of its own: it starts faster, and finds what we found.
            [sys.executable, "-S", "-E", "-c", BEGIN.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._own.process = process
        with self._lock:
            self._all.append(process)
        _send(process.stdin, self._task)
        return process


def lend() -> None:
    """The other end: reads what it is told to, until nobody is there any more."""
    ask, answer = sys.stdin.buffer, sys.stdout.buffer
    try:
        root, limit = _receive(ask)
        while True:
            sink = _Packed()
            contents = Contents(root, sink, limit=limit)
            node = Node()
            jobs = [Job(at, name, node, size, None, False) for at, name, size in _receive(ask)]
            _send(answer, ([found.seen for found in contents.read_here(jobs)], sink.packed))
    except (EOFError, BrokenPipeError):
        os._exit(0)


class _Packed:
    """Keeps what is put into it as a pack would hold it."""

    packer = Packer()

    def __init__(self) -> None:
        self.packed: list[tuple[bytes, int, int, bytes]] = []

    def put(self, content: bytes, *, base: bytes | None = None) -> bytes:
        id = sha256(content).digest()
        self.packed.append((id, len(content), *self.packer.pack(content)))
        return id

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[bytes, int]:
        raise OSError("It has grown large in the meantime.")


def _send(to: IO[bytes] | None, message: Any) -> None:
    assert to is not None
    data = marshal.dumps(message)
    to.write(LENGTH.pack(len(data)) + data)
    to.flush()


def _receive(source: IO[bytes] | None) -> Any:
    assert source is not None
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    data = source.read(length)
    if len(data) < length:
        # It died while it spoke: nothing of that counts.
        raise EOFError
    return marshal.loads(data)
