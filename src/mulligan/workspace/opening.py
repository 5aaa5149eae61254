"""Open a project: find it, finish interrupted operations, start its watcher."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from mulligan.core.coverage import usable
from mulligan.core.entries import STATUSES
from mulligan.errors import NotFound
from mulligan.journal import operations, sessions
from mulligan.workspace.open_project import CANNOT_WRITE_NOW, OpenProject
from mulligan.workspace.project.location import (
    ProjectLocation,
    find_project,
    home_directory,
    register,
)
from mulligan.workspace.project.lock import WAIT_SECONDS

if TYPE_CHECKING:
    from mulligan.workspace.results.files import Operation, Progress


def open_project(
    path: str | os.PathLike[str] = ".",
    *,
    home: str | None = None,
    watch: bool = False,
    allow_any_root: bool = False,
    automatic: bool = False,
    wait: float = WAIT_SECONDS,
    progress: Progress | None = None,
    create: bool = True,
) -> OpenProject:
    """Open the project that contains `path`; `mulligan.open` says what the options mean."""
    base = home_directory(usable(home) if home else None)
    location = find_project(
        os.fspath(path), base, allow_any_root=allow_any_root, automatic=automatic
    )
    if not create and not os.path.exists(location.path("journal.sqlite")):
        raise NotFound(
            f"There is no checkpoint of {os.fsdecode(location.root)} yet; "
            "`mulligan checkpoint` takes the first."
        )
    if create:
        # The user works here: a folder known only from imported logs is a project from now on.
        register(location)
    return open_location(location, base, watch=watch, wait=wait, progress=progress)


def open_location(
    location: ProjectLocation,
    home: str,
    *,
    watch: bool = False,
    wait: float = WAIT_SECONDS,
    progress: Progress | None = None,
) -> OpenProject:
    """Open a project that is already found.

    1. Open the journal and the store.
    2. Start the watcher, if the caller wants one.
    3. Index pack records that a killed process left unindexed.
    4. Finish interrupted operations.
    5. Mark sessions of dead processes as stopped.
    """
    project = OpenProject(location, home, recover=_recover, wait=wait, progress=progress)
    try:
        if watch:
            start_watching(project)
        project.index_new_packs()
        if operations.unfinished(project.journal):
            _recover_unless_busy(project)
        if sessions.with_process(project.journal, STATUSES[:-1]):
            _stop_dead_sessions(project)
    except BaseException:
        project.close()
        raise
    return project


def start_watching(project: OpenProject) -> None:
    """Watch the project's files, and scan changed ones in the background."""
    # Imported for cost: a hook has no watcher.
    from mulligan.workspace.snapshot.prefetch import Prefetcher
    from mulligan.worktree.watch.inotify import Watcher

    project.watcher = Watcher(project.location.root)
    project.prefetcher = Prefetcher(project, project.watcher)


def _recover(project: OpenProject) -> tuple[Operation, ...]:
    # Imported for cost: a hook needs the restore code only after a crash.
    from mulligan.workspace.restore import recover

    return recover.unfinished(project)


def _recover_unless_busy(project: OpenProject) -> None:
    # Imported for cost, as above.
    from mulligan.workspace.restore import recover

    project.recovered = recover.if_needed(project)


def _stop_dead_sessions(project: OpenProject) -> None:
    # Imported for cost: most projects have no session of a dead process.
    from mulligan.workspace.sessions.sessions import stop_dead_sessions

    with suppress(*CANNOT_WRITE_NOW):
        stop_dead_sessions(project)
