"""Reading the bytes of files that changed, several at a time.

The scan opens the files, so that each is the one it looked at, and hands them over in batches;
threads read, hash and compress them. A file that changes while it is read is read again; if it
will not hold still, what was read last is kept, and the cache is told not to trust it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mulligan.core.tree import FILE
from mulligan.files.index import Node, Seen

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

LARGE = 1 << 20
BATCH_FILES = 48
BATCH_BYTES = 4 << 20
ATTEMPTS = 4
WORKERS = min(4, os.cpu_count() or 1)


class Sink(Protocol):
    """Where contents go; the object store's writer, or something that only takes the hash."""

    def put(self, content: bytes, *, base: bytes | None = None) -> bytes: ...

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[bytes, int]: ...


class Job(NamedTuple):
    """An open file, and where in the cache the answer belongs."""

    fd: int
    node: Node
    name: bytes
    status: os.stat_result
    base: bytes | None
    guard: bool


class Answer(NamedTuple):
    job: Job
    seen: Seen | None
    problem: str | None


class Contents:
    """Reads what it is given; `finish` waits for all of it and hands out the answers."""

    def __init__(
        self, sink: Sink, started: int, progress: Callable[[int, int], None] | None = None
    ) -> None:
        self._sink = sink
        self._started = started
        self._progress = progress
        self._batch: list[Job] = []
        self._batch_bytes = 0
        self._running: deque[Future[list[Answer]]] = deque()
        self._answers: list[Answer] = []
        self._pool: ThreadPoolExecutor | None = None
        self._files = self._bytes = 0

    def read(self, job: Job) -> None:
        self._batch.append(job)
        self._batch_bytes += job.status.st_size
        if len(self._batch) >= BATCH_FILES or self._batch_bytes >= BATCH_BYTES:
            self._hand_over()

    def finish(self) -> list[Answer]:
        """Every answer; raises what a sink raised, once nothing is running any more."""
        try:
            if self._batch and self._pool is None:
                # So little that starting threads would cost more than reading it.
                batch, self._batch = self._batch, []
                self._took(self._read_batch(batch))
            elif self._batch:
                self._hand_over()
            while self._running:
                self._took(self._running.popleft().result())
        finally:
            self.close()
        return self._answers

    def close(self) -> None:
        for job in self._batch:
            os.close(job.fd)
        self._batch.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None

    def _hand_over(self) -> None:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="mulligan-read")
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        self._running.append(self._pool.submit(self._read_batch, batch))
        # A bounded queue: open files and memory stay few however many files there are.
        while len(self._running) > 2 * WORKERS:
            self._took(self._running.popleft().result())

    def _took(self, answers: list[Answer]) -> None:
        self._answers += answers
        self._files += len(answers)
        self._bytes += sum(answer.job.status.st_size for answer in answers)
        if self._progress is not None:
            self._progress(self._files, self._bytes)

    def _read_batch(self, batch: list[Job]) -> list[Answer]:
        answers = []
        try:
            while batch:
                job = batch.pop()
                try:
                    answers.append(Answer(job, self._read_one(job), None))
                except OSError as problem:
                    answers.append(Answer(job, None, f"cannot be read: {problem.strerror}"))
                finally:
                    os.close(job.fd)
        finally:
            for job in batch:
                os.close(job.fd)
        return answers

    def _read_one(self, job: Job) -> Seen:
        status = job.status
        for _attempt in range(ATTEMPTS):
            if status.st_size < LARGE:
                content = _read_all(job.fd, status.st_size)
                id, size = self._sink.put(content, base=job.base), len(content)
            else:
                id, size = self._sink.put_stream(lambda n: os.read(job.fd, n), base=job.base)
            before, status = status, os.fstat(job.fd)
            still = (
                before.st_mtime_ns == status.st_mtime_ns
                and before.st_ctime_ns == status.st_ctime_ns
                and size == status.st_size
            )
            if still:
                break
            os.lseek(job.fd, 0, os.SEEK_SET)
        return remember(status, size, id, self._started, still=still)


def remember(
    status: os.stat_result, size: int, id: bytes, started: int, *, still: bool = True
) -> Seen:
    """What the cache keeps of a file that was read after the moment `started`."""
    changed = status.st_ctime_ns
    if not still or is_racy(changed, started):
        changed = -1
    mode = status.st_mode & 0o7777
    return (FILE, mode, size, status.st_mtime_ns, changed, status.st_ino, id)


def is_racy(changed: int, started: int) -> bool:
    """Whether a change after `started` could carry the same time as this one.

    Times of whole milliseconds come from file systems that count in those, or in seconds.
    """
    slack = 2_000_000_000 if changed % 1_000_000 == 0 else 50_000_000
    return changed >= started - slack


def _read_all(fd: int, size: int) -> bytes:
    data = os.read(fd, size + 1)
    if len(data) == size or not data:
        return data
    pieces = [data]
    while piece := os.read(fd, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)
