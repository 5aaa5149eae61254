"""Commands on pending changes: `workspace.review`."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.review import (
    Approved,
    Discarded,
    Kept,
    PendingStats,
    Position,
    Reset,
    Review,
    Round,
    RoundStatus,
    TurnStatus,
)
from mulligan.workspace.review import discard, keep, rounds, turn_status
from mulligan.workspace.review.selection import Choice, decided


class ReviewCommands:
    """List what agents changed, and keep or undo it."""

    def __init__(self, project: OpenProject) -> None:
        self._project = project

    def pending(
        self, *, session: str | None = None, turn: int | None = None, paths: Sequence[str] = ()
    ) -> Review:
        """List pending changes: of all sessions, of one, or of one turn."""
        return keep.review(self._project, self._choice((), paths, session, turn))

    def stats(self) -> dict[str, PendingStats]:
        """Count pending additions, deletions and files by session; omit sessions without."""
        return keep.stats(self._project)

    def position(
        self,
        current: str | None = None,
        *,
        step: int = 0,
        path: str | None = None,
        session: str | None = None,
    ) -> Position:
        """Locate a hunk among all pending ones, or the hunk `step` further, wrapping around."""
        choice = self._choice((), (), session, None)
        return keep.position(self._project, current, step=step, path=path, choice=choice)

    def keep(
        self,
        *hunks: str,
        paths: Sequence[str] = (),
        session: str | None = None,
        turn: int | None = None,
        everything: bool = False,
    ) -> Kept:
        """Accept hunks, files, a turn, a session, or `everything`; the disk does not change."""
        choice = decided(self._choice(hunks, paths, session, turn), everything=everything)
        return keep.keep(self._project, choice)

    def discard(
        self,
        *hunks: str,
        paths: Sequence[str] = (),
        session: str | None = None,
        turn: int | None = None,
        everything: bool = False,
        force: bool = False,
        preview: bool = False,
    ) -> Discarded:
        """Undo hunks, files, a turn, a session, or `everything` on the disk; others' work stays."""
        choice = decided(self._choice(hunks, paths, session, turn), everything=everything)
        return discard.discard(self._project, choice, force=force, preview=preview)

    def approve(self, session: str, message: str = "") -> Approved:
        """Make the disk the session's baseline, and begin a new round."""
        return rounds.approve(self._project, session, message)

    def reset(self, session: str, *, force: bool = False, preview: bool = False) -> Reset:
        """Restore the session's baseline, removing what its commands created."""
        return rounds.reset(self._project, session, force=force, preview=preview)

    def round_status(self, session: str) -> RoundStatus:
        """List the session's pending changes, whatever made them."""
        return rounds.status(self._project, session)

    def rounds(self, session: str) -> list[Round]:
        """List the session's rounds, oldest first."""
        return rounds.rounds(self._project, session)

    def turn_statuses(self, session: str) -> list[TurnStatus]:
        """Say of each turn whether its work is pending, kept, undone or partial."""
        return turn_status.turn_statuses(self._project, session)

    def _choice(
        self, hunks: Sequence[str], paths: Sequence[str], session: str | None, turn: int | None
    ) -> Choice:
        return Choice(tuple(hunks), self._project.paths(paths), session, turn)
