"""What the arguments of the review commands name: a session, hunks, paths."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from mulligan.cli.output import Output, plural
from mulligan.core.coverage import decode_path
from mulligan.errors import NotFound, UsageError

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace

HUNK = re.compile(r"[0-9a-f]{4,12}(-[0-9]+)?")


def session_with_work(workspace: Workspace, named: str | None, how: str = "") -> str:
    """The session that is named, or the only one with pending work, or else the latest."""
    if named is not None:
        return named
    waiting = workspace.review.stats()
    if len(waiting) > 1:
        raise UsageError(
            "Several sessions have pending work: "
            + ", ".join(
                f"{id} ({workspace.sessions.get(id).agent or 'no agent'}, "
                f"+{stats.additions} −{stats.deletions} in {plural(stats.files, 'file')})"
                for id, stats in waiting.items()
            )
            + f". Name one of them{how}."
        )
    return next(iter(waiting), "@")


def session_of_turn(workspace: Workspace, session: str | None, turn: int | None) -> str | None:
    """A turn is one of a session, so with a turn there is always one."""
    return session if turn is None else session_with_work(workspace, session, " with --session")


def hunks_and_paths(
    out: Output,
    workspace: Workspace,
    names: tuple[str, ...],
    session: str | None,
    turn: int | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Arguments as hunks, or as paths. What is given as both comes back as hunks alone.

    A name that could be either is a path, if there is one, on the disk or among what is pending.
    """
    hunks = [name for name in names if HUNK.fullmatch(name) and not _exists(out, name)]
    if hunks:
        pending = [file.path for file in workspace.review.pending().files]
        hunks = [name for name in hunks if not _is_within(workspace, out, name, pending)]
    paths = tuple(name for name in names if name not in hunks)
    if hunks and turn is not None:
        raise UsageError("A hunk is named, so there is no need for a turn; leave --turn out.")
    if not hunks or not paths:
        return tuple(hunks), out.paths(paths)
    within = workspace.review.pending(session=session, paths=out.paths(paths)).hunks
    if not within:
        found = ", ".join(paths)
        raise NotFound(f"Nothing is pending in {found}; `mulligan pending` lists what is.")
    return tuple(dict.fromkeys([*hunks, *(hunk.id for hunk in within)])), ()


def _exists(out: Output, name: str) -> bool:
    return os.path.lexists(os.path.join(out.base, name))


def _is_within(workspace: Workspace, out: Output, name: str, pending: list[str]) -> bool:
    path = decode_path(workspace.project.path(os.path.join(out.base, name)))
    return any(each == path or each.startswith(path + "/") for each in pending)
