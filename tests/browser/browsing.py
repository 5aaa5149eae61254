"""A server for a browser: a real process, with a home and a project of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2

from mulligan.workspace.workspace import Workspace, open_workspace

SECONDS = 30


class Served:
    """A home with a project, and its server, which can be killed and started again."""

    def __init__(self, base: Path) -> None:
        self.root = base / "kettle"
        self.home = str(base / "home")
        self.port = 0
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Starts the server, at the same port and with the same token as before."""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "mulligan", "serve", "--json", "--port", str(self.port)),
                *("--token-file", f"{self.home}.token"),
            ],
            env=os.environ | {"MULLIGAN_HOME": self.home},
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self._direct: str = json.loads(self._process.stdout.readline())["url"]
        self.port = int(self._direct.rpartition(":")[2])
        self.token = Path(self.home, "server.token").read_text("ascii").strip()
        self.url = self.page().partition("/?")[0]

    def stop(self, number: int = signal.SIGTERM) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def page(self) -> str:
        """A new address that lets a browser in, once."""
        return str(self._asked("POST", "/page-address", json={})["page"])

    def get(self, path: str) -> Any:
        return self._asked("GET", path)

    def _asked(self, method: str, path: str, **more: Any) -> Any:
        headers = {"authorization": f"Bearer {self.token}"}
        url = f"{self._direct}/api/v1{path}"
        answer = httpx2.request(method, url, headers=headers, timeout=SECONDS, **more)
        answer.raise_for_status()
        return answer.json()

    @property
    def project(self) -> str:
        found = self.get("/projects")["projects"]
        return str(found[0]["project"])

    def session(self, title: str) -> str:
        found = self.get(f"/projects/{self.project}/sessions")["sessions"]
        return str(next(each["session"] for each in found if each["title"] == title))

    def workspace(self) -> Workspace:
        """The project, as an agent's process has it open."""
        return open_workspace(self.root, home=self.home)

    def pending(self) -> int:
        return int(self.get(f"/projects/{self.project}/pending")["total"])
