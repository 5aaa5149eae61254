"""The verbs of review, as a workspace has them. Each is a line: what they do is elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
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
    from mulligan.workspace.review.selection import Choice
    from mulligan.workspace.workspace import Workspace


class ReviewVerbs:
    """What an agent did is a proposal until its user says otherwise."""

    def pending(
        self, *, session: str | None = None, turn: int | None = None, paths: Sequence[str] = ()
    ) -> Review:
        """Everything that waits for a decision: of all sessions, or of one, or of one turn."""
        from mulligan.workspace.review import keep

        return keep.review(self._self, self._choice((), paths, session, turn))

    def pending_stats(self) -> dict[str, PendingStats]:
        """Additions, deletions and files that wait, by session; none for sessions without."""
        from mulligan.workspace.review import keep

        return keep.stats(self._self)

    def position(
        self,
        current: str | None = None,
        *,
        step: int = 0,
        path: str | None = None,
        session: str | None = None,
    ) -> Position:
        """Which change of how many a hunk is, or the one `step` further, around the end."""
        from mulligan.workspace.review import keep

        choice = self._choice((), (), session, None)
        return keep.position(self._self, current, step=step, path=path, choice=choice)

    def keep(
        self,
        *hunks: str,
        paths: Sequence[str] = (),
        session: str | None = None,
        turn: int | None = None,
    ) -> Kept:
        """Moves the baseline by these hunks, or files, or all; the disk stays as it is."""
        from mulligan.workspace.review import keep

        return keep.keep(self._self, self._choice(hunks, paths, session, turn))

    def discard(
        self,
        *hunks: str,
        paths: Sequence[str] = (),
        session: str | None = None,
        turn: int | None = None,
        force: bool = False,
        preview: bool = False,
    ) -> Discarded:
        """Undoes these hunks, or files, or all, on the disk; others' work in them stays."""
        from mulligan.workspace.review import discard

        choice = self._choice(hunks, paths, session, turn)
        return discard.discard(self._self, choice, force=force, preview=preview)

    def approve(self, session: str, message: str = "") -> Approved:
        """What the disk holds becomes the baseline, and a new round begins."""
        from mulligan.workspace.review import rounds

        return rounds.approve(self._self, session, message)

    def reset(self, session: str, *, force: bool = False, preview: bool = False) -> Reset:
        """The disk goes back to the baseline, what commands created included."""
        from mulligan.workspace.review import rounds

        return rounds.reset(self._self, session, force=force, preview=preview)

    def round_status(self, session: str) -> RoundStatus:
        """What a session has pending: every change, by whatever it was made."""
        from mulligan.workspace.review import rounds

        return rounds.status(self._self, session)

    def rounds(self, session: str) -> list[Round]:
        """The session's rounds, oldest first."""
        from mulligan.workspace.review import rounds

        return rounds.rounds(self._self, session)

    def turn_statuses(self, session: str) -> list[TurnStatus]:
        """What became of each turn's work: pending, kept, undone or partial."""
        from mulligan.workspace.review import turn_status

        return turn_status.turn_statuses(self._self, session)

    def _choice(
        self, hunks: Sequence[str], paths: Sequence[str], session: str | None, turn: int | None
    ) -> Choice:
        from mulligan.workspace.review.selection import Choice

        return Choice(tuple(hunks), self._self.paths(paths), session, turn)

    @property
    def _self(self) -> Workspace:
        return cast("Workspace", self)
