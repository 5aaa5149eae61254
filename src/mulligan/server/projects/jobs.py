"""Jobs: long work in threads, with progress, that a client can cancel.

Cancelling raises from the progress callback, which is as safe as a kill at that point: the next
process that opens the project finishes or abandons the operation.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mulligan.errors import NotFound
from mulligan.server.http.errors_json import RequestRefused, as_error
from mulligan.workspace.results.files import Progress

MAX_RUNNING_TASKS = 4
MAX_WAITING_TASKS = 100
MAX_FINISHED_TASKS = 200
PROGRESS_SECONDS = 0.2
CLOSE_TIMEOUT_S = 10.0

Work = Callable[[Progress], Any]


class Cancelled(Exception):
    """Raised inside a cancelled job."""


@dataclass
class Job:
    """One job. `state` is running, done, failed or cancelled."""

    job: str
    kind: str
    project: str | None
    state: str = "running"
    stage: str = "waiting"
    done: int = 0
    total: int | None = None
    result: Any = None
    error: dict[str, Any] | None = None
    wanted: bool = field(default=True, repr=False)
    ended: threading.Event = field(default_factory=threading.Event, repr=False)

    def as_json(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "kind": self.kind,
            "project": self.project,
            "state": self.state,
            "stage": self.stage,
            "done": self.done,
            "total": self.total,
            "result": self.result,
            "error": self.error,
        }


class Jobs:
    """The jobs of a server. `tell` is called with a job at each progress report."""

    def __init__(self, tell: Callable[[Job], None]) -> None:
        self._tell = tell
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._turn = threading.Semaphore(MAX_RUNNING_TASKS)

    @property
    def running(self) -> int:
        return sum(1 for job in list(self._jobs.values()) if job.state == "running")

    def start(self, kind: str, project: str | None, work: Work) -> Job:
        """Start a job; raises `too_many` above `MAX_WAITING_TASKS`."""
        job = Job(secrets.token_hex(8), kind, project)
        with self._lock:
            if self.running >= MAX_WAITING_TASKS:
                raise RequestRefused("too_many", "Too many jobs are waiting; try again later.")
            ended = [each for each in self._jobs.values() if each.state != "running"]
            for old in ended[: max(0, len(ended) - MAX_FINISHED_TASKS)]:
                del self._jobs[old.job]
            self._jobs[job.job] = job
        threading.Thread(target=self._run, args=(job, work), daemon=True, name=kind).start()
        return job

    def get(self, id: str) -> Job:
        with self._lock:
            if id not in self._jobs:
                raise NotFound(f"There is no job {id!r}; a restart of the server forgets all jobs.")
            return self._jobs[id]

    def all(self) -> list[Job]:
        with self._lock:
            return list(self._jobs.values())

    def cancel(self, id: str) -> Job:
        """Cancel a job; no effect if it has ended."""
        job = self.get(id)
        job.wanted = False
        return job

    def close(self) -> None:
        """Cancel all jobs, and wait up to `CLOSE_TIMEOUT_S`."""
        for job in self.all():
            job.wanted = False
        until = time.monotonic() + CLOSE_TIMEOUT_S
        for job in self.all():
            job.ended.wait(max(0.0, until - time.monotonic()))

    def _run(self, job: Job, work: Work) -> None:
        told = 0.0

        def progress(stage: str, done: int, total: int | None) -> None:
            nonlocal told
            if not job.wanted:
                raise Cancelled
            now = time.monotonic()
            is_new = stage != job.stage
            job.stage, job.done, job.total = stage, done, total
            if is_new or now - told >= PROGRESS_SECONDS:
                told = now
                self._tell(job)

        try:
            self._tell(job)
            with self._turn:
                progress("starting", 0, None)
                found = work(progress)
                job.result = found.as_json() if hasattr(found, "as_json") else found
                job.state = "done"
        except Cancelled:
            job.state = "cancelled"
        except Exception as problem:
            job.error = as_error(problem)[1]["error"]
            job.state = "failed"
        finally:
            job.ended.set()
            self._tell(job)
