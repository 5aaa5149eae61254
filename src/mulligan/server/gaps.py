"""What the server wants of a project and no verb of the workspace gives yet."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from mulligan.core import tree
from mulligan.core.coverage import text
from mulligan.errors import NotFound, Unsupported, WouldLoseWork
from mulligan.files.reach import OPEN_FILE, Directories
from mulligan.journal import checkpoints, operations, views
from mulligan.server.wire import MESSAGE_LIMIT, too_large
from mulligan.workspace import checkpoints as taking
from mulligan.workspace.home import Project, is_imported, register
from mulligan.workspace.results import Checkpoint, Forgotten, Operation
from mulligan.workspace.upkeep import needed
from mulligan.workspace.workspace import Workspace

FILE_LIMIT = 1 << 30


class Content(NamedTuple):
    """The bytes of a file; `id` is their SHA-256, in hex, where that is known beforehand."""

    data: bytes
    id: str


def open_project(project: Project, home: str, *, watch: bool, wait: float) -> Workspace:
    """Opens a project. One that only logs have told of stays so: to read is not to protect."""
    imported = is_imported(project)
    try:
        workspace = Workspace(project, home, watch=watch, wait=wait)
    except Unsupported:
        # The system lets a user have only so many watchers; things are slower without.
        workspace = Workspace(project, home, wait=wait)
    if imported:
        os.unlink(project.path("project.json"))
        register(project, imported=True)
    return workspace


def checkpoint_page(
    workspace: Workspace, limit: int, before: str | None
) -> tuple[list[Checkpoint], bool]:
    """Some checkpoints, newest first, older than one; and whether there are more."""
    top = 1 << 62
    if before is not None:
        row = checkpoints.resolve(workspace.journal, before)
        top = workspace.journal.row("SELECT seq FROM checkpoints WHERE id = ?", row.id)[0]
    sql = "SELECT id FROM checkpoints WHERE seq < ? ORDER BY seq DESC LIMIT ?"
    names = [name for (name,) in workspace.journal.rows(sql, top, limit + 1)]
    return [workspace.find(name) for name in names[:limit]], len(names) > limit


def operation_page(
    workspace: Workspace, limit: int, before: int | None
) -> tuple[list[Operation], bool]:
    """Some operations, newest first, older than one; and whether there are more."""
    rows = operations.newest_first(workspace.journal, limit + 1, before)
    return [taking.operation(row) for row in rows[:limit]], len(rows) > limit


def forget_checkpoint(workspace: Workspace, name: str) -> Forgotten:
    """Drops one checkpoint; raises `WouldLoseWork` for one that the project needs."""
    with workspace.locked():
        row = checkpoints.resolve(workspace.journal, name)
        if row.id in needed(workspace):
            raise WouldLoseWork(
                f"Checkpoint {row.id} is the latest, or the next undo needs it; it was kept."
            )
        with workspace.journal.writing() as db:
            checkpoints.delete(db, [row.id])
            views.forget(db)
        return Forgotten((row.id,), checkpoints.count(workspace.journal))


def content_in_checkpoint(workspace: Workspace, name: str, path: str) -> Content:
    """A file of a checkpoint, guarded ones included."""
    row = checkpoints.resolve(workspace.journal, name)
    way = workspace.path(path)
    for root in (row.tree, row.guarded):
        entry = tree.find(root, way, workspace.load) if way else None
        if entry is not None and not entry.is_directory:
            if entry.size > FILE_LIMIT:
                raise too_large(FILE_LIMIT)
            return Content(workspace.store.get(entry.id), entry.id.hex())
    raise NotFound(f"Checkpoint {row.id} has no file {path}.")


def content_on_disk(workspace: Workspace, path: str) -> Content:
    """An ordinary file as it is now, reached without following a link."""
    way = workspace.path(path)
    folder, _slash, name = way.rpartition(b"/")
    try:
        if not name or b".git" in way.split(b"/"):
            raise NotFound(f"There is no file {path} for you here.")
        with Directories(workspace.project.root) as directories:
            fd = os.open(name, OPEN_FILE, dir_fd=directories.open(folder))
            with open(fd, "rb") as file:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode):
                    raise NotFound(f"{path} is not an ordinary file.")
                if status.st_size > MESSAGE_LIMIT:
                    raise too_large(MESSAGE_LIMIT)
                looks = f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
                return Content(file.read(MESSAGE_LIMIT), looks)
    except OSError as problem:
        reason = problem.strerror or "cannot be read"
        raise NotFound(f"{text(way)}: {reason}.") from problem
