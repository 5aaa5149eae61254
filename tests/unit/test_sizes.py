"""How much room histories take: every byte of a project's directory is counted once."""

from __future__ import annotations

import os
from pathlib import Path

import mulligan
from mulligan.workspace.maintenance.disk_usage import sizes, sizes_of


def test_every_byte_is_counted_and_put_to_something(project: Path, mulligan_home: Path) -> None:
    (project / "a.bin").write_bytes(os.urandom(100_000))
    with mulligan.open(project) as workspace:
        workspace.checkpoint()
        session = workspace.sessions.create(agent="ada", title="Work").id
        workspace.sessions.begin_turn(session, "Find the quince.")
        workspace.sessions.end_turn(session)
        workspace.search("quince")
        directory = Path(workspace.project.location.directory)
        known = workspace.project.location
    found = sizes_of(known)
    there = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    assert found.total == there
    assert found.contents >= 100_000
    assert found.journal > 0
    assert found.search > 0
    assert found.indexes > 0
    assert found.other < 10_000


def test_projects_come_the_largest_first(project: Path, mulligan_home: Path) -> None:
    for name, size in (("small", 10), ("large", 300_000)):
        root = project / name
        root.mkdir()
        (root / ".mulligan.toml").write_text("")
        (root / "file").write_bytes(os.urandom(size))
        with mulligan.open(root) as workspace:
            workspace.checkpoint()
    found = sizes(str(mulligan_home))
    assert [os.path.basename(each.root) for each in found.projects] == ["large", "small"]
    assert found.free > 0
    assert found.as_json()["projects"][0]["total"] == found.projects[0].total
