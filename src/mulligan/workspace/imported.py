"""Handle directories that only imported logs name.

A log is untrusted, and so is its directory. Its sessions are kept and can be read; the directory
becomes a project once its user works there. If `refuse_as_project` refuses it, its files are never
read, so that no log can bring a home directory into a store.
"""

from __future__ import annotations

from mulligan.errors import RefusedRoot
from mulligan.workspace.open_project import OpenProject
from mulligan.workspace.project.location import is_imported, register
from mulligan.workspace.project.refused_roots import refuse_as_project


def check_files_allowed(project: OpenProject) -> None:
    """Raise `RefusedRoot` if the files of an imported directory must not be read."""
    if not project.imported:
        return
    reason = refuse_as_project(project.location.root)
    # Another process may have made it a project meanwhile.
    if reason is not None and is_imported(project.location):
        raise RefusedRoot(
            f"Only imported logs name {project.root}, and {reason}: its files are not read. "
            "`mulligan -C DIR --any-root checkpoint` makes it a project."
        )


def adopt(project: OpenProject) -> None:
    """Make an imported directory a project, as it has a checkpoint of its own now."""
    if project.imported:
        register(project.location)
        project.imported = False
