"""Reading the bytes of files that changed, several at a time.

The scan only notes which files are to be read; when it is through, threads open, read, hash and
compress them in batches. (While both run at once they mostly wait for each other.) Where there is
much to read, they have it read by other processes. A file that changes while it is read is read
again; if it will not hold still, what was read last is kept, and the cache is told not to trust
it.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from mulligan.core.tree import FILE
from mulligan.files.forking import can_fork
from mulligan.files.index import Node, Seen
from mulligan.files.reach import OPEN_FILE, OUT_OF_MEANS, Directories
from mulligan.files.threads import WORKERS, quick_turns

LARGE = 1 << 20
MUCH = 24 << 20
BATCH_FILES = 48
BATCH_BYTES = 4 << 20
ATTEMPTS = 4
HANDS = WORKERS + 1
"""One more than there are cores: while an answer is taken in, somebody else reads."""


class Sink(Protocol):
    """Where contents go; the object store's writer, or something that only takes the hash."""

    def put(self, content: bytes, *, base: bytes | None = None) -> bytes: ...

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[bytes, int]: ...


class Hands(Protocol):
    """Other processes, which read small files that were never seen before."""

    def read(self, batch: Sequence[Job]) -> list[Seen | None]:
        """What the cache keeps of each file; `None` if it is still to be read."""

    def fork(self, count: int) -> None:
        """Has so many of them ready."""

    def close(self) -> None: ...


class Job(NamedTuple):
    """A file to read, and where in the cache the answer belongs."""

    directory: bytes
    name: bytes
    node: Node
    size: int
    base: bytes | None
    guard: bool


class Answer(NamedTuple):
    job: Job
    seen: Seen | None
    problem: str | None


class Contents:
    """Collects files to read; `finish` reads them all and hands out the answers."""

    def __init__(
        self,
        root: bytes,
        sink: Sink,
        *,
        limit: int,
        progress: Callable[[int, int], None] | None = None,
        hands: Callable[[], Hands] | None = None,
    ) -> None:
        self._root = root
        self._sink = sink
        self._limit = limit
        self._progress = progress
        self._more_hands = hands
        self._hands: Hands | None = None
        self._jobs: list[Job] = []

    def read(self, job: Job) -> None:
        self._jobs.append(job)

    def finish(self) -> list[Answer]:
        """Every answer; raises what the sink raised, once nothing is running any more."""
        jobs, self._jobs = self._jobs, []
        new = [job for job in jobs if job.base is None and job.size < LARGE]
        if self._more_hands is None or WORKERS < 2 or sum(job.size for job in new) < MUCH:
            self._send_away()
            return self._read_all(list(_batches(jobs)), WORKERS)
        others = [job for job in jobs if job.base is not None or job.size >= LARGE]
        self._hands = self._hands or self._more_hands()
        try:
            found = self._read_all(list(_batches(new)), HANDS)
        finally:
            self._send_away()
        return found + self._read_all(list(_batches(others)), WORKERS)

    @contextmanager
    def prepared(self, *, for_much: bool) -> Iterator[None]:
        """Other processes stand by while everything is listed, if there may be much to read."""
        if for_much and self._more_hands is not None and WORKERS > 1 and can_fork():
            self._hands = self._more_hands()
        try:
            if self._hands is not None:
                self._hands.fork(HANDS)
            yield
        finally:
            self._send_away()

    def _send_away(self) -> None:
        if self._hands is not None:
            self._hands.close()
            self._hands = None

    def _read_all(self, batches: list[list[Job]], workers: int) -> list[Answer]:
        if len(batches) < 2 or workers < 2:
            # So little that starting threads would cost more than reading it.
            return self._gather(map(self._read_batch, batches))
        from concurrent.futures import ThreadPoolExecutor

        with (
            quick_turns(),
            ThreadPoolExecutor(workers, thread_name_prefix="mulligan-read") as pool,
        ):
            try:
                return self._gather(pool.map(self._read_batch, batches))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _gather(self, found: Iterator[list[Answer]]) -> list[Answer]:
        answers: list[Answer] = []
        size = 0
        for batch in found:
            answers += batch
            size += sum(answer.job.size for answer in batch)
            if self._progress is not None:
                self._progress(len(answers), size)
        return answers

    def _read_batch(self, batch: list[Job]) -> list[Answer]:
        if self._hands is None:
            return self.read_here(batch)
        found = list(zip(batch, self._hands.read(batch), strict=True))
        left = [job for job, seen in found if seen is None]
        return [Answer(job, seen, None) for job, seen in found if seen] + self.read_here(left)

    def read_here(self, batch: list[Job]) -> list[Answer]:
        """Reads files in this process, one after another."""
        answers = []
        with Directories(self._root) as directories:
            for job in batch:
                try:
                    fd = os.open(job.name, OPEN_FILE, dir_fd=directories.open(job.directory))
                    try:
                        answers.append(self._read_one(job, fd))
                    finally:
                        os.close(fd)
                except OSError as problem:
                    if problem.errno in OUT_OF_MEANS:
                        raise
                    vanished = problem.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
                    reason = f"cannot be read: {problem.strerror}"
                    reason = "vanished while it was looked at" if vanished else reason
                    answers.append(Answer(job, None, reason))
        return answers

    def _read_one(self, job: Job, fd: int) -> Answer:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return Answer(job, None, "is no ordinary file")
        for _attempt in range(ATTEMPTS):
            begun = time.time_ns()
            if status.st_size > self._limit:
                return Answer(job, None, "grew beyond the limit while it was looked at")
            if status.st_size < LARGE:
                content = _whole(fd, status.st_size)
                id, size = self._sink.put(content, base=job.base), len(content)
            else:
                id, size = self._sink.put_stream(lambda n: os.read(fd, n), base=job.base)
            before, status = status, os.fstat(fd)
            still = (
                before.st_mtime_ns == status.st_mtime_ns
                and before.st_ctime_ns == status.st_ctime_ns
                and size == status.st_size
            )
            if still:
                break
            os.lseek(fd, 0, os.SEEK_SET)
        return Answer(job, remember(status, size, id, begun, still=still), None)


def _batches(jobs: list[Job]) -> Iterator[list[Job]]:
    batch: list[Job] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += job.size
        if len(batch) >= BATCH_FILES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def remember(
    status: os.stat_result, size: int, id: bytes, begun: int, *, still: bool = True
) -> Seen:
    """What the cache keeps of a file whose reading had `begun` at that moment."""
    changed = status.st_ctime_ns
    if not still or is_racy(changed, begun):
        changed = -1
    mode = status.st_mode & 0o7777
    return (FILE, mode, size, status.st_mtime_ns, changed, status.st_ino, id)


def is_racy(changed: int, read: int) -> bool:
    """Whether a change after the moment of its being `read` could carry the same time as this one.

    Times of whole milliseconds come from file systems that count in those, or in seconds.
    """
    slack = 2_000_000_000 if changed % 1_000_000 == 0 else 50_000_000
    return changed >= read - slack


def _whole(fd: int, size: int) -> bytes:
    data = os.read(fd, size + 1)
    if len(data) == size or not data:
        return data
    pieces = [data]
    while piece := os.read(fd, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)
