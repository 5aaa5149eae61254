"""Take checkpoints: observe the disk, attribute what changed, record both."""

from __future__ import annotations

from collections.abc import Iterable

from mulligan.core.coverage import storable
from mulligan.journal import sessions
from mulligan.workspace.attribution.observation import observing
from mulligan.workspace.attribution.observe import include_paths
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.results.files import Changes, Checkpoint
from mulligan.workspace.snapshot.checkpoints import count, result


def take(
    project: OpenProject,
    message: str,
    *,
    include: Iterable[bytes] = (),
    kind: str = "manual",
    session: str | None = None,
) -> Checkpoint:
    """Objects first, then the checkpoint and its operation in one transaction."""
    message, include = storable(message), tuple(include)
    with project.locked():
        owner = sessions.resolve(project.journal, session).id if session is not None else None
        if include:
            include_paths(project, include)
        with observing(project) as now:
            now.commit()
            changes = Changes(added=now.seen.files)
            if now.latest is not None:
                # Before it counts: a store that cannot be read makes no checkpoint.
                changes = count(project.differences(now.latest.tree, now.seen.tree))
            with project.journal.writing() as db:
                row = now.checkpoint(db, kind=kind, message=message, session=owner)
                now.record(db, kind="checkpoint", after=row, session=owner)
        project.save_cache()
    return result(project, row, changes, now.seen.coverage)
