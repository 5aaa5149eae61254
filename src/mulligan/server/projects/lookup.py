"""Find the project of a session, a checkpoint or a path.

Open projects are searched first; of the others only the journal is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from mulligan.errors import MulliganError, NotFound
from mulligan.journal import checkpoints, sessions
from mulligan.journal.db import Database
from mulligan.journal.migrations import JOURNAL
from mulligan.server.projects.registry import Registry
from mulligan.workspace.project.location import ProjectLocation, known_projects


def chosen(registry: Registry, given: str | None, *, create: bool = False) -> str:
    """Return the id of the project that the client names by id or path, else the default.

    With `create`, a new directory becomes a project. The default is the project that the server
    was started for, else the most recently updated one.
    """
    if given:
        if os.path.isabs(given):
            return registry.opened_at(given, create=create).workspace.project.location.id
        return str(registry.described(given)["project"])
    if registry.default_project is not None:
        return registry.default_project
    for row in registry.listed():
        if row["exists"] and row["problem"] is None:
            return str(row["project"])
    raise NotFound("There is no project yet; give a directory as `project`.")


def of_session(registry: Registry, id: str) -> str | None:
    """Return the project of a session, by the session's full id."""
    return _where(registry, lambda journal: sessions.by_id(journal, id) is not None)


def of_checkpoint(registry: Registry, id: str) -> str | None:
    """Return the project of a checkpoint, by the checkpoint's full id."""
    return _where(registry, lambda journal: checkpoints.by_id(journal, id) is not None)


@contextmanager
def journal_of(registry: Registry, project: ProjectLocation) -> Iterator[Database]:
    """Open the journal of a project for reading; raises `NotFound` if it has none."""
    workspace = registry.if_open(project.id)
    if workspace is not None:
        yield workspace.project.journal
        return
    path = project.path("journal.sqlite")
    if not os.path.exists(path):
        raise NotFound(f"{os.fsdecode(project.root)} has no journal.")
    with closing(Database(path, JOURNAL)) as journal:
        yield journal


def _where(registry: Registry, holds: Callable[[Database], Any]) -> str | None:
    projects = known_projects(registry.home)
    projects.sort(key=lambda project: registry.if_open(project.id) is None)
    for project in projects:
        try:
            with journal_of(registry, project) as journal:
                if holds(journal):
                    return project.id
        except (MulliganError, OSError):
            # An unreadable journal cannot serve the request either.
            continue
    return None
