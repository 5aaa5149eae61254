"""Record which contents of a project's rule files the user has accepted.

The record is in Mulligan's home, out of the repository's reach. An accepted content stays accepted
until it is revoked, because an undo may bring it back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from threading import get_ident

from mulligan.core.coverage import decode_path, encode_path
from mulligan.worktree.ignore.stat_memo import depends_on
from mulligan.worktree.scan.rule_files import Accepted

FILE = "accepted.json"


def read_accepted(directory: str | None) -> Accepted:
    """Return the accepted contents; none if the file is missing or damaged."""
    if directory is None:
        return frozenset()
    try:
        with open(depends_on(os.path.join(directory, FILE)), "rb") as file:
            rows = json.loads(file.read())["accepted"]
        return frozenset(
            (encode_path(each["path"]), bytes.fromhex(each["sha256"])) for each in rows
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return frozenset()


def accept(directory: str, files: Mapping[bytes, bytes]) -> None:
    """Accept the present contents of rule files, given by path in the project."""
    new = {(path, sha256(content).digest()) for path, content in files.items()}
    known = read_accepted(directory)
    if not new <= known:
        _write(directory, known | new)


def revoke(directory: str) -> None:
    """Revoke everything that was accepted."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, FILE))


def _write(directory: str, accepted: Accepted) -> None:
    rows = [
        {"path": decode_path(path), "sha256": digest.hex()} for path, digest in sorted(accepted)
    ]
    path = os.path.join(directory, FILE)
    temporary = f"{path}.{os.getpid()}.{get_ident()}.tmp"
    with open(temporary, "w", encoding="ascii") as file:
        json.dump({"accepted": rows}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
