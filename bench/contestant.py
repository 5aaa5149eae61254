"""What every contestant can do, and the clock they share.

A contestant protects one copy of a corpus and keeps its data in a folder of its own. Each verb
returns the seconds it took; what is only needed for the bookkeeping of the benchmark stays off
the clock. `checkpoints` holds the ids in order: the diff is of the last two, a restore goes back
to the last but one.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class Contestant:
    name = ""
    # Whether it skips large files: their results would compare nothing.
    leaves_out_large = False

    def __init__(self, tree: Path, state: Path) -> None:
        self.tree = tree
        self.state = state
        self.checkpoints: list[str] = []
        # How many files the last diff listed, where it can be told: an empty one would be fast.
        self.listed: int | None = None

    @classmethod
    def missing(cls) -> str | None:
        """Why it cannot take part here, or None."""
        return None

    def setup(self) -> None:
        """Prepare the state folder; not measured."""

    def checkpoint(self) -> float:
        raise NotImplementedError

    def diff(self) -> float:
        """List what the last checkpoint changed, and the text of each change."""
        raise NotImplementedError

    def restore_last(self) -> float:
        """Bring the whole tree back to the last checkpoint but one."""
        raise NotImplementedError

    def restore_one(self, path: str) -> float:
        """Bring one file back as it was at the last checkpoint but one."""
        raise NotImplementedError

    def disk_bytes(self) -> int:
        return allocated(self.state)

    def peak_memory(self) -> int | None:
        """Bytes at the peak so far, where it lives in one process."""
        return None

    def close(self) -> None:
        """End what it started."""


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    accept: Sequence[int] = (0,),
) -> bytes:
    """Run a command to its end; what it printed, or an error that quotes its complaint."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=None if env is None else dict(env),
        input=stdin,
        capture_output=True,
        check=False,
    )
    if done.returncode not in accept:
        complaint = done.stderr.decode(errors="replace").strip()[-500:]
        raise RuntimeError(f"{' '.join(command[:6])} ended with {done.returncode}: {complaint}")
    return done.stdout


def allocated(folder: Path) -> int:
    """Bytes that a folder takes on disk, by allocated blocks."""
    total = 0
    for directory, _, names in os.walk(folder):
        for path in (directory, *(os.path.join(directory, name) for name in names)):
            try:
                total += os.lstat(path).st_blocks * 512
            except FileNotFoundError:
                pass  # a temporary file that went away meanwhile
    return total
