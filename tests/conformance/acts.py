"""What people and their agents do to a project, and a picture of what it looks like."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

Picture = dict[bytes, tuple[str, int, bytes]]

# Root may write anywhere, so tests about permissions run without the two privileges that say so.
_WITHOUT_PRIVILEGES = """
import ctypes, os, sys
if os.geteuid() == 0:
    for privilege in (1, 2):  # to write, and to read, in spite of the permissions
        if ctypes.CDLL(None).prctl(24, privilege, 0, 0, 0):
            sys.exit(99)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def run(project: Path, command: str) -> None:
    """What a shell command does, as an agent's terminal runs it."""
    subprocess.run(["bash", "-ec", command], cwd=project, check=True)


def write(project: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def picture(project: Path, *, without: tuple[bytes, ...] = ()) -> Picture:
    """Every path with its kind, mode and bytes; `without` names whole directories to leave out."""
    found: Picture = {}
    top = os.fsencode(project)
    for directory, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in without]
        for name in folders + files:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            mode = stat.S_IMODE(status.st_mode)
            relative = os.path.relpath(path, top)
            if stat.S_ISLNK(status.st_mode):
                found[relative] = ("link", 0, os.readlink(path))
            elif stat.S_ISDIR(status.st_mode):
                found[relative] = ("directory", mode, b"")
            elif stat.S_ISREG(status.st_mode):
                found[relative] = ("file", mode, Path(os.fsdecode(path)).read_bytes())
            else:
                found[relative] = ("special", mode, b"")
    return found


def fingerprint(directory: Path) -> str:
    """A digest of names, bytes, modes and times: any write at all shows."""
    digest = hashlib.sha256()
    for path, (kind, mode, content) in sorted(picture(directory).items()):
        status = os.lstat(os.path.join(os.fsencode(directory), path))
        digest.update(repr((path, kind, mode, content, status.st_mtime_ns)).encode())
    return digest.hexdigest()


def unprivileged(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, for whom the permissions of files count even if it is root."""
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT_PRIVILEGES, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def store_size(home: Path) -> int:
    """Bytes of all packs."""
    return sum(pack.stat().st_size for pack in home.glob("projects/*/objects/*.pack"))
