"""Count the modules and functions that four everyday requests pass through.

    python bench/walks.py [--names]

Each request runs in this process with a profile hook in every thread. `scans` counts how often
the project's files were scanned for it. `--names` lists the functions in the order of their first
call, as ARCHITECTURE.md's walks do.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import mulligan

PACKAGE = str(Path(mulligan.__file__).parent) + os.sep
SCAN = "take_snapshot"


class Trace:
    """Functions of Mulligan, in the order of their first call."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str], None] = {}
        self.scans = 0
        self.active = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if self.active and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            module = frame.f_code.co_filename.removeprefix(PACKAGE).removesuffix(".py")
            if not frame.f_code.co_name.startswith("<"):
                self.functions.setdefault((module, frame.f_code.co_qualname))
            self.scans += frame.f_code.co_name == SCAN

    @contextmanager
    def on(self) -> Iterator[None]:
        self.active = True
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.active = False

    def row(self) -> tuple[int, int, int]:
        return len({module for module, _name in self.functions}), len(self.functions), self.scans


def checkpoint(root: Path, trace: Trace) -> None:
    with mulligan.open(root) as workspace:
        workspace.checkpoint("first")
        (root / "a.txt").write_text("one\ntwo\n")
        with trace.on():
            workspace.checkpoint("second")


def hook_after_a_tool_call(root: Path, trace: Trace) -> None:
    from mulligan.core.hook_events import HookEvent
    from mulligan.workspace.hooks import happened
    from mulligan.workspace.opening import open_project

    def event(kind: str, **more: Any) -> HookEvent:
        base = {"kind": kind, "agent": "claude-code", "session": "s1", "directory": str(root)}
        return HookEvent.from_json(base | more)

    call = {"call": "c1", "tool": "Write", "input": {}, "paths": [str(root / "a.txt")]}
    with open_project(root) as project:
        happened(project, event("prompt", text="Go."))
        happened(project, event("call_begins", **call))
        (root / "a.txt").write_text("one\ntwo\n")
        ended = event("call_ends", ok=True, **call)
        with trace.on():
            happened(project, ended)


def message_over_http(root: Path, trace: Trace) -> None:
    with mulligan.open(root) as workspace:
        session, project = workspace.sessions.create(agent="bench"), workspace.project.location.id
    entries = {"entries": [{"type": "user_input", "content": "Rename it."}]}
    path = f"/api/v1/projects/{project}/sessions/{session.id}/entries"
    asyncio.run(_post(path, entries, trace))


def hunk_undone_from_the_page(root: Path, trace: Trace) -> None:
    (root / "a.txt").write_text("one\n")
    with mulligan.open(root) as workspace:
        session, project = workspace.sessions.create(agent="bench"), workspace.project.location.id
        with workspace.sessions.turn(session.id, "Change it"):
            (root / "a.txt").write_text("one\ntwo\n")
        (hunk,) = workspace.review.pending().hunks
    asyncio.run(_post(f"/api/v1/projects/{project}/discard", {"hunks": [hunk.id]}, trace))
    assert (root / "a.txt").read_text() == "one\n"


async def _post(path: str, body: dict[str, Any], trace: Trace) -> None:
    """Send one request to the ASGI application, without a socket."""
    from mulligan.server.app import create_app
    from mulligan.server.http.access import Access
    from mulligan.server.projects.registry import Registry

    registry = Registry(os.environ["MULLIGAN_HOME"], watch=False)
    app = create_app(registry, access=Access("t", port=80))
    registry.start()
    content = json.dumps(body).encode()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "path": path, "raw_path": path.encode(), "query_string": b"", "scheme": "http",
        "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer t"),
                    (b"content-type", b"application/json"),
                    (b"content-length", str(len(content)).encode())],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await registry.workspace(path.split("/")[4])  # a server has the project open already
    with trace.on():
        await app(scope, receive, send)
    await registry.close()
    assert sent[0]["status"] < 300, sent


WALKS: dict[str, Callable[[Path, Trace], None]] = {
    "a checkpoint": checkpoint,
    "a message over HTTP": message_over_http,
    "a hunk undone from the page": hunk_undone_from_the_page,
    "a hook after a tool call": hook_after_a_tool_call,
}


def main() -> None:
    print(f"{'':30} {'modules':>8} {'functions':>10} {'scans':>6}")
    for name, walk in WALKS.items():
        trace = Trace()
        with tempfile.TemporaryDirectory() as folder:
            os.environ["MULLIGAN_HOME"] = os.path.join(folder, "home")
            root = Path(folder, "project")
            root.mkdir()
            (root / "b.txt").write_text("b\n")
            threading.setprofile(trace)  # also for threads that start before the request
            walk(root, trace)
        modules, functions, scans = trace.row()
        print(f"{name:30} {modules:8} {functions:10} {scans:6}")
        if "--names" in sys.argv:
            for module, function in trace.functions:
                print(f"    {module.replace(os.sep, '.')}.{function}")


if __name__ == "__main__":
    main()
