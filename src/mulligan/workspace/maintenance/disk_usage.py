"""How much room histories take on the disk, and for what."""

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
    """The bytes that a project takes in the home.

    `contents` are the packs, with everything that checkpoints hold; `journal` the sessions,
    operations and checkpoints; `search` and `indexes` are derived, and can be made again.
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
    """All projects, the largest first, and what is left on the disk that they are on."""

    projects: tuple[Sizes, ...]
    free: int

    def as_json(self) -> dict[str, Any]:
        return {"projects": [each.as_json() for each in self.projects], "free": self.free}


def sizes(home: str) -> HomeSizes:
    """The sizes of all projects that have data in a home. Opens none of them."""
    found = [sizes_of(project) for project in known_projects(home)]
    space = os.statvfs(home)
    return HomeSizes(
        tuple(sorted(found, key=lambda each: each.total, reverse=True)),
        space.f_bavail * space.f_frsize,
    )


def sizes_of(project: ProjectLocation) -> Sizes:
    """The sizes of one project, by what its files are for."""
    parts = dict.fromkeys(PARTS, 0)
    for name, size in _files(project.directory):
        parts[_part(name)] += size
    return Sizes(project.id, decode_path(project.root), **parts)


def _files(directory: str, below: str = "") -> Iterator[tuple[str, int]]:
    """Every file, as a path from the project's directory, and its bytes."""
    with os.scandir(directory) as found:
        for each in found:
            try:
                if each.is_dir(follow_symlinks=False):
                    yield from _files(each.path, f"{below}{each.name}/")
                else:
                    yield below + each.name, each.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                # Files come and go beside running agents; one that is gone takes no room.
                continue


def _part(name: str) -> str:
    if name.startswith("objects/") and name.endswith(".pack"):
        return CONTENTS
    for start, part in (("journal.", JOURNAL), ("search.", SEARCH), ("objects/index.", INDEXES)):
        if name.startswith(start):
            return part
    return INDEXES if name == "index" else OTHER
