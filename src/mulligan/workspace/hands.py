"""Many hands: processes that read, hash and compress files, for when there is much to read.

Python runs one thread at a time, and a first look at a large project would leave most of the
machine idle. Each of these processes is given names, and gives back what the cache keeps of each
file, and its content as a pack holds it. They write nothing and decide nothing: what one of them
cannot read, or leaves unread because it died or could not be started, is left to whoever asked.

They are forked where that can be done, before there is anything to copy; else they are new ones,
begun when there is work for them. Messages are framed by their length, and marshalled: both ends
are the same interpreter.
"""

from __future__ import annotations

import marshal
import os
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import sha256
from threading import Lock, local
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from mulligan.files.contents import Contents, Job
from mulligan.files.forking import child
from mulligan.files.index import Node, Seen
from mulligan.store.packing import Packer

if TYPE_CHECKING:
    from mulligan.store.writer import Writer

LENGTH = struct.Struct("<I")
BEGIN = "import sys; sys.path[:] = {path!r}; from mulligan.workspace.hands import lend; lend()"


class Hand(NamedTuple):
    """One of the processes, and how to speak with it."""

    pid: int
    ask: IO[bytes]
    answer: IO[bytes]


class Hands:
    """The processes that work for one look; each thread that asks has one of its own."""

    def __init__(self, writer: Writer, root: bytes, *, limit: int) -> None:
        self._writer = writer
        self._task = (root, limit)
        self._own = local()
        self._lock = Lock()
        self._idle: list[Hand] = []
        self._ends = ExitStack()

    def fork(self, count: int) -> None:
        """Has some ready. There must be no other thread."""
        try:
            for _ in range(count):
                self._fork_one()
        except OSError:
            # What there is of descriptors is needed for looking.
            self.close()

    def read(self, batch: Sequence[Job]) -> list[Seen | None]:
        """What the files are now; `None` for each that is still to be read."""
        try:
            hand = getattr(self._own, "hand", None) or self._begin()
            _send(hand.ask, [(job.directory, job.name, job.size) for job in batch])
            seen, packed = _receive(hand.answer)
        except (OSError, EOFError, ValueError):
            return [None] * len(batch)
        for each in packed:
            self._writer.put_packed(*each)
        return list(seen)

    def close(self) -> None:
        """They end when there is nothing more to read."""
        self._idle.clear()
        self._ends.close()

    def _begin(self) -> Hand:
        with self._lock:
            hand = self._idle.pop() if self._idle else self._start_one()
        self._own.hand = hand
        _send(hand.ask, self._task)
        return hand

    def _fork_one(self) -> None:
        with ExitStack() as theirs:
            question, ask = os.pipe()
            theirs.callback(os.close, question)
            asking = os.fdopen(ask, "wb")
            self._ends.callback(_close, asking)
            answer, reply = os.pipe()
            theirs.callback(os.close, reply)
            answering = os.fdopen(answer, "rb")
            self._ends.callback(answering.close)
            work = partial(_lend_through, question, reply)
            pid = self._ends.enter_context(child(work, {question, reply}))
        if pid is not None:
            self._idle.append(Hand(pid, asking, answering))

    def _start_one(self) -> Hand:
        import subprocess

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
        assert process.stdin is not None
        assert process.stdout is not None
        hand = Hand(process.pid, process.stdin, process.stdout)
        self._ends.callback(process.wait)
        self._ends.callback(hand.answer.close)
        self._ends.callback(_close, hand.ask)
        self._ends.callback(process.kill)
        return hand


def lend(ask: IO[bytes] | None = None, answer: IO[bytes] | None = None) -> None:
    """The other end: reads what it is told to, until nobody is there any more."""
    ask, answer = ask or sys.stdin.buffer, answer or sys.stdout.buffer
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


def _lend_through(question: int, reply: int) -> None:
    lend(os.fdopen(question, "rb"), os.fdopen(reply, "wb"))


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


def _close(to: IO[bytes]) -> None:
    # What was still to be said to one that had died is said to nobody.
    with suppress(BrokenPipeError):
        to.close()


def _send(to: IO[bytes], message: Any) -> None:
    data = marshal.dumps(message)
    to.write(LENGTH.pack(len(data)) + data)
    to.flush()


def _receive(source: IO[bytes]) -> Any:
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    data = source.read(length)
    if len(data) < length:
        # It died while it spoke: nothing of that counts.
        raise EOFError
    return marshal.loads(data)
