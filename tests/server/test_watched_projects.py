"""A server watches the files of the projects used last, and never more than a few of them."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from serving import Api, Server, following, until

import mulligan
from mulligan.server.projects import watch
from mulligan.server.projects.registry import Registry
from mulligan.server.projects.watch import MAX_WATCHED_PROJECTS
from mulligan.workspace.snapshot.prefetch import Prefetcher
from mulligan.worktree.watch import inotify

WATCH_THREADS = ("mulligan-watch", "mulligan-ahead", "watch-socket")


def inotify_instances(pid: int | str = "self") -> int:
    count = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            count += os.readlink(f"/proc/{pid}/fd/{fd}") == "anon_inode:inotify"
        except FileNotFoundError:
            continue
    return count


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this does not come true"
        time.sleep(0.02)


def make_projects(folder: Path, count: int) -> list[Path]:
    paths = [folder / f"project{number:02}" for number in range(count)]
    for path in paths:
        (path / "sub").mkdir(parents=True)
        (path / "sub" / "a.txt").write_text("one\n")
    return paths


@pytest.fixture
def few_slots(monkeypatch: pytest.MonkeyPatch) -> int:
    """A server that watches two projects at a time."""
    monkeypatch.setattr(watch, "MAX_WATCHED_PROJECTS", 2)
    return 2


@pytest.fixture
def paths(tmp_path: Path, mulligan_home: Path) -> list[Path]:
    """Projects that have a checkpoint each."""
    found = make_projects(tmp_path / "projects", 5)
    for path in found:
        with mulligan.open(path) as workspace:
            workspace.checkpoint("first")
    return found


@pytest.fixture
def registry(mulligan_home: Path, few_slots: int) -> Iterator[Registry]:
    others = inotify_instances()
    opened = Registry(str(mulligan_home))
    yield opened
    asyncio.run(opened.close())
    assert inotify_instances() == others
    assert not [thread for thread in threading.enumerate() if thread.name in WATCH_THREADS]


def has_socket(path: str | Path) -> bool:
    return os.path.exists(path)


def changed_paths(api: Api, project: str) -> list[str]:
    status = api.get(f"/projects/{project}/status")
    return [each["path"] for each in status["changed_files"]]


def checkpoint_counts(api: Api) -> list[int]:
    return [row["checkpoints"] for row in api.get("/projects")["projects"]]


def test_twenty_open_projects_hold_eight_inotify_instances(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Server(home) as server, server.client() as client:
        api = Api(client)
        sockets = []
        for path in make_projects(tmp_path, 20):
            id = api.post("/projects", {"path": str(path)})["project"]
            sockets.append(home / "projects" / id / "watch.sock")
            assert inotify_instances(server.process.pid) <= MAX_WATCHED_PROJECTS
        # The projects used last are watched, the others have neither watcher nor socket.
        expected = [False] * 12 + [True] * MAX_WATCHED_PROJECTS
        wait_until(lambda: [has_socket(each) for each in sockets] == expected)
        assert inotify_instances(server.process.pid) == MAX_WATCHED_PROJECTS
        # Watched or not, every project has a first checkpoint.
        wait_until(lambda: checkpoint_counts(api) == [1] * 20)
    assert "Traceback" not in server.errors.read_text()


def test_an_evicted_project_announces_disk_edits_when_it_is_used_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, *others = make_projects(tmp_path, MAX_WATCHED_PROJECTS + 1)
    with Server(home) as server, server.client() as client, server.client() as follower:
        api = Api(client)
        id = api.post("/projects", {"path": str(first)})["project"]
        socket = home / "projects" / id / "watch.sock"
        wait_until(socket.exists)
        for path in others:
            api.post("/projects", {"path": str(path)})
        wait_until(lambda: not socket.exists())
        with following(follower, project=id) as events:
            (first / "sub" / "a.txt").write_text("edited without a watcher\n")
            # The next request tells of that edit, and starts the watcher again.
            assert changed_paths(api, id) == ["sub/a.txt"]
            until(events, "files")
            wait_until(socket.exists)
            stop = threading.Event()

            def edit() -> None:
                for number in range(600):
                    (first / "sub" / "a.txt").write_text(f"{number}\n")
                    if stop.wait(0.1):
                        return

            editing = threading.Thread(target=edit)
            editing.start()
            try:
                until(events, "files")
            finally:
                stop.set()
                editing.join()
    assert "Traceback" not in server.errors.read_text()


def test_a_project_in_use_stays_watched(registry: Registry, paths: list[Path]) -> None:
    kept = registry.opened_at(str(paths[0])).workspace.project
    watcher = kept.watcher
    assert watcher is not None
    for path in paths[1:]:
        registry.opened_at(str(path))
        registry.opened(kept.location.id)
    assert kept.watcher is watcher and not watcher.broken


def test_eviction_does_not_wait_for_a_running_request(
    registry: Registry, paths: list[Path]
) -> None:
    others = inotify_instances()
    busy = registry.opened_at(str(paths[0])).workspace
    wait_until(lambda: has_socket(busy.project.location.path("watch.sock")))
    with busy.project.locked():
        # The background scan waits for this request, and the end of the watcher for that scan.
        (paths[0] / "sub" / "a.txt").write_text("edited\n")
        time.sleep(0.2)
        began = time.monotonic()
        for path in paths[1:]:
            assert registry.opened_at(str(path)).workspace.status().changed_files == ()
        assert time.monotonic() - began < 10
        assert inotify_instances() - others <= 2
        assert [each.path for each in busy.status().changed_files] == ["sub/a.txt"]
    wait_until(lambda: busy.project.watcher is None)
    wait_until(lambda: inotify_instances() - others == 2)
    assert [each.path for each in busy.status().changed_files] == ["sub/a.txt"]


def test_a_project_used_while_it_is_being_evicted_is_watched_again(
    registry: Registry, paths: list[Path]
) -> None:
    busy = registry.opened_at(str(paths[0])).workspace.project
    first = busy.watcher
    with busy.locked():
        (paths[0] / "sub" / "a.txt").write_text("edited\n")
        time.sleep(0.2)
        for path in paths[1:]:
            registry.opened_at(str(path))
        # Evicted and used again, twice, before the first watcher could be closed.
        registry.opened(busy.location.id)
        for path in paths[1:]:
            registry.opened_at(str(path))
        registry.opened(busy.location.id)
    wait_until(lambda: busy.watcher not in (None, first))
    wait_until(lambda: has_socket(busy.location.path("watch.sock")))
    assert first is not None and first.broken


def test_a_request_of_an_evicted_project_sees_every_edit(
    registry: Registry, paths: list[Path]
) -> None:
    """Requests in many threads, each of which may evict the project of another."""
    others = inotify_instances()
    most = 0

    def work(path: Path, seed: int) -> None:
        nonlocal most
        chance = random.Random(seed)
        for number in range(15):
            workspace = registry.opened_at(str(path)).workspace
            (path / "sub" / "a.txt").write_text(f"{number}, {chance.random()}\n")
            assert [each.path for each in workspace.status().changed_files] == ["sub/a.txt"]
            workspace.checkpoint(f"{number}")
            assert workspace.status().changed_files == ()
            most = max(most, inotify_instances() - others)

    with ThreadPoolExecutor(len(paths)) as threads:
        for done in [threads.submit(work, path, seed) for seed, path in enumerate(paths)]:
            done.result(120)
    assert 0 < most <= 2


def test_projects_opened_at_once_are_watched_once(registry: Registry, paths: list[Path]) -> None:
    others = inotify_instances()
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda path: registry.opened_at(str(path)), paths * 6))
    wait_until(lambda: inotify_instances() - others == 2)


def test_the_server_ends_while_projects_are_being_evicted(
    mulligan_home: Path, paths: list[Path], few_slots: int
) -> None:
    others = inotify_instances()
    for _ in range(5):
        registry = Registry(str(mulligan_home))
        for path in paths * 2:
            registry.opened_at(str(path))
        asyncio.run(registry.close())
        assert inotify_instances() == others
        assert not [each for each in threading.enumerate() if each.name in WATCH_THREADS]
        # A request that outlives the server starts no watcher.
        late = registry.opened_at(str(paths[0])).workspace
        assert late.project.watcher is None
        late.close()


def test_a_project_is_watched_once_the_kernel_has_an_instance_again(
    registry: Registry, paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused:
        def __init__(self, root: bytes) -> None:
            raise mulligan.errors.Unsupported("The kernel gives no more inotify instances.")

    with monkeypatch.context() as patch:
        patch.setattr(inotify, "Watcher", Refused)
        workspace = registry.opened_at(str(paths[0])).workspace
        assert workspace.project.watcher is None
        assert workspace.status().changed_files == ()
    registry.opened_at(str(paths[0]))
    assert isinstance(workspace.project.watcher, inotify.Watcher)
    assert isinstance(workspace.project.prefetcher, Prefetcher)
