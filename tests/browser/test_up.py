"""`mulligan up` and `mulligan demo`: one command to the page, and Ctrl-C leaves all in order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from browsing import SECONDS

from mulligan.workspace.workspace import open_workspace
from mulligan.worktree.watch.remote import connect


@contextmanager
def running(*arguments: str, home: Path) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    """The command, and what it said of where it serves; ended by Ctrl-C if it still runs."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DISPLAY", "WAYLAND_DISPLAY")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "mulligan", *arguments, "--json"],
        env=environment | {"MULLIGAN_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline()), process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)


def test_up_takes_the_first_checkpoint_and_serves_the_page(project: Path, tmp_path: Path) -> None:
    (project / "a.txt").write_text("a\n")
    with running("up", str(project), home=tmp_path) as (where, process):
        page = httpx2.URL(where["page"])
        named = {"host": f"{page.host}:{page.port}"}
        answer = httpx2.get(where["url"], params=page.params, headers=named, timeout=SECONDS)
        assert answer.status_code == 200
        headers = named | {"cookie": answer.headers["set-cookie"].partition(";")[0]}
        found = httpx2.get(f"{where['url']}/api/v1/projects", headers=headers, timeout=SECONDS)
        assert [row["root"] for row in found.json()["projects"]] == [str(project)]
        process.send_signal(signal.SIGINT)
        _out, words = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert "First checkpoint" in words
    assert "everything is in order" in words
    with open_workspace(project, home=str(tmp_path)) as workspace:
        assert [each.kind for each in workspace.log()] == ["initial"]
        assert workspace.maintenance.verify().clean


def is_watched(project: Path, home: Path) -> bool:
    """Whether other processes can ask a watcher of the project."""
    with open_workspace(project, home=str(home)) as workspace:
        found = connect(workspace.project.location.path("watch.sock"))
    if found is not None:
        found.close()
    return found is not None


def wait_until_watched(project: Path, home: Path) -> None:
    until = time.monotonic() + SECONDS
    while not is_watched(project, home):
        assert time.monotonic() < until, "nobody watches the project"
        time.sleep(0.05)


def test_up_watches_the_project_though_nobody_looks_at_the_page(
    project: Path, tmp_path: Path
) -> None:
    (project / "a.txt").write_text("a\n")
    with running("up", str(project), "--no-browser", home=tmp_path):
        wait_until_watched(project, tmp_path)
    assert not is_watched(project, tmp_path)


def test_up_has_a_server_that_is_there_watch_the_project(project: Path, tmp_path: Path) -> None:
    (project / "a.txt").write_text("a\n")
    with running("serve", home=tmp_path):
        with running("up", str(project), "--no-browser", home=tmp_path) as (_where, process):
            process.communicate(timeout=SECONDS)
        wait_until_watched(project, tmp_path)


def test_up_uses_a_server_that_is_there(project: Path, tmp_path: Path) -> None:
    (project / "a.txt").write_text("a\n")
    with running("serve", home=tmp_path) as (first, _server):
        with running("up", str(project), "--no-browser", home=tmp_path) as (second, process):
            process.communicate(timeout=SECONDS)
        assert process.returncode == 0
        assert second["url"] == first["url"]


def test_up_refuses_what_is_no_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mulligan", "up", str(tmp_path / "nothing")],
        env=os.environ | {"MULLIGAN_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 2
    assert "is not a directory" in done.stderr


def test_the_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with running("demo", "--no-browser", home=home) as (where, process):
        page = httpx2.URL(where["page"])
        named = {"host": f"{page.host}:{page.port}"}
        answer = httpx2.get(where["url"], params=page.params, headers=named, timeout=SECONDS)
        headers = named | {"cookie": answer.headers["set-cookie"].partition(";")[0]}
        found = httpx2.get(f"{where['url']}/api/v1/projects", headers=headers, timeout=SECONDS)
        root = Path(found.json()["projects"][0]["root"])
        assert (root / "kettle/dates.py").exists()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert not root.parent.exists()
    assert not home.exists()
