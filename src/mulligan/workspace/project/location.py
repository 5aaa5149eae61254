"""Locate the data of projects, and the project of a directory.

    home/
      config.toml               the user's settings, if any
      projects/<id>/
        project.json            the path of the project
        lock                    held while a process writes
        journal.sqlite          checkpoints, operations, sessions
        objects/                contents
        index                   the stat cache

A project's id is derived from its path. A moved project is recognised by its inode.
"""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

import fcntl
import json
import os
import sys
from hashlib import sha256
from threading import get_ident
from typing import Any, NamedTuple

from mulligan.core.coverage import decode_path, encode_path, usable
from mulligan.errors import NotFound, RefusedRoot, UsageError
from mulligan.store.fsync import make_directories, sync_directory
from mulligan.workspace.project import home
from mulligan.workspace.project.refused_roots import is_too_wide, refuse_as_project

home_directory = home.home_directory
GET_GENERATION = 0x80087601


class ProjectLocation(NamedTuple):
    """A project's directory, its id, and the directory of its data."""

    id: str
    root: bytes
    directory: str

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)


def find_project(
    start: str | bytes, home: str, *, allow_any_root: bool = False, automatic: bool = False
) -> ProjectLocation:
    """Find the project that a directory belongs to.

    In this order: the nearest known project at or above it; the nearest directory with a
    `.mulligan.toml`; the top of the git work tree; the directory itself. `/` and home directories
    are skipped on the way up and refused as a result, unless the caller allows them.

    `automatic`: a hook names the directory, not the user, so `refuse_as_project` applies too.
    """
    try:
        here = os.path.realpath(os.fsencode(start))
    except ValueError as problem:
        raise UsageError(f"{start!r} cannot be the path of a directory.") from problem
    if not os.path.isdir(here):
        if os.path.exists(_project(here, home).path("journal.sqlite")):
            raise NotFound(
                f"{decode_path(here)} is gone, but its history is not: make the directory again, "
                "and `mulligan restore @` in it brings back what was there."
            )
        if os.path.lexists(here):
            raise NotFound(f"{decode_path(here)} is not a directory.")
        raise NotFound(f"There is no directory {decode_path(here)}.")
    above = list(_upwards(here))
    for known in above:
        project = _project(known, home)
        # A directory known only from imported logs is not a project yet.
        if os.path.exists(project.path("project.json")) and not is_imported(project):
            return project

    def is_allowed(root: bytes) -> bool:
        if automatic:
            return refuse_as_project(root) is None
        return allow_any_root or not is_too_wide(root)

    root = here
    for marks in (_has_settings, _is_work_tree):
        marked = next(filter(marks, above), None)
        if marked is not None and is_allowed(marked):
            root = marked
            break
    if automatic and (reason := refuse_as_project(root)) is not None:
        raise RefusedRoot(f"{decode_path(root)} is not made a project by a hook: {reason}.")
    if not allow_any_root and is_too_wide(root):
        raise RefusedRoot(
            f"{decode_path(root)} is too wide for a project; choose a directory below it, or "
            "pass --any-root."
        )
    return _moved_project(root, home) or _project(root, home)


def _has_settings(directory: bytes) -> bool:
    return os.path.lexists(os.path.join(directory, b".mulligan.toml"))


def _is_work_tree(directory: bytes) -> bool:
    """True if `.git` is here and not empty: agents' sandboxes mount empty ones."""
    dot_git = os.path.join(directory, b".git")
    if os.path.islink(dot_git) or not os.path.isdir(dot_git):
        return os.path.lexists(dot_git)
    try:
        return bool(os.listdir(dot_git))
    except OSError:
        return True


def project_of_log(directory: str, home: str) -> ProjectLocation:
    """Find the project that an imported log is about, or register its directory.

    A directory registered this way holds sessions but is not a project: it may be gone, or
    `refuse_as_project` may refuse it. Raises `UsageError` if it cannot be a path.
    """
    path = os.path.realpath(os.fsencode(usable(directory)))
    if os.path.isdir(path):
        try:
            return find_project(path, home, automatic=True)
        except RefusedRoot:
            return _project(path, home)
    for known in _upwards(path):
        project = _project(known, home)
        if os.path.exists(project.path("project.json")) and not is_imported(project):
            return project
    return _project(path, home)


def holder_of_log(path: str, home: str) -> bytes | None:
    """Return the directory of the project or git work tree that contains a log."""
    for above in _upwards(os.path.realpath(os.fsencode(os.path.dirname(path)))):
        if is_too_wide(above):
            return None
        project = _project(above, home)
        known = os.path.exists(project.path("project.json")) and not is_imported(project)
        if known or _has_settings(above) or _is_work_tree(above):
            return above
    return None


def register(project: ProjectLocation, *, imported: bool = False) -> None:
    """Record which directory a project's data belongs to.

    `imported`: only logs have named it so far, and the user has not opened it.
    """
    path = project.path("project.json")
    if os.path.exists(path) and (imported or not is_imported(project)):
        return
    make_directories(project.directory)
    content: dict[str, Any] = {
        "root": decode_path(project.root),
        "identity": _identity(project.root),
    }
    if imported:
        content["imported"] = True
    temporary = f"{path}.{os.getpid()}.{get_ident()}.tmp"
    with open(temporary, "w", encoding="ascii") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_directory(project.directory)


def is_imported(project: ProjectLocation) -> bool:
    """True if only imported logs have named the project so far."""
    content = _read(project.path("project.json"))
    return content is not None and bool(content.get("imported"))


def known_projects(home: str) -> list[ProjectLocation]:
    """Return every project with data in this home, even if its directory is gone."""
    projects = []
    base = os.path.join(home, "projects")
    for id in sorted(os.listdir(base)) if os.path.isdir(base) else ():
        content = _read(os.path.join(base, id, "project.json"))
        if content is not None:
            projects.append(
                ProjectLocation(id, encode_path(content["root"]), os.path.join(base, id))
            )
    return projects


def _project(root: bytes, home: str) -> ProjectLocation:
    id = sha256(root).hexdigest()[:16]
    return ProjectLocation(id, root, os.path.join(home, "projects", id))


def _moved_project(root: bytes, home: str) -> ProjectLocation | None:
    """Return the project that was moved here, recognised by the directory's inode."""
    identity = _identity(root)
    if identity is None:
        return None
    for project in known_projects(home):
        content = _read(project.path("project.json"))
        if (
            content is not None
            and content.get("identity") == identity
            and not os.path.lexists(project.root)
        ):
            moved = _project(root, home)
            if os.path.exists(moved.directory):
                return None
            try:
                os.rename(project.directory, moved.directory)
            except OSError:
                # Its data can still be read at the old place.
                return project._replace(root=root)
            os.unlink(moved.path("project.json"))
            register(moved, imported=bool(content.get("imported")))
            return moved
    return None


def _identity(root: bytes) -> list[int] | None:
    """Return an identity of a directory that survives a move and is never reused.

    Inode numbers are reused; an inode's generation or birth time is not. Without either of them the
    result is None, and a moved project counts as a new one.
    """
    try:
        status = os.stat(root)
    except OSError:
        return None
    born = getattr(status, "st_birthtime", None)
    if born is not None:
        return [status.st_dev, status.st_ino, int(born * 1e6)]
    if not sys.platform.startswith("linux"):
        return None
    try:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        answer = fcntl.ioctl(fd, GET_GENERATION, bytes(8))
    except OSError:
        return None
    finally:
        os.close(fd)
    return [status.st_dev, status.st_ino, int.from_bytes(answer, sys.byteorder)]


def _read(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            content = json.loads(file.read())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and "root" in content else None


def _upwards(path: bytes) -> list[bytes]:
    paths = [path]
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        paths.append(path)
    return paths
