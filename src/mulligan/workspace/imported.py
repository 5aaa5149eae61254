"""Folders that only imported logs speak of: what may be done there, and how they become projects.

A log's directory is a foreign word. Sessions are kept under it and can be read; the folder counts
as a project once its user works there. Files of a folder that `refuse_as_project` names are not
even looked at, so nothing of a home directory gets into a store because a log said so.
"""

from __future__ import annotations

from mulligan.errors import RefusedRoot
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.project.location import is_imported, register
from mulligan.workspace.project.refused_roots import refuse_as_project


def check_files_allowed(project: OpenProject) -> None:
    """Raise `RefusedRoot` before files are read of a folder that must not become a project."""
    if not project.imported:
        return
    reason = refuse_as_project(project.location.root)
    # Another process may have made it a project meanwhile.
    if reason is not None and is_imported(project.location):
        raise RefusedRoot(
            f"Only imported logs speak of {project.root}, and {reason}: its files are not looked "
            "at. If you mean it, `mulligan -C DIR --any-root checkpoint` makes it a project."
        )


def adopt(project: OpenProject) -> None:
    """Make a project of a folder that only logs spoke of: it has a checkpoint of its own."""
    if project.imported:
        register(project.location)
        project.imported = False
