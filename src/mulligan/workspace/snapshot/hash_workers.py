"""Read, hash and compress files in worker processes.

Python runs one thread at a time, so a first scan of a large project would use one core only. Each
worker receives file names, and returns the stat cache's data of each file and the contents as
records of a pack. Workers write nothing and decide nothing: the scanner reads every file itself
that a worker could not read, or that was queued at a worker that died or did not start.

Workers are forked early, while there is little memory to copy; where fork is not available, they
are started when there is work. Each worker queues six batches, and `submit` never blocks.

A message is its length, the length of the records, marshalled data (both ends run the same
interpreter), and the records.
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
QUEUE_DEPTH = 6  # batches per worker
MIN_REPLY_BYTES = 2 << 20  # a worker sends its records at this size, in the middle of a batch, too
PIPE_BYTES = 1 << 20
REPLY_TIMEOUT_MS = 10_000  # milliseconds without a message


class Worker:
    """A worker process, its queue, and the bytes that its pipe has not taken yet."""

    def __init__(self, pid: int, ask: int, answer: int) -> None:
        self.pid = pid
        self.batches: deque[Sequence[ReadJob]] = deque()
        self.ask = ask
        self.answer = answer
        self._unsent = b""
        os.set_blocking(ask, False)
        _enlarge_pipe(answer)

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def send(self, message: Any) -> None:
        """Write as much as the pipe takes now; `flush` writes the rest."""
        self._unsent += _framed(message)
        self.flush()

    def flush(self) -> None:
        with suppress(BlockingIOError):
            self._unsent = self._unsent[os.write(self.ask, self._unsent) :]


class HashWorkers:
    """The worker processes of one scan. Not thread-safe."""

    def __init__(self, writer: Writer, root: bytes, *, limit: int) -> None:
        self._writer = writer
        self._task = (root, limit)
        self._workers: list[Worker] = []
        self._results: list[ReadResult] = []
        self._cleanup = ExitStack()

    @property
    def is_busy(self) -> bool:
        return bool(self._results) or any(worker.batches for worker in self._workers)

    def fork(self, count: int) -> None:
        self._have(count, self._fork_one)

    def begin(self, count: int) -> None:
        self._have(count, self._begin_one)

    def submit(self, batch: Sequence[ReadJob]) -> bool:
        worker = min(self._workers, key=_load, default=None)
        if worker is None or _load(worker) >= QUEUE_DEPTH:
            return False
        worker.batches.append(batch)
        worker.send([(job.directory, job.name) for job in batch])
        return True

    def poll(self, *, wait: bool) -> list[ReadResult]:
        busy = {worker.answer: worker for worker in self._workers if worker.batches}
        unsent = {worker.ask: worker for worker in busy.values() if worker.has_unsent}
        if busy and not self._results:
            poll = select.poll()
            for fd in busy:
                poll.register(fd, select.POLLIN)
            for fd in unsent:
                poll.register(fd, select.POLLOUT)
            for fd, _event in poll.poll(REPLY_TIMEOUT_MS if wait else 0):
                if fd in unsent:
                    unsent[fd].flush()
                else:
                    self._take_from(busy[fd])
            if not self._results:
                # A process that inherited the pipe hides the worker's death from `poll`.
                for worker in [
                    worker for worker in busy.values() if wait and has_ended(worker.pid)
                ]:
                    self._drop_dead(worker)
        results, self._results = self._results, []
        return results

    def close(self) -> None:
        """Close the pipes; workers exit at end of file."""
        self._workers.clear()
        self._cleanup.close()

    def _have(self, count: int, make: Callable[[], Worker | None]) -> None:
        try:
            for _ in range(count):
                worker = make()
                if worker is not None:
                    self._workers.append(worker)
                    worker.send(self._task)
        except OSError:
            # The scanner needs the remaining file descriptors.
            self.close()

    def _take_from(self, worker: Worker) -> None:
        try:
            (seen, listed), records = _receive(worker.answer)
        except (OSError, EOFError, ValueError):
            self._drop_dead(worker)
            return
        self._writer.put_framed(listed, records)
        batch = worker.batches.popleft()
        if len(seen) < len(batch):
            worker.batches.appendleft(batch[len(seen) :])
        self._results += map(ReadResult, batch, seen, repeat(None))

    def _drop_dead(self, worker: Worker) -> None:
        """Forget a dead worker; its queued files must be read again."""
        self._workers.remove(worker)
        self._results += [ReadResult(job, None, None) for batch in worker.batches for job in batch]

    def _fork_one(self) -> Worker | None:
        with self._pipes() as pipes:
            question, ask, answer, reply = pipes
            work = partial(worker_main, question, reply)
            pid = self._cleanup.enter_context(child(work, {question, reply}))
        return Worker(pid, ask, answer) if pid is not None else None

    def _begin_one(self) -> Worker:
        import subprocess

        if not os.path.basename(sys.executable or "").startswith("python"):
            raise OSError("Python is embedded in this program, so workers cannot be started.")
        with self._pipes() as pipes:
            question, ask, answer, reply = pipes
            process = subprocess.Popen(
                # With `-S`, Python starts faster, and the parent's path is passed on.
                [sys.executable, "-S", "-E", "-c", BEGIN.format(path=sys.path)],
                stdin=question,
                stdout=reply,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._cleanup.callback(process.wait)
            self._cleanup.callback(process.kill)
        return Worker(process.pid, ask, answer)

    @contextmanager
    def _pipes(self) -> Iterator[tuple[int, int, int, int]]:
        """Return two pipes as four descriptors.

        The read end of the requests stays open here, so that writing to a dead worker raises no
        SIGPIPE.
        """
        question, ask = os.pipe()
        self._cleanup.callback(os.close, question)
        self._cleanup.callback(os.close, ask)
        answer, reply = os.pipe()
        self._cleanup.callback(os.close, answer)
        try:
            yield question, ask, answer, reply
        finally:
            os.close(reply)


def worker_main(question: int = 0, reply: int = 1) -> None:
    """Read the requested files until the parent closes the pipe."""
    try:
        (root, limit), _nothing = _receive(question)
        while True:
            asked, _nothing = _receive(question)
            _read(root, limit, asked, reply)
    except (EOFError, BrokenPipeError):
        os._exit(0)


def _read(root: bytes, limit: int, asked: Iterable[tuple[bytes, bytes]], reply: int) -> None:
    """Read files and send the results; large results in several parts."""
    sink = _PackSink()
    node = Node()
    seen: list[FileStat | None] = []
    jobs = [ReadJob(directory, name, node, UNKNOWN, None, False) for directory, name in asked]
    for result in FileReader(root, sink, limit=limit).read_here(jobs):
        seen.append(result.seen)
        if sink.bytes >= MIN_REPLY_BYTES:
            _send(reply, (seen, sink.listed), sink.records)
            seen, sink.bytes = [], 0
            sink.listed.clear()
            sink.records.clear()
    if seen:
        _send(reply, (seen, sink.listed), sink.records)


class _PackSink:
    """A sink that keeps contents as records of a pack."""

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
        raise OSError("Too large for a worker; the scanner reads it in chunks.")


def _load(worker: Worker) -> int:
    return len(worker.batches)


def _enlarge_pipe(pipe: int) -> None:
    """Enlarge the pipe, so that a large result needs few reads."""
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
            # The worker died while it was writing: drop the incomplete message.
            raise EOFError
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)
