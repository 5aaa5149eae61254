"""Measure the disk usage of projects."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from mulligan.core.coverage import decode_path
from mulligan.workspace.project.location import ProjectLocation, known_projects
from mulligan.workspace.results.files import plain

CONTENTS, JOURNAL, SEARCH, INDEXES, OTHER = "contents", "journal", "search", "indexes", "other"
PARTS = (CONTENTS, JOURNAL, SEARCH, INDEXES, OTHER)


class Sizes(NamedTuple):
    """The bytes of a project's data in the home.

    `contents` are the packs; `journal` holds sessions, operations and checkpoints; `search` and
    `indexes` are derived and can be rebuilt.
    """

    project: str
    root: str
    contents: int
    journal: int
    search: int
    indexes: int
    other: int

    @property
    def total(self) -> int:
        return sum(getattr(self, part) for part in PARTS)

    def as_json(self) -> dict[str, Any]:
        return plain(self) | {"total": self.total}


class HomeSizes(NamedTuple):
    """All projects, the largest first, and the free bytes of their disk."""

    projects: tuple[Sizes, ...]
    free: int

    def as_json(self) -> dict[str, Any]:
        return {"projects": [each.as_json() for each in self.projects], "free": self.free}


def sizes(home: str) -> HomeSizes:
    """Measure all projects of a home, without opening them."""
    projects = [sizes_of(project) for project in known_projects(home)]
    space = os.statvfs(home)
    return HomeSizes(
        tuple(sorted(projects, key=lambda each: each.total, reverse=True)),
        space.f_bavail * space.f_frsize,
    )


def sizes_of(project: ProjectLocation) -> Sizes:
    """Measure one project."""
    parts = dict.fromkeys(PARTS, 0)
    for name, size in _files(project.directory):
        parts[_part(name)] += size
    return Sizes(project.id, decode_path(project.root), **parts)


def _files(directory: str, below: str = "") -> Iterator[tuple[str, int]]:
    """Yield every file, relative to the project's directory, with its bytes."""
    with os.scandir(directory) as entries:
        for each in entries:
            try:
                if each.is_dir(follow_symlinks=False):
                    yield from _files(each.path, f"{below}{each.name}/")
                else:
                    yield below + each.name, each.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                # Running agents create and delete files; a deleted one uses no space.
                continue


def _part(name: str) -> str:
    if name.startswith("objects/") and name.endswith(".pack"):
        return CONTENTS
    for start, part in (("journal.", JOURNAL), ("search.", SEARCH), ("objects/index.", INDEXES)):
        if name.startswith(start):
            return part
    return INDEXES if name == "index" else OTHER
