"""What a decision is about: hunks by id, paths, a session, a turn of it, or everything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mulligan.core.coverage import decode_path
from mulligan.errors import NotFound, UsageError
from mulligan.journal import sessions
from mulligan.journal.sessions import SessionRow
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.review.pending import File, Part


class Choice(NamedTuple):
    """What a decision is about: hunks by id, paths, a session, a turn of it; else everything."""

    hunks: tuple[str, ...] = ()
    paths: tuple[bytes, ...] = ()
    session: str | None = None
    turn: int | None = None


EVERYTHING = Choice()


def decided(choice: Choice, *, everything: bool) -> Choice:
    """Return a choice to act on; raise `UsageError` if it names nothing, or too much."""
    if (choice != EVERYTHING) == everything:
        raise UsageError("Choose hunks, paths, a session or a turn; or say all, and nothing else.")
    return choice


def chosen_of(
    found: list[File], choice: Choice, *, missing_is_fine: bool = False
) -> list[tuple[File, list[Part]]]:
    """The files with those of their hunks that a choice names; all, if it names none."""
    wanted = set(choice.hunks)
    chosen = []
    for file in found:
        parts = [
            part
            for part in file.parts
            if (not wanted or _names(wanted, part))
            and (choice.turn is None or choice.turn in part.shown.turns)
        ]
        if parts:
            chosen.append((file, parts))
    if wanted and not missing_is_fine:
        _check_found(wanted, chosen)
    if choice.paths and not chosen and not missing_is_fine:
        paths = ", ".join(map(decode_path, choice.paths))
        raise NotFound(f"Nothing is pending in {paths}; `mulligan pending` lists what is.")
    return chosen


def _names(wanted: Iterable[str], part: Part) -> bool:
    return any(part.shown.id == name or _is_prefix(name, part.shown.id) for name in wanted)


def _is_prefix(name: str, id: str) -> bool:
    return len(name) >= 4 and id.startswith(name) and not id[len(name) :].startswith("-")


def _check_found(wanted: set[str], chosen: list[tuple[File, list[Part]]]) -> None:
    ids = [part.shown.id for _file, parts in chosen for part in parts]
    for name in sorted(wanted):
        fitting = [id for id in ids if id == name or _is_prefix(name, id)]
        if not fitting:
            raise NotFound(f"There is no pending hunk {name}; `mulligan pending` lists them.")
        if name not in ids and len(fitting) > 1:
            raise UsageError(f"Hunk {name} could be {' or '.join(fitting[:3])}; give more of it.")


def session_of(project: OpenProject, choice: Choice) -> SessionRow | None:
    if choice.session is None:
        if choice.turn is not None:
            raise UsageError("Say whose turn: a turn is one of a session.")
        return None
    return sessions.resolve(project.journal, choice.session)


def of_turn(file: File, turn: int) -> File:
    return file._replace(parts=tuple(part for part in file.parts if turn in part.shown.turns))
