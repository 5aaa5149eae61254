"""Run git in a repository of a test."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> bytes:
    """Run git in a folder and return its output; raise if it fails."""
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
