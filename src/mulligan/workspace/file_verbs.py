"""The verbs of a project's files, as a workspace has them: what they do is elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mulligan.errors import UsageError

if TYPE_CHECKING:
    from mulligan.workspace.restore.elsewhere import RestoredElsewhere
    from mulligan.workspace.results.files import (
        Checkpoint,
        Collected,
        Differences,
        FileChange,
        Finding,
        Forgotten,
        Operation,
        RestorePreview,
        RestoreResult,
        Status,
        TreeEntry,
        Verified,
    )
    from mulligan.workspace.snapshot.named_files import GivenFile
    from mulligan.workspace.workspace import Workspace


class FileVerbs:
    """Checkpoints, what differs between them, and the way back."""

    def checkpoint(
        self,
        message: str = "",
        *,
        include: Sequence[str] = (),
        kind: str = "manual",
        session: str | None = None,
    ) -> Checkpoint:
        """Takes a checkpoint, for a session if one is named.

        `include` names paths to keep from now on even where ignored.
        """
        from mulligan.workspace.attribution import checkpoint

        return checkpoint.take(
            self._self, message, include=self._self.paths(include), kind=kind, session=session
        )

    def checkpoint_files(
        self, message: str, files: Sequence[GivenFile], *, session: str | None = None
    ) -> Checkpoint:
        """Takes a checkpoint of some files only; restoring it deletes nothing."""
        from mulligan.workspace.snapshot import named_files

        return named_files.take(self._self, message, files, session=session)

    def log(self, limit: int | None = None, before: str | None = None) -> list[Checkpoint]:
        """The checkpoints, newest first; those that came before one, if it is named."""
        from mulligan.workspace.snapshot import checkpoints

        return checkpoints.log(self._self, limit, before)

    def find(self, name: str) -> Checkpoint:
        """The checkpoint with this id or unambiguous prefix; `@` is the latest, `@1` one before."""
        from mulligan.workspace.snapshot import checkpoints

        return checkpoints.find(self._self, name)

    def read(self, checkpoint: str, path: str) -> bytes:
        """The exact bytes of a file in a checkpoint; of a link, its target."""
        from mulligan.workspace.snapshot import checkpoints

        return checkpoints.read(self._self, checkpoint, self._self.path(path))

    def read_disk(self, path: str) -> bytes:
        """The bytes of an ordinary file as it is on the disk now, never through a link."""
        from mulligan.workspace.snapshot import checkpoints

        return checkpoints.read_disk(self._self, self._self.path(path))

    def tree_entry(self, checkpoint: str, path: str) -> TreeEntry:
        """One path of a checkpoint: its kind, mode, size and content's id."""
        from mulligan.workspace.snapshot import checkpoints

        return checkpoints.entry(self._self, checkpoint, self._self.path(path))

    def entries(self, checkpoint: str) -> list[TreeEntry]:
        """Everything in a checkpoint, guarded files included."""
        from mulligan.workspace.snapshot import checkpoints

        return checkpoints.entries(self._self, checkpoint)

    def status(self) -> Status:
        """What changed on disk since the last checkpoint, by whomever and however."""
        from mulligan.workspace.snapshot import diff

        return diff.status(self._self)

    def diff(
        self, before: str | None = None, after: str | None = None, paths: Sequence[str] = ()
    ) -> list[FileChange]:
        """The differences from one checkpoint to another, or to the disk; renames are paired.

        Without `before`, from the checkpoint that `status` compares with.
        """
        return list(self.compare(before, after, paths).files)

    def compare(
        self,
        before: str | None = None,
        after: str | None = None,
        paths: Sequence[str] = (),
        *,
        binary: bool = False,
    ) -> Differences:
        """What `diff` gives, with the folders that differ and the checkpoints' names.

        With `binary`, patches hold the contents of what is no text, up to 16 MB of each.
        """
        from mulligan.workspace.snapshot import diff

        return diff.compare(self._self, before, after, self._self.paths(paths), binary=binary)

    def plan_restore(
        self,
        checkpoint: str,
        paths: Sequence[str] = (),
        *,
        keep_dirty: bool = False,
        force: bool = False,
    ) -> RestorePreview:
        """What `restore` would do; changes nothing."""
        from mulligan.workspace.restore import run

        _check_wishes(keep_dirty, force)
        return run.plan(
            self._self, checkpoint, self._self.paths(paths), keep_dirty=keep_dirty, force=force
        )

    def restore(
        self,
        checkpoint: str,
        paths: Sequence[str] = (),
        *,
        keep_dirty: bool = False,
        force: bool = False,
        session: str | None = None,
    ) -> RestoreResult:
        """Brings the project, or some paths of it, back to a checkpoint.

        It is the doing of `session`, or of the one that the checkpoint belongs to.

        The state before is in a safety checkpoint, and `undo` returns to it. Files whose content
        is in no checkpoint yet are listed as dirty; `keep_dirty` leaves those alone. Files that the
        user is known to have changed since the last turn are left alone, unless `force`.
        """
        from mulligan.workspace.restore import run

        _check_wishes(keep_dirty, force)
        return run.restore(
            self._self,
            checkpoint,
            self._self.paths(paths),
            keep_dirty=keep_dirty,
            force=force,
            session=session,
        )

    def restore_to(
        self,
        checkpoint: str,
        directory: str,
        paths: Sequence[str] = (),
        *,
        force: bool = False,
        preview: bool = False,
    ) -> RestoredElsewhere:
        """Writes the files of a checkpoint into another directory; deletes nothing there.

        Files that are there and differ are left alone; with `force` they are overwritten, and what
        they held is in a checkpoint of its own.
        """
        from mulligan.workspace.restore import elsewhere

        return elsewhere.restore_elsewhere(
            self._self, checkpoint, directory, self._self.paths(paths), force=force, preview=preview
        )

    def undo(
        self,
        *,
        keep_dirty: bool = False,
        force: bool = False,
        preview: bool = False,
        past_idle_turn: bool = True,
        expect: int | None = None,
    ) -> RestoreResult:
        """Takes back the last operation that changed something; again, one further back.

        What others did since in the same files stays, line by line, unless `force`. Without
        `past_idle_turn`, raises `NothingToUndo` right after a turn that changed nothing. With
        `expect`, takes back that operation or nothing: raises `WouldLoseWork` if another was done,
        `NothingToUndo` if it is taken back already.
        """
        from mulligan.workspace.restore import undo

        _check_wishes(keep_dirty, force)
        return undo.undo(
            self._self, keep_dirty=keep_dirty, force=force, preview=preview,
            past_idle_turn=past_idle_turn,
            expect=expect,
        )  # fmt: skip

    def redo(
        self,
        *,
        keep_dirty: bool = False,
        force: bool = False,
        preview: bool = False,
        expect: int | None = None,
    ) -> RestoreResult:
        """Takes back the last undo; with `expect`, the undo with that number or nothing."""
        from mulligan.workspace.restore import undo

        _check_wishes(keep_dirty, force)
        return undo.redo(
            self._self, keep_dirty=keep_dirty, force=force, preview=preview, expect=expect
        )

    def operations(self, limit: int | None = None, before: int | None = None) -> list[Operation]:
        """The log of operations, newest first; those before a number, if it is given."""
        from mulligan.workspace.snapshot import checkpoints

        return checkpoints.operation_log(self._self, limit, before)

    def verify(self, *, repair: bool = False) -> Verified:
        """Re-reads and re-hashes everything, and checks every reference."""
        from mulligan.workspace.maintenance import verify

        return verify.verify(self._self, repair=repair)

    def gc(self, *, dry_run: bool = False) -> Collected:
        """Frees what nothing reaches any more."""
        from mulligan.workspace.maintenance import verify

        return verify.gc(self._self, dry_run=dry_run)

    def forget(
        self,
        *,
        keep_last: int | None = None,
        older_than: float | None = None,
        max_bytes: int | None = None,
        session: str | None = None,
        dry_run: bool = False,
    ) -> Forgotten:
        """Drops old checkpoints: all but the last so many, or those older than so many seconds,
        or the oldest until the store fits; with `session`, only those of that session, all of them
        if nothing else is said. What is dropped is freed by the next `gc`."""
        from mulligan.workspace.maintenance import retention

        return retention.forget(
            self._self,
            keep_last=keep_last,
            older_than=older_than,
            max_bytes=max_bytes,
            session=session,
            dry_run=dry_run,
        )

    def forget_checkpoints(self, *names: str) -> Forgotten:
        """Drops these checkpoints. What the next undo needs of them stays, under no name."""
        from mulligan.workspace.maintenance import retention

        return retention.forget_named(self._self, names)

    def doctor(self) -> list[Finding]:
        """What is wrong here, and how to mend it."""
        from mulligan.workspace.maintenance import doctor

        return doctor.doctor(self._self)

    @property
    def _self(self) -> Workspace:
        return cast("Workspace", self)


def _check_wishes(keep_dirty: bool, force: bool) -> None:
    if force and keep_dirty:
        raise UsageError("To keep dirty files and to overwrite them are two different wishes.")
