"""Commands on the store: `workspace.maintenance`."""

from __future__ import annotations

from mulligan.workspace.maintenance import doctor, retention, verify
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import Collected, Finding, Forgotten, Verified


class MaintenanceCommands:
    """Verify the store, free its space, and say what is wrong."""

    def __init__(self, project: OpenProject) -> None:
        self._project = project

    def verify(self, *, repair: bool = False) -> Verified:
        """Read and hash every object, and check every reference."""
        return verify.verify(self._project, repair=repair)

    def gc(self, *, dry_run: bool = False) -> Collected:
        """Delete unreachable objects."""
        return verify.gc(self._project, dry_run=dry_run)

    def forget(
        self,
        *,
        keep_last: int | None = None,
        older_than: float | None = None,
        max_bytes: int | None = None,
        session: str | None = None,
        dry_run: bool = False,
    ) -> Forgotten:
        """Forget old checkpoints; the next `gc` frees their space.

        Keeps the last `keep_last`, forgets those older than `older_than` seconds, or the oldest
        until the store has at most `max_bytes`. With `session`, only that session's, and all of
        them if no other rule is given.
        """
        return retention.forget(
            self._project,
            keep_last=keep_last,
            older_than=older_than,
            max_bytes=max_bytes,
            session=session,
            dry_run=dry_run,
        )

    def forget_checkpoints(self, *names: str) -> Forgotten:
        """Forget checkpoints by name; the trees that the next undo needs stay."""
        return retention.forget_named(self._project, names)

    def doctor(self) -> list[Finding]:
        """Say what is wrong, and how to fix it."""
        return doctor.doctor(self._project)
