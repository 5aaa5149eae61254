"""Read, hash and store the files that changed.

The scanner queues files; `finish` reads them: small files one after another, large ones in
threads, many new small files in worker processes. For a new project the workers are forked first
and read while the scanner is still listing.

A file that changes while it is read is read again, at most `MAX_READ_ATTEMPTS` times; then the last
content is kept and the file is marked as racy in the cache.
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
"""The size of a file without a stat."""


class Sink(Protocol):
    """Takes contents: the object store's writer, or one that only hashes."""

    def put(self, content: bytes, *, base: bytes | None = None) -> ObjectId: ...

    def put_stream(
        self, read: Callable[[int], bytes], *, base: bytes | None = None
    ) -> tuple[ObjectId, int]: ...


class HashWorkers(Protocol):
    """Processes that read new small files.

    Each worker queues several batches; `submit` never blocks.
    """

    @property
    def is_busy(self) -> bool:
        """Return whether results are outstanding."""

    def fork(self, count: int) -> None:
        """Fork `count` workers; the process must have no other thread."""

    def begin(self, count: int) -> None:
        """Start `count` workers without fork, in a process with other threads."""

    def submit(self, batch: Sequence[ReadJob]) -> bool:
        """Queue a batch; `False` if all queues are full or no worker runs."""

    def poll(self, *, wait: bool) -> list[ReadResult]:
        """Return the results that have arrived; with `wait`, at least one batch."""

    def close(self) -> None: ...


class ReadJob(NamedTuple):
    """A file to read, and its place in the stat cache."""

    directory: bytes
    name: bytes
    node: Node
    size: int
    base: bytes | None
    guard: bool


class ReadResult(NamedTuple):
    """The state of a file that was read, or the reason why it was not."""

    job: ReadJob
    seen: FileStat | None
    problem: str | None


class FileReader:
    """Queues files to read; `finish` reads them and returns the results."""

    def __init__(
        self,
        root: bytes,
        sink: Sink,
        *,
        limit: int,
        progress: Callable[[int, int], None] | None = None,
        workers: Callable[[], HashWorkers] | None = None,
    ) -> None:
        self._root = root
        self._sink = sink
        self._limit = limit
        self._progress = progress
        self._make_workers = workers if READ_THREADS > 1 else None
        self._workers: HashWorkers | None = None
        self._jobs: list[ReadJob] = []
        self._unread: list[ReadJob] = []
        self._batch: list[ReadJob] = []
        self._batches: deque[list[ReadJob]] = deque()
        self._results: list[ReadResult] = []
        self._bytes = 0

    @property
    def has_workers(self) -> bool:
        """Return whether workers run; then the scanner queues new files without an `lstat`."""
        return self._workers is not None

    def read(self, job: ReadJob) -> None:
        """Queue a file; a full batch goes to the workers at once."""
        if self._workers is None or not _is_for_workers(job):
            self._jobs.append(job)
            return
        self._batch.append(job)
        if len(self._batch) == BATCH_FILES:
            self._batches.append(self._batch)
            self._batch = []
            self._submit_batches()
            self._poll(wait=False)

    def finish(self) -> list[ReadResult]:
        """Read all queued files; what the sink raises is raised after all workers ended."""
        try:
            self._assign_to_workers()
            while self._workers is not None:
                self._submit_batches()
                if not self._workers.is_busy:
                    break
                self._poll(wait=True)
        finally:
            self._close_workers()
        jobs = [*self._jobs, *(job for batch in self._batches for job in batch)]
        # Files that the workers left are mostly large.
        self._read_in_threads(
            [*self._unread, *[job for job in jobs if job.size >= MIN_STREAMED_BYTES]]
        )
        for batch in _batches([job for job in jobs if job.size < MIN_STREAMED_BYTES]):
            # Threads that read small files would mostly wait for the interpreter lock.
            self._add_results(list(self.read_here(batch)))
        for done in (self._jobs, self._unread, self._batches):
            done.clear()
        results, self._results, self._bytes = self._results, [], 0
        return results

    @contextmanager
    def forked_workers(self, *, is_new: bool) -> Iterator[None]:
        """Run workers during the listing of a new project."""
        if is_new and self._make_workers is not None and can_fork():
            self._workers = self._make_workers()
        try:
            if self._workers is not None:
                self._workers.fork(READ_THREADS)
            yield
        finally:
            self._close_workers()

    def _assign_to_workers(self) -> None:
        """Queue the remaining new files for workers if that is faster than reading them here."""
        new, self._batch = self._batch, []
        if self._workers is not None:
            if self._batches or self._workers.is_busy:
                self._batches.extend(_batches(new))
            else:
                # Less than one batch is read sooner here.
                self._jobs += new
        elif self._make_workers is not None:
            new = [job for job in self._jobs if _is_for_workers(job)]
            if sum(job.size for job in new) >= MIN_BYTES_FOR_WORKERS:
                self._jobs = [job for job in self._jobs if not _is_for_workers(job)]
                self._batches.extend(_batches(new))
                self._workers = self._make_workers()
                self._workers.begin(READ_THREADS)

    def _submit_batches(self) -> None:
        assert self._workers is not None
        while self._batches and self._workers.submit(self._batches[0]):
            self._batches.popleft()

    def _poll(self, *, wait: bool) -> None:
        assert self._workers is not None
        results = self._workers.poll(wait=wait)
        self._unread += [job for job, seen, _problem in results if seen is None]
        self._add_results([result for result in results if result.seen is not None])

    def _close_workers(self) -> None:
        if self._workers is not None:
            self._workers.close()
            self._workers = None

    def _read_in_threads(self, jobs: list[ReadJob]) -> None:
        if len(jobs) < 2 or READ_THREADS < 2:
            self._add_results(list(self.read_here(jobs)))
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(READ_THREADS, thread_name_prefix="mulligan-read") as pool:
            try:
                for results in pool.map(lambda job: list(self.read_here([job])), jobs):
                    self._add_results(results)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _add_results(self, results: list[ReadResult]) -> None:
        self._results += results
        if results and self._progress is not None:
            self._bytes += sum([seen[2] for _job, seen, _problem in results if seen is not None])
            self._progress(len(self._results), self._bytes)

    def read_here(self, batch: Iterable[ReadJob]) -> Iterator[ReadResult]:
        """Read files in this process, one after another."""
        with Directories(self._root) as directories:
            for job in batch:
                try:
                    fd = os.open(job.name, OPEN_FILE, dir_fd=directories.open(job.directory))
                    try:
                        result = self._read_one(job, fd)
                    finally:
                        os.close(fd)
                except OSError as problem:
                    if problem.errno in RESOURCE_ERRORS:
                        raise
                    vanished = problem.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
                    reason = f"cannot be read: {problem.strerror}"
                    if vanished:
                        reason = "vanished during the scan"
                    elif job.size == UNKNOWN:
                        reason = _lstat_problem(directories, job) or reason
                    result = ReadResult(job, None, reason)
                yield result

    def _read_one(self, job: ReadJob, fd: int) -> ReadResult:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return ReadResult(job, None, "is not an ordinary file")
        for _attempt in range(MAX_READ_ATTEMPTS):
            cutoff = racy_cutoff(status.st_dev)
            if status.st_size > self._limit:
                grew = "grew beyond the size limit during the scan"
                why = grew if job.size >= 0 else too_large(status.st_size, self._limit)
                return ReadResult(job, None, why)
            if status.st_size < MIN_STREAMED_BYTES:
                content = _read_whole(fd, status.st_size)
                id, size = self._sink.put(content, base=job.base), len(content)
            else:
                id, size = self._sink.put_stream(lambda n: os.read(fd, n), base=job.base)
            before, status = status, os.fstat(fd)
            unchanged = (
                before.st_mtime_ns == status.st_mtime_ns
                and before.st_ctime_ns == status.st_ctime_ns
                and size == status.st_size
            )
            if unchanged:
                break
            os.lseek(fd, 0, os.SEEK_SET)
        seen = file_stat(status, size, id, cutoff, unchanged=unchanged)
        return ReadResult(job, seen, None)


def _lstat_problem(directories: Directories, job: ReadJob) -> str | None:
    """Return the reason if not even `lstat` is allowed."""
    try:
        os.stat(job.name, dir_fd=directories.open(job.directory), follow_symlinks=False)
    except OSError as problem:
        return f"cannot be accessed: {problem.strerror}"
    return None


def too_large(size: int, limit: int) -> str:
    return f"is larger than the limit: {_amount(size)}, and the limit is {_amount(limit)}"


def _amount(size: int) -> str:
    for unit, shift in (("MB", 20), ("KB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.1f} {unit}"
    return f"{size} B"


def _is_for_workers(job: ReadJob) -> bool:
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


def file_stat(
    status: os.stat_result, size: int, id: bytes, cutoff: int, *, unchanged: bool = True
) -> FileStat:
    """Return the cache entry of a file that was read after `cutoff` was taken."""
    changed = status.st_ctime_ns
    if not unchanged or is_racy(changed, cutoff):
        changed = -1
    mode = status.st_mode & 0o7777
    return (FILE, mode, size, status.st_mtime_ns, changed, status.st_ino, id)


def _read_whole(fd: int, size: int) -> bytes:
    data = os.read(fd, size + 1)
    if len(data) == size or not data:
        return data
    chunks = [data]
    while chunk := os.read(fd, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks)
