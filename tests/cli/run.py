"""Running the command line, as a process of its own or, for the many rows, inside this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from mulligan.cli.group import mulligan

COMMAND = [sys.executable, "-m", "mulligan"]


class Ran(NamedTuple):
    code: int
    stdout: bytes
    stderr: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document and nothing else."""
        return json.loads(self.stdout.decode("ascii"))

    @property
    def lines(self) -> list[str]:
        return self.stdout.decode().splitlines()


def mull(
    *arguments: str | bytes,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    code: int | None = 0,
) -> Ran:
    """A process, as a user starts it."""
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=cwd, env=env, capture_output=True, check=False, timeout=120
    )
    return _checked(Ran(done.returncode, done.stdout, done.stderr.decode()), arguments, code)


def quick(*arguments: str, project: Path, code: int | None = 0) -> Ran:
    """The same without a process; an error that nobody meant to raise is raised here."""
    done = CliRunner().invoke(mulligan, ["-C", str(project), *arguments], catch_exceptions=False)
    ran = Ran(done.exit_code, done.stdout_bytes, done.stderr)
    return _checked(ran, arguments, code)


def write(project: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def _checked(ran: Ran, arguments: tuple[object, ...], code: int | None) -> Ran:
    assert "Traceback" not in ran.stderr, (arguments, ran)
    assert code is None or ran.code == code, (arguments, ran)
    return ran
