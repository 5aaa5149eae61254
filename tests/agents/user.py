"""Somebody who works with an agent and has Mulligan behind it; and what Mulligan says of that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import task
from programs import Agent, Place
from scripted_model import ScriptedModel

NAMES = {"claude": "claude-code", "codex-code-mode": "codex"}

# Ignored folders are kept only for those who want them to be.
KEPT = "!build/\n!vendor/\n"


class User(NamedTuple):
    """Somebody with a home, a project in it and an agent."""

    agent: Agent
    home: Path
    project: Path

    @property
    def name(self) -> str:
        return NAMES.get(self.agent.name, self.agent.name)

    @property
    def own(self) -> dict[str, str]:
        """What of the environment is Mulligan's; and OpenCode, which fetches its package for
        plugins when it first sees one, shall do without the network."""
        return {"MULLIGAN_HOME": str(self.home / "mulligan"), "npm_config_offline": "true"}

    def mulligan(self, *arguments: str, code: int | None = 0) -> str:
        return self.ran(*arguments, code=code).stdout

    def ran(self, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        program = self.agent.program.install()
        environment = {
            "HOME": str(self.home),
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            **self.own,
        }
        done = subprocess.run(
            [sys.executable, "-m", "mulligan", *arguments], cwd=self.project, env=environment,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert code is None or done.returncode == code, (arguments, done.stdout, done.stderr)
        return done

    def asked(self, *arguments: str, code: int | None = 0) -> Any:
        return json.loads(self.mulligan("--json", *arguments, code=code))

    def place(self, model: ScriptedModel) -> Place:
        return Place(self.project, self.home, model.url)

    def run(
        self,
        model: ScriptedModel,
        prompt: str,
        *,
        resume: bool = False,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """One turn of the agent, with Mulligan behind it."""
        own = {**self.own, **(environment or {})}
        return self.agent.run(
            self.place(model), prompt, resume=resume, options=options, environment=own
        )


def person(agent: Agent, project: Path, home: Path) -> User:
    home.mkdir()
    if not (project / ".mulliganignore").exists():
        task.prepare(project)
        (project / ".mulliganignore").write_text(KEPT)
    return User(agent, home, project)


def calls(user: User) -> int:
    """The calls; in Codex's code mode without the scripts that make them."""
    names = [each["data"]["name"] for each in entries(user, "tool_call")]
    return len(names) - names.count("exec")


def prompts(user: User) -> list[str]:
    # OpenCode puts a prompt of several words into quotes.
    return [each["content"].strip('"') for each in entries(user, "user_input")]


def entries(user: User, kind: str) -> list[dict[str, Any]]:
    found = user.asked("session", "show", "--full", "--all-branches")["entries"]
    return [each for each in found if each["type"] == kind]


def pending(user: User) -> dict[str, str]:
    """The files with changes to be decided on, and what happened to each."""
    return {each["path"]: each["status"] for each in user.asked("pending")["files"]}


def changed(before: Mapping[str, str], project: Path) -> dict[str, str]:
    after = task.files(project)
    words = {(True, True): "modified", (True, False): "deleted", (False, True): "added"}
    return {
        name: words[name in before, name in after]
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }
