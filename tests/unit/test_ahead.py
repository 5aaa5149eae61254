"""Looking ahead: what changed is in the store before anybody asks, and counts for nothing yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

import mulligan
from mulligan import Workspace
from mulligan.errors import Corrupt
from mulligan.workspace.snapshot import prefetch


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    found = tmp_path / "project"
    (found / "src").mkdir(parents=True)
    (found / "src" / "app.py").write_text("one\n")
    return found


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with mulligan.open(root, watch=True) as found:
        found.checkpoint()
        yield found


def has(workspace: Workspace, content: str) -> Callable[[], bool]:
    id = sha256(content.encode()).digest()
    return lambda: workspace.project.store.has(id)


def wait_until(happened: Callable[[], bool]) -> None:
    while not happened():
        time.sleep(0.01)


def save(root: Path, name: str, content: str) -> None:
    """Write a file in one step: one that is half written would be read ahead as it is."""
    aside = root.parent / "saved"
    aside.write_text(content)
    aside.rename(root / name)


def test_what_changed_is_stored_once_all_is_quiet_and_nothing_is_recorded(
    workspace: Workspace, root: Path
) -> None:
    before = workspace.log(), workspace.operations()
    save(root, "src/app.py", "two\n")
    (root.parent / "new").mkdir()
    (root.parent / "new" / "file").write_text("new\n")
    (root.parent / "new").rename(root / "new")
    wait_until(has(workspace, "two\n"))
    wait_until(has(workspace, "new\n"))
    assert (workspace.log(), workspace.operations()) == before
    assert [each.path for each in workspace.status().changed_files] == ["new/file", "src/app.py"]
    taken = workspace.checkpoint()
    assert taken.changes == (1, 1, 0)
    assert workspace.maintenance.verify().clean


def test_a_checkpoint_after_a_look_ahead_is_the_one_that_a_full_look_takes(
    workspace: Workspace, root: Path
) -> None:
    save(root, "src/app.py", "two\n")
    wait_until(has(workspace, "two\n"))
    (root / "src" / "app.py").chmod(0o755)
    (root / "src" / "link").symlink_to("app.py")
    taken = workspace.checkpoint()
    with mulligan.open(root) as plain:
        assert plain.checkpoint().tree == taken.tree


def test_a_file_that_is_written_all_the_time_is_read_ahead_once_between_two_verbs(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "PAUSE_SECONDS", 0.01)
    save(root, "src/app.py", "two\n")
    wait_until(has(workspace, "two\n"))
    for number in range(5):
        save(root, "src/app.py", f"{number} more\n")
        time.sleep(0.1)
    assert not any(has(workspace, f"{number} more\n")() for number in range(5))
    workspace.checkpoint()
    assert has(workspace, "4 more\n")()
    save(root, "src/app.py", "three\n")
    wait_until(has(workspace, "three\n"))


@pytest.mark.parametrize("limit", ["MAX_PREFETCHED_FILES", "MAX_PREFETCHED_BYTES"])
def test_much_at_a_time_is_left_to_the_verbs(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(prefetch, limit, 0)
    looked = threading.Event()
    is_little = prefetch.Prefetcher._is_small

    def noted(self: prefetch.Prefetcher, paths: frozenset[bytes]) -> bool:
        found = is_little(self, paths)
        looked.set()
        return found

    monkeypatch.setattr(prefetch.Prefetcher, "_is_small", noted)
    save(root, "a", "first\n")
    save(root, "b", "second\n")
    looked.wait()
    assert not has(workspace, "first\n")()
    assert workspace.checkpoint().changes == (2, 0, 0)


def test_those_who_wait_for_changes_are_told_of_what_was_read_ahead(
    workspace: Workspace, root: Path
) -> None:
    assert workspace.project.watcher is not None
    workspace.checkpoint()
    save(root, "src/app.py", "two\n")
    wait_until(has(workspace, "two\n"))
    assert workspace.project.watcher.wait(0)


def test_a_look_ahead_that_fails_is_said_by_nobody_and_the_next_verb_works(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "PAUSE_SECONDS", 0.01)
    failed = threading.Event()

    def fail(*given: object, **more: object) -> None:
        failed.set()
        raise Corrupt("damaged")

    with monkeypatch.context() as patched:
        patched.setattr(prefetch, "take_snapshot", fail)
        save(root, "src/app.py", "two\n")
        failed.wait()
    assert workspace.checkpoint().changes == (0, 1, 0)
    save(root, "src/app.py", "three\n")
    wait_until(has(workspace, "three\n"))


def test_what_was_read_ahead_and_never_asked_for_is_freed(workspace: Workspace, root: Path) -> None:
    kept = (root / "src" / "app.py").read_text()
    save(root, "src/app.py", "two\n" * 1000)
    wait_until(has(workspace, "two\n" * 1000))
    save(root, "src/app.py", kept)
    workspace.checkpoint()
    workspace.maintenance.gc()
    assert not has(workspace, "two\n" * 1000)()
    assert workspace.maintenance.verify().clean


def test_a_closed_workspace_leaves_no_thread(root: Path) -> None:
    before = set(threading.enumerate())
    with mulligan.open(root, watch=True) as workspace:
        workspace.checkpoint()
        save(root, "src/app.py", "two\n")
    assert set(threading.enumerate()) <= before
