"""Reading the bytes of files that changed, several at a time.

The scan only notes which files are to be read; they are opened, read, hashed and compressed when it
is through, large ones by threads. Where there is much to read, other processes do it: of a project
that is new they stand by from the beginning, and read while the rest of it is still being listed. A
file that changes while it is read is read again; if it will not hold still, what was read last is
kept, and the cache is told not to trust it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from mulligan.core.ids import ObjectId
from mulligan.core.tree import FILE
from mulligan.worktree.fs.background import READ_THREADS
from mulligan.worktree.fs.safe_paths import OPEN_FILE, RESOURCE_ERRORS, Directories
from mulligan.worktree.scan.fork import can_fork
from mulligan.worktree.scan.racy import is_racy, racy_cutoff
from mulligan.worktree.scan.stat_cache import FileStat, Node

MIN_STREAMED_BYTES = 1 << 20
MIN_BYTES_FOR_WORKERS = 24 << 20
BATCH_FILES = 48
BATCH_BYTES = 4 << 20
MAX_READ_ATTEMPTS = 4
UNKNOWN = -1
"""The size of a file that nobody has looked at yet."""


class Sink(Protocol):
    """Where contents go; the object store's writer, or something that only takes the hash."""

    def put(self, content: bytes, *, base: bytes | None = None) -> ObjectId: ...

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[ObjectId, int]: ...


class HashWorkers(Protocol):
    """Other processes, which read small files that were never seen before."""

    @property
    def is_busy(self) -> bool:
        """Whether there is something yet to be taken."""

    def fork(self, count: int) -> None:
        """Has so many of them ready, if they can be had. There must be no other thread."""

    def begin(self, count: int) -> None:
        """The same, whatever other threads there are."""

    def submit(self, batch: Sequence[ReadJob]) -> bool:
        """Has one of them read some files; `False` if all have enough to do, or none is there."""

    def poll(self, *, wait: bool) -> list[ReadResult]:
        """What was read; of a file that is still to be read nothing is said."""

    def close(self) -> None: ...


class ReadJob(NamedTuple):
    """A file to read, and where in the cache the answer belongs."""

    directory: bytes
    name: bytes
    node: Node
    size: int
    base: bytes | None
    guard: bool


class ReadResult(NamedTuple):
    job: ReadJob
    seen: FileStat | None
    problem: str | None


class FileReader:
    """Collects files to read; `finish` has them all read and hands out the answers."""

    def __init__(
        self,
        root: bytes,
        sink: Sink,
        *,
        limit: int,
        progress: Callable[[int, int], None] | None = None,
        hands: Callable[[], HashWorkers] | None = None,
    ) -> None:
        self._root = root
        self._sink = sink
        self._limit = limit
        self._progress = progress
        self._more_hands = hands if READ_THREADS > 1 else None
        self._hands: HashWorkers | None = None
        self._jobs: list[ReadJob] = []
        self._left: list[ReadJob] = []
        self._new: list[ReadJob] = []
        self._batches: deque[list[ReadJob]] = deque()
        self._answers: list[ReadResult] = []
        self._bytes = 0

    @property
    def is_prepared(self) -> bool:
        """Whether a new file is best read at once, without a look at it before."""
        return self._hands is not None

    def read(self, job: ReadJob) -> None:
        if self._hands is None or not _is_for_hands(job):
            self._jobs.append(job)
            return
        self._new.append(job)
        if len(self._new) == BATCH_FILES:
            self._batches.append(self._new)
            self._new = []
            self._give()
            self._take(wait=False)

    def finish(self) -> list[ReadResult]:
        """Every answer; raises what the sink raised, once nothing is running any more."""
        try:
            self._call_hands()
            while self._hands is not None:
                self._give()
                if not self._hands.is_busy:
                    break
                self._take(wait=True)
        finally:
            self._send_away()
        jobs = [*self._jobs, *(job for batch in self._batches for job in batch)]
        # What others have left is mostly large.
        self._read_all([*self._left, *[job for job in jobs if job.size >= MIN_STREAMED_BYTES]])
        for batch in _batches([job for job in jobs if job.size < MIN_STREAMED_BYTES]):
            # One after another: several threads at small files would mostly wait for Python.
            self._note(list(self.read_here(batch)))
        for done in (self._jobs, self._left, self._batches):
            done.clear()
        answers, self._answers, self._bytes = self._answers, [], 0
        return answers

    @contextmanager
    def prepared(self, *, for_much: bool) -> Iterator[None]:
        """Other processes stand by while everything is listed, if there may be much to read."""
        if for_much and self._more_hands is not None and can_fork():
            self._hands = self._more_hands()
        try:
            if self._hands is not None:
                self._hands.fork(READ_THREADS)
            yield
        finally:
            self._send_away()

    def _call_hands(self) -> None:
        """Has others read what is left, if that is so much that it takes less time."""
        new, self._new = self._new, []
        if self._hands is not None:
            if self._batches or self._hands.is_busy:
                self._batches.extend(_batches(new))
            else:
                # As little as this is read sooner than others are told of it.
                self._jobs += new
        elif self._more_hands is not None:
            new = [job for job in self._jobs if _is_for_hands(job)]
            if sum(job.size for job in new) >= MIN_BYTES_FOR_WORKERS:
                self._jobs = [job for job in self._jobs if not _is_for_hands(job)]
                self._batches.extend(_batches(new))
                self._hands = self._more_hands()
                self._hands.begin(READ_THREADS)

    def _give(self) -> None:
        assert self._hands is not None
        while self._batches and self._hands.submit(self._batches[0]):
            self._batches.popleft()

    def _take(self, *, wait: bool) -> None:
        assert self._hands is not None
        found = self._hands.poll(wait=wait)
        self._left += [job for job, seen, _problem in found if seen is None]
        self._note([each for each in found if each[1] is not None])

    def _send_away(self) -> None:
        if self._hands is not None:
            self._hands.close()
            self._hands = None

    def _read_all(self, jobs: list[ReadJob]) -> None:
        """Several at a time."""
        if len(jobs) < 2 or READ_THREADS < 2:
            self._note(list(self.read_here(jobs)))
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(READ_THREADS, thread_name_prefix="mulligan-read") as pool:
            try:
                for found in pool.map(lambda job: list(self.read_here([job])), jobs):
                    self._note(found)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _note(self, found: list[ReadResult]) -> None:
        self._answers += found
        if found and self._progress is not None:
            self._bytes += sum([seen[2] for _job, seen, _problem in found if seen is not None])
            self._progress(len(self._answers), self._bytes)

    def read_here(self, batch: Iterable[ReadJob]) -> Iterator[ReadResult]:
        """Reads files in this process, one after another."""
        with Directories(self._root) as directories:
            for job in batch:
                try:
                    fd = os.open(job.name, OPEN_FILE, dir_fd=directories.open(job.directory))
                    try:
                        found = self._read_one(job, fd)
                    finally:
                        os.close(fd)
                except OSError as problem:
                    if problem.errno in RESOURCE_ERRORS:
                        raise
                    vanished = problem.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
                    reason = f"cannot be read: {problem.strerror}"
                    if vanished:
                        reason = "vanished while it was looked at"
                    elif job.size == UNKNOWN:
                        reason = _why_not_looked_at(directories, job) or reason
                    found = ReadResult(job, None, reason)
                yield found

    def _read_one(self, job: ReadJob, fd: int) -> ReadResult:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return ReadResult(job, None, "is no ordinary file")
        for _attempt in range(MAX_READ_ATTEMPTS):
            before = racy_cutoff(status.st_dev)
            if status.st_size > self._limit:
                grew = "grew beyond the limit while it was looked at"
                why = grew if job.size >= 0 else too_large(status.st_size, self._limit)
                return ReadResult(job, None, why)
            if status.st_size < MIN_STREAMED_BYTES:
                content = _whole(fd, status.st_size)
                id, size = self._sink.put(content, base=job.base), len(content)
            else:
                id, size = self._sink.put_stream(lambda n: os.read(fd, n), base=job.base)
            was, status = status, os.fstat(fd)
            still = (
                was.st_mtime_ns == status.st_mtime_ns
                and was.st_ctime_ns == status.st_ctime_ns
                and size == status.st_size
            )
            if still:
                break
            os.lseek(fd, 0, os.SEEK_SET)
        return ReadResult(job, remember(status, size, id, before, still=still), None)


def _why_not_looked_at(directories: Directories, job: ReadJob) -> str | None:
    """The reason, if not even a look at a file is allowed."""
    try:
        os.stat(job.name, dir_fd=directories.open(job.directory), follow_symlinks=False)
    except OSError as problem:
        return f"cannot be looked at: {problem.strerror}"
    return None


def too_large(size: int, limit: int) -> str:
    return f"is larger than the limit: {_amount(size)}, and the limit is {_amount(limit)}"


def _amount(size: int) -> str:
    for unit, shift in (("MB", 20), ("KB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.1f} {unit}"
    return f"{size} B"


def _is_for_hands(job: ReadJob) -> bool:
    return job.base is None and job.size < MIN_STREAMED_BYTES


def _batches(jobs: list[ReadJob]) -> Iterator[list[ReadJob]]:
    batch: list[ReadJob] = []
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
    status: os.stat_result, size: int, id: bytes, before: int, *, still: bool = True
) -> FileStat:
    """What the cache keeps of a file that was read when things were `settled` before a moment."""
    changed = status.st_ctime_ns
    if not still or is_racy(changed, before):
        changed = -1
    mode = status.st_mode & 0o7777
    return (FILE, mode, size, status.st_mtime_ns, changed, status.st_ino, id)


def _whole(fd: int, size: int) -> bytes:
    data = os.read(fd, size + 1)
    if len(data) == size or not data:
        return data
    pieces = [data]
    while piece := os.read(fd, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)
