"""The public API of one project: what `mulligan.open` returns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from mulligan.workspace.attribution import checkpoint as taking
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.opening import open_project
from mulligan.workspace.project.lock import WAIT_SECONDS
from mulligan.workspace.results.files import (
    Checkpoint,
    Differences,
    FileChange,
    Operation,
    Progress,
    RestoreResult,
    Status,
    TreeEntry,
)
from mulligan.workspace.settings.settings import Settings
from mulligan.workspace.snapshot import checkpoints, diff, named_files
from mulligan.workspace.snapshot.named_files import GivenFile

if TYPE_CHECKING:
    from mulligan.workspace.maintenance_commands import MaintenanceCommands
    from mulligan.workspace.restore.elsewhere import RestoredElsewhere
    from mulligan.workspace.review_commands import ReviewCommands
    from mulligan.workspace.search.search import Filters, SearchResult
    from mulligan.workspace.search.tool_stats import Stats, Which
    from mulligan.workspace.session_commands import SessionCommands


def open_workspace(
    path: str | os.PathLike[str] = ".",
    *,
    home: str | None = None,
    watch: bool = False,
    allow_any_root: bool = False,
    automatic: bool = False,
    wait: float = WAIT_SECONDS,
    progress: Progress | None = None,
    create: bool = True,
) -> Workspace:
    """Open the project that contains `path`, and finish interrupted operations.

    `watch` keeps a file watcher running, so that a scan costs what changed since the last one.
    `wait` is how many seconds to wait for another process's lock. Without `create`, raises
    `NotFound` for a project without history. With `automatic` (a program chose the folder, not the
    user), raises `RefusedRoot` for a new project in a folder that only a user may choose.
    """
    return Workspace(
        open_project(
            path, home=home, watch=watch, allow_any_root=allow_any_root, automatic=automatic,
            wait=wait, progress=progress, create=create,
        )
    )  # fmt: skip


class Workspace:
    """One project: its checkpoints, and the way back to them. Threads may share it.

    `sessions`, `review` and `maintenance` group further commands. Use it as a context manager, or
    `close` it.
    """

    # Facets and the restore code are imported when they are first used: each costs a few
    # milliseconds of start, and most commands use one of them.

    def __init__(self, project: OpenProject) -> None:
        """`project` is what the subsystems work on; it is not part of the public API."""
        self.project = project

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Save the stat cache, stop background work, and close all files."""
        self.project.close()

    @property
    def root(self) -> str:
        """The project's directory."""
        return self.project.root

    @property
    def settings(self) -> Settings:
        """The settings in effect now."""
        return self.project.settings

    def change_settings(self, values: Mapping[str, Mapping[str, Any]]) -> Settings:
        """Change the project's settings, by section and name; they override the user's."""
        return self.project.change_settings(values)

    @cached_property
    def sessions(self) -> SessionCommands:
        """Create, read and navigate sessions, and run turns in them."""
        from mulligan.workspace.session_commands import SessionCommands

        return SessionCommands(self.project)

    @cached_property
    def review(self) -> ReviewCommands:
        """List what agents changed, and keep or undo it."""
        from mulligan.workspace.review_commands import ReviewCommands

        return ReviewCommands(self.project)

    @cached_property
    def maintenance(self) -> MaintenanceCommands:
        """Verify the store, free its space, and say what is wrong."""
        from mulligan.workspace.maintenance_commands import MaintenanceCommands

        return MaintenanceCommands(self.project)

    def checkpoint(
        self,
        message: str = "",
        *,
        include: Sequence[str] = (),
        kind: str = "manual",
        session: str | None = None,
    ) -> Checkpoint:
        """Take a checkpoint, for a session if one is named.

        `include` names paths to keep from now on, even where an ignore rule excludes them.
        """
        return taking.take(
            self.project, message, include=self.project.paths(include), kind=kind, session=session
        )

    def checkpoint_files(
        self, message: str, files: Sequence[GivenFile], *, session: str | None = None
    ) -> Checkpoint:
        """Take a checkpoint of some files only; restoring it deletes nothing."""
        return named_files.take(self.project, message, files, session=session)

    def log(self, limit: int | None = None, before: str | None = None) -> list[Checkpoint]:
        """List checkpoints, newest first; with `before`, those older than that checkpoint."""
        return checkpoints.log(self.project, limit, before)

    def find(self, name: str) -> Checkpoint:
        """Find a checkpoint by id or unambiguous prefix; `@` is the latest, `@1` the one before."""
        return checkpoints.find(self.project, name)

    def read(self, checkpoint: str, path: str) -> bytes:
        """Read a file of a checkpoint; of a symlink, its target."""
        return checkpoints.read(self.project, checkpoint, self.project.path(path))

    def read_disk(self, path: str) -> bytes:
        """Read a regular file from the disk, never through a symlink."""
        return checkpoints.read_disk(self.project, self.project.path(path))

    def tree_entry(self, checkpoint: str, path: str) -> TreeEntry:
        """Return one path of a checkpoint: its kind, mode, size and content id."""
        return checkpoints.entry(self.project, checkpoint, self.project.path(path))

    def entries(self, checkpoint: str) -> list[TreeEntry]:
        """List every path of a checkpoint, guarded files included."""
        return checkpoints.entries(self.project, checkpoint)

    def status(self) -> Status:
        """List what changed on the disk since the last checkpoint, whatever changed it."""
        return diff.status(self.project)

    def diff(
        self, before: str | None = None, after: str | None = None, paths: Sequence[str] = ()
    ) -> list[FileChange]:
        """Compare two checkpoints, or one with the disk; renames are detected.

        Without `before`, compares with the checkpoint that `status` uses.
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
        """Return what `diff` returns, with changed folders and the checkpoints' ids.

        With `binary`, patches contain binary files, up to 16 MB of each.
        """
        return diff.compare(self.project, before, after, self.project.paths(paths), binary=binary)

    def restore(
        self,
        checkpoint: str,
        paths: Sequence[str] = (),
        *,
        keep_dirty: bool = False,
        force: bool = False,
        session: str | None = None,
        preview: bool = False,
    ) -> RestoreResult:
        """Restore the project, or some paths of it, to a checkpoint.

        The state before is in a safety checkpoint, and `undo` returns to it. Files whose content
        is in no checkpoint yet are listed as dirty; `keep_dirty` skips them. Files that the user
        changed since the last turn are skipped, unless `force`. The operation belongs to
        `session`, or to the checkpoint's session. `preview` changes nothing.
        """
        from mulligan.workspace.restore import run

        return run.restore(
            self.project, checkpoint, self.project.paths(paths), keep_dirty=keep_dirty, force=force,
            session=session, preview=preview,
        )  # fmt: skip

    def restore_to(
        self,
        checkpoint: str,
        directory: str,
        paths: Sequence[str] = (),
        *,
        force: bool = False,
        preview: bool = False,
    ) -> RestoredElsewhere:
        """Write the files of a checkpoint into another directory; delete nothing there.

        Files that exist there and differ are skipped; with `force` they are overwritten, and
        their old content is in a checkpoint of its own.
        """
        from mulligan.workspace.restore import elsewhere

        return elsewhere.restore_elsewhere(
            self.project, checkpoint, directory, self.project.paths(paths), force=force,
            preview=preview,
        )  # fmt: skip

    def undo(
        self,
        *,
        keep_dirty: bool = False,
        force: bool = False,
        preview: bool = False,
        past_idle_turn: bool = True,
        expect: int | None = None,
    ) -> RestoreResult:
        """Undo the last operation that changed something; again, the one before it.

        Later changes by others in the same files stay, line by line, unless `force`. Without
        `past_idle_turn`, raises `NothingToUndo` right after a turn that changed nothing. With
        `expect`, undoes exactly that operation: raises `WouldLoseWork` if another one was done
        since, and `NothingToUndo` if it is undone already.
        """
        from mulligan.workspace.restore import undo

        return undo.undo(
            self.project, keep_dirty=keep_dirty, force=force, preview=preview,
            past_idle_turn=past_idle_turn, expect=expect,
        )  # fmt: skip

    def redo(
        self,
        *,
        keep_dirty: bool = False,
        force: bool = False,
        preview: bool = False,
        expect: int | None = None,
    ) -> RestoreResult:
        """Undo the last undo; with `expect`, exactly the undo with that number."""
        from mulligan.workspace.restore import undo

        return undo.redo(
            self.project, keep_dirty=keep_dirty, force=force, preview=preview, expect=expect
        )

    def operations(self, limit: int | None = None, before: int | None = None) -> list[Operation]:
        """List operations, newest first; with `before`, those older than that number."""
        return checkpoints.operation_log(self.project, limit, before)

    def search(
        self,
        text: str,
        *,
        session: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        **filters: Unpack[Filters],
    ) -> SearchResult:
        """Search all that was said and done, best matches first."""
        from mulligan.workspace.search import search

        return search.search(
            self.project, text, session=session, limit=limit, offset=offset, **filters
        )

    def stats(
        self, by: Sequence[str] = ("tool",), *, session: str | None = None, **which: Unpack[Which]
    ) -> Stats:
        """Count tool calls, their time and their outcome, grouped `by` columns."""
        from mulligan.workspace.search import tool_stats

        return tool_stats.stats(self.project, tuple(by), session=session, **which)
