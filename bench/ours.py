"""Mulligan, three ways: a command each time, a library in a running process, and with a watcher.

The command pays for the start of Python at every call. The library and the watcher live in a child
process (`bench/child.py`) that measures itself, so that neither the start nor the pipe is counted.
All of it runs as shipped: nothing that makes it durable is turned off.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.contestant import Contestant, run, timed

_CHILD = Path(__file__).with_name("child.py")


class Mulligan(Contestant):
    @classmethod
    def missing(cls) -> str | None:
        return _complaint([sys.executable, "-c", "import mulligan; mulligan.open"])

    def environment(self) -> dict[str, str]:
        return os.environ | {"MULLIGAN_HOME": str(self.state / "home")}


class OneShot(Mulligan):
    name = "mulligan one-shot"

    @classmethod
    def missing(cls) -> str | None:
        return _complaint([sys.executable, "-m", "mulligan", "--version"])

    def mulligan(self, *arguments: str) -> Any:
        command = [sys.executable, "-m", "mulligan", "-C", str(self.tree), *arguments, "--json"]
        return json.loads(run(command, cwd=self.tree, env=self.environment()))

    def checkpoint(self) -> float:
        answer: dict[str, Any] = {}
        seconds = timed(lambda: answer.update(self.mulligan("checkpoint")))
        self.checkpoints.append(answer["checkpoint"])
        return seconds

    def diff(self) -> float:
        answer: dict[str, Any] = {}
        seconds = timed(lambda: answer.update(self.mulligan("diff", *self.checkpoints[-2:])))
        shown = [file for file in answer["files"] if file["diff"] or file["is_binary"]]
        self.listed = sum(2 if file["old_path"] else 1 for file in shown)
        return seconds

    def restore_last(self) -> float:
        return timed(lambda: self.mulligan("restore", self.checkpoints[-2]))

    def restore_one(self, path: str) -> float:
        return timed(lambda: self.mulligan("restore", self.checkpoints[-2], path))


class Library(Mulligan):
    name = "mulligan library"
    watch = False

    def setup(self) -> None:
        self.child = subprocess.Popen(
            [sys.executable, str(_CHILD), str(self.tree), "watch" if self.watch else "plain"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment(),
        )
        self.ask("ready")

    def ask(self, verb: str, *arguments: str) -> Any:
        """Have the child do one thing, and return what it answers."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps([verb, *arguments]).encode() + b"\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(f"the child process ended with {self.child.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def checkpoint(self) -> float:
        answer = self.ask("checkpoint")
        self.checkpoints.append(answer["id"])
        return float(answer["seconds"])

    def diff(self) -> float:
        answer = self.ask("diff", *self.checkpoints[-2:])
        self.listed = answer["files"]
        return float(answer["seconds"])

    def restore_last(self) -> float:
        return float(self.ask("restore", self.checkpoints[-2])["seconds"])

    def restore_one(self, path: str) -> float:
        return float(self.ask("restore", self.checkpoints[-2], path)["seconds"])

    def peak_memory(self) -> int:
        return int(self.ask("memory")["bytes"])

    def close(self) -> None:
        child = getattr(self, "child", None)
        if child is None:
            return
        child.stdin.close()
        try:
            child.wait(timeout=30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()


class Watcher(Library):
    name = "mulligan watcher"
    watch = True


OURS: dict[str, type[Contestant]] = {ours.name: ours for ours in (OneShot, Library, Watcher)}


def start_commands() -> dict[str, list[str]]:
    """What the start of the command is measured with, and what it is compared to."""
    script = Path(sys.executable).with_name("mulligan")
    command = [str(script)] if script.exists() else [sys.executable, "-m", "mulligan"]
    return {"python -c pass": [sys.executable, "-c", "pass"], "mulligan": [*command, "--version"]}


def _complaint(command: list[str]) -> str | None:
    """None if the command runs, else the last line of what it says."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr.strip() or "no reason").splitlines()[-1]
