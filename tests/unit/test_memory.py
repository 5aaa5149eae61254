"""Test that caches are bounded, and freed when a project is unused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mulligan
from mulligan import Workspace
from mulligan.server.projects import registry
from mulligan.server.projects.registry import Registry
from mulligan.store import objects
from mulligan.workspace import open_project as open_projects

LIMIT = 50_000


@pytest.fixture
def workspace(mulligan_home: Path, project: Path) -> Iterator[Workspace]:
    with mulligan.open(project) as opened:
        yield opened


def test_the_caches_of_a_project_stay_within_their_bounds(
    project: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_projects, "MAX_TREE_CACHE_BYTES", LIMIT)
    monkeypatch.setattr(objects, "MAX_CACHE_BYTES", LIMIT)
    # The trees are so small that Python objects outweigh their bytes.
    for number in range(600):
        (project / f"{number}").mkdir()
        (project / f"{number}" / "f").write_text(f"{number}\n")
    largest = 200_000
    for number in range(5):
        (project / f"{number}" / "f").write_text("changed\n")
        workspace.checkpoint(f"{number}")
        trees, contents = workspace.project._trees, workspace.project.store._cached
        held = sum(
            sys.getsizeof(id) + sys.getsizeof(each) + sys.getsizeof(each.data)
            for id, each in trees.items()
        )
        assert held <= LIMIT + largest
        assert len(trees) < 600
        assert sum(map(sys.getsizeof, (*contents, *contents.values()))) <= LIMIT + largest


def test_the_memory_of_a_project_is_freed_when_it_is_unused(
    mulligan_home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a").mkdir()
    (project / "a" / "f").write_text("one\n")
    opened_projects = Registry(str(mulligan_home), watch=False)
    opened = opened_projects.opened_at(str(project))
    try:
        first = opened.workspace.checkpoint("first")
        opened.check()
        assert len(opened.workspace.project._trees) > 1
        monkeypatch.setattr(registry, "MEMORY_SECONDS", -1.0)
        opened.check()
        assert len(opened.workspace.project._trees) == 1
        assert not opened.workspace.project.store._cached
        # Nothing is lost by it.
        (project / "a" / "f").write_text("two\n")
        opened.workspace.checkpoint("second")
        opened.workspace.restore(first.id)
        assert (project / "a" / "f").read_text() == "one\n"
    finally:
        opened.close()
