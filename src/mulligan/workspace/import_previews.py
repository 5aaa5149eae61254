"""Refuse to write files of imported checkpoints without a preview of the same request.

A log is untrusted, and so are the files and the directory that it names. So a restore, or a move
within an imported session, is refused until the same request was previewed in the same directory.
The file `previewed` in the project's data lists these requests, newest last; without it, previews
are required again.
"""

from __future__ import annotations

import os
from hashlib import sha256

from mulligan.core.coverage import decode_path
from mulligan.errors import WouldLoseWork
from mulligan.journal.checkpoints import IMPORTED, CheckpointRow
from mulligan.workspace.open_project import OpenProject

PREVIEWED = "previewed"
MAX_REQUESTS = 100


def check_preview(
    project: OpenProject,
    target: CheckpointRow,
    paths: tuple[bytes, ...] = (),
    *,
    force: bool,
    preview: bool,
    imported: bool = False,
) -> None:
    """Record a preview of an imported checkpoint, or raise `WouldLoseWork` without one.

    `imported`: an imported session named this checkpoint.
    """
    if target.kind != IMPORTED and not imported:
        return
    request = _request(project, target, paths, force=force)
    known = _requests(project)
    if preview:
        _write(project, [*(each for each in known if each != request), request])
    elif request not in known:
        named = "".join(f" {decode_path(path)}" for path in paths[:3]) + (
            " …" if len(paths) > 3 else ""
        )
        again = f"mulligan restore{' --force' if force else ''} --preview {target.id[:8]}{named}"
        raise WouldLoseWork(
            f"Checkpoint {target.id[:8]} comes from an imported log, and would be written to "
            f"{project.root}. Look at what that changes first: `{again}`; then do this again. "
            "Nothing was changed."
        )


def _request(
    project: OpenProject, target: CheckpointRow, paths: tuple[bytes, ...], *, force: bool
) -> str:
    parts = (project.location.root, target.id.encode(), str(force).encode(), *sorted(paths))
    return sha256(b"\0".join(parts)).hexdigest()


def _requests(project: OpenProject) -> list[str]:
    try:
        with open(project.location.path(PREVIEWED), encoding="ascii") as file:
            return file.read().split()
    except (OSError, UnicodeDecodeError):
        return []


def _write(project: OpenProject, requests: list[str]) -> None:
    """Write the list. The caller holds the project's lock."""
    path = project.location.path(PREVIEWED)
    with open(path + ".tmp", "w", encoding="ascii") as file:
        file.write("\n".join(requests[-MAX_REQUESTS:]) + "\n")
    os.replace(path + ".tmp", path)
