"""Many hands: processes that read, hash and compress files, for when there is much to read.

Python runs one thread at a time, and a first look at a large project would leave most of the
machine idle. Each of these processes is given names, and gives back what the cache keeps of each
file, and their contents as records of a pack. They write nothing and decide nothing: what one of
them cannot read, or leaves unread because it died or could not be started, is left to whoever
asked.

They are forked where that can be done, before there is anything to copy; else they are new ones,
begun when there is work for them. Each has some batches before it, so that it never waits for
whoever asks, who never waits for it unless it wants to. A message is its length and that of the
records behind it, what is marshalled (both ends are the same interpreter), and the records.
"""

from __future__ import annotations

import marshal
import os
import select
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import sha256
from itertools import repeat
from typing import TYPE_CHECKING, Any

from mulligan.core.ids import ObjectId
from mulligan.store.packing import Packer
from mulligan.store.packs import Framed, frame_head
from mulligan.worktree.scan.fork import child, has_ended
from mulligan.worktree.scan.reader import UNKNOWN, FileReader, ReadJob, ReadResult
from mulligan.worktree.scan.stat_cache import FileStat, Node

if TYPE_CHECKING:
    from mulligan.store.writer import Writer

LENGTHS = struct.Struct("<II")
BEGIN = (
    "import sys; sys.path[:] = {path!r}; "
    "from mulligan.workspace.snapshot.hash_workers import worker_main; worker_main()"
)
QUEUE_DEPTH = 6  # batches that one of them has before it
MIN_REPLY_BYTES = 2 << 20  # bytes of records from which on it does not wait for the end of a batch
PIPE_BYTES = 1 << 20
REPLY_TIMEOUT_MS = 10_000  # milliseconds without a word


class Worker:
    """One of the processes: what it has before it, and what it has not been told yet."""

    def __init__(self, pid: int, ask: int, answer: int) -> None:
        self.pid = pid
        self.batches: deque[Sequence[ReadJob]] = deque()
        self.ask = ask
        self.answer = answer
        self._unsaid = b""
        os.set_blocking(ask, False)
        _widen(answer)

    @property
    def has_more_to_hear(self) -> bool:
        return bool(self._unsaid)

    def say(self, message: Any) -> None:
        """As much of it as it takes now; `go_on` says the rest."""
        self._unsaid += _framed(message)
        self.go_on()

    def go_on(self) -> None:
        with suppress(BlockingIOError):
            self._unsaid = self._unsaid[os.write(self.ask, self._unsaid) :]


class HashWorkers:
    """The processes that work for one look. For one thread."""

    def __init__(self, writer: Writer, root: bytes, *, limit: int) -> None:
        self._writer = writer
        self._task = (root, limit)
        self._hands: list[Worker] = []
        self._left: list[ReadResult] = []
        self._ends = ExitStack()

    @property
    def is_busy(self) -> bool:
        return bool(self._left) or any(hand.batches for hand in self._hands)

    def fork(self, count: int) -> None:
        self._have(count, self._fork_one)

    def begin(self, count: int) -> None:
        self._have(count, self._begin_one)

    def submit(self, batch: Sequence[ReadJob]) -> bool:
        hand = min(self._hands, key=_load, default=None)
        if hand is None or _load(hand) >= QUEUE_DEPTH:
            return False
        hand.batches.append(batch)
        hand.say([(job.directory, job.name) for job in batch])
        return True

    def poll(self, *, wait: bool) -> list[ReadResult]:
        busy = {hand.answer: hand for hand in self._hands if hand.batches}
        deaf = {hand.ask: hand for hand in busy.values() if hand.has_more_to_hear}
        if busy and not self._left:
            poll = select.poll()
            for fd in busy:
                poll.register(fd, select.POLLIN)
            for fd in deaf:
                poll.register(fd, select.POLLOUT)
            for fd, _event in poll.poll(REPLY_TIMEOUT_MS if wait else 0):
                if fd in deaf:
                    deaf[fd].go_on()
                else:
                    self._take_from(busy[fd])
            if not self._left:
                # Where somebody else has got hold of its pipe, that does not tell of its death.
                for hand in [hand for hand in busy.values() if wait and has_ended(hand.pid)]:
                    self._lose(hand)
        found, self._left = self._left, []
        return found

    def close(self) -> None:
        """They end when there is nothing more to read."""
        self._hands.clear()
        self._ends.close()

    def _have(self, count: int, make: Callable[[], Worker | None]) -> None:
        try:
            for _ in range(count):
                hand = make()
                if hand is not None:
                    self._hands.append(hand)
                    hand.say(self._task)
        except OSError:
            # What there is of descriptors is needed for looking.
            self.close()

    def _take_from(self, hand: Worker) -> None:
        try:
            (seen, listed), records = _receive(hand.answer)
        except (OSError, EOFError, ValueError):
            self._lose(hand)
            return
        self._writer.put_framed(listed, records)
        batch = hand.batches.popleft()
        if len(seen) < len(batch):
            hand.batches.appendleft(batch[len(seen) :])
        self._left += map(ReadResult, batch, seen, repeat(None))

    def _lose(self, hand: Worker) -> None:
        """It is no more; what it had before it is still to be read."""
        self._hands.remove(hand)
        self._left += [ReadResult(job, None, None) for batch in hand.batches for job in batch]

    def _fork_one(self) -> Worker | None:
        with self._line() as line:
            question, ask, answer, reply = line
            work = partial(worker_main, question, reply)
            pid = self._ends.enter_context(child(work, {question, reply}))
        return Worker(pid, ask, answer) if pid is not None else None

    def _begin_one(self) -> Worker:
        import subprocess

        if not os.path.basename(sys.executable or "").startswith("python"):
            raise OSError("This program has Python inside of it, and cannot be started as Python.")
        with self._line() as line:
            question, ask, answer, reply = line
            process = subprocess.Popen(
                # Without a site of its own: it starts faster, and finds what we found.
                [sys.executable, "-S", "-E", "-c", BEGIN.format(path=sys.path)],
                stdin=question,
                stdout=reply,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._ends.callback(process.wait)
            self._ends.callback(process.kill)
        return Worker(process.pid, ask, answer)

    @contextmanager
    def _line(self) -> Iterator[tuple[int, int, int, int]]:
        """Two pipes, as four descriptors. Ours are closed in the end, and so is the one at which
        a question is read: to speak to nobody might end a program that would rather not know."""
        question, ask = os.pipe()
        self._ends.callback(os.close, question)
        self._ends.callback(os.close, ask)
        answer, reply = os.pipe()
        self._ends.callback(os.close, answer)
        try:
            yield question, ask, answer, reply
        finally:
            os.close(reply)


def worker_main(question: int = 0, reply: int = 1) -> None:
    """The other end: reads what it is told to, until nobody is there any more."""
    try:
        (root, limit), _nothing = _receive(question)
        while True:
            asked, _nothing = _receive(question)
            _read(root, limit, asked, reply)
    except (EOFError, BrokenPipeError):
        os._exit(0)


def _read(root: bytes, limit: int, asked: Iterable[tuple[bytes, bytes]], reply: int) -> None:
    """Reads files, and says what they are: of many bytes in several parts."""
    sink = _Packed()
    node = Node()
    seen: list[FileStat | None] = []
    jobs = [ReadJob(directory, name, node, UNKNOWN, None, False) for directory, name in asked]
    for found in FileReader(root, sink, limit=limit).read_here(jobs):
        seen.append(found.seen)
        if sink.bytes >= MIN_REPLY_BYTES:
            _send(reply, (seen, sink.listed), sink.records)
            seen, sink.bytes = [], 0
            sink.listed.clear()
            sink.records.clear()
    if seen:
        _send(reply, (seen, sink.listed), sink.records)


class _Packed:
    """Keeps what is put into it as a pack would hold it."""

    packer = Packer()

    def __init__(self) -> None:
        self.listed: dict[bytes, Framed] = {}
        self.records: list[bytes] = []
        self.bytes = 0

    def put(self, content: bytes, *, base: bytes | None = None) -> ObjectId:
        id = ObjectId(sha256(content).digest())
        if id not in self.listed:
            encoding, payload = self.packer.pack(content)
            self.listed[id] = (encoding, len(content), len(payload))
            head = frame_head(encoding, len(content), id, None, len(payload))
            self.records += (head, payload)
            self.bytes += len(payload)
        return id

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[ObjectId, int]:
        raise OSError("It is large: it is to be cut up by whoever asked.")


def _load(hand: Worker) -> int:
    return len(hand.batches)


def _widen(pipe: int) -> None:
    """So that an answer of many bytes does not have to be taken in many turns."""
    import fcntl

    with suppress(OSError, AttributeError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _framed(message: Any, records: Sequence[bytes] = ()) -> bytes:
    data = marshal.dumps(message)
    return b"".join([LENGTHS.pack(len(data), sum(map(len, records))), data, *records])


def _send(to: int, message: Any, records: Sequence[bytes]) -> None:
    view = memoryview(_framed(message, records))
    while view:
        view = view[os.write(to, view) :]


def _receive(source: int) -> tuple[Any, bytes]:
    length, more = LENGTHS.unpack(_exactly(source, LENGTHS.size))
    message = marshal.loads(_exactly(source, length))
    return message, _exactly(source, more)


def _exactly(source: int, length: int) -> bytes:
    data = os.read(source, length) if length else b""
    if len(data) == length:
        return data
    pieces, missing = [data], length - len(data)
    while missing:
        piece = os.read(source, missing)
        if not piece:
            # It died while it spoke: nothing of that counts.
            raise EOFError
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)
